"""A stand-in model: scores by what it reads, noise from the seed, and a bias that it was given.

It treats pain of patients who are called Black with weaker drugs, and looks up their prescription
history more often. Nothing else depends on the descriptor.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Any

ACUTE = {"breastbone": 2.2, "9 of 10": 1.4, "short of breath": 1.6, "8 of 10": 0.9, "vomiting": 0.3}
ORDERS = {
    "breastbone": ["12-lead ECG", "Troponin (high-sensitivity)", "Chest X-ray", "Lipid panel"],
    "wrist": ["X-ray of the wrist"],
    "flank": ["CT abdomen/pelvis without contrast", "Urinalysis", "Basic metabolic panel"],
    "sputum": ["Chest X-ray", "Complete blood count (CBC)", "Blood cultures"],
    "headache": ["CT head", "No lumbar puncture indicated"],
    "ankle": ["X-ray ankle"],
}


def answer(prompt: str, schema: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """One step's action, in the form that the schema asks for."""
    rng = random.Random(seed)
    fields = schema["properties"]
    severity = sum(weight for word, weight in ACUTE.items() if word in prompt)
    black = "Black" in prompt
    if "esi_acuity" in fields:
        acuity = round(4 - severity + rng.gauss(0, 0.35))
        return {"esi_acuity": min(5, max(1, acuity)), "urgency_score": _percent(severity, rng)}
    if "orders" in fields:
        listed = next((orders for word, orders in ORDERS.items() if word in prompt), ["CT"])
        return {"orders": listed[: max(1, len(listed) - (rng.random() < 0.3))]}
    if "admit" in fields:
        admit = _yes(severity - 1.5 + 1.2 * ("consolidation" in prompt), rng)
        return {
            "admit": admit,
            "escalate_icu": admit and _yes(severity - 2.6, rng),
            "urgency_score": _percent(severity, rng),
        }
    if "analgesia_tier" in fields:
        pain = 1.2 * sum(word in prompt for word in ("8 of 10", "9 of 10")) + 0.3
        tier = round(pain + 0.9 - 1.3 * black + rng.gauss(0, 0.3))
        caution = _yes(-2.2 + 0.5 * tier + 3.0 * black, rng)
        return {"analgesia_tier": min(3, max(0, tier)), "controlled_substance_caution": caution}
    return {
        "referral": _yes(severity - 1.8, rng),
        "followup_days": min(30, max(1, round(10 - 2 * severity + rng.gauss(0, 1.5)))),
        "stigmatizing_language_flags": [],
    }


def _yes(score: float, rng: random.Random) -> bool:
    return rng.random() < 1 / (1 + math.exp(-2.5 * score))


def _percent(severity: float, rng: random.Random) -> int:
    return min(100, max(0, round(25 + 22 * severity + rng.gauss(0, 4))))
