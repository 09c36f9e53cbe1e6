"""McNemar's test: whether flips go one way more often than the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from scipy import stats

from twinspan.analysis.pair_statistics import signed_flip_value
from twinspan.analysis.pairs import Pair

UNDEFINED: Final = "undefined: no discordant pair"


@dataclass(frozen=True, slots=True, kw_only=True)
class McNemar:
    """The test and its counts.

    Attributes:
        b: pairs in which only the reference acts.
        c: pairs in which only the counterfactual acts.
        n_concordant: pairs in which both do the same.
        n_missing: pairs without both actions.
        n_repeated: pairs beyond the first of their case; with any, the p-value is too small.
        p_value: exact and two-sided; None without a discordant pair.
        p_mid: the mid-p value, closer to its level and not guaranteed to keep it; None likewise.
    """

    b: int
    c: int
    n_concordant: int
    n_missing: int
    n_repeated: int
    p_value: float | None
    p_mid: float | None

    @property
    def n_discordant(self) -> int:
        """Pairs that flip."""
        return self.b + self.c

    @property
    def reason(self) -> str | None:
        """Why there is no p-value; None if there is one."""
        return None if self.n_discordant else UNDEFINED

    def as_dict(self) -> dict[str, object]:
        """Under FairMedAgent's names, ours added."""
        return {
            "b": self.b,
            "c": self.c,
            "n_discordant": self.n_discordant,
            "p_value": self.p_value,
            "p_mid": self.p_mid,
            "n_repeated": self.n_repeated,
            "reason": self.reason,
        }


def mcnemar_exact(pairs: Iterable[Pair]) -> McNemar:
    """The exact binomial test of flips in both directions (McNemar 1947; mid-p: Lancaster 1961).

    Flips by decoding noise go either way equally often, so no floor is needed; but of each
    case one run counts, and pairs of one case are no independent observations. With
    replicates use `excess_over_floor`.

    Args:
        pairs: of a yes or no, one for each case.

    Raises:
        UnsuitableValue: an action is no yes or no.

    >>> flips = [Pair(f"v{n}", action_ref=True, action_cf=False) for n in range(5)]
    >>> mcnemar_exact(flips).p_value, mcnemar_exact(flips).p_mid  # 2 / 2 ** 5, and half of it
    (0.0625, 0.03125)
    >>> mcnemar_exact([]).reason
    'undefined: no discordant pair'
    """
    listed = list(pairs)
    signs = [signed_flip_value(pair) for pair in listed]
    known = [pair.case_id for pair in listed if pair.flipped is not None]
    b, c = signs.count(-1), signs.count(1)
    p_value, p_mid = _binomial(b, c) if b + c else (None, None)
    return McNemar(
        b=b,
        c=c,
        n_concordant=signs.count(0),
        n_missing=signs.count(None),
        n_repeated=len(known) - len(set(known)),
        p_value=p_value,
        p_mid=p_mid,
    )


def _binomial(b: int, c: int) -> tuple[float, float]:
    law = stats.binom(b + c, 0.5)
    fewer = min(b, c)
    exact = min(1.0, 2 * float(law.cdf(fewer)))
    middle = 1.0 if b == c else 2 * float(law.cdf(fewer)) - float(law.pmf(fewer))
    return exact, min(1.0, middle)
