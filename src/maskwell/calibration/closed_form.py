"""Moore's closed form for the noise beyond which more noise protects little: his conjectures 1 to 4, as he states them.

c = q (A - a) / (sqrt(12) sd), A and a the codes of a field, q its tolerance (Moore 1996, section VII and appendix A).
They come from a Taylor series cut after two terms. At the noise they give, a field that is uniform between its codes
still agrees with a probability of 0.77, whatever its range and tolerance: see `uniform_agreement`. Shown beside the
exact answer of `critical_noise_search`, never used in its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import erf, exp, isnan, nan, pi, sqrt
from typing import Any

import numpy as np

from ..attacks.agreement import Relative, Rule
from ..engines.local import Local
from ..schema import Column
from ..table import Table

ROOT_12 = sqrt(12)
LABEL = "Moore's conjectures 1 to 4 (closed form; not exact)"


def uniform_agreement() -> float:
    """Return how often a uniform field agrees at Moore's noise: the integral of erf(sqrt(6) t) from 0 to 1."""
    a = sqrt(6)
    return erf(a) + (exp(-a * a) - 1) / (a * sqrt(pi))


@dataclass(frozen=True, slots=True)
class FieldNoise:
    """What Moore's formula takes of one field, and its answer: q (top - bottom) / (sqrt(12) sd).

    `sd_ratio` is NaN where the formula says nothing; `why` then says why.
    """

    column: str
    tolerance_ratio: float
    bottom: float | None
    top: float | None
    sd: float
    open_share: float
    sd_ratio: float
    why: str = ""


@dataclass(frozen=True, slots=True)
class MooreNoise:
    """Moore's answers, each an sd ratio (his c); NaN where no field has one.

    `smallest` is conjecture 1, and 3 for many fields; `substantial` his first way out, the smallest among fields with
    a substantial share of open values; `most_open` that of the field with most of them, which he then takes;
    `largest` his second way out; `ignoring` conjecture 4: the `disagreeing` lowest left aside, among the substantial
    fields where these are enough, else among all.
    """

    fields: tuple[FieldNoise, ...]
    disagreeing: int
    substantial_share: float

    @property
    def smallest(self) -> float:
        """Conjecture 1 (few fields) and 3 (many fields): the smallest of all."""
        return _lowest(self._known(), 0)

    @property
    def substantial(self) -> float:
        """The smallest among the fields with a substantial share of open values."""
        return _lowest(self._substantial(), 0)

    @property
    def most_open(self) -> float:
        """That of the field with the most open values."""
        return max(self._known(), key=lambda one: one.open_share).sd_ratio if self._known() else nan

    @property
    def largest(self) -> float:
        """The largest of all."""
        return max((one.sd_ratio for one in self._known()), default=nan)

    @property
    def ignoring(self) -> float:
        """Conjecture 4: the next lowest after the `disagreeing` lowest."""
        return _lowest(self._substantial() if self._are_enough() else self._known(), self.disagreeing)

    def _are_enough(self) -> bool:
        return len(self._substantial()) > self.disagreeing

    def _known(self) -> list[FieldNoise]:
        return [one for one in self.fields if not isnan(one.sd_ratio)]

    def _substantial(self) -> list[FieldNoise]:
        return [one for one in self._known() if one.open_share >= self.substantial_share]

    def answers(self) -> dict[str, float]:
        """Return his answers by what they are."""
        among = "those fields" if self._are_enough() else "all fields"
        return {
            "smallest of all fields (conjectures 1 and 3)": self.smallest,
            f"smallest of fields open on {self.substantial_share:.0%} of records": self.substantial,
            f"smallest of {among} but the {self.disagreeing} lowest (conjecture 4)": self.ignoring,
            "field with the most open values": self.most_open,
            "largest of all fields": self.largest,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return figures only."""
        return {
            "label": LABEL,
            "fields": {one.column: _figures(one) for one in self.fields},
            "answers": {name: _or_none(value) for name, value in self.answers().items()},
            "uniform_agreement": uniform_agreement(),
        }

    def lines(self) -> list[str]:
        """Return what fits on one screen."""
        width = max(len(one.column) for one in self.fields)
        lines = [f"  {LABEL}"]
        for one in self.fields:
            said = one.why or f"{one.sd_ratio:.4f}  (open on {one.open_share:.0%} of records)"
            lines.append(f"    {one.column:<{width}}  {said}")
        lines += [f"    {name}: {value:.4f}" for name, value in self.answers().items() if not isnan(value)]
        lines.append(
            f"    at its own value a uniform field still agrees with probability {uniform_agreement():.4f}"
        )
        return lines


def _lowest(fields: list[FieldNoise], ignored: int) -> float:
    ratios = sorted(one.sd_ratio for one in fields)
    return ratios[ignored] if len(ratios) > ignored else nan


def _figures(one: FieldNoise) -> dict[str, Any]:
    figures = {"sd_ratio": _or_none(one.sd_ratio), "open_share": one.open_share, "sd": _or_none(one.sd)}
    return figures | ({"why": one.why} if one.why else {})


def _or_none(value: float) -> float | None:
    return None if isnan(value) else value


def moore_noise(
    table: Table,
    fields: tuple[str, ...],
    rules: tuple[Rule, ...],
    *,
    disagreeing: int = 0,
    substantial_share: float = 0.5,
) -> MooreNoise:
    """Return Moore's closed form for the number fields of an attack."""
    numbers = [(n, rule) for n, rule in zip(fields, rules, strict=True) if table.schema[n].is_number]
    found = tuple(_field_noise(table, name, rule) for name, rule in numbers)
    return MooreNoise(found, disagreeing, substantial_share)


def _field_noise(table: Table, name: str, rule: Rule) -> FieldNoise:
    column, values = table.schema[name], table.floats(name)
    count = int(np.count_nonzero(~np.isnan(values)))
    sd = float(Local().moments(values[:, None]).sds[0]) if count > 1 else nan
    tolerance = rule.ratio if isinstance(rule, Relative) else nan
    why = _silence(column, rule, sd)
    ratio = nan if why else closed_form(tolerance, float(column.top or 0) - float(column.bottom or 0), sd)
    return FieldNoise(name, tolerance, column.bottom, column.top, sd, count / len(table), ratio, why)


def closed_form(tolerance_ratio: float, code_range: float, sd: float) -> float:
    """Return Moore's q (A - a) / (sqrt(12) sd)."""
    return tolerance_ratio * code_range / (ROOT_12 * sd)


def _silence(column: Column, rule: Rule, sd: float) -> str:
    """Return why Moore's formula says nothing about a field, if so."""
    if column.top is None or column.bottom is None:
        return "no answer: it needs a top and a bottom code"
    if not isinstance(rule, Relative):
        return "no answer: it needs a relative agreement rule"
    if not sd > 0:
        return "no answer: the open values have no variance"
    return ""
