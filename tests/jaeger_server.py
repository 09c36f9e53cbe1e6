"""A real Jaeger on this machine: built once from its public source, started on loopback."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

MODULE: Final = "github.com/jaegertracing/jaeger/cmd/jaeger"
VERSION: Final = "v1.76.0"
"""The last tag that the Go module has; it holds Jaeger v2.13."""

BINARY_VARIABLE: Final = "TWINSPAN_JAEGER"
"""A Jaeger v2 program to use instead of building one."""

BUILD_SECONDS: Final = 900
CONFIG: Final = Path(__file__).parents[1] / "examples" / "jaeger"


@dataclass(frozen=True, slots=True, kw_only=True)
class Jaeger:
    """A running Jaeger.

    Attributes:
        otlp: where it takes spans.
        query: where it is asked.
    """

    otlp: str
    query: str

    def get(self, path: str, **parameters: Any) -> Any:
        """What its HTTP API answers."""
        answer = httpx.get(f"{self.query}{path}", params=parameters, timeout=30)
        answer.raise_for_status()
        return answer.json()["data"]


def cache_folder() -> Path:
    """Where the program is kept between runs: outside of the repository."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "twinspan" / f"jaeger-{VERSION}"


def program() -> Path:
    """Jaeger's program; skips the test where it is not there."""
    named = os.environ.get(BINARY_VARIABLE)
    found = Path(named) if named else cache_folder() / "jaeger"
    if not found.exists():
        pytest.skip(f"no Jaeger to ask; build one with `make jaeger`, or set {BINARY_VARIABLE}")
    return found


def build() -> str:
    """Build Jaeger into the cache, once; returns what became of it."""
    target = cache_folder() / "jaeger"
    if target.exists():
        return f"Jaeger is there: {target}"
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        return "Jaeger is not built: there is no Go; the tests against it will be skipped"
    scratch = target.parent / f"build-{os.getpid()}"
    scratch.mkdir(parents=True)
    try:
        for command in (
            ["mod", "init", "scratch"],
            ["get", "-tool", f"{MODULE}@{VERSION}"],
            ["build", "-o", "jaeger", MODULE],
        ):
            subprocess.run(["nice", go, *command], cwd=scratch, timeout=BUILD_SECONDS, check=True)
        (scratch / "jaeger").replace(target)
    except (subprocess.SubprocessError, OSError) as error:
        return f"Jaeger is not built: {error}; the tests against it will be skipped"
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return f"Jaeger was built: {target}"


@contextmanager
def running(log: Path) -> Generator[Jaeger]:
    """A Jaeger with empty memory, stopped at the end."""
    query, grpc, otlp = _free_ports(3)
    environment = {
        **os.environ,
        "JAEGER_QUERY_PORT": str(query),
        "JAEGER_QUERY_GRPC_PORT": str(grpc),
        "JAEGER_OTLP_PORT": str(otlp),
        "JAEGER_UI_CONFIG": str(CONFIG / "jaeger-ui.json"),
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(program()), "--config", str(CONFIG / "jaeger.yaml")],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
        )
    jaeger = Jaeger(otlp=f"http://127.0.0.1:{otlp}", query=f"http://127.0.0.1:{query}")
    try:
        _wait(jaeger, process, log)
        yield jaeger
    finally:
        process.terminate()
        process.wait(30)


def _wait(jaeger: Jaeger, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        try:
            jaeger.get("/api/services")
            return
        except (httpx.HTTPError, ValueError):
            time.sleep(0.1)
    raise AssertionError(f"Jaeger did not start: {log.read_text()[-2000:]}")


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


if __name__ == "__main__":
    print(build())
