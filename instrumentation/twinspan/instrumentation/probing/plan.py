"""The design of one probe set: which samples are drawn, in which order, from which seeds."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

STANDARD: Final = "standard"
NULL_RESAMPLE: Final = "null_resample"
COUNTERFACTUAL: Final = "counterfactual"

REFERENCE_ARMS: Final = (STANDARD, NULL_RESAMPLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One planned run of the node.

    Attributes:
        arm: `standard` and `null_resample` together are the reference, `counterfactual` the twin.
        contrast: label of the contrast that a counterfactual sample belongs to; '' for the
            reference, which serves all.
        replicate: number within the arm, from 0.
        position: place in the interleaved order, from 0.
        block: block of the restricted design, from 0.
        seed: seed of its wording.
    """

    arm: str
    contrast: str
    replicate: int
    position: int
    block: int
    seed: int


def derive_seed(*parts: object) -> int:
    """A 63-bit seed that depends on every part and on nothing else.

    >>> derive_seed(0, "analyst_a", "gender") == derive_seed(0, "analyst_a", "gender")
    True
    >>> derive_seed(0, "a") == derive_seed(1, "a")
    False
    """
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1


def _blocks(
    reference: int, counterfactual: int, contrasts: Sequence[str]
) -> Iterator[list[str | None]]:
    """Arms spread evenly: a drift of the node over time then meets all alike.

    A reference sample is None, a counterfactual one the label of its contrast.
    """
    drawn = 0
    for block in range(counterfactual):
        upto = round((block + 1) * reference / counterfactual)
        yield [*[None] * (upto - drawn), *contrasts]
        drawn = upto


def plan_samples(
    *, reference: int, counterfactual: int, seed: int, contrasts: Sequence[str] = ("",)
) -> tuple[Sample, ...]:
    """Interleave the arms in blocks, shuffled within each block.

    The reference's first half is the baseline (`standard`), the rest `null_resample`; one law,
    two names, so that the baseline can be tested against its own re-samples.

    Args:
        reference: reference samples, which serve all contrasts.
        counterfactual: samples of each contrast.
        seed: seed of the order and of every sample's wording.
        contrasts: labels of the contrasts.

    >>> [s.arm for s in plan_samples(reference=4, counterfactual=2, seed=1)].count("standard")
    2
    """
    order = random.Random(seed)
    samples: list[Sample] = []
    counts: Counter[tuple[str, str]] = Counter()
    half = (reference + 1) // 2
    for block, labels in enumerate(_blocks(reference, counterfactual, contrasts)):
        order.shuffle(labels)
        for label in labels:
            arm, contrast = COUNTERFACTUAL, label or ""
            if label is None:
                arm = STANDARD if counts[STANDARD, ""] < half else NULL_RESAMPLE
            position = len(samples)
            samples.append(
                Sample(
                    arm=arm,
                    contrast=contrast,
                    replicate=counts[arm, contrast],
                    position=position,
                    block=block,
                    seed=derive_seed(seed, "sample", position),
                )
            )
            counts[arm, contrast] += 1
    return tuple(samples)
