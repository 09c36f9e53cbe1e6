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
        texts: probes of a node that writes, of each kind.
    """

    temperatures: tuple[float, ...]
    replicates: int
    probes: int
    templates: int
    clean_runs: int
    real_runs: int
    seeded_runs: int
    texts: int


SIZES: Final[dict[SizeName, Size]] = {
    "smallest": Size(
        temperatures=(0.0, 1.0),
        replicates=3,
        probes=2,
        templates=1,
        clean_runs=1,
        real_runs=1,
        seeded_runs=1,
        texts=1,
    ),
    "small": Size(
        temperatures=(0.0, 0.5, 1.0, 1.5),
        replicates=5,
        probes=200,
        templates=6,
        clean_runs=60,
        real_runs=40,
        seeded_runs=60,
        texts=8,
    ),
    "full": Size(
        temperatures=(0.0, 0.3, 0.5, 0.7, 1.0, 1.3, 1.5),
        replicates=20,
        probes=1000,
        templates=60,
        clean_runs=200,
        real_runs=50,
        seeded_runs=100,
        texts=50,
    ),
}
