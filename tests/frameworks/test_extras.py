"""A framework that is not installed names its extra; none is imported for nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

EXTRAS = {
    "agents": ("openai_agents", "openai-agents"),
    "pydantic_ai": ("pydantic_ai", "pydantic-ai"),
    "autogen_agentchat": ("autogen", "autogen"),
    "crewai": ("crewai", "crewai"),
}


@pytest.mark.parametrize("package", EXTRAS)
def test_a_missing_framework_names_its_extra(package: str) -> None:
    """In a process that cannot import it."""
    module, extra = EXTRAS[package]
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from twinspan.instrumentation.errors import MissingExtra\n"
        f"try: import twinspan.instrumentation.frameworks.{module}\n"
        "except MissingExtra as error: print(error.extra)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == extra


def test_instrumenting_imports_none_of_them() -> None:
    """They are hooked when the application imports them."""
    code = (
        "import sys\n"
        "from twinspan.instrumentation import TwinspanInstrumentor\n"
        "TwinspanInstrumentor().instrument()\n"
        f"print([name for name in {sorted(EXTRAS)!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_another_package_of_that_name_is_left_alone() -> None:
    """`agents` is a common name."""
    code = (
        "import sys, types\n"
        "from twinspan.instrumentation import TwinspanInstrumentor\n"
        "sys.modules['agents'] = types.ModuleType('agents')\n"
        "TwinspanInstrumentor().instrument()\n"
        "TwinspanInstrumentor().uninstrument()\n"
        "print('fine')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("fine", "")
