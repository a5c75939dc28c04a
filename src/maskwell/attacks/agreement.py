"""When two values agree: rules for each field, lowered to bounds that a found value must lie between.

|t - p| <= q |t|, t the searching value (Moore 1996, section III), or q max(|t|, |p|), or an amount. Bounds are moved by
single steps of a double until they say just what the rule says. A closed value (missing, or at a code) is a number of
its own far above all others, so that statuses are compared by the same two comparisons as amounts: missing agrees with
missing, a code with the same code, and nothing else with either. Used by `linkage`, and by `calibration` for the chance
of agreement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..arrow_buffers import to_numpy
from ..errors import BadInput, BadPlan, raise_all
from ..masking.protocol import WrittenPlan
from ..schema import BOTTOM_CODED, FIRST_MISSING_CODE, OPEN, TOP_CODED, Column
from ..table import Floats, Statuses, Table

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Bounds = tuple[Floats, Floats]

# A status is CLOSED + status x CLOSED_STEP; open values stay below 1e308
CLOSED, CLOSED_STEP = 1.7e308, 1e300
LARGEST = 1e308  # amounts must stay below the numbers that stand for statuses
MOST_STEPS = 8  # bounds are computed to a few units in the last place
UNKNOWN_CODES = 200  # statuses of the intruder's own missing codes that the release does not have


def is_number(value: object) -> bool:
    """Return whether an option is a number, which true and false are not."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class Relative(WrittenPlan):
    """Values agree within a share of a base: the searching record's value, or the larger of the two.

    With "larger", values of opposite signs never agree.
    """

    word: ClassVar[str] = "rule"

    ratio: float
    base: str = "target"

    def __post_init__(self) -> None:
        problems = []
        if self.base not in ("target", "larger"):
            problems.append(f"base must be 'target' or 'larger', not {self.base!r}")
        if not is_number(self.ratio) or not 0 <= self.ratio < (1 if self.base == "larger" else np.inf):
            problems.append(f"ratio must be a share from 0 to below 1, such as 0.1, not {self.ratio!r}")
        raise_all(problems, BadPlan)

    def agrees(self, searching: Floats, found: Floats) -> Bools:
        """Return whether values agree."""
        size = np.abs(searching)
        base = size if self.base == "target" else np.maximum(size, np.abs(found))
        return np.asarray(np.abs(searching - found) <= self.ratio * base)

    def bounds(self, values: Floats) -> Bounds:
        """Return the least and the largest value that agree with each value."""
        size = np.abs(values)
        away = size * self.ratio if self.base == "target" else size * self.ratio / (1 - self.ratio)
        towards = size * self.ratio
        positive = values >= 0
        low = values - np.where(positive, towards, away)
        high = values + np.where(positive, away, towards)
        return _exactly(self.agrees, values, low, high)


@dataclass(frozen=True, slots=True)
class Absolute(WrittenPlan):
    """Values agree within an amount, in the unit of the column."""

    word: ClassVar[str] = "rule"

    amount: float

    def __post_init__(self) -> None:
        if not is_number(self.amount) or not 0 <= self.amount < np.inf:
            raise BadPlan(f"amount must be a number from 0 on, not {self.amount!r}")

    def agrees(self, searching: Floats, found: Floats) -> Bools:
        """Return whether values agree."""
        return np.asarray(np.abs(searching - found) <= self.amount)

    def bounds(self, values: Floats) -> Bounds:
        """Return the least and the largest value that agree with each value."""
        return _exactly(self.agrees, values, values - self.amount, values + self.amount)


@dataclass(frozen=True, slots=True)
class Exact(WrittenPlan):
    """Values agree when they are the same."""

    word: ClassVar[str] = "rule"

    def agrees(self, searching: Floats, found: Floats) -> Bools:
        """Return whether values agree."""
        return np.asarray(searching == found)

    def bounds(self, values: Floats) -> Bounds:
        """Return the least and the largest value that agree with each value."""
        return values, values


Rule = Relative | Absolute | Exact
RULES: dict[str, Any] = {"Relative": Relative, "Absolute": Absolute, "Exact": Exact}
SAME_CODE = Absolute(0.5)  # a noised category code agrees with the category it would be rounded to


