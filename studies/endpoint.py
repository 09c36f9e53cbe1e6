"""Which model a study asks: the one that the environment names, or the small local one."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from studies import local_model
from studies.local_model import LocalModel
from twinspan.instrumentation.clients import ClientSettings, OpenAICompatibleClient

TIMEOUT_SECONDS: Final = 600.0
"""For one answer; a model on a busy processor takes its time."""

BASE_URL: Final = "OPENAI_BASE_URL"


def is_local() -> bool:
    """Whether the model is the local one."""
    return not os.environ.get(BASE_URL)


@contextmanager
def model_settings(
    *, seed: int = 0, local: LocalModel = local_model.FIRST
) -> Generator[ClientSettings]:
    """How to reach the model while the block lasts.

    With `OPENAI_BASE_URL` set, that server is asked for the model `TWINSPAN_MODEL` with the key
    `OPENAI_API_KEY`; else the local model is served.

    Args:
        seed: root of the seeds of all draws.
        local: which local model.

    Raises:
        ConfigurationError: no server is named and the local model is not installed, or the
            server's model is not named.
    """
    if not is_local():
        yield ClientSettings.resolve({"seed": seed, "timeout": TIMEOUT_SECONDS})
        return
    with local_model.served(local) as url:
        yield ClientSettings(
            base_url=url,
            model=local.name,
            seed=seed,
            timeout=TIMEOUT_SECONDS,
            trust_env=False,
        )


@contextmanager
def model_client(
    *, seed: int = 0, local: LocalModel = local_model.FIRST
) -> Generator[OpenAICompatibleClient]:
    """A client of the model; see `model_settings`."""
    with model_settings(seed=seed, local=local) as settings:
        yield OpenAICompatibleClient(settings)


def client_of(url: str, model: LocalModel) -> OpenAICompatibleClient:
    """A client of a local model that is served besides, with the same patience."""
    return OpenAICompatibleClient(
        base_url=url, model=model.name, timeout=TIMEOUT_SECONDS, trust_env=False
    )
