"""Text is changed wherever it is, and nothing else is."""

from __future__ import annotations

import copy
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic import BaseModel, ConfigDict, RootModel

from twinspan.instrumentation.errors import PerturbationError
from twinspan.instrumentation.perturbation import (
    Axis,
    Edit,
    Slot,
    Substitution,
    builtin_axis,
    replay,
    text_leaves,
)
from twinspan.instrumentation.perturbation.tree import MAX_DEPTH, map_text

PRONOUNS = Axis.from_substitutions(
    "gender",
    [Substitution("he", "she"), Substitution("his", "her"), Substitution("man", "woman")],
)


class Point(NamedTuple):
    """A named tuple."""

    who: str
    x: int


class Tagged(tuple[Any, ...]):
    """A tuple with an attribute and a constructor of its own."""

    def __new__(cls, *items: Any) -> Tagged:
        return super().__new__(cls, items)


class Shout(str):
    """A string type of somebody's own."""


class Sex(StrEnum):
    """An enumeration of strings."""

    MAN = "man"


class Colour(Enum):
    """An enumeration."""

    MAN = "man"


@dataclass
class Note:
    """A dataclass with a field outside its constructor."""

    text: str
    count: int = 0
    derived: str = field(init=False, default="")

    def __post_init__(self) -> None:
        self.derived = self.text + "!"


@dataclass(frozen=True, slots=True)
class Frozen:
    """A dataclass that refuses assignment."""

    text: str
    inner: tuple[str, ...] = ()


class Person(BaseModel):
    """A frozen model that takes extra fields."""

    model_config = ConfigDict(frozen=True, extra="allow")
    name: str
    tags: list[str] = []
    age: int = 3


class Letters(RootModel[list[str]]):
    """A model that is a list."""


def swap(payload: Any) -> Any:
    return PRONOUNS.swap(payload).payload


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ("he wins", "she wins"),
        (["he", 1, None], ["she", 1, None]),
        (("he", "his"), ("she", "her")),
        ({"he": "he wins"}, {"he": "she wins"}),
        ({1: "he", (2, "he"): ["his"]}, {1: "she", (2, "he"): ["her"]}),
        ({"he", "his"}, {"she", "her"}),
        (frozenset({"he", 3}), frozenset({"she", 3})),
        (deque(["he", "x"], maxlen=2), deque(["she", "x"], maxlen=2)),
        (Point("he", 3), Point("she", 3)),
        (OrderedDict(b="he", a="x"), OrderedDict(b="she", a="x")),
        ({"a": [{"b": ({"c": deque(["he"])},)}]}, {"a": [{"b": ({"c": deque(["she"])},)}]}),
        (Frozen("he", ("his", "x")), Frozen("she", ("her", "x"))),
        (Letters(["he"]), Letters(["she"])),
        (Shout("he"), Shout("she")),
    ],
)
def test_text_is_swapped_inside(payload: Any, expected: Any) -> None:
    """Keys, numbers, structure, order and types stay."""
    twin = swap(payload)
    assert twin == expected
    assert type(twin) is type(payload)


def test_a_deque_keeps_its_bound() -> None:
    """The twin of a bounded deque is bounded alike."""
    assert swap(deque(["he"], maxlen=7)).maxlen == 7


def test_a_default_dict_keeps_its_factory() -> None:
    """The twin makes the same defaults."""
    payload = defaultdict(list, {"a": ["he"]})
    twin = swap(payload)
    assert twin == {"a": ["she"]}
    assert twin["new"] == []


def test_a_tuple_of_a_type_of_its_own_keeps_type_and_attributes() -> None:
    """Its constructor, which might take other arguments, is not called."""
    payload = Tagged("he", 1)
    payload.source = "form"  # type: ignore[attr-defined]
    twin = swap(payload)
    assert (type(twin), tuple(twin), twin.source) == (Tagged, ("she", 1), "form")


