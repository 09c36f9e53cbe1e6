"""What all tests share: our own failures are raised, no environment leaks in."""

from __future__ import annotations

import os

import pytest

os.environ["TWINSPAN_RAISE"] = "1"


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("OTEL_", "TWINSPAN_")) and name not in {
            "TWINSPAN_RAISE",
            "TWINSPAN_SHARED_DATA",
        }:
            monkeypatch.delenv(name)