def rule_from_dict(data: Mapping[str, Any]) -> Rule:
    """Build a rule from plain data."""
    given = dict(data)
    name = given.pop("rule", None)
    if name not in RULES:
        raise BadPlan(f"there is no agreement rule {name!r}; there are {', '.join(RULES)}")
    rule: Rule = RULES[name](**given)
    return rule


def _exactly(agrees: Callable[[Floats, Floats], Bools], values: Floats, low: Floats, high: Floats) -> Bounds:
    """Move bounds by single steps of a double until they say just what the rule says."""
    sides = (low, -np.inf), (high, np.inf)
    return tuple(_agreement_bound(agrees, values, bound, away) for bound, away in sides)  # type: ignore[return-value]


def _agreement_bound(
    agrees: Callable[[Floats, Floats], Bools], values: Floats, bound: Floats, away: float
) -> Floats:
    """Step towards the value while the bound disagrees, then away from it while the next number still agrees.

    Where the bound is much smaller than the value its own steps are too fine: there the place is found by halving.
    """
    bound = bound.copy()
    rows = np.flatnonzero(~agrees(values, bound))
    for _ in range(MOST_STEPS):
        if not len(rows):
            break
        bound[rows] = np.nextafter(bound[rows], values[rows])
        rows = rows[~agrees(values[rows], bound[rows])]
    bound[rows] = values[rows]
    rows = np.flatnonzero(agrees(values, np.nextafter(bound, away)))
    for _ in range(MOST_STEPS):
        if not len(rows):
            return bound
        bound[rows] = np.nextafter(bound[rows], away)
        rows = rows[agrees(values[rows], np.nextafter(bound[rows], away))]
    bound[rows] = _bisect_bound(agrees, values[rows], bound[rows], away)
    return bound


def _bisect_bound(
    agrees: Callable[[Floats, Floats], Bools], values: Floats, near: Floats, away: float
) -> Floats:
    """Return the last number that agrees, by halving the numbers between one that does and one that does not."""
    reach = 1e-12 * np.maximum(np.abs(values), np.abs(near - values))  # further off than rounding can be
    good, bad = _places(near), _places(near + np.copysign(reach, away))
    while (np.abs(bad - good) > 1).any():
        middle = good + (bad - good) // 2
        middle = np.where((middle == good) & (bad != good), good + np.sign(bad - good), middle)
        agree = agrees(values, _numbers(middle))
        good, bad = np.where(agree, middle, good), np.where(agree, bad, middle)
    return _numbers(good)


def _places(numbers: Floats) -> Ints:
    """Return whole numbers in the order of the doubles, without gaps."""
    bits = numbers.view(np.int64)
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)


def _numbers(places: Ints) -> Floats:
    return np.where(places < 0, np.iinfo(np.int64).min - places, places).view(np.float64)


@dataclass(frozen=True, slots=True)
class ComparedField:
    """Two tables made comparable on some fields: for each field the values, closed ones far above all others.

    `known` and `released` are fields x records.
    """

    fields: tuple[str, ...]
    rules: tuple[Rule, ...]
    known: Floats
    released: Floats

    def bounds(self, searching: Floats) -> Bounds:
        """Return records x fields: between which values a found one agrees."""
        low = np.empty(searching.shape[::-1])
        high = np.empty(searching.shape[::-1])
        for f, rule in enumerate(self.rules):
            values = searching[f]
            closed = values >= CLOSED
            below, above = rule.bounds(np.where(closed, 0.0, values))
            low[:, f] = np.where(closed, values, below)
            high[:, f] = np.where(closed, values, np.minimum(above, LARGEST))
        return low, high

    def only(self, places: Ints) -> ComparedField:
        """Return some of the fields."""
        names, rules = ([given[place] for place in places.tolist()] for given in (self.fields, self.rules))
        return ComparedField(tuple(names), tuple(rules), self.known[places], self.released[places])


