"""Which repairs there are, as the options ask for them, and which is tried when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from twinspan.collector.intervention.blind import BlindRerun
from twinspan.collector.intervention.madera import MaderaEditor
from twinspan.collector.intervention.panel import SkepticPanel
from twinspan.collector.intervention.proposals import Repairer
from twinspan.collector.intervention.retrieval import Bm25Retriever
from twinspan.collector.intervention.routing import Route
from twinspan.collector.intervention.strategies import EditorRepair, PanelRepair
from twinspan.collector.intervention.verifier import Verifier
from twinspan.instrumentation.clients import ChatClient
from twinspan.instrumentation.errors import ConfigurationError
from twinspan.instrumentation.settings import RepairChoice, RepairOptions, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Repairs:
    """The repairs that a run may try.

    Attributes:
        choice: the option `repair`.
        panel, editor: None where they are not set up.
        verifier: may refute a payload on facts; None where there is none.
    """

    choice: RepairChoice = "blind"
    panel: PanelRepair | None = None
    editor: EditorRepair | None = None
    verifier: Verifier | None = None
    blind: BlindRerun = field(default_factory=BlindRerun)

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """What the options ask for.

        Raises:
            ConfigurationError: the chosen repair lacks its models, or one is no chat client.
        """
        options = settings.repair
        panel, editor = _panel(options), _editor(options, settings.breaker.equivalence)
        if options.repair == "skeptics" and panel is None:
            raise ConfigurationError("repair 'skeptics' needs models; name at least two: skeptics")
        if options.repair == "madera" and editor is None:
            raise ConfigurationError("repair 'madera' needs a model that rewrites; name it: editor")
        return cls(
            choice=options.repair,
            panel=None if panel is None else PanelRepair(panel=panel),
            editor=None if editor is None else EditorRepair(editor=editor),
            verifier=_verifier(options.verifier),
        )

    def order(self, route: Route) -> Sequence[Repairer]:
        """The repairs in the order in which they are tried; the last one is tried again.

        In `auto` the route says which comes first, what else is set up comes next, and the blind
        re-run, which asks nobody, comes last.
        """
        chosen = {"skeptics": self.panel, "madera": self.editor, "blind": self.blind}
        if self.choice != "auto":
            only = chosen[self.choice]
            return [] if only is None else [only]
        by_route = [chosen.get(route.strategy), self.editor, self.panel]
        asked = by_route if route.strategy != "none" else []
        return list(dict.fromkeys(each for each in (*asked, self.blind) if each is not None))


def _panel(options: RepairOptions) -> SkepticPanel | None:
    given = options.skeptics
    if len(given) == 1 and isinstance(given[0], SkepticPanel):
        return given[0]
    if not given:
        return None
    return SkepticPanel.of([_client(each) for each in given], weighting=options.weighting)


def _editor(options: RepairOptions, bound: float) -> MaderaEditor | None:
    given = options.editor
    if given is None or isinstance(given, MaderaEditor):
        return given
    retriever = None if options.documents is None else Bm25Retriever.of_folder(options.documents)
    return MaderaEditor.of(_client(given), retriever, bound=bound, max_rewrites=options.rewrites)


def _client(given: object) -> ChatClient:
    """A chat client; from text, the model and the URL of its server.

    >>> _client("llama-3@http://localhost:8000/v1")
    OpenAICompatibleClient('http://localhost:8000/v1', model='llama-3')
    """
    if isinstance(given, ChatClient):
        return given
    if not isinstance(given, str):
        raise ConfigurationError(
            f"{type(given).__name__!r} is no chat client; give one with a method 'complete', or "
            "MODEL@URL"
        )
    # Its HTTP library is only paid for by those who name a server.
    from twinspan.instrumentation.clients import OpenAICompatibleClient

    model, _, url = given.partition("@")
    if not url:
        return OpenAICompatibleClient(model=model)
    return OpenAICompatibleClient(model=model, base_url=url)


def _verifier(given: object) -> Verifier | None:
    if given is None or isinstance(given, Verifier):
        return given
    raise ConfigurationError(
        f"{type(given).__name__!r} is no verifier; give an object with an async method 'verify'"
    )
