"""Takes over the tables and pictures of a study, and puts the tables into its page.

    python docs/refresh_studies.py FOLDER      # of `make study-small`: what others will be held to
    python docs/refresh_studies.py FOLDER --further gemma3    # of something that is not within it
    python docs/refresh_studies.py --check     # does the page show the tables as they are kept?

The page has a line `<!-- table: NAME -->` before each table.
"""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs" / "studies" / "real-model.md"
PICTURES: Final = ROOT / "docs" / "pictures" / "studies"
KEPT: Final = ROOT / "studies" / "expected"
PLACE: Final = re.compile(r"(<!-- table: ([\w/-]+) -->\n\n)(?:\|.*\n)*\n?")


def take_over(folder: Path, name: str | None) -> None:
    """Keep a folder's tables and pictures."""
    kept = KEPT if name is None else KEPT / name
    kept.mkdir(parents=True, exist_ok=True)
    PICTURES.mkdir(parents=True, exist_ok=True)
    prefix = "" if name is None else f"{name}-"
    for file in sorted(folder.iterdir()):
        if file.suffix in (".csv", ".md"):
            shutil.copyfile(file, kept / file.name)
        elif file.suffix == ".svg":
            shutil.copyfile(file, PICTURES / f"{prefix}{file.name}")


def shown(page: str) -> str:
    """The page with the tables as they are kept."""
    return PLACE.sub(lambda found: f"{found[1]}{_table(found[2])}\n", page)


def _table(name: str) -> str:
    text = (KEPT / f"{name}.md").read_text(encoding="utf-8")
    return "".join(line for line in text.splitlines(keepends=True) if line.startswith("|"))


def main() -> int:
    """Take over, or check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--further", help="keep them apart, under this name")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    if given.folder is not None:
        take_over(given.folder, given.further)
    page = PAGE.read_text(encoding="utf-8")
    if given.check:
        return int(shown(page) != page)
    PAGE.write_text(shown(page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
