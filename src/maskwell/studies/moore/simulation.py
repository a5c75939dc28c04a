"""Moore's experiment: the survey masked by Kim's noise, attacked by Winkler's intruder, with noise drawn anew."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np

from ...attacks import Linkage, Relative, Risk, attack
from ...datasets import housing
from ...errors import MaskwellWarning
from ...masking import Masking, apply
from ...masks import CorrelatedNoise
from ...table import Table

Draws = dict[str, Sequence[float]]

FIELDS = ("INCOME", "HOME_VAL", "MORTGAGE", "MAINTAIN", "TAXES")
TOLERANCE = Relative(0.10)
WINKLER = Linkage(
    fields=FIELDS,
    largest_target_block=7,
    target_blocks=("REGION", "BEDROOMS", "BATHS", "YR_BLT"),
    match_blocks=("BEDROOMS", "BATHS", "YR_BLT"),
    rule=TOLERANCE,
)


def kim(c: float, **options: Any) -> CorrelatedNoise:
    """Return the paper's noise, in its letter."""
    return CorrelatedNoise(FIELDS, sd_ratio=c, **options)


@dataclass(frozen=True, slots=True)
class LinkCounts:
    """The links of one run by class, ties shared; the `right` ones are not counted in the paper."""

    correct: float
    incorrect: float
    questionable: float
    false: float
    questionable_right: float
    false_right: float

    @classmethod
    def of(cls, risk: Risk) -> LinkCounts:
        """Count the links that an attack made."""
        sure, questionable, false = map(risk.class_of, ("re-identification", "questionable", "false"))
        return cls(
            sure.expected_correct,
            sure.links - sure.expected_correct,
            questionable.links,
            false.links + risk.class_of("no candidate").links,
            questionable.expected_correct,
            false.expected_correct,
        )

    @property
    def targets(self) -> float:
        """How many records were looked for."""
        return self.correct + self.incorrect + self.questionable + self.false

    @property
    def right(self) -> float:
        """How many best links are right, whatever their class."""
        return self.correct + self.questionable_right + self.false_right


@dataclass(frozen=True)
class MooreSimulation:
    """The survey, and one seed of the noise for each replicate; what was simulated once is kept.

    The same seed draws the same standard normals at every c.
    """

    replicates: int
    seed: int
    tick: Callable[[], None] = field(default=lambda: None, repr=False)
    kept: dict[tuple[float, bool, int], LinkCounts] = field(default_factory=dict, repr=False)

    @property
    def survey(self) -> Table:
        """The survey, with its codes."""
        return _survey(codes=True)

    @property
    def uncoded(self) -> Table:
        """The survey with the values that the codes hide."""
        return _survey(codes=False)

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the noise."""
        states = np.random.SeedSequence(self.seed).generate_state(self.replicates, np.uint64)
        return tuple(map(int, states))

    def masking(self, c: float, seed: int, *, coded: bool = True) -> Masking:
        """Mask the survey by Kim's noise."""
        return mask_by_seed(kim(c), self.survey if coded else self.uncoded, seed)

    def links(self, c: float, *, coded: bool = True) -> list[LinkCounts]:
        """Return what the intruder achieves at a size of the noise, for each seed."""
        return [self._links(c, coded, seed) for seed in self.seeds]

    def _links(self, c: float, coded: bool, seed: int) -> LinkCounts:
        place = (c, coded, seed)
        if place not in self.kept:
            with quiet():
                self.kept[place] = LinkCounts.of(attack(WINKLER, self.masking(c, seed, coded=coded)))
        self.tick()
        return self.kept[place]


@cache
def _survey(*, codes: bool) -> Table:
    return housing(codes=codes)


def mask_by_seed(mask: Any, table: Table, seed: int) -> Masking:
    """Mask a table by noise of full precision that a seed draws."""
    with quiet():
        return apply(mask, table, seed=seed, exact=True)


def quiet() -> Any:
    """Leave out what a steward should know and a study knows: records alone in their blocks, swaps that are stuck."""
    return warnings.catch_warnings(action="ignore", category=MaskwellWarning)


def by_column(row: str, columns: Mapping[str, Sequence[float]]) -> Draws:
    """Name the cells of a row."""
    return {f"{row} | {column}": values for column, values in columns.items()}