def test_a_dataclass_is_copied_and_not_built_again() -> None:
    """Fields outside the constructor survive, and are read like any other."""
    payload = Note("he wins", 4)
    twin = swap(payload)
    assert (twin.text, twin.count, twin.derived) == ("she wins", 4, "she wins!")
    assert (payload.text, payload.derived) == ("he wins", "he wins!")


def test_a_pydantic_model_is_copied_with_its_extra_fields() -> None:
    """A frozen model, its defaults and its extras."""
    payload = Person.model_validate({"name": "a man", "tags": ["his"], "note": "he"})
    twin = swap(payload)
    assert twin.model_dump() == {"name": "a woman", "tags": ["her"], "age": 3, "note": "she"}
    assert payload.name == "a man"


def test_chat_messages_are_swapped_in_content_and_arguments_only() -> None:
    """Ids, roles, tool names and metadata are plumbing, not wording."""
    messages = [
        SystemMessage("He is the man."),
        HumanMessage([{"type": "text", "text": "Is he?"}, "his"], id="he"),
        AIMessage(
            "he",
            tool_calls=[{"name": "he", "args": {"q": "his dog"}, "id": "he", "type": "tool_call"}],
            response_metadata={"model": "he"},
        ),
        ToolMessage("his file", tool_call_id="he"),
    ]
    system, human, assistant, tool = swap({"messages": messages})["messages"]
    assert system.content == "She is the woman."
    assert human.content == [{"type": "text", "text": "Is she?"}, "her"]
    assert human.id == "he"
    assert assistant.content == "she"
    assert assistant.tool_calls[0]["args"] == {"q": "her dog"}
    assert (assistant.tool_calls[0]["name"], assistant.tool_calls[0]["id"]) == ("he", "he")
    assert assistant.response_metadata == {"model": "he"}
    assert (tool.content, tool.tool_call_id) == ("her file", "he")
    assert messages[0].content == "He is the man."


def test_messages_as_dictionaries_keep_their_plumbing() -> None:
    """As the providers' own clients write them."""
    payload = [{"role": "he", "content": "he", "id": "he"}]
    assert swap(payload) == [{"role": "he", "content": "she", "id": "he"}]


def test_a_dictionary_that_is_no_message_is_swapped_throughout() -> None:
    """A role or a type may be somebody's."""
    assert swap({"role": "man", "type": "man"}) == {"role": "woman", "type": "woman"}


@pytest.mark.parametrize(
    "payload",
    [
        "data:image/png;base64,+he/his+man",
        {"type": "image_url", "image_url": {"url": "https://example.org/he/man"}},
        {"type": "image", "base64": "+he/"},
    ],
)
def test_an_embedded_file_is_no_text(payload: Any) -> None:
    """Words found in it would be found by chance, and the file be broken."""
    assert swap(payload) is payload


@pytest.mark.parametrize(
    "payload",
    [
        *(None, 3, 2.5, True, b"he", Sex.MAN, Colour.MAN, object(), SimpleNamespace(a="he")),
        *(Counter("x"), range(3), str, Note, Person, Point, HumanMessage, ValueError("he")),
    ],
)
def test_everything_else_passes_through(payload: Any) -> None:
    """The very same object, enum members and classes included."""
    assert swap(payload) is payload
    assert swap([payload])[0] is payload


def test_what_does_not_change_keeps_its_identity() -> None:
    """Only the containers around changed text are new."""
    kept, touched = {"a": ["x"]}, ["he"]
    payload = {"kept": kept, "touched": touched, "note": Note("x")}
    twin = swap(payload)
    assert twin["kept"] is kept
    assert twin["note"] is payload["note"]
    assert twin["touched"] is not touched
    assert swap({"a": ["x"]}) == {"a": ["x"]}
    assert swap(payload["kept"]) is kept


def test_the_payload_is_never_changed() -> None:
    """Not even where it is mutable."""
    payload = {"a": ["he", {"b": deque(["his"])}], "c": {"he"}, "d": Note("he")}
    before = copy.deepcopy(payload)
    assert swap(payload) != payload
    assert payload == before


