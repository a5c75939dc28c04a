"""What the intruder's own values are off by: a plan, how such values are drawn, and p(z | what is known).

The intruder's value y of an amount is the true x plus a normal error, of a category the true one but for a share of
wrong ones (the classical error model: Carroll, Ruppert, Stefanski and Crainiceanu 2006, section 1.2).
`own_terms` are the factors of that error's law g(y | x). What is behind the values depends on the law of true values
that the intruder holds (`true_value_law`); the factors of `erring_terms` are for one who holds none: no x is likelier
beforehand, the true value is normal around y, and where the errors are as large as the spread of the data this
intruder is too sure. Chosen by `BayesIntruder(error=OwnError(...))`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from ....card import NoiseCard
from ....errors import BadInput, BadPlan, NoLaw, nearest, raise_all
from ....kernels.log_sums import log_sum
from ....keys import Stream, normals, uniforms
from ....laws import Additive, Classes, Laplace, Mixture, Normal, Outlet, SkewedBias, Step, Transition
from ....schema import OPEN, Column, Schema
from ....table import Floats, Table
from ....tolerances import is_real
from ...joint_codes import block_codes
from ...pair_density import LawTerm, Same, law_terms, laws_on, summed_logs
from ...protocol import Ints
from .convolved_noise import noise_plus_error
from .quadrature import ClassProbability, Codes, ErrorAveragedLaw, ErrorPanels, QuadratureRule

Shares = tuple[tuple[str, float], ...]
PARTS = ("sds", "wrong", "population")

# So many values of a column stand for all of them where one only asks how common a value is
MOST_VALUES = 1000


@dataclass(frozen=True, slots=True)
class OwnError:
    """How far the intruder's values lie from the true ones.

    `sds` are the sds of normal errors of amounts, in their units; `wrong` the shares of categories that are wrong, all
    others being as likely. Columns that are not named he knows exactly, and every status (missing, top-coded).

    What the true values behind his may be depends on the law of true values he holds, which is that of the f(z): with
    marginal="truth" the steward's own records, with "gaussian" the normal law of the release with the noise taken out.
    With a marginal of your own `population` says it: a function that takes a `Table` of true records and returns the
    log density of each, up to a constant. Without it any true value is as likely as any other, and he is too sure.
    """

    sds: Shares | Mapping[str, float] = ()
    wrong: Shares | Mapping[str, float] = ()
    population: Callable[[Table], Floats] | None = None

    def __post_init__(self) -> None:
        problems: list[str] = []
        for name in ("sds", "wrong"):
            problems += _frozen_shares(self, name)
        raise_all(problems or self._problems(), BadPlan)

    def _problems(self) -> list[str]:
        found = [f"the error of {n!r} must be an sd above 0" for n, sd in self._pairs("sds") if not sd > 0]
        found += [
            f"the share of {n!r} that is wrong lies above 0 and below 1"
            for n, share in self._pairs("wrong")
            if not 0 < share < 1
        ]
        found += [f"column {name!r} is named twice" for name in _twice(self.columns)]
        if self.population is not None and not callable(self.population):
            found.append("population is a function: of a table of true records, the log density of each")
        return found or ([] if self.columns else ["an error names at least one column, in sds or in wrong"])

    def _pairs(self, name: str) -> Shares:
        pairs: Shares = getattr(self, name)
        return pairs

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the intruder does not know exactly."""
        return tuple(name for part in ("sds", "wrong") for name, _ in self._pairs(part))

    @property
    def sd_of(self) -> dict[str, float]:
        """The sd of each amount."""
        return dict(self._pairs("sds"))

    @property
    def wrong_of(self) -> dict[str, float]:
        """The share of wrong ones of each category column."""
        return dict(self._pairs("wrong"))

    def to_dict(self) -> dict[str, Any]:
        """Return the error as plain data, what is empty left out; a function of the user's own is only named."""
        own = "a function of the user's own" if self.population is not None else ""
        parts: dict[str, Any] = {"sds": self.sd_of, "wrong": self.wrong_of, "population": own}
        return {name: part for name, part in parts.items() if part}


