"""Options resolve as argument over environment over file over default."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinspan.instrumentation.errors import ConfigurationError, UnknownAxis
from twinspan.instrumentation.settings import (
    CAPTURE_CONTENT_VARIABLE,
    BreakerOptions,
    ProbeOptions,
    Settings,
)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "twinspan.toml"
    path.write_text(
        '[probe]\naxes = ["gender"]\nnodes = ["analyst_*"]\nreference = 8\n\n'
        '[breaker]\nmode = "halt"\nalpha = 0.01\n\n[record]\nrecord = "spans"\n'
    )
    return path


def test_a_file_gives_what_nobody_else_does(config: Path) -> None:
    """Each section's keys reach their options."""
    settings = Settings.resolve(config=config, environ={})
    assert [axis.name for axis in settings.probe.axes] == ["gender"]
    assert settings.probe.nodes == ("analyst_*",)
    assert (settings.probe.reference, settings.probe.counterfactual) == (8, 5)
    assert (settings.breaker.mode, settings.breaker.alpha) == ("halt", 0.01)
    assert settings.record.record == Path("spans")


def test_the_environment_wins_over_the_file(config: Path) -> None:
    """Each option has a variable of its own."""
    environ = {"TWINSPAN_BREAKER_ALPHA": "0.2", "TWINSPAN_PROBE_NODES": "a, b"}
    settings = Settings.resolve(config=config, environ=environ)
    assert (settings.breaker.alpha, settings.probe.nodes) == (0.2, ("a", "b"))


def test_an_argument_wins_over_both(config: Path) -> None:
    """And the file may be named by the environment."""
    environ = {"TWINSPAN_BREAKER_ALPHA": "0.2", "TWINSPAN_CONFIG": str(config)}
    settings = Settings.resolve({"alpha": 0.3}, environ=environ)
    assert (settings.breaker.alpha, settings.breaker.mode) == (0.3, "halt")


@pytest.mark.parametrize(("value", "on"), [("", False), ("NO_CONTENT", False), ("span_only", True)])
def test_content_is_closed_unless_opentelemetrys_switch_opens_it(value: str, on: bool) -> None:
    """twinspan has no switch of its own."""
    environ = {CAPTURE_CONTENT_VARIABLE: value}
    assert Settings.resolve(environ=environ).capture_content is on


def test_an_unknown_argument_names_its_neighbour() -> None:
    """A typing error costs one reading."""
    with pytest.raises(ConfigurationError, match="did you mean 'alpha'"):
        Settings.resolve({"alhpa": 0.1}, environ={})


def test_an_unknown_key_names_its_file_and_line(tmp_path: Path) -> None:
    """The line is that of the key, blank lines before it counted."""
    path = tmp_path / "twinspan.toml"
    path.write_text("[probe]\n\n\nnodez = ['a']\n")
    with pytest.raises(ConfigurationError, match=r"'nodez' in .*, line 4; did you mean 'nodes'"):
        Settings.resolve(config=path, environ={})


def test_an_unknown_section_lists_the_known_ones(tmp_path: Path) -> None:
    """Sections are few."""
    path = tmp_path / "twinspan.toml"
    path.write_text("[braker]\nmode = 'halt'\n")
    with pytest.raises(ConfigurationError, match=r"\[braker\].*line 1.*\[breaker\]"):
        Settings.resolve(config=path, environ={})


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"mode": "stop"}, "use one of shadow, halt, repair"),
        ({"alpha": 1.5}, "between 0 and 1"),
        ({"reference": 1}, "at least 2"),
        ({"counterfactual": "many"}, "'many', which is no int"),
        ({"trigger": "threshold"}, "needs tau_enter and tau_exit"),
    ],
)
def test_a_value_without_meaning_is_refused_with_the_cure(
    options: dict[str, object], told: str
) -> None:
    """One sentence, and it says what would do."""
    with pytest.raises(ConfigurationError, match=told):
        Settings.resolve(options, environ={})


def test_a_missing_or_broken_file_is_one_sentence(tmp_path: Path) -> None:
    """Not a traceback of the TOML parser."""
    with pytest.raises(ConfigurationError, match="name an existing"):
        Settings.resolve(config=tmp_path / "none.toml", environ={})
    broken = tmp_path / "broken.toml"
    broken.write_text("[probe\n")
    with pytest.raises(ConfigurationError, match="is no TOML"):
        Settings.resolve(config=broken, environ={})


def test_an_unknown_axis_is_named() -> None:
    """Axes are required knowledge: none is guessed."""
    with pytest.raises(UnknownAxis, match="gendr"):
        Settings.resolve({"axes": ["gendr"]}, environ={})


def test_nothing_is_probed_unless_named() -> None:
    """A probe runs a node's side effects too."""
    assert not ProbeOptions().covers("analyst")


def test_output_is_held_only_where_the_mode_enforces() -> None:
    """Shadow mode never delays a stream."""
    assert not BreakerOptions().holds_stream
    assert BreakerOptions(mode="repair").holds_stream
    assert not BreakerOptions(mode="halt", stream="pass").holds_stream
