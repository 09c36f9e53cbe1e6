"""`python -m twinspan.analysis.cli`: the command line without its script."""

from twinspan.analysis.cli import main

if __name__ == "__main__":
    main()
