"""Which model a study asks: the one that the environment names, or the small local one."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from studies import local_model
from twinspan.instrumentation.clients import ClientSettings, OpenAICompatibleClient

TIMEOUT_SECONDS: Final = 600.0
"""For one answer; a model on a busy processor takes its time."""

BASE_URL: Final = "OPENAI_BASE_URL"


def is_local() -> bool:
    """Whether the model is the local one."""
    return not os.environ.get(BASE_URL)


@contextmanager
def model_settings(*, seed: int = 0) -> Generator[ClientSettings]:
    """How to reach the model while the block lasts.

    With `OPENAI_BASE_URL` set, that server is asked for the model `TWINSPAN_MODEL` with the key
    `OPENAI_API_KEY`; else the local model is served.

    Args:
        seed: root of the seeds of all draws.

    Raises:
        ConfigurationError: no server is named and the local model is not installed, or the
            server's model is not named.
    """
    if not is_local():
        yield ClientSettings.resolve({"seed": seed, "timeout": TIMEOUT_SECONDS})
        return
    with local_model.served() as url:
        yield ClientSettings(
            base_url=url,
            model=local_model.NAME,
            seed=seed,
            timeout=TIMEOUT_SECONDS,
            trust_env=False,
        )


@contextmanager
def model_client(*, seed: int = 0) -> Generator[OpenAICompatibleClient]:
    """A client of the model."""
    with model_settings(seed=seed) as settings:
        yield OpenAICompatibleClient(settings)
