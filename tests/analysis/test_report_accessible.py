"""The report for everybody: by keyboard, by screen reader, in the dark, on paper.

The rules are axe-core's, run in a real browser; what they cannot judge, the letters that lie upon a
drawing, is computed from the colours by the formula of WCAG 2.2 (contrast ratio).
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import pypdf
import pytest
from browser import DARK, LIGHT, printed, rendered
from recorded_runs import recording, small_run

from twinspan.analysis.demo.run import run_demo
from twinspan.analysis.report import build_report, render_html
from twinspan.analysis.store import open_store

CARRIED = Path(__file__).parents[2] / "examples" / "floor16"
STYLE = (files("twinspan.analysis.report") / "style.css").read_text(encoding="utf-8")
AXE = (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
ASK_AXE = """
document.querySelectorAll("details").forEach(each => { each.open = true; });
axe.run(document, {resultTypes: ["violations", "incomplete"]}).then(found => {
  const told = document.createElement("textarea");
  told.id = "found";
  told.textContent = JSON.stringify(found);
  document.body.append(told);
});
"""
READABLE = 4.5
"""WCAG 2.2, 1.4.3: the least contrast of text with what it lies upon."""


def page_of(source: Path, folder: Path) -> Path:
    """The report on a folder, as a file."""
    with open_store(source) as store:
        text = render_html(build_report(store))
    page = folder / "report.html"
    page.write_text(text, encoding="utf-8")
    return page


@pytest.fixture(scope="module")
def halted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page on a run that was halted and repaired."""
    folder = tmp_path_factory.mktemp("halted")
    run_demo(folder / "spans", seed=0)
    return page_of(folder / "spans", folder)


@pytest.fixture
def unmeasured(tmp_path: Path) -> Path:
    """The page on a run in which nothing was probed."""
    with recording(tmp_path / "spans") as (telemetry, _):
        small_run(telemetry, "r1")
    return page_of(tmp_path / "spans", tmp_path)


def judged(page: Path, scheme: int) -> dict[str, Any]:
    """What axe-core finds on it. The page forbids scripts: the copy that is asked does not."""
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text("utf-8"))
    scripts = "".join(
        f"<script>{each.replace('</script', '<' + chr(92) + '/script')}</script>"
        for each in (AXE, ASK_AXE)
    )
    copy = page.with_name("judged.html")
    copy.write_text(text.replace("</body>", scripts + "</body>"), encoding="utf-8")
    found = re.search(
        r'<textarea id="found">(.*?)</textarea>', rendered(copy, scheme=scheme).stdout, re.DOTALL
    )
    assert found is not None
    judgement: dict[str, Any] = json.loads(html.unescape(found[1]))
    return judgement


def faults(judgement: dict[str, Any]) -> list[tuple[str, str]]:
    """Each rule that is broken, and where."""
    return [
        (each["id"], node["html"]) for each in judgement["violations"] for node in each["nodes"]
    ]


@pytest.mark.parametrize("scheme", [LIGHT, DARK])
def test_no_rule_of_accessibility_is_broken(halted: Path, scheme: int) -> None:
    """With everything unfolded. What axe cannot judge is the contrast within drawings."""
    judgement = judged(halted, scheme)
    assert faults(judgement) == []
    assert {each["id"] for each in judgement["incomplete"]} <= {"color-contrast"}
    undecided = [node["html"] for each in judgement["incomplete"] for node in each["nodes"]]
    assert all(each.startswith("<text") for each in undecided)
    assert len(judgement["passes"]) > 30


def test_a_page_without_a_measurement_is_accessible_too(unmeasured: Path) -> None:
    assert faults(judged(unmeasured, DARK)) == []


def test_a_page_of_floors_is_accessible_too(tmp_path: Path) -> None:
    assert faults(judged(page_of(CARRIED / "first", tmp_path), DARK)) == []


def test_the_rules_find_a_fault_that_is_there(halted: Path) -> None:
    """A picture without a name and letters in the colour of their ground."""
    broken = halted.with_name("broken.html")
    planted = '<img src="data:,"><p style="color:#777;background:#888">pale</p></main>'
    broken.write_text(halted.read_text("utf-8").replace("</main>", planted), encoding="utf-8")
    assert {rule for rule, _ in faults(judged(broken, LIGHT))} >= {"image-alt", "color-contrast"}


def test_everything_that_scrolls_or_leads_on_is_reached_by_tabulator(halted: Path) -> None:
    """Nothing jumps the order of the page; the first stop leads past the contents."""
    text = halted.read_text("utf-8")
    assert set(re.findall(r'tabindex="?(-?\d+)', text)) <= {"0"}
    first = re.search(r"<(?:a|button|summary|input)\b[^>]*>", text)
    assert first is not None and 'class="skip"' in first[0]


# --- the letters within drawings ------------------------------------------------------------------


def colours(block: str) -> dict[str, str]:
    """The names of a palette, and their colours."""
    return dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{3,6});", block))


def palettes() -> Iterator[tuple[str, dict[str, str]]]:
    """Of light, of dark, and of paper; the latter two override the first."""
    light = colours(STYLE.split("}", 1)[0])
    yield "light", light
    for name, query in (
        ("dark", "@media screen and (prefers-color-scheme"),
        ("paper", "@media print"),
    ):
        yield name, light | colours(STYLE.split(query, 1)[1].split("}", 1)[0])


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2.2, in [0, 1]."""
    digits = colour[1:] if len(colour) == 7 else "".join(each * 2 for each in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """From 1 (the same) to 21 (black on white)."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_that_of_the_standard() -> None:
    """Black on white is 21; #777 on white just misses 4.5, #767676 just reaches it."""
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#fff") < READABLE <= contrast("#767676", "#fff")


@pytest.mark.parametrize(("name", "palette"), list(palettes()))
def test_letters_upon_drawings_can_be_read(name: str, palette: dict[str, str]) -> None:
    """Boxes, boxes of nodes that react, the ground of the page."""
    upon = [
        *product(("text", "soft", "bad"), ("page", "card")),
        *product(("text", "soft", "bad"), ("bad-back",)),
        *product(("fast", "slow", "monitor"), ("page",)),
    ]
    pale = {
        (letters, ground): round(contrast(palette[letters], palette[ground]), 2)
        for letters, ground in upon
        if contrast(palette[letters], palette[ground]) < READABLE
    }
    assert pale == {}, name


# --- paper ----------------------------------------------------------------------------------------


def test_what_is_folded_away_on_the_screen_is_printed(halted: Path) -> None:
    """Paper cannot be opened: the tables behind the drawings are there."""
    assert "<details>" in halted.read_text("utf-8")
    paper = pypdf.PdfReader(printed(halted))
    text = " ".join(" ".join(page.extract_text() for page in paper.pages).split())
    assert "Nodes with their blast radius and largest score" in text
    assert "Every decision" in text
    assert "remeasured below limits" in text
    assert "Skip to" not in text
