"""How large a study is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

SizeName = Literal["smallest", "small", "full"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Numbers of one size.

    Attributes:
        temperatures: of the floors.
        replicates: runs of a case, per condition.
        probes: neutral probes of a node.
        templates: templates of each corpus.
        clean_runs: runs of the graph on a neutral axis.
        real_runs: runs of the graph on the gender axis.
        seeded_runs: runs of the graph with a biased node.
    """

    temperatures: tuple[float, ...]
    replicates: int
    probes: int
    templates: int
    clean_runs: int
    real_runs: int
    seeded_runs: int


SIZES: Final[dict[SizeName, Size]] = {
    "smallest": Size(
        temperatures=(0.0, 1.0),
        replicates=3,
        probes=2,
        templates=1,
        clean_runs=1,
        real_runs=1,
        seeded_runs=1,
    ),
    "small": Size(
        temperatures=(0.0, 0.5, 1.0, 1.5),
        replicates=5,
        probes=100,
        templates=6,
        clean_runs=40,
        real_runs=20,
        seeded_runs=20,
    ),
    "full": Size(
        temperatures=(0.0, 0.3, 0.5, 0.7, 1.0, 1.3, 1.5),
        replicates=20,
        probes=1000,
        templates=60,
        clean_runs=200,
        real_runs=50,
        seeded_runs=100,
    ),
}