@pytest.mark.parametrize("make", [list, dict])
def test_a_payload_that_contains_itself_is_refused(make: type) -> None:
    """The error says where the circle closes."""
    payload = make()
    if isinstance(payload, dict):
        payload["a"] = [payload]
    else:
        payload.append({"a": payload})
    with pytest.raises(PerturbationError, match="contains itself"):
        PRONOUNS.swap(payload)


def test_an_object_met_twice_is_no_circle() -> None:
    """It is swapped in both places."""
    shared = ["he"]
    assert swap([shared, shared]) == [["she"], ["she"]]


def test_a_payload_nested_without_end_is_refused() -> None:
    """Long before the interpreter's own limit."""
    payload: Any = "he"
    for _ in range(MAX_DEPTH):
        payload = [payload]
    assert PRONOUNS.swap(payload).edit_count == 1
    with pytest.raises(PerturbationError, match="nested deeper than 100"):
        PRONOUNS.swap([payload])


def test_pointers_lead_to_the_text_they_name() -> None:
    """Slashes and tildes are escaped; fields, set members and odd keys have an address too."""
    payload = {"a/b": {"m~n": ["x"]}, 1: "one", "1": "two", "note": Note("y"), "set": {"q", "p"}}
    assert text_leaves(payload) == [
        ("/a~1b/m~0n/0", "x"),
        ("/1'", "one"),
        ("/1", "two"),
        ("/note/text", "y"),
        ("/note/derived", "y!"),
        ("/set/0", "p"),
        ("/set/1", "q"),
    ]


def test_every_changed_leaf_is_a_target_once() -> None:
    """Targets are the pointers of the edits, in document order."""
    twin = PRONOUNS.swap({"b": "he and his", "a": ["x", "man"]})
    assert twin.targets == ("/b", "/a/1")
    assert twin.edit_count == 3
    assert twin.edits[1] == Edit("/b", 7, 10, "his", "her")


def test_edits_can_be_made_again() -> None:
    """On the payload they were made on, and on no other."""
    payload = {"a": [Person(name="a man"), "his"]}
    twin = PRONOUNS.swap(payload)
    assert replay(payload, twin.edits) == twin.payload
    with pytest.raises(PerturbationError, match="no text at '/a/0/name'"):
        replay({"a": ["x"]}, twin.edits)
    with pytest.raises(PerturbationError, match="not what the edit was made on"):
        replay(twin.payload, twin.edits)


def test_edits_that_overlap_are_refused() -> None:
    """They cannot both have been made."""
    with pytest.raises(PerturbationError, match="not what the edit was made on"):
        replay("he he", [Edit("", 0, 2, "he", "x"), Edit("", 0, 2, "he", "y")])


def test_a_slotted_object_with_an_unset_field_is_walked() -> None:
    """What is not there cannot be text."""

    @dataclass(slots=True)
    class Lazy:
        text: str
        late: str = field(init=False)

    assert swap(Lazy("he")).text == "she"


def test_a_walk_visits_leaves_in_order() -> None:
    """The pointer comes with the text."""
    payload = ["a", {"b": "c"}]
    assert map_text(payload, lambda pointer, text: pointer + text) == ["/0a", {"b": "/1/bc"}]


def test_a_long_payload_of_many_leaves_is_swapped_whole() -> None:
    """Nothing is lost to a limit on length."""
    slot = Slot(name="p", forms={"a": ("he",), "b": ("she",)})
    axis = Axis(name="g", groups=("a", "b"), slots=(slot,))
    twin = axis.swap(["he " * 1000] * 50)
    assert twin.edit_count == 50_000
    assert twin.payload == ["she " * 1000] * 50


def test_a_chat_history_keeps_its_other_messages() -> None:
    """Messages that name nobody are the same objects in the twin."""
    plain, telling = HumanMessage("Hello"), HumanMessage("She waits.")
    twin = builtin_axis("gender").swap([plain, telling])
    assert twin.payload[0] is plain
    assert twin.payload[1].content == "He waits."
