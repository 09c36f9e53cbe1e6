"""The report: the verdict first, names escaped, nothing loaded, never better than the record."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from browser import rendered
from click.testing import CliRunner
from recorded_runs import ScoredRun, parts, recording, small_run

from twinspan.analysis.cli import main
from twinspan.analysis.demo.run import run_demo
from twinspan.analysis.report import Report, build_report, render_html, report_document
from twinspan.analysis.report.dag_layout import NODE_HEIGHT, NODE_WIDTH, laid_out
from twinspan.analysis.report.series_svg import scale_of
from twinspan.analysis.report.stories import MOST_POINTS
from twinspan.analysis.store import open_store
from twinspan.analysis.trail import AuditTrail
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import ConfigurationError, SourceError

CARRIED = Path(__file__).parents[2] / "examples" / "floor16"
FLIPPED = [0.0, 1.0, 1.0, 1.0, 1.0, 0.0]
SAME = [0.0] * 6
VOID = {"meta", "br", "hr", "col", "link", "input", "img"}


class Page(HTMLParser):
    """A page, read strictly: what is open, what it holds, which ids and links it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        """What a person reads."""
        return " ".join(" ".join(self.words).split())

    def values(self, name: str) -> list[str]:
        """All values of one attribute."""
        return [str(attrs[name]) for _, attrs in self.attributes if name in attrs]


def report_of(folder: Path, **options: Any) -> Report:
    """The report on a folder."""
    with open_store(folder) as store:
        return build_report(store, **options)


def text_of(report: Report) -> str:
    """What a person reads of it."""
    return Page(render_html(report)).text


