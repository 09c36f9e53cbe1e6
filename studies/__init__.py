"""Studies on a real language model, run by command: `python -m studies --help`."""
