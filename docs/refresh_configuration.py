"""Writes `docs/configuration.md` from the options' definitions. Run it after a change of theirs.

python docs/refresh_configuration.py [--check]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from twinspan.instrumentation.clients.settings import VARIABLES, ClientSettings
from twinspan.instrumentation.option_descriptions import attribute_meanings, described_options
from twinspan.instrumentation.option_sources import variable
from twinspan.instrumentation.safety import RAISE_VARIABLE
from twinspan.instrumentation.settings import (
    CAPTURE_CONTENT_VARIABLE,
    CONFIG_VARIABLE,
    SECTIONS,
)

PAGE: Final = Path(__file__).parent / "configuration.md"

OPENING: Final = f"""# Configuration

Written by `python docs/refresh_configuration.py` from the code.

Every option can be given in three ways. An argument wins over the environment, the environment
over the file:

- as a keyword of `TwinspanInstrumentor().instrument(...)`, by its name alone;
- as an environment variable, `{variable("section", "option")}`; lists are separated by commas;
- as a key of its section in a `twinspan.toml`, which `twinspan run --config`, the keyword
  `config` or the variable `{CONFIG_VARIABLE}` names. Paths in it are relative to the working
  directory.

```toml
[probe]
axes = ["gender", "my_axes.toml"]
nodes = ["analyst_*"]

[breaker]
mode = "halt"
alpha = 0.01

[record]
record = "spans"
```

A mistake is told with its file, its line and the cure, before anything is instrumented;
`twinspan doctor` tells what a configuration comes to.
"""

OTHERS: Final = {
    CONFIG_VARIABLE: "Path of the `twinspan.toml` that is read when none is named.",
    CAPTURE_CONTENT_VARIABLE: (
        "OpenTelemetry's own switch: `SPAN_ONLY`, `SPAN_AND_EVENT` or `true` put prompts, answers "
        "and replaced words on spans; closed by default."
    ),
    "OTEL_SDK_DISABLED": (
        "`true` switches the application's telemetry off. Probes, decisions and the record go on."
    ),
    "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": (
        "Instrumentations that `opentelemetry-instrument` leaves out; ours is `twinspan`."
    ),
    RAISE_VARIABLE: "`1` raises twinspan's own failures instead of logging them; for its tests.",
}

MEANINGS: Final = {
    "probe": "Which nodes are probed, on which axes, how often.",
    "breaker": "When a run is stopped, and what happens then.",
    "repair": "How a frozen payload is repaired where `mode` is `repair`.",
    "record": "Where spans are kept.",
}


def page() -> str:
    """The whole page."""
    sections = [line for section in SECTIONS for line in _section(section)]
    return "\n".join([OPENING, *sections, *_clients(), *_others()])


def _section(section: str) -> Iterator[str]:
    yield f"## [{section}]\n"
    yield f"{MEANINGS[section]}\n"
    yield "| option | variable | type | default | meaning |"
    yield "| --- | --- | --- | --- | --- |"
    for each in described_options():
        if each.section == section:
            default = f"`{each.default}`" if each.default else ""
            cells = (f"`{each.name}`", f"`{each.variable}`", each.kind, default, each.meaning)
            yield f"| {' | '.join(cells)} |"
    yield ""


def _clients() -> Iterator[str]:
    meanings = attribute_meanings(ClientSettings)
    yield "## Models that twinspan itself calls\n"
    yield "| option | variable | meaning |"
    yield "| --- | --- | --- |"
    for option, name in VARIABLES.items():
        yield f"| `{option}` | `{name}` | {meanings.get(option, '')} |"
    yield ""


def _others() -> Iterator[str]:
    yield "## Other variables\n"
    yield "| variable | meaning |"
    yield "| --- | --- |"
    for name, meaning in OTHERS.items():
        yield f"| `{name}` | {meaning} |"
    yield ""


def main() -> int:
    """Write the page, or with --check say whether it is current."""
    if "--check" in sys.argv:
        return int(not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page())
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