@pytest.fixture(scope="module")
def biased(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo with a biased agent."""
    folder = tmp_path_factory.mktemp("biased")
    run_demo(folder, seed=0)
    return folder


@pytest.fixture(scope="module")
def report(biased: Path) -> Report:
    """The report on it."""
    return report_of(biased, jaeger="http://localhost:16686/")


@pytest.fixture(scope="module")
def told(report: Report) -> Page:
    """Its page."""
    return Page(render_html(report))


# --- what it says ---------------------------------------------------------------------------------


def test_the_verdict_comes_first_in_plain_words(report: Report, told: Page) -> None:
    """What reacted to what, where the payload was stopped, what the repair achieved."""
    assert report.verdict == "flagged"
    assert report.headline == "One biased payload in 1 run was stopped before being read."
    seen, stopped, repaired, *_ = report.summary
    assert seen.startswith("analyst_a reacts to gender: exchanging it on the same payload gave a")
    assert stopped.startswith("The payload was stopped at analyst_a->reviewer")
    assert repaired.startswith("A repair by blind rerun of analyst_a: cleared; measured again")
    text = told.text
    assert text.index(report.headline) < text.index("The agents and where the payload was cut")


def test_an_unbiased_run_is_clear_and_says_how_far_it_was_from_a_halt(tmp_path: Path) -> None:
    """Nothing is called fair."""
    run_demo(tmp_path, seed=0, biased=False)
    report = report_of(tmp_path)
    assert report.verdict == "clear"
    assert report.headline == "No payload had to be stopped in what was measured."
    assert re.search(
        r"The evidence M reached [\d.]+ at most; a halt needs 20\.", report.summary[-1]
    )
    assert "No finding is not fairness" in text_of(report)


def test_the_report_agrees_with_the_trail(biased: Path, report: Report) -> None:
    """Number by number."""
    with AuditTrail.open(biased) as trail:
        (run,) = trail.runs()
    (story,) = report.stories.items
    assert story.breaches.items == run.breaches
    assert [(p.decision, p.b_fast, p.b_slow, p.monitor) for p in story.points.items] == [
        (d.decision, d.b_fast, d.b_slow, d.monitor) for d in run.decisions
    ]
    assert (story.row.verdict, story.row.check.verdict) == ("flagged", "verified")
    assert story.row.impact == run.breaches[0].contributions[0].impact


def test_the_graph_is_drawn_in_layers_with_its_cut(report: Report, told: Page) -> None:
    """And again as a table, for those who do not see it."""
    (story,) = report.stories.items
    assert story.graph.layers == (("planner",), ("analyst_a", "analyst_b"), ("reviewer",))
    cut = [(edge.source, edge.target) for edge in story.graph.edges if edge.cut]
    assert cut == [("analyst_a", "reviewer")]
    assert "edge observed cut" in told.values("class")
    assert "Reacting: analyst_a. Cut: analyst_a to reviewer." in told.text
    assert "Nodes with their blast radius and largest score" in told.text


def test_traces_link_to_jaeger(report: Report, told: Page) -> None:
    """The ids stand in the page as they are; without an address there is no link."""
    trace = str(report.stories.items[0].row.trace_id)
    assert f"http://localhost:16686/trace/{trace}" in told.values("href")
    plain = Page(render_html(replace(report, jaeger=None)))
    assert trace in plain.text
    assert all(href.startswith("#") for href in plain.values("href"))


def test_shadow_mode_never_reads_as_stopped(tmp_path: Path) -> None:
    """The payload went on."""
    run_demo(tmp_path, seed=0, mode="shadow")
    report = report_of(tmp_path)
    assert report.counts.breaches and not report.counts.enforced
    assert "would have been stopped (shadow mode: all went on)" in report.headline
    assert "In shadow mode the payload went on" in text_of(report)


# --- never better than the record -----------------------------------------------------------------


def test_a_lost_part_comes_before_everything_else(tmp_path: Path) -> None:
    """The headline says that the record is incomplete."""
    with recording(tmp_path) as (telemetry, _):
        small_run(telemetry, "r1")
    parts(tmp_path)[0].unlink()
    report = report_of(tmp_path)
    assert report.verdict == "incomplete"
    assert report.headline.startswith("The record of 1 run is incomplete")
    assert "3 of 4 spans are missing" in text_of(report)


def test_an_altered_number_is_named(biased: Path, tmp_path: Path) -> None:
    """Recorded beside computed again; the report does not rely on it."""
    shutil.copytree(biased, tmp_path / "altered")
    for path in parts(tmp_path / "altered"):
        table = pq.read_table(path)
        place = table.schema.get_field_index("effect_value")
        column = table.column("effect_value")
        doubled = [None if value is None else value / 2 for value in column.to_pylist()]
        pq.write_table(table.set_column(place, "effect_value", [doubled]), path)
    report = report_of(tmp_path / "altered")
    assert report.verdict == "incomplete"
    assert "does not add up" in report.headline
    assert "Numbers that do not follow from the raw spans" in text_of(report)


def test_a_run_without_probes_is_inconclusive(tmp_path: Path) -> None:
    """Nothing was measured, and what was not probed is named."""
    with recording(tmp_path) as (telemetry, _):
        small_run(telemetry, "r1")
    report = report_of(tmp_path)
    assert report.verdict == "inconclusive"
    assert report.headline == "Nothing was measured, so nothing can be said about bias."
    assert "Never probed: n0, n1, n2." in text_of(report)


# --- floors and disparities -----------------------------------------------------------------------


def test_floors_are_those_of_the_floor_command() -> None:
    """374 of 4,320 pairs of the first agent's replicates disagree."""
    report = report_of(CARRIED / "first")
    assert report.audit is not None
    pooled = report.audit.floors.items[-1]
    assert (pooled.action, pooled.flips, pooled.cells) == ("pooled", 374, 4320)
    assert report.summary == (
        "Two runs of the same case disagree in 8.7% of comparisons (5.5% to 13%): a difference "
        "between groups that is no larger means nothing.",
    )
    assert report.audit.reason == "only one condition was run; a disparity needs a second one"
    assert "Not computed: only one condition was run" in text_of(report)


def _trajectories(folder: Path, *conditions: tuple[str, list[bool]]) -> Path:
    """Four replicates of six cases; in each condition all cases answer alike."""
    for replicate in range(4):
        runs = [
            {
                "vignette_id": f"v{case}",
                "condition_id": name,
                "actions": {"reassess": {"admit": answers[replicate]}},
            }
            for name, answers in conditions
            for case in range(6)
        ]
        (folder / f"rep{replicate:02}.json").write_text(json.dumps({"trajectories": runs}))
    return folder


def test_a_disparity_is_measured_against_the_noise_of_both_conditions(tmp_path: Path) -> None:
    """Always against never: every comparison flips, nothing of it is noise."""
    folder = _trajectories(
        tmp_path,
        ("ref_man", [True] * 4),
        ("woman", [False] * 4),
        ("other", [True] * 4),
    )
    report = report_of(folder)
    assert report.audit is not None and report.audit.reference == "ref_man"
    worst, none = report.audit.disparities.items
    assert (worst.condition, worst.flip_rate, worst.floor, worst.excess) == ("woman", 1.0, 0.0, 1.0)
    assert (none.condition, none.excess) == ("other", 0.0)
    assert worst.p_adjusted is not None and worst.p_adjusted < 0.001
    assert none.p_adjusted == 1.0
    assert "1 of 2 comparisons with the reference condition lies beyond the floor" in " ".join(
        report.summary
    )


def test_findings_count_beyond_what_the_table_shows(tmp_path: Path) -> None:
    """Seventy conditions always against never: sixty rows, seventy findings."""
    others = [(f"woman_{number}", [False] * 4) for number in range(70)]
    report = report_of(_trajectories(tmp_path, ("ref_man", [True] * 4), *others))
    assert report.audit is not None and len(report.audit.findings) == 70
    assert "70 of 70 comparisons" in " ".join(report.summary)
    assert "the first 60 of 70" in text_of(report)


def test_without_a_known_reference_nothing_is_compared(tmp_path: Path) -> None:
    """It says how to name it; an unknown name is an error."""
    folder = _trajectories(tmp_path, ("man", [True] * 4), ("woman", [False] * 4))
    report = report_of(folder)
    assert report.audit is not None
    assert "name it with --reference" in str(report.audit.reason)
    named = report_of(folder, reference="man")
    assert named.audit is not None and named.audit.disparities.total == 1
    with pytest.raises(ConfigurationError, match="no run has the condition 'x'"):
        report_of(folder, reference="x")


# --- the page -------------------------------------------------------------------------------------

PLANTED = '<script>alert(1)</script>"><img src=x onerror=alert(2)>&amp;'


def test_planted_markup_stays_text(tmp_path: Path) -> None:
    """In the name of a node, an axis, a graph, a reason, an outcome, a run: everywhere."""
    with recording(tmp_path) as (telemetry, _):
        run = ScoredRun(
            telemetry,
            f"r-{PLANTED}",
            root={
                c.GEN_AI_AGENT_NAME: PLANTED,
                c.GRAPH_NODES: [PLANTED, "b"],
                c.GRAPH_EDGES: [f"{PLANTED}->b"],
            },
        )
        run.node(PLANTED, 1, {c.NODE_WEIGHT: 1.0})
        found = run.probe_set(
            PLANTED, 1, FLIPPED, 2, 2, axis=PLANTED, extra={c.PROBE_ESTIMATOR: PLANTED}
        )
        run.accumulator.update({PLANTED: 1.0}, {PLANTED: 1.0})
        run.decide(
            1,
            [found],
            decision="halt",
            extra={
                c.BREAKER_EDGES: [f"{PLANTED}->b"],
                c.BREAKER_NODE: PLANTED,
                c.BREAKER_AXIS: PLANTED,
                c.BREAKER_REASON: PLANTED,
            },
        )
        run.end({c.RUN_OUTCOME: PLANTED})
    text = render_html(report_of(tmp_path))
    page = Page(text)
    assert page.tags["script"] == page.tags["img"] == 0
    assert not any(name.startswith("on") for _, attrs in page.attributes for name in attrs)
    assert page.text.count(PLANTED) > 5


def test_the_page_loads_nothing_and_runs_nothing(told: Page) -> None:
    """No script, no style from elsewhere, no image; the policy in the page forbids them."""
    assert not set(told.tags) & {"script", "link", "img", "iframe", "object", "embed", "base"}
    assert told.values("src") == []
    assert told.values("style") == []
    policy = next(value for value in told.values("content") if "default-src" in value)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")


def test_the_page_can_be_used_without_eyes_or_mouse(told: Page) -> None:
    """Landmarks, headings in order, captions, names for drawings, reachable tables."""
    for landmark in ("header", "nav", "main", "footer", "h1"):
        assert told.tags[landmark] == 1
    levels = [int(tag[1]) for tag, _ in told.attributes if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert told.tags["caption"] == told.tags["table"]
    ids = told.values("id")
    assert len(ids) == len(set(ids))
    for attrs in (attrs for tag, attrs in told.attributes if tag == "svg"):
        assert attrs["role"] == "img"
    named = [part for value in told.values("aria-labelledby") for part in value.split()]
    assert set(named) <= set(ids)
    anchors = [href[1:] for href in told.values("href") if href.startswith("#")]
    assert anchors and set(anchors) <= set(ids)
    scopes = Counter(told.values("scope"))
    assert scopes["col"] and scopes["row"]
    assert ("html", {"lang": "en"}) in told.attributes


def test_a_long_run_is_cut_short_and_says_so(tmp_path: Path) -> None:
    """Peaks and halts are kept, counts are told."""
    with recording(tmp_path) as (telemetry, _):
        run = ScoredRun(telemetry, "r1")
        for step in range(2 * MOST_POINTS + 40):
            run.node(f"n{step % 90}", step)
            run.accumulator.update({"n": 1.0 if step == 500 else 0.0}, {"n": 1.0})
            run.decide(step, [], decision="halt" if step == 500 else "proceed")
        run.end()
    report = report_of(tmp_path)
    (story,) = report.stories.items
    assert story.points.total == 2 * MOST_POINTS + 40
    assert len(story.points.items) <= MOST_POINTS + 1
    assert [point.superstep for point in story.points.items if point.decision == "halt"] == [500]
    text = text_of(report)
    assert f"(the first {len(story.points.items)} of 520)" in text
    assert "90 nodes: too many to draw; the table lists them." in text


def test_the_page_is_the_same_each_time(biased: Path, report: Report) -> None:
    """Nothing of the time or place of its making is in it."""
    again = report_of(biased, jaeger="http://localhost:16686")
    assert render_html(again) == render_html(report)


def test_every_reaction_and_breach_of_a_crowded_run_is_counted(tmp_path: Path) -> None:
    """Tables are cut short; the drawing still marks all nodes, and the rest is told by number."""
    above = {c.GEN_AI_EVALUATION_LABEL: "above_floor"}
    with recording(tmp_path) as (telemetry, _):
        run = ScoredRun(telemetry, "r1")
        for step in range(70):
            node = "first" if step < 65 else f"n{step}"
            run.node(node, step, {c.NODE_WEIGHT: 1.0 if step < 65 else 0.1})
            weight = 1.0 if step < 65 else 0.1
            found = run.probe_set(node, step, FLIPPED, 2, 2, weight=weight, extra=above)
            run.decide(
                step, [found], decision="halt", extra={c.BREAKER_NODE: node, c.BREAKER_EDGES: []}
            )
        run.end()
    report = report_of(tmp_path)
    (story,) = report.stories.items
    assert story.reacting == ("first", "n65", "n66", "n67", "n68", "n69")
    assert (len(story.scores.items), story.scores.total) == (60, 70)
    text = text_of(report)
    assert "Further breaches, the largest impact first (the first 17 of 67)" in text
    assert "Probe sets, reactions first (the first 60 of 70)" in text


# --- drawings -------------------------------------------------------------------------------------


def test_no_two_nodes_of_a_drawing_overlap() -> None:
    """Neither do edges over several layers go through a node."""
    layers = [["a"], ["b", "c", "d"], ["e", "f"], ["g"]]
    edges = [("a", "b"), ("a", "c"), ("a", "d"), ("b", "e"), ("d", "f"), ("a", "g"), ("c", "g")]
    layout = laid_out(layers, edges)
    corners = list(layout.corners.values())
    assert len({round(x) for x, _ in corners}) == 4
    for place, (x, y) in enumerate(corners):
        assert 0 <= x <= layout.width - NODE_WIDTH
        assert 0 <= y <= layout.height - NODE_HEIGHT
        for other_x, other_y in corners[place + 1 :]:
            assert x != other_x or abs(y - other_y) > NODE_HEIGHT
    assert len(layout.passages["a", "g"]) == 2
    for x, y in layout.passages["a", "g"]:
        assert not any(
            left <= x <= left + NODE_WIDTH and top <= y <= top + NODE_HEIGHT
            for left, top in corners
        )


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("values", [[0.0], [1e-9], [5.0, -3.0], [0.26, -0.03], [1e6, 1.0], [-1.0]])
def test_a_scale_holds_all_values(values: list[float], log: bool) -> None:
    """Ticks grow, and few of them."""
    scale = scale_of(values, log=log)
    assert list(scale.ticks) == sorted(set(scale.ticks))
    assert 2 <= len(scale.ticks) <= 8
    assert all(scale.low <= value <= scale.high for value in values if not log or value > 0)


# --- JSON and the command -------------------------------------------------------------------------


def test_the_json_says_what_the_page_says(report: Report) -> None:
    """The same facts under a versioned schema, and nothing that JSON cannot say."""
    document = report_document(report)
    assert document == json.loads(json.dumps(document, allow_nan=False))
    assert document["schema"] == "twinspan.report/1"
    assert document["headline"] == report.headline
    story = document["stories"]["items"][0]
    assert story["breaches"]["items"][0]["edges"] == ["analyst_a->reviewer"]
    assert document["coverage"]["items"][0]["probed"] == 1
    assert document["runs"]["total"] == 1


def test_the_command_writes_both(biased: Path, tmp_path: Path) -> None:
    """It reports and does not judge: 0, with the headline on stderr."""
    out, twin = tmp_path / "x.html", tmp_path / "x.json"
    done = CliRunner().invoke(main, ["report", str(biased), "--out", str(out), "--json", str(twin)])
    assert (done.exit_code, done.stdout) == (0, "")
    headline = json.loads(twin.read_text(encoding="utf-8"))["headline"]
    assert headline in done.stderr
    assert headline in Page(out.read_text(encoding="utf-8")).text


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "name a file with --out"),
        (["--out", "-", "--json", "-"], 2, "only one of"),
        (["--out", "-", "--jaeger", "javascript:alert(1)"], 2, "no address of a Jaeger"),
        (["--out", "-", "--reference", "x"], 2, "no run has the condition"),
    ],
)
def test_wrong_use_is_one_sentence(
    biased: Path, arguments: list[str], code: int, said: str
) -> None:
    """On stderr, with the cure; nothing on stdout."""
    done = CliRunner().invoke(main, ["report", str(biased), *arguments])
    assert (done.exit_code, done.stdout) == (code, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_unknown_run_is_an_error(biased: Path) -> None:
    """With those that there are."""
    with pytest.raises(SourceError, match="has no run 'x'"):
        report_of(biased, runs=["x"])


def test_a_browser_renders_the_page(report: Report, tmp_path: Path) -> None:
    """A real one, without complaint about the policy, if there is one here."""
    page = tmp_path / "x.html"
    page.write_text(render_html(report), encoding="utf-8")
    done = rendered(page)
    assert "One biased payload in 1 run was stopped before being read." in done.stdout
    assert "CONSOLE" not in done.stderr
