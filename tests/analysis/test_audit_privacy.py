"""Words planted in an audit's cases, descriptors, names, answers and errors come out nowhere.

Labels of the design (ids of cases and conditions, names of steps, fields, outcomes and levels) are
no content: they are what an audit counts by.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import duckdb
import pytest
from audit_agents import SIGNED_GATE, run

NARRATIVE, FIXTURE, DESCRIPTOR = "quillfeather", "zanthemoor", "grumbaxian"
NAME, ROLE, INSTRUCTION = "Oberflozz", "marzipanrole", "tangerineask"
TEXT, MISFIT, FAULT = "vermilionpuma", "sorbetmisfit", "kettlefault"
PLANTED: Final = (
    NARRATIVE, FIXTURE, DESCRIPTOR, NAME, ROLE, INSTRUCTION, TEXT, MISFIT, FAULT,
)  # fmt: skip

AGENT: Final = f"""
def decide(prompt, schema, seed):
    for word in ("{NARRATIVE}", "{DESCRIPTOR}", "{NAME}", "{ROLE}", "{INSTRUCTION}"):
        assert word in prompt, word
    if seed % 11 == 0:
        raise RuntimeError("{FAULT} " + prompt)
    if seed % 7 == 0:
        return {{"approve": "{MISFIT}", "{MISFIT}": 1}}
    return {{"approve": "woman" not in prompt and seed % 3 > 0, "note": "{TEXT}"}}
"""

CONFIG: Final = f"""
name = "planted"
seed = 3
replicates = 4

[agent]
callable = "planted_agent:decide"
backoff = 0
retries = 1

[prompt]
role = "You are a {ROLE}."

[conditions]
templates = ["{{name}}, a {DESCRIPTOR} {{sex}}"]
reference = {{ sex = "man", name = "{NAME}" }}
swaps = {{ sex = ["woman"] }}
controls = ["rerender"]

[[step]]
name = "decide"
instruction = "{INSTRUCTION}?"
fields = {{ approve = "boolean", note = "string" }}

[outcomes]
approved = "decide.approve"

[[case]]
id = "a"
narrative = "The {NARRATIVE} is good."
fixtures = {{ test = "{FIXTURE}" }}

[[case]]
id = "b"
narrative = "The {NARRATIVE} is mixed."
{SIGNED_GATE}
"""

COMMANDS: Final = (
    "audit --config {config} --out {spans} --report {out}/again.html",
    "audit --config {config} --out {spans} --dry-run",
    "flips {spans}",
    "flips {spans} --config {config} --format json",
    "flips {spans} --adjust e-bh --format csv",
    "floor {spans} --format json",
    "floor {spans} --by case_id",
    "gate {spans} --config {config}",
    "gate {spans} --config {config} --format json",
    "calibrate {spans} --target 0.05",
    "trajectories {spans} --out {out}/t.json",
    "report {spans} --out {out}/r.html --json {out}/r.json --gate {config}",
    "sarif {spans} --out {out}/f.sarif --config {config} --all",
    "verify {spans}",
    "trail {spans} --format json",
    "import {spans} --out {out}/imported",
    "compact {spans}",
    "flips {spans} --format json",
    "sql {spans} 'FROM spans' --format json",
    "sql {spans} 'FROM actions' --format json",
    "sql {spans} 'FROM answers' --format json",
    "sql {spans} 'FROM flips' --format json",
    "sql {spans} 'FROM audits' --format json",
    "sql {spans} 'FROM conditions' --format json",
    "sql {spans} 'SELECT CAST(name AS INT) FROM spans'",
)


def _bytes(folder: Path) -> Iterator[tuple[str, str]]:
    """Every file that was written, and the values in columnar ones."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        yield str(path), path.read_bytes().decode("utf-8", "replace")
        if path.suffix == ".parquet":
            with duckdb.connect() as connection:
                rows = connection.execute(f"SELECT * FROM read_parquet('{path}')").fetchall()
            yield str(path), repr(rows)


def _audit(folder: Path, config: str = CONFIG) -> tuple[Path, str]:
    """The audit, run; its folder of files, and what it printed."""
    given, out = folder / "given", folder / "out"
    given.mkdir()
    out.mkdir()
    (given / "planted_agent.py").write_text(AGENT)
    (given / "audit.toml").write_text(config)
    result = run(
        "audit",
        "--config",
        given / "audit.toml",
        "--out",
        out / "spans",
        "--report",
        out / "a.html",
    )
    assert result.exit_code in (0, 1), result.output
    return out, result.output


def test_no_planted_word_of_an_audit_comes_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Not in the record, before it is compacted or after, nor in anything that commands say."""
    caplog.set_level(logging.DEBUG, logger="twinspan")
    out, printed = _audit(tmp_path)
    told = [("audit", printed), *_bytes(out)]
    for command in COMMANDS:
        filled = command.format(spans=out / "spans", out=out, config=tmp_path / "given/audit.toml")
        result = run(*shlex.split(filled))
        assert result.exit_code in (0, 1, 2, 3), filled
        assert result.exception is None or isinstance(result.exception, SystemExit), filled
        told.append((filled, result.output))
    told += _bytes(out)
    told += [(each.name, f"{each.getMessage()} {each.exc_text or ''}") for each in caplog.records]
    assert {(where, word) for where, text in told for word in PLANTED if word in text} == set()
    failed = run("sql", out / "spans", "SELECT DISTINCT error_type FROM spans", "--format", "csv")
    assert "RuntimeError" in failed.stdout  # what failed is told, in the name of its kind


def test_free_text_of_answers_is_recorded_where_the_file_says_so(tmp_path: Path) -> None:
    """And nothing else with it: prompts and errors stay closed."""
    out, _ = _audit(tmp_path, CONFIG.replace("seed = 3", "seed = 3\ntexts = true"))
    told = "".join(text for _, text in _bytes(out / "spans"))
    assert {word for word in PLANTED if word in told} == {TEXT}
