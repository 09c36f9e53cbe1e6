"""Models and embedders: the protocols twinspan asks through, and clients that serve them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinspan.instrumentation.lazy import lazy_names

if TYPE_CHECKING:
    from twinspan.instrumentation.clients.candidates import OTHER, REFUSAL, CandidateScores
    from twinspan.instrumentation.clients.faces import Blocking, LoopThread, Threaded
    from twinspan.instrumentation.clients.openai_compatible import OpenAICompatibleClient
    from twinspan.instrumentation.clients.protocols import (
        BlockingCandidateScorer,
        BlockingChatClient,
        BlockingEmbedder,
        CandidateScorer,
        ChatClient,
        Embedder,
    )
    from twinspan.instrumentation.clients.scripted import ScriptedClient
    from twinspan.instrumentation.clients.settings import ClientSettings, Secret
    from twinspan.instrumentation.clients.telemetry import span_attributes
    from twinspan.instrumentation.clients.values import (
        ChatRequest,
        Completion,
        JsonSchema,
        Message,
        Sampling,
        TextRequest,
        TokenLogprob,
        ToolCall,
        ToolSpec,
        Usage,
    )

__all__ = [
    "OTHER",
    "REFUSAL",
    "Blocking",
    "BlockingCandidateScorer",
    "BlockingChatClient",
    "BlockingEmbedder",
    "CandidateScorer",
    "CandidateScores",
    "ChatClient",
    "ChatRequest",
    "ClientSettings",
    "Completion",
    "Embedder",
    "JsonSchema",
    "LoopThread",
    "Message",
    "OpenAICompatibleClient",
    "Sampling",
    "ScriptedClient",
    "Secret",
    "TextRequest",
    "Threaded",
    "TokenLogprob",
    "ToolCall",
    "ToolSpec",
    "Usage",
    "span_attributes",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "candidates": (
            "OTHER",
            "REFUSAL",
            "CandidateScores",
        ),
        "faces": (
            "Blocking",
            "LoopThread",
            "Threaded",
        ),
        "openai_compatible": ("OpenAICompatibleClient",),
        "protocols": (
            "BlockingCandidateScorer",
            "BlockingChatClient",
            "BlockingEmbedder",
            "CandidateScorer",
            "ChatClient",
            "Embedder",
        ),
        "scripted": ("ScriptedClient",),
        "settings": (
            "ClientSettings",
            "Secret",
        ),
        "telemetry": ("span_attributes",),
        "values": (
            "ChatRequest",
            "Completion",
            "JsonSchema",
            "Message",
            "Sampling",
            "TextRequest",
            "TokenLogprob",
            "ToolCall",
            "ToolSpec",
            "Usage",
        ),
    },
)
