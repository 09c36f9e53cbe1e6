"""A mistake in a configuration is told with its file, its line and the cure."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from twinspan.instrumentation.errors import ConfigurationError
from twinspan.instrumentation.option_descriptions import described_options
from twinspan.instrumentation.settings import SECTIONS, Settings

ROOT = Path(__file__).parent.parent.parent


def told(tmp_path: Path, text: str) -> str:
    path = tmp_path / "twinspan.toml"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as refused:
        Settings.resolve(config=path, environ={})
    return str(refused.value).replace(str(path), "twinspan.toml")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[probe]\n\nnodez = ['a']", "there is no option 'nodez' in 'twinspan.toml', line 3; "),
        ("[probe]\nalpha = 0.1", "no option 'alpha' in [probe], 'twinspan.toml', line 2; it"),
        (
            "axes = ['age']",
            "'axes' outside a section, 'twinspan.toml', line 1; it belongs to [probe]",
        ),
        ("\n[braker]\n", "no option '[braker]' in 'twinspan.toml', line 2; did you mean '[bre"),
        ("probe = 3", "'twinspan.toml', line 1: 'probe' stands for a section; write [probe]"),
        ("[probe]\naxes = [", "'twinspan.toml', line 2, is no TOML: "),
        ("[breaker]\nmode = 'stop'", "'twinspan.toml', line 2: mode is 'stop'; use one of shadow"),
        ("[breaker]\nalpha = 1.5", "line 2: alpha is 1.5; it lies between 0 and 1, like 0.05"),
        ("breaker.alpha = 1.5", "'twinspan.toml', line 1: alpha is 1.5; "),
        ("breaker = {mode = 'halt', alpha = 2}", "'twinspan.toml', line 1: alpha is 2.0; "),
        ("[probe]\nreference = 2.5", "line 2: reference is 2.5, which is no int; write a whole"),
        ("[probe]\nreference = true", "line 2: reference is True, which is no int"),
        ("[probe]\nnodes = [1]", "line 2: nodes is [1], which is no list of names, like"),
        ("[probe]\nnodes = 7", "line 2: nodes is 7, which is no list of names"),
        ("[probe]\naxes = ['gendr']", "line 2: no axis is named 'gendr'; known axes: "),
        ("[probe]\naxes = ['age', 'age']", "line 2: axes has one name twice (age, age); name"),
        ("[probe]\naxes = ['none.toml']", "line 2: "),
        ("[probe]\nestimator = 'cosine'", "line 2: estimator is 'cosine'; use one of auto, "),
        ("[probe]\ntimeout = nan", "line 2: timeout is nan; it must be at least 0.001"),
        ("[breaker]\ntrigger = 'both'", "line 2: trigger is 'both', which needs tau_enter"),
        ("[breaker]\ntau_enter = 0.1", "line 2: tau_enter is 0.1; give tau_exit with it"),
        ("[breaker]\ntau_exit = 2\ntau_enter = 1", "line 3: tau_enter is 1.0; it must be above"),
        ("[breaker]\nstream = 1", "line 2: stream is 1, which is no text; write it in quotes"),
        ("[record]\nrecord = 5", "line 2: record is 5, which is no path"),
    ],
    ids=lambda value: str(value)[:24].replace("\n", " "),
)
def test_an_error_names_the_line_and_the_cure(tmp_path: Path, text: str, expected: str) -> None:
    """Whatever is wrong: a name, a section, the TOML, a value or its kind."""
    assert expected in told(tmp_path, text)


def test_a_bad_variable_is_named() -> None:
    """The environment is a place too."""
    with pytest.raises(ConfigurationError, match=r"TWINSPAN_BREAKER_ALPHA: alpha is 2\.0"):
        Settings.resolve(environ={"TWINSPAN_BREAKER_ALPHA": "2"})


def test_a_variable_of_no_option_is_refused() -> None:
    """A typing error there would otherwise never show."""
    expected = "'TWINSPAN_PROBE_NODEZ' in the environment; did you mean 'TWINSPAN_PROBE_NODES'"
    with pytest.raises(ConfigurationError, match=expected):
        Settings.resolve(environ={"TWINSPAN_PROBE_NODEZ": "a"})


def test_every_option_is_described() -> None:
    """Name, variable, kind and meaning."""
    described = described_options()
    known = {(s, name) for s, section in SECTIONS.items() for name in section.names}
    assert {(each.section, each.name) for each in described} == known
    assert all(each.meaning and each.kind for each in described)


def test_the_configuration_page_is_current() -> None:
    """`python docs/refresh_configuration.py` writes it."""
    done = subprocess.run(
        [sys.executable, "docs/refresh_configuration.py", "--check"], cwd=ROOT, check=False
    )
    assert done.returncode == 0, "run: python docs/refresh_configuration.py"
