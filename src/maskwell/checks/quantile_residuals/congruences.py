"""Released values congruent to true ones modulo many numbers, alone and in sums of two and of three columns.

With z and x in units, whole numbers, and e(t) = exp(2 pi i t),

    S = sum over records of e((z_i + b z_j + c x_k + d x_l) / m),      b, c, d = 0, 1, -1,

has |S|^2 / n ~ Exp(1) for every modulus m that is small beside the noise, whatever the true values are, and n where a
released value keeps the residue of a true one (the characters of the residues modulo m; Coveyou and MacPherson 1967).
Residues are exact: nothing is folded before. A residue kept modulo m is kept modulo every prime in m, so that primes
and their powers stand for all moduli. Sums over records of e((a z + b x) / m) for all a and b at once, the Fourier
transform of a table of residues, see any function of the residue of x; that is done up to `LARGEST_TABLE`. Functions
of residues modulo larger numbers, and of two or three columns, are for `residue_matches`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product

import numpy as np
import numpy.typing as npt

from ...table import Floats
from .cells import Bools, Integers, ScoredCells
from .digit_families import LEAST_STEPS, STEPS, free_of_limits
from .ledger import Ledger
from .truths import FEWEST, TrueColumn

Phases = npt.NDArray[np.complex64]

LARGEST_PRIME = 2_000  # moduli up to it, by primes and their powers
LARGEST_TABLE = 101  # modulus up to which any function of a residue is looked for
# Records that are drawn at random: 14% of them in step would fail among a million tests.
MOST_RECORDS = 1_500
MOST_TOGETHER = 6  # released columns that are put together by twos and threes: 15 pairs, 20 triples
# Beyond this modulus a column of few values leaves so few residues that z alone shows it
SMALL, FEW_VALUES = 31, 10
LEAST_QUANTILE = 0.05  # of the local sds: cells with less noise are left out
MOST_STEPS = 2**40  # units in a value: sums of three in a common unit are exact as doubles
MOST_UNITS = 1_000  # of the finest column in one of another: beyond, they have no sum to speak of
MOST_TERMS = 200_000  # of a product of matrices: more, and waiting for threads takes longer than the product
CLOSED = np.iinfo(np.int64).min


def _moduli() -> tuple[int, ...]:
    """Return primes and their powers, and the places of decimal and binary digits."""
    primes = [n for n in range(2, LARGEST_PRIME) if all(n % d for d in range(2, int(n**0.5) + 1))]
    powers = {p**k for p in primes for k in range(1, 12) if p**k <= LARGEST_PRIME}
    return tuple(sorted(powers | {2**k for k in range(1, 25)} | {10**k for k in range(1, 8)}))


MODULI = _moduli()
PRIMES = tuple(m for m in MODULI if m <= LARGEST_TABLE and all(m % d for d in range(2, m)))


@dataclass(frozen=True)
class ReleasedResidues:
    """A released column in units at the records drawn, and up to which modulus its noise hides all residues.

    `widest` holds for the column alone, `together` given the released values of the others.
    """

    name: str
    unit: float
    z: Integers
    x: Integers
    widest: float
    together: float


@dataclass(frozen=True)
class ResidueTerm:
    """A sum of columns with signs: places in a list, and the sign of each."""

    columns: tuple[int, ...]
    signs: tuple[int, ...]

    def label(self, names: Sequence[str], first: str) -> str:
        """Name it, as "z + income - age"."""
        said = first
        for column, sign in zip(self.columns, self.signs, strict=True):
            said += f" {'+' if sign > 0 else '-'} {names[column]}"
        return said.removeprefix(" + ").strip()


@dataclass(frozen=True)
class ResidueSteps:
    """Whole numbers, columns x records, as floats that hold them exactly, and where they are not open."""

    values: Floats
    closed: Bools | None

    @classmethod
    def of(cls, steps: Integers) -> ResidueSteps:
        """Take whole numbers with a mark where a value is not open."""
        closed = steps == CLOSED
        return cls(np.where(closed, 0, steps).astype(np.float64), closed if closed.any() else None)

    def phases(self, modulus: int) -> Phases:
        """Return e(steps / modulus), 0 where a value is not open.

        Residues are exact, from either side of half the modulus: where rounding puts one does not matter.
        """
        rest = self.values - modulus * np.rint(self.values * (1.0 / modulus))
        angle = (2 * np.pi / modulus * rest).astype(np.float32)
        out = np.empty(angle.shape, np.complex64)
        np.cos(angle, out=out.real)
        np.sin(angle, out=out.imag)
        if self.closed is not None:
            out[self.closed] = 0
        return out


@dataclass(frozen=True)
class Congruences:
    """What is put together: released columns, true ones, and which sums of them."""

    released: tuple[ReleasedResidues, ...]
    names: tuple[str, ...]
    true: Integers

    @cached_property
    def own(self) -> tuple[int, ...]:
        """The places among the true columns of those that were released."""
        names = [one.name for one in self.released[:MOST_TOGETHER]]
        return tuple(k for k, name in enumerate(self.names) if name in names)

    @cached_property
    def steps(self) -> ResidueSteps:
        """All columns one below the other: released ones, then true ones."""
        return ResidueSteps.of(np.vstack([*(one.z for one in self.released), self.true]))

    @cached_property
    def own_sums(self) -> tuple[ResidueSteps, Floats, Floats, tuple[str, ...]]:
        """What the noises of two and of three columns make together: counts, largest moduli and names."""
        sums, limits, labels = _own_sums(self)
        return ResidueSteps.of(sums), (sums != CLOSED).sum(axis=1).astype(np.float64), limits, labels

    @cached_property
    def pairs(self) -> Integers:
        """The released columns that are put together by twos."""
        return _pairs(min(len(self.released), MOST_TOGETHER))

    @cached_property
    def true_pairs(self) -> Integers:
        """The true columns that are put together by twos."""
        return np.array(self.own, np.int64)[_pairs(len(self.own))]

    @cached_property
    def rows(self) -> tuple[ResidueTerm, ...]:
        """Released columns, and sums and differences of two, as `row_phases` has them."""
        singles = [ResidueTerm((i,), (1,)) for i in range(len(self.released))]
        return (
            *singles,
            *(ResidueTerm((i, j), (1, sign)) for sign in (1, -1) for i, j in self.pairs.T.tolist()),
        )

    def row_phases(self, z: Phases) -> Phases:
        """Multiply the phases of released columns."""
        first, second = z[self.pairs[0]], z[self.pairs[1]]
        return np.concatenate([z, first * second, first * second.conj()])

    @cached_property
    def columns(self) -> tuple[ResidueTerm, ...]:
        """Nothing, each true column, and sums of two that were released, each with both signs."""
        pairs = self.true_pairs.T.tolist()
        half = [ResidueTerm((), ()), *(ResidueTerm((k,), (1,)) for k in range(len(self.names)))]
        half += [ResidueTerm((k, m), (1, sign)) for sign in (1, -1) for k, m in pairs]
        return (*half, *(ResidueTerm(one.columns, tuple(-sign for sign in one.signs)) for one in half))

    def column_phases(self, x: Phases) -> Phases:
        """Multiply the phases of true columns, of the first half of `columns`."""
        first, second = x[self.true_pairs[0]], x[self.true_pairs[1]]
        return np.concatenate(
            [np.ones((1, x.shape[1]), np.complex64), x, first * second, first * second.conj()]
        )

    @cached_property
    def counts(self) -> Floats:
        """Over how many records each sum of a row and a column goes."""
        is_z = np.array([one.z != CLOSED for one in self.released])
        rows = np.array([is_z[list(term.columns)].all(axis=0) for term in self.rows])
        open_x = self.true != CLOSED
        columns = np.array([open_x[list(term.columns)].all(axis=0) for term in self.columns])
        return np.asarray(rows.astype(np.float64) @ columns.T)

    @cached_property
    def widest(self) -> Floats:
        """Up to which modulus each row is free of the law."""
        return np.array(
            [
                self.released[term.columns[0]].widest
                if len(term.columns) == 1
                else min(self.released[i].together for i in term.columns)
                for term in self.rows
            ]
        )


@dataclass(frozen=True)
class CongruenceCounts:
    """How many records were looked at modulo how many numbers, and how many sums of columns at most for each."""

    records: int
    moduli: int
    sums: int


def congruences(
    ledger: Ledger,
    cells: Mapping[str, ScoredCells],
    columns: Sequence[TrueColumn],
    left: Mapping[str, float],
    seed: int,
) -> CongruenceCounts | None:
    """Test released values against true ones modulo many numbers.

    `left` is the share of each column's sd that the noises of the others leave, 1 where noises are independent.
    """
    count = len(columns[0].codes)
    chosen = np.arange(count)
    if count > MOST_RECORDS:
        chosen = np.sort(np.random.default_rng([seed, 18]).permutation(count)[:MOST_RECORDS])
    released = [
        one
        for name, own in cells.items()
        if (one := released_steps(own, chosen, count, left.get(name, 1.0))) is not None
    ]
    if not released:
        return None
    every, many = (_true_columns(tuple(released), columns, chosen, least) for least in (1, FEW_VALUES))
    hidden = [modulus for modulus in MODULI if modulus <= max(one.widest for one in released)]
    for modulus in hidden:
        found = every if modulus <= SMALL else many
        if found is not None:
            _characters(ledger, found, modulus)
            _sums(ledger, found, modulus)
    if many is not None:
        _tables(ledger, many)
    return None if every is None else CongruenceCounts(len(chosen), len(hidden), every.counts.size)


def _true_columns(
    released: tuple[ReleasedResidues, ...], columns: Sequence[TrueColumn], chosen: Integers, least: int
) -> Congruences | None:
    """Put released columns beside the true ones with more than so many values; categories count by their place."""
    able = [one for one in columns if one.distinct > least and (one.steps is not None or one.numbers is None)]
    if not able:
        return None
    places = [np.where(one.codes < 0, CLOSED, one.codes) if one.steps is None else one.steps for one in able]
    return Congruences(released, tuple(one.name for one in able), np.array([one[chosen] for one in places]))


def _tables(ledger: Ledger, of: Congruences) -> None:
    """Look for any function of a residue among the columns that are released."""
    for i, released in enumerate(of.released[:MOST_TOGETHER]):
        for k in of.own:
            for modulus in PRIMES:
                if modulus <= released.widest:
                    _table(ledger, of, i, k, modulus)


def _pairs(count: int) -> Integers:
    return np.array(np.triu_indices(count, 1), np.int64)


def released_steps(cells: ScoredCells, chosen: Integers, count: int, left: float) -> ReleasedResidues | None:
    """Return the released values of a column in units at the records drawn."""
    if cells.unit == 0.0:
        return None
    is_chosen = np.zeros(count, bool)
    is_chosen[chosen] = True
    least = float(np.quantile(cells.local_sd, LEAST_QUANTILE)) / cells.unit
    widest = least / cells.roughness if least >= LEAST_STEPS else 0.0
    some = cells.only(is_chosen[cells.at] & (cells.local_sd >= least * cells.unit))
    if widest < 2 or len(some.at) < FEWEST:
        return None
    steps = np.rint(some.z / cells.unit), np.rint(some.x / cells.unit)
    if max(np.abs(one).max() for one in steps) > MOST_STEPS:
        return None
    usable = free_of_limits(some)
    z, x = np.full(count, CLOSED), np.full(count, CLOSED)
    z[some.at[usable]], x[some.at[usable]] = (one[usable].astype(np.int64) for one in steps)
    return ReleasedResidues(cells.name, cells.unit, z[chosen], x[chosen], widest, widest * left)


def _power(rows: Phases, columns: Phases) -> Floats:
    """Return |sum of r c|^2 of each row with each column, then with each column's conjugate.

    In real numbers and stretches so short that no thread is started for them.
    """
    first, second = (np.concatenate([one.real, one.imag]) for one in (rows, columns))
    length = max(MOST_TERMS // (len(first) * len(second)), 1)
    starts = range(0, rows.shape[1], length)
    sums = sum((first[:, at : at + length] @ second[:, at : at + length].T for at in starts), np.zeros(1))
    (rr, ri), (ir, ii) = (np.hsplit(half, 2) for half in np.vsplit(sums, 2))
    return np.hstack([(rr - ii) ** 2 + (ri + ir) ** 2, (rr + ii) ** 2 + (ir - ri) ** 2])


def _characters(ledger: Ledger, of: Congruences, modulus: int) -> None:
    """Test every row with every column for one modulus."""
    width = len(of.released)
    every = of.steps.phases(modulus)
    power = _power(of.row_phases(every[:width]), of.column_phases(every[width:]))
    power /= np.maximum(of.counts, 1.0)
    power[(of.counts < FEWEST) | (of.widest < modulus)[:, None]] = 0.0
    row, column = np.unravel_index(int(power.argmax()), power.shape)
    names = tuple(one.name for one in of.released)

    def said() -> str:
        return of.columns[column].label(of.names, f"released {of.rows[row].label(names, '')}")

    own = names[of.rows[row].columns[0]]
    _enter(ledger, own, said, modulus, float(power[row, column]), power.size, int(of.counts[row, column]))


def _own_sums(of: Congruences) -> tuple[Integers, Floats, tuple[str, ...]]:
    """Return what the noises of three columns make together, each in its unit; and of two and three, in a common one.

    Those of two, each in its own unit, are among the characters already.
    """
    able = [one for one in of.released if one.name in of.names][:MOST_TOGETHER]
    sums, limits, labels = list[Integers](), list[float](), list[str]()
    for some in (*combinations(able, 2), *combinations(able, 3)):
        is_open = np.all([one.z != CLOSED for one in some], axis=0)
        noises = np.array([one.z - one.x for one in some])
        for units in _units(some):
            for signs in product((1, -1), repeat=len(some) - 1):
                factors = np.array((1, *signs)) * units
                sums.append(np.where(is_open, factors @ noises, CLOSED))
                limits.append(min(one.together for one in some))
                named = zip(factors.tolist(), some, strict=True)
                labels.append(" ".join(f"{factor:+d} {one.name}" for factor, one in named))
    return np.array(sums).reshape(-1, len(of.true[0])), np.array(limits), tuple(labels)


def _units(some: Sequence[ReleasedResidues]) -> list[Integers]:
    """Return by what the columns of a sum are multiplied: nothing, and what puts them on their finest unit."""
    own, units = np.ones(len(some), np.int64), np.array([one.unit for one in some])
    common = np.rint(units / units.min()).astype(np.int64)
    found = [own] if len(some) > 2 else []
    if 1 < common.max() <= MOST_UNITS and np.allclose(common * units.min(), units):
        found.append(common)
    return found


def _sums(ledger: Ledger, of: Congruences, modulus: int) -> None:
    """Test sums of noises of several columns for one modulus."""
    sums, counts, limits, labels = of.own_sums
    usable = limits >= modulus
    if not usable.any():
        return
    power = np.abs(sums.phases(modulus).sum(axis=1)) ** 2 / np.maximum(counts, 1.0)
    power[~usable | (counts < FEWEST)] = 0.0
    at = int(power.argmax())
    what = f"the sum of noises {labels[at]}"
    own = of.released[0].name
    _enter(ledger, own, lambda: what, modulus, float(power[at]), len(power), int(counts[at]))


def _table(ledger: Ledger, of: Congruences, i: int, k: int, modulus: int) -> None:
    """Test all characters of the residues of a released and a true column: any function of one of them."""
    from scipy.fft import rfft2

    z, x = of.released[i].z, of.true[k]
    known = (z != CLOSED) & (x != CLOSED)
    count = int(known.sum())
    if count < FEWEST:
        return
    place = x[known] % modulus * modulus + z[known] % modulus
    table = np.bincount(place, minlength=modulus**2).astype(np.float32).reshape(modulus, modulus)
    power = np.abs(rfft2(table)[:, 1:]) ** 2 / count
    name = of.released[i].name
    what = f"the residue of released {name} as a function of that of {of.names[k]}"
    _enter(ledger, name, lambda: what, modulus, float(power.max()), power.size, count)


def _enter(
    ledger: Ledger, name: str, what: Callable[[], str], modulus: int, top: float, tests: int, count: int
) -> None:
    """Enter the largest of several sums for one modulus."""
    share = (top / max(count, 1)) ** 0.5
    p = min(1.0, tests * tail(top, count, modulus))
    ledger.add("congruences", name, STEPS, p, share, count, f"{what()} modulo {modulus}", True)


def tail(power: float, count: int, modulus: int) -> float:
    """Return the chance that |S|^2 / n is so large; modulo 2 a sum of signs, modulo 3 a skewed one.

    With cube roots of 1 E exp(t Re S) has a factor of exp(n t^3 / 24) more than with uniform phases, which makes one of
    exp(power^1.5 / (3 sqrt n)) in the tail at most (Chernoff).
    """
    from scipy.special import erfc

    if modulus == 2:
        return float(erfc((power / 2) ** 0.5))
    skewness = power**1.5 / (3 * max(count, 1) ** 0.5) if modulus == 3 else 0.0
    return float(np.exp(skewness - power))
