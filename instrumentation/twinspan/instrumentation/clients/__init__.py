"""Models and embedders: the protocols twinspan asks through, and clients that serve them."""

from __future__ import annotations

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