def _frozen_shares(error: OwnError, name: str) -> list[str]:
    """Make an option a tuple of names with numbers; return what is wrong with it."""
    given: Any = getattr(error, name)
    try:
        pairs = tuple((key, value) for key, value in dict(given).items())
    except (TypeError, ValueError):
        return [f"{name} of an OwnError gives a number for each column, such as {{'INCOME': 500.0}}"]
    if not all(isinstance(key, str) and is_real(value) and np.isfinite(value) for key, value in pairs):
        return [f"{name} of an OwnError gives a finite number for each column, such as {{'INCOME': 500.0}}"]
    object.__setattr__(error, name, tuple((key, float(value)) for key, value in pairs))
    return []


def _twice(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


def error_from_dict(data: Mapping[str, Any]) -> OwnError:
    """Build an error from plain data."""
    if unknown := [name for name in data if name not in PARTS]:
        hints = [f"an error has no {name!r}{nearest(name, PARTS)}" for name in unknown]
        raise BadPlan(hints)
    return OwnError(**data)


def error_problems(error: OwnError, fields: Sequence[str], schema: Schema) -> list[str]:
    """Say which columns of an error the intruder does not compare, or are of another kind."""
    found = [
        f"the error names {name!r}, which is no field{nearest(name, fields)}: leave it out, or name it in fields"
        for name in error.columns
        if name not in fields
    ]
    return found + kind_problems(error, fields, schema)


def kind_problems(error: OwnError, names: Collection[str], schema: Schema) -> list[str]:
    """Say which of some columns have an error of another kind than their own."""
    here = {name: schema[name] for name in error.columns if name in names}
    found = [
        f"column {name!r} holds no amounts: give the share of wrong categories, not an sd"
        for name in error.sd_of
        if name in here and not here[name].is_number
    ]
    found += [
        f"column {name!r} holds no categories: give an sd, not a share of wrong ones"
        for name in error.wrong_of
        if name in here and here[name].kind != "category"
    ]
    return found


def draw_with_errors(table: Table, error: OwnError, stream: Stream) -> Table:
    """Draw what the intruder knows from true records; closed values stay as they are, whole numbers whole."""
    raise_all(kind_problems(error, error.columns, table.schema), BadPlan)
    changed: dict[str, tuple[Column, Floats, Any]] = {}
    for name in error.columns:
        words, values = stream.words(name, "error"), table.floats(name)
        if name in error.sd_of:
            drawn = values + error.sd_of[name] * normals(words[:, 0])
            drawn = np.rint(drawn) if table.schema[name].kind == "integer" else drawn
        else:
            count = len(table.schema[name].categories)
            step = 1.0 + np.floor(uniforms(words[:, 1]) * (count - 1))
            moves = (uniforms(words[:, 0]) < error.wrong_of[name]) & (count > 1)
            drawn = np.where(moves, (values + step) % count, values)
        changed[name] = (table.schema[name], drawn, table.status(name))
    return table.with_columns(changed)


def own_terms(error: OwnError, fields: Sequence[str], known: Table, true: Table) -> list[LawTerm]:
    """Return the factors of g(y | x) for pairs of records of what the intruder knows and of true ones."""
    raise_all(kind_problems(error, fields, true.schema), BadPlan)
    sure = [name for name in fields if name not in error.columns]
    same: list[LawTerm] = [Same.of(sure, known, true)] if sure else []
    return same + [_own_term(name, known, true, error) for name in error.columns if name in fields]


def _own_term(name: str, z: Table, x: Table, error: OwnError) -> LawTerm:
    """Return the factor of what the intruder has for a value of a column; it does not matter which side is whose."""
    if name in error.wrong_of:
        return Wrong.of(name, z, x, error.wrong_of[name])
    unit = Fraction(1) if "integer" in (z.schema[name].kind, x.schema[name].kind) else None
    (term,) = law_terms([Additive((name,), Normal((error.sd_of[name],)), (Outlet(unit),))], z, x)
    return term


@dataclass(frozen=True, slots=True)
class Wrong:
    """Categories of which a share is wrong, all others being as likely; a status is the same on both sides."""

    z: Ints
    x: Ints
    log_table: Floats

    @classmethod
    def of(cls, name: str, z: Table, x: Table, wrong: float) -> Wrong:
        """Compare labels: one table may have categories that nobody has and that the other leaves out."""
        here, there = x.schema[name].categories, z.schema[name].categories
        labels = tuple(dict.fromkeys((*here, *there)))
        statuses = int(max(z.status(name).max(initial=0), x.status(name).max(initial=0)))
        table = np.zeros((len(labels) + statuses,) * 2)
        table[: len(labels), : len(labels)] = _wrong_table(len(labels), wrong)
        np.fill_diagonal(table[len(labels) :, len(labels) :], 1.0)
        with np.errstate(divide="ignore"):
            return cls(_label_places(z, name, labels), _label_places(x, name, labels), np.log(table))

    def logs(self, z: Ints, x: Ints) -> Floats:
        """Return the log of the factor."""
        return np.asarray(self.log_table[self.z[z], self.x[x]])


def _label_places(table: Table, name: str, labels: Sequence[str]) -> Ints:
    """Return the places of a column's labels in a list; statuses follow it."""
    places = np.array([labels.index(label) for label in table.schema[name].categories], np.int64)
    status, codes = table.status(name).astype(np.int64), table.floats(name)
    is_open = status == OPEN
    out = len(labels) + status - 1
    out[is_open] = places[codes[is_open].astype(np.int64)]
    return out


def erring_terms(
    laws: Sequence[Any], z: Table, x: Table, error: OwnError, clear: Sequence[str] = ()
) -> list[LawTerm]:
    """Return the factors of p(z | x0) for pairs of records of the release and of what the intruder knows.

    Columns in `clear` that the error names can be no blocks. Their factor is p(x0 | z) / p(x0), exactly and without
    any assumption about x, since z is x there: so they must be left out of f(z).
    """
    here = {*clear, *(name for law in laws for name in law.columns)} & set(error.columns)
    raise_all(kind_problems(error, here, x.schema), BadPlan)
    ready: list[Any] = []
    terms: list[LawTerm] = [_clear_term(name, z, x, error) for name in clear if name in error.columns]
    for law in laws:
        for part, name in _parts(law, error):
            if name is None:
                ready.append(part)
            elif isinstance(part, Classes):
                terms.append(ClassProbability.of(part, z, x, error.sd_of[name]))
            else:
                terms.append(ErrorAveragedLaw.of(part, name, z, x, _rule(part, name, z, x, error)))
    return [*law_terms(ready, z, x), *terms]


def _parts(law: Any, error: OwnError) -> list[tuple[Any, str | None]]:
    """Return laws that have the error in them, and laws with the name of the column to average over."""
    named = [name for name in law.columns if name in error.columns]
    if not named:
        return [(law, None)]
    if isinstance(law, Transition):
        return [(_add_misclassification(law, error.wrong_of[named[0]]), None)]
    if isinstance(law, Classes):
        return [(law, named[0])]
    if isinstance(law, Additive):
        plain = {n: error.sd_of[n] for n in named if n in error.sd_of and _is_plain(law, n)}
        law, named = _law_with_errors(law, plain), [name for name in named if name not in plain]
    if not isinstance(law, Additive | SkewedBias):
        raise NoLaw(f"{law.form} of {law.columns[0]!r} has no law p(z | x): name fields that have one")
    return _split(law, named) if named else [(law, None)]


def _add_misclassification(law: Transition, wrong: float) -> Transition:
    mixed = _wrong_table(len(law.true), wrong) @ np.array(law.matrix)
    return replace(law, matrix=tuple(map(tuple, mixed.tolist())))


def _wrong_table(count: int, wrong: float) -> Floats:
    """Return known x true: how likely each category is the true one."""
    if count == 1:
        return np.ones((1, 1))
    return np.where(np.eye(count, dtype=bool), 1.0 - wrong, wrong / (count - 1))


def _is_plain(law: Additive, name: str) -> bool:
    """Whether the error of a column adds to its noise: same scale, same size for every value."""
    j = law.columns.index(name)
    return law.outlets[j].log_shift is None and not (law.spreads and law.spreads[j] is not None)


def _law_with_errors(law: Additive, sds: Mapping[str, float]) -> Additive:
    """Add errors to the noise of a law."""
    if not sds:
        return law
    added = np.array([law.slope * sds.get(name, 0.0) for name in law.columns])
    noise: Any = noise_plus_error(law.noise, added)
    return replace(law, noise=noise)


def _split(law: Any, named: Sequence[str]) -> list[tuple[Any, str | None]]:
    """Cut a law of independent columns into those that are averaged over, one by one, and the rest."""
    for name in named:
        _refuse_unseen(law, name)
    if len(law.columns) == 1:
        return [(law, law.columns[0])]
    if is_independent(law):
        rest = laws_on(NoiseCard((law,)), [name for name in law.columns if name not in named])
        single = [(laws_on(NoiseCard((law,)), [name])[0], name) for name in named]
        return [*((part, None) for part in rest), *single]
    if len(named) == 1 and _is_coded(law, named[0]):
        return [(law, named[0])]
    raise BadPlan(
        f"the error of {', '.join(map(repr, named))} does not add to correlated noise on a log scale, on categories or "
        "of a size that depends on the value: leave it out of the error, or out of fields"
    )


def _is_coded(law: Any, name: str) -> bool:
    """Whether the noise of a column is on the codes of its categories."""
    return isinstance(law, Additive) and bool(law.categories and law.categories[law.columns.index(name)])


def is_independent(law: Any) -> bool:
    """Whether each column of a law has noise of its own."""
    if isinstance(law, SkewedBias):
        return True
    noise = law.noise
    free = isinstance(noise, Normal) and not noise.correlations
    return free or isinstance(noise, Laplace | Mixture) or noise.form == "laplace and normal"


def _refuse_unseen(law: Any, name: str) -> None:
    """Refuse values that some true ones leave with exactly: no quadrature sees them."""
    j = law.columns.index(name)
    spread = law.spreads[j] if isinstance(law, Additive) and law.spreads else None
    if isinstance(spread, Step) and min(spread.ratios) == 0 and law.outlets[j].unit is None:
        raise BadPlan(
            f"some values of {name!r} leave without noise and without a unit, where an error of the intruder cannot be "
            "averaged over: leave it out of the error"
        )


def _rule(law: Any, name: str, z: Table, x: Table, error: OwnError) -> QuadratureRule:
    if name in error.wrong_of:
        return Codes(len(x.schema[name].categories), error.wrong_of[name])
    return ErrorPanels.of(law, law.columns.index(name), error.sd_of[name], z.floats(name))


def _clear_term(name: str, z: Table, x: Table, error: OwnError) -> LawTerm:
    """Return p(x0 | z) / p(x0) of a column that left as it was."""
    if x.schema[name].kind != z.schema[name].kind:
        raise BadInput(f"column {name!r} was released as something else: leave it out of the error")
    term = _own_term(name, z, x, error)
    return RelativeError(term, _log_common(term, name, z, x))


@dataclass(frozen=True, slots=True)
class RelativeError:
    """A factor relative to how common what the intruder knows is."""

    term: LawTerm
    log_common: Floats

    def logs(self, z: Ints, x: Ints) -> Floats:
        """Return the log of the factor; nothing leads to what no record has."""
        common = self.log_common[x]
        return np.where(np.isneginf(common), -np.inf, self.term.logs(z, x) - np.maximum(common, -1e300))


def _log_common(term: LawTerm, name: str, z: Table, x: Table) -> Floats:
    """Return for each known record the log of the mean of a factor over all released ones."""
    ours, theirs = block_codes(x, z, [name])
    known, place = np.unique(ours, return_index=True)
    some, weights = _representative_records(theirs, z.floats(name))
    out = np.empty(int(max(ours.max(initial=0), 0)) + 1)
    for begin in range(0, len(known), 200):
        run = place[begin : begin + 200]
        pairs = summed_logs([term], np.tile(some, len(run)), np.repeat(run, len(some)))
        out[known[begin : begin + 200]] = log_sum(pairs.reshape(len(run), -1) + np.log(weights), axis=1)
    return np.asarray(out[ours])


def _representative_records(codes: Ints, values: Floats) -> tuple[Ints, Floats]:
    """Return record numbers that stand for all values of a column, and the shares they stand for.

    All different values where there are few; else neighbours are taken together, and their middle one stands for them.
    """
    _, first, counts = np.unique(codes, return_index=True, return_counts=True)
    is_open = ~np.isnan(values[first])
    order = np.lexsort((values[first], is_open))
    first, counts, is_open = first[order], counts[order], is_open[order]
    closed = int((~is_open).sum())
    groups = np.array_split(np.arange(closed, len(first)), min(MOST_VALUES, max(len(first) - closed, 1)))
    groups = [np.array([i]) for i in range(closed)] + [group for group in groups if len(group)]
    chosen = np.array([first[group[len(group) // 2]] for group in groups], np.int64)
    return chosen, np.array([counts[group].sum() for group in groups]) / len(codes)
