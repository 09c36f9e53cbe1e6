"""Optional recorded data that is not part of the repository."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

VARIABLE: Final = "TWINSPAN_SHARED_DATA"
"""Folder of the optional data; `../shared/data` beside the repository if unset."""


def shared(path: str) -> Path:
    """The place of a file or folder of the optional data; skips the test where it is absent."""
    root = os.environ.get(VARIABLE)
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    found = (Path(root) if root else beside) / path
    if not found.exists():
        pytest.skip(f"optional data {path!r} is not there; set {VARIABLE} to its folder")
    return found
