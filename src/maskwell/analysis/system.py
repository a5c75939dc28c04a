"""What a sampler is given: the variables of a model, the equations between them, and the noise on them.

Everything is a recursive system of regressions, p(y | x) p(x | w) p(z | x): (A1a)-(A1c) of Goldstein and Shlomo's
appendix. The covariate model comes first: unknown categories given what is known, then unknown numbers given both and
each other; the last equation is the model of interest. Each equation regresses one variable on columns made of the
others, with group effects; an unknown value is drawn from the product of the equations it occurs in and of the law of
its noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .expressions import Node

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

GAUSSIAN, PROBIT, LOGIT, ORDERED, POISSON, NEGATIVE_BINOMIAL = range(6)
FAMILIES = ("gaussian", "probit", "logit", "ordered", "poisson", "negative binomial")


@dataclass(frozen=True, slots=True)
class Variable:
    """A column as the models see it: a number, or a category with its levels (codes 0..K-1).

    Where `log_shift` is given the state is log(x + log_shift): the scale on which the noise was added. Where `base` is
    given it is a whole number of few values, `base` + its code, and its levels are these.
    """

    name: str
    levels: tuple[str, ...] = ()
    log_shift: float | None = None
    base: float | None = None

    @property
    def is_category(self) -> bool:
        """Whether the state is a code."""
        return bool(self.levels)


@dataclass(frozen=True, slots=True)
class Factor:
    """A grouping of the records by some columns: `codes` number the group of each record from 0 on."""

    name: str
    codes: Ints = field(repr=False)
    labels: tuple[str, ...] = field(repr=False)
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Effects:
    """Effects of the groups of one factor in an equation: a coefficient of each column for every group."""

    factor: int
    names: tuple[str, ...]
    columns: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Equation:
    """The regression of one variable on columns made of the others.

    With `stick` = s (family PROBIT) it is one step of a category's sequential probit: among the records whose
    code is at least s, whether it is s. `response` is the number of the variable. An ordered model's columns are taken
    about their `centres`, so that its cuts do not depend on where a column has its zero.
    """

    response: int
    family: int
    names: tuple[str, ...]
    columns: tuple[Node, ...]
    effects: tuple[Effects, ...] = ()
    stick: int | None = None
    offset: Node | None = None
    centres: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class System:
    """Records, equations, noise. `state` has a start for unknown cells; `bounds` limit the state of some cells.

    `tables[j]` has, for an unknown category j, the log density of what was released for each record and code
    (0 where nothing was). `noise` is the lowered law of the unknown numbers (`analysis.noise`), None without any.
    `counts` has the chance of what was released of a noised count, the response, given each true one, where its noise
    is its own; else it is among the unknown numbers. `counted[i]` is False where the response is missing: the record
    then informs the covariate model alone. `missing` are the cells that were released without a value.
    """

    variables: tuple[Variable, ...]
    state: Floats = field(repr=False)
    unknown: Bools = field(repr=False)
    equations: tuple[Equation, ...]
    factors: tuple[Factor, ...] = ()
    noise: Any = None
    tables: Mapping[int, Floats] = field(default_factory=dict, repr=False)
    lower: Floats | None = field(default=None, repr=False)
    upper: Floats | None = field(default=None, repr=False)
    counts: Any = field(default=None, repr=False)
    counted: Bools | None = field(default=None, repr=False)
    missing: Bools | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.state)

    @property
    def interest(self) -> Equation:
        """The model of interest."""
        return self.equations[-1]

    @property
    def is_count_unknown(self) -> bool:
        """Whether the response is a count whose true values are drawn, whole numbers from 0 on."""
        counts = self.interest.family in (POISSON, NEGATIVE_BINOMIAL)
        return counts and bool(self.unknown[:, self.interest.response].any())

    def number_of(self, name: str) -> int:
        """Return the number of a variable."""
        return [variable.name for variable in self.variables].index(name)