def compare_tables(
    known: Table, released: Table, fields: Mapping[str, Rule | None], default: Rule
) -> ComparedField:
    """Put the fields of two tables on one scale; a field without a rule of its own gets the one of its kind."""
    pairs, rules = [], []
    for name, rule in fields.items():
        values, of_kind = _on_one_scale(known, released, name, default)
        pairs.append(values)
        rules.append(_rule_or_default(name, rule, of_kind))
    return ComparedField(
        tuple(fields),
        tuple(rules),
        np.array([pair[0] for pair in pairs]),
        np.array([pair[1] for pair in pairs]),
    )


def _rule_or_default(name: str, rule: Rule | None, of_kind: Rule) -> Rule:
    if isinstance(of_kind, Exact) and not isinstance(rule, Exact | None):
        raise BadPlan(f"column {name!r} holds names, not numbers: they agree or not (Exact())")
    return rule or of_kind


def is_comparable(known: Column, released: Column) -> bool:
    """Return whether values of the two descriptions can be told apart: not a number and the group it fell in."""
    return not (known.is_number and not released.is_number)


def _on_one_scale(
    known: Table, released: Table, name: str, default: Rule
) -> tuple[tuple[Floats, Floats], Rule]:
    ours, theirs = known.schema[name], released.schema[name]
    if not is_comparable(ours, theirs):
        raise BadPlan(
            f"column {name!r} was released as groups of its values: it cannot be compared with numbers; leave it out"
        )
    if ours.is_number:
        values = known.floats(name), released.floats(name)
        status = coded_alike(ours, theirs, values[0], known.status(name))
        rule = default
    elif theirs.is_number:
        values = known.floats(name), released.floats(name)
        status, rule = known.status(name), SAME_CODE
    else:
        values = _labels(known, released, name)
        status, rule = known.status(name), Exact()
    status = numbered_alike(ours, theirs, status)
    return (
        _code_closed_values(values[0], status, name),
        _code_closed_values(values[1], released.status(name), name),
    ), rule


def _labels(known: Table, released: Table, name: str) -> tuple[Floats, Floats]:
    """Number the labels of both tables alike."""
    import pyarrow as pa

    both: Any = pa.concat_arrays(
        [known.array(name).cast(pa.string()), released.array(name).cast(pa.string())]
    )
    codes = to_numpy(both.dictionary_encode().indices.cast(pa.float64()))
    return np.asarray(codes[: len(known)]), np.asarray(codes[len(known) :])


def coded_alike(ours: Column, theirs: Column, values: Floats, status: Statuses) -> Statuses:
    """Code the intruder's own values as the release's codebook says: it is public."""
    status = status.copy()
    is_open = status == OPEN
    if theirs.top is not None:
        beyond = (is_open & (values >= theirs.top)) | (
            (status == TOP_CODED) & (ours.top is not None) & (float(ours.top or 0) >= theirs.top)
        )
        status[beyond] = TOP_CODED
    if theirs.bottom is not None:
        beyond = (is_open & (values <= theirs.bottom)) | (
            (status == BOTTOM_CODED) & (ours.bottom is not None) & (float(ours.bottom or 0) <= theirs.bottom)
        )
        status[beyond] = BOTTOM_CODED
    return status


def numbered_alike(ours: Column, theirs: Column, status: Statuses) -> Statuses:
    """Number the declared missing codes as the release does."""
    if ours.missing == theirs.missing:
        return status
    places = {str(code): FIRST_MISSING_CODE + i for i, code in enumerate(theirs.missing)}
    out = status.copy()
    for i, code in enumerate(ours.missing):
        out[status == FIRST_MISSING_CODE + i] = places.get(str(code), min(UNKNOWN_CODES + i, 255))
    return out


def _code_closed_values(values: Floats, status: Statuses, name: str) -> Floats:
    closed = status != OPEN
    if not closed.any():
        _check_size(values, name)
        return values
    filled = np.where(closed, 0.0, values)
    _check_size(filled, name)
    return np.asarray(np.where(closed, CLOSED + status * CLOSED_STEP, filled))


def _check_size(values: Floats, name: str) -> None:
    if values.size and not float(np.abs(values).max()) < LARGEST:
        raise BadInput(f"column {name!r} holds numbers too large to compare (1e308): rescale it")
