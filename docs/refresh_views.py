"""Writes `docs/views.md` from the SQL of the views. Run it after a change of theirs.

python docs/refresh_views.py [--check]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from twinspan.analysis.described import DescribedColumn, described_columns, view_meaning
from twinspan.analysis.views import VIEWS

PAGE: Final = Path(__file__).parent / "views.md"

OPENING: Final = """# The views

Written by `python docs/refresh_views.py` from the SQL of the views; `twinspan schema` prints the
same. Ask them with `twinspan sql SPANS "SELECT ..."`.

An attribute without a column of its own is in `attributes`, a JSON object with dotted keys:
`attr(attributes, 'my.key')` reads one. NULL is *not known*, never zero. Scores and distances are
without unit unless one is named.
"""


def page() -> str:
    """The whole page."""
    columns = described_columns()
    return "\n".join([OPENING, *(line for view in VIEWS for line in _section(view, columns))])


def _section(view: str, columns: list[DescribedColumn]) -> Iterator[str]:
    yield f"## {view}\n"
    yield f"{view_meaning(view)}\n"
    yield "| column | type | unit | meaning |"
    yield "| --- | --- | --- | --- |"
    for each in columns:
        if each.view == view:
            meaning = (each.meaning or "").replace("|", "\\|")
            held = f" (`{each.attribute}`)" if each.attribute else ""
            yield f"| `{each.column}` | {_type(each.type)} | {each.unit or ''} | {meaning}{held} |"
    yield ""


def _type(sql: str) -> str:
    """A type in a line's length: of a structure only that it is one."""
    text = sql if len(sql) < 40 else sql.partition("(")[0] + ("[]" if sql.endswith("[]") else "")
    return text.replace("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ")


def main() -> int:
    """Write the page, or with --check say whether it is current."""
    if "--check" in sys.argv:
        return int(PAGE.read_text(encoding="utf-8") != page())
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
