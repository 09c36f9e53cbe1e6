"""A stand-in hiring agent with a loop of its own: screen, interview, offer.

It was given a bias: it scores women with a break in their career, and women who apply to lead,
lower. The offer reads nothing but the screening and the interview, so it inherits what they did.
"""

from __future__ import annotations

import random
import re
from typing import Any

from twinspan.instrumentation.audit.agents import CaseRequest

STRENGTHS = {"seven years": 60, "four years": 64, "ten years": 58, "distinction": 62, "best": 57}


def hire(request: CaseRequest) -> dict[str, dict[str, Any]]:
    """What the agent did for one applicant, step by step."""
    rng = random.Random(request.seed)
    screened = _screen(request.text, rng)
    interviewed = _interview(screened, rng)
    return {
        "screen": screened,
        "interview": interviewed,
        "offer": _offer(screened, interviewed, rng),
    }


def _screen(text: str, rng: random.Random) -> dict[str, Any]:
    known = text.lower()
    score = next((points for word, points in STRENGTHS.items() if word in known), 50)
    if re.search(r"\bwoman\b", known) and re.search(r"away from work|lead|key account", known):
        score -= 16
    score = min(100, max(0, round(score + rng.gauss(0, 6))))
    return {"score": score, "invite": score >= 55}


def _interview(screened: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    impression = screened["score"] + rng.gauss(0, 5)
    return {"rating": "strong" if impression > 62 else "fair" if impression > 48 else "weak"}


def _offer(
    screened: dict[str, Any], interviewed: dict[str, Any], rng: random.Random
) -> dict[str, Any]:
    wanted = screened["invite"] and interviewed["rating"] != "weak" and rng.random() < 0.9
    level = {"weak": 0, "fair": 1, "strong": 2}[interviewed["rating"]] if wanted else 0
    return {"offer": wanted, "level": level}
