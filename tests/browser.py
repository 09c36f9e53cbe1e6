"""A real browser without a window: what a page becomes in it, on a screen and on paper."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

PATIENCE = 120.0
"""Seconds after which a browser that says nothing is taken to hang."""

LIGHT, DARK = 1, 0
"""What the system of the reader asks for."""


def rendered(page: Path, *, scheme: int = LIGHT) -> subprocess.CompletedProcess[str]:
    """The document after loading on stdout, complaints about it on stderr."""
    return _browse(
        page,
        "--enable-logging=stderr",
        f"--blink-settings=preferredColorScheme={scheme}",
        "--virtual-time-budget=20000",
        "--dump-dom",
    )


def printed(page: Path) -> Path:
    """The page as a PDF beside it."""
    paper = page.with_suffix(".pdf")
    _browse(page, "--no-pdf-header-footer", f"--print-to-pdf={paper}")
    return paper


def _browse(page: Path, *options: str) -> subprocess.CompletedProcess[str]:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no chromium is installed; the page is checked by parsing it only")
    quiet = ("--disable-background-networking", "--disable-component-update")
    return subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            *quiet,
            f"--user-data-dir={page.parent / 'profile'}",
            *options,
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
