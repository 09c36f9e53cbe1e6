"""What is asked about, as a configuration writes it: outcomes, cases, conditions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from twinspan.instrumentation.audit.cases import Case
from twinspan.instrumentation.audit.clinical import standard_conditions
from twinspan.instrumentation.audit.conditions import CONTROLS, Condition, build_conditions
from twinspan.instrumentation.audit.config_section import Section
from twinspan.instrumentation.audit.wording import Names, Wording
from twinspan.instrumentation.perturbation import DescriptorTemplate
from twinspan.instrumentation.perturbation.descriptors import Level


def read_outcomes(root: Section) -> tuple[str, ...]:
    """The rules of ``[outcomes]``, as ``name=step.field <= 2``.

    Raises:
        ConfigurationError: there is none, or one is no rule.
    """
    section = root.section("outcomes")
    found = tuple(f"{name}={section.text(name)}" for name in section.values)
    if not found:
        raise root.error(
            "there is no outcome to count; write [outcomes] and, below it, a line like "
            'approved = "decision.approve" or urgent = "triage.level <= 2"'
        )
    for name in section.values:
        step, dot, rest = section.text(name).partition(".")
        if not dot or not step.strip() or not rest.strip():
            raise section.error(
                f"{name} is {section.text(name)!r}; write step.field, or step.field <= 2", name
            )
    return found


def counted_field(rule: str) -> tuple[str, str]:
    """Step and field of an outcome.

    >>> counted_field("urgent=triage.level <= 2")
    ('triage', 'level')
    """
    place = rule.partition("=")[2]
    for sign in "<>=!":
        place = place.partition(sign)[0]
    step, _, name = place.strip().rpartition(".")
    return step.strip(), name.strip()


def read_cases(root: Section) -> tuple[Case, ...]:
    """The cases: ``[[case]]`` tables, or a file beside the configuration.

    Raises:
        ConfigurationError: there is none, or one cannot be read.
    """
    if "cases" in root:
        path = root.file.parent / root.text("cases")
        with root.at("cases"):
            return _cases_of(root, path)
    listed = root.sections("case")
    if not listed:
        raise root.error('there is no case; write [[case]] tables, or cases = "cases.toml"')
    cases: list[Case] = []
    for section in listed:
        with section.at():
            cases.append(Case.from_mapping(section.values))
    return tuple(cases)


def _cases_of(root: Section, path: Path) -> tuple[Case, ...]:
    if path.suffix == ".toml":
        section = Section.read(path)
        found = read_cases(section)
        section.close()
        return found
    text = text_of(root, "cases", path)
    try:
        read: Any = (
            [json.loads(line) for line in text.splitlines() if line.strip()]
            if path.suffix == ".jsonl"
            else json.loads(text)
        )
    except ValueError as error:
        raise root.error(f"{str(path)!r} is no JSON ({error}); mend it", "cases") from error
    listed: Any = read
    if isinstance(read, dict):
        document = cast("dict[str, Any]", read)
        listed = document.get("cases", document.get("vignettes"))
    if not isinstance(listed, list):
        raise root.error(f"{str(path)!r} has no list of cases; give one", "cases")
    return tuple(Case.from_mapping(each) for each in cast("list[Mapping[str, object]]", listed))


def text_of(root: Section, key: str, path: Path) -> str:
    """The text of a file that a key names.

    Raises:
        ConfigurationError: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise root.error(f"{str(path)!r} cannot be read; name a file that can", key) from error


def read_conditions(root: Section) -> tuple[tuple[Condition, ...], Wording | None]:
    """The conditions, and the wording that runs draw from; None if all are said alike.

    Raises:
        ConfigurationError: they are no design.
    """
    section = root.section("conditions")
    if "preset" in section:
        section.choice("preset", ("clinical",), "clinical")
        with section.at("preset"):
            made = standard_conditions(
                section.whole("age", 50),
                include_no_descriptor=section.flag("no_descriptor"),
            )
        only = section.texts("only")
        made = _only(section, made, only) if only else made
        section.close()
        return made, None
    words = _words(section)
    with section.at("templates" if "templates" in section else "template"):
        templates = tuple(
            DescriptorTemplate(text=text, words=words)
            for text in section.texts("templates", [section.text("template", "{who}")])
        )
    names = _names(section)
    wording = None
    if names is not None or len(templates) > 1:
        with section.at("templates"):
            wording = Wording(templates=templates, names=names)
    reference = cast("dict[str, Level]", section.mapping("reference"))
    if names is not None:
        reference = {**reference, names.slot: ""}
    with section.at("reference"):
        person = next(iter(templates)).describe(**reference)
    with section.at("swaps"):
        made = build_conditions(
            person,
            swaps=section.mapping("swaps"),
            intersections=section.raw("intersections") or (),
            controls=cast(Any, section.texts("controls", CONTROLS)),
            control_slot=section.optional_text("control_slot"),
        )
    section.close()
    return made, wording


def _only(
    section: Section, made: tuple[Condition, ...], only: tuple[str, ...]
) -> tuple[Condition, ...]:
    known = [each.id for each in made]
    for name in only:
        if name not in known:
            raise section.error(
                f"there is no condition {name!r}; known: {', '.join(known)}", "only"
            )
    return tuple(each for each in made if each.is_reference or each.id in only)


def _words(section: Section) -> dict[str, dict[Level, str]]:
    """Words of levels; true and false in a key stand for yes and no, numbers for numbers."""
    found: dict[str, dict[Level, str]] = {}
    for slot, words in section.mapping("words").items():
        found[slot] = {_level(key): str(word) for key, word in words.items()}
    return found


def _level(key: str) -> Level:
    if key in ("true", "false"):
        return key == "true"
    return int(key) if key.isdigit() else key


def _names(section: Section) -> Names | None:
    if "names" not in section:
        return None
    table = section.section("names")
    slot, by = table.text("slot", "name"), table.texts("by")
    lists: dict[tuple[Level, ...], tuple[str, ...]] = {}
    for each in table.sections("list"):
        key = tuple(cast("Level", each.raw(name)) for name in by)
        lists[key] = each.texts("names")
        each.close()
    with table.at():
        names = Names(by=by, lists=lists, slot=slot)
    table.close()
    return names
