"""Makes the pictures of the documentation: the demo in a terminal, its report in a browser.

Needs Chromium (`chromium` on the path). Run it after a change of the report.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from terminal_picture import terminal_picture

PICTURES = Path(__file__).parent / "pictures"
QUIET = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars"
).split()


def main() -> int:
    """Run the demo, write its report, take its picture."""
    browser = shutil.which("chromium")
    if browser is None:
        print("chromium is not on the path; install it to make the pictures")
        return 1
    PICTURES.mkdir(exist_ok=True)
    twinspan = [sys.executable, "-m", "twinspan.analysis.cli"]
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        shown = subprocess.run(
            [*twinspan, "demo", "--out", "demo-spans"],
            check=True,
            capture_output=True,
            text=True,
            cwd=folder,
        )
        told = re.sub(r"\b[0-9a-f]{32}\b", "RUN", shown.stdout)
        terminal_picture("twinspan demo", told, PICTURES / "terminal.svg")
        # Named as a reader would name it: the picture shows no folder of this machine.
        subprocess.run(
            [*twinspan, "report", "demo-spans", "--out", str(page)], check=True, cwd=folder
        )
        subprocess.run(
            [
                browser,
                *QUIET,
                f"--user-data-dir={folder}/browser",
                "--window-size=1100,1180",
                f"--screenshot={PICTURES / 'report.png'}",
                page.as_uri(),
            ],
            check=True,
            capture_output=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
