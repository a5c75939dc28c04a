"""Released residues that agree wherever true ones do: any function of the residues of one to three true columns.

Each record has a class made of true values alone: the residue of a true column modulo m, those of two or three of
them, the residue of a true value without its last digits, or a whole value. Of pairs of consecutive records i, j of a
class, in an order drawn at random,

    T = number of pairs with z_i = z_j modulo m  ~  Binomial(M, 1/m),      M the number of all such pairs,

exactly, wherever the noise hides all residues modulo m: the z are then independent and uniform modulo m whatever the
truth is, and so are the differences along a chain of them. Where the released residue is a function of the class (a
multiple, a square, a product of two columns, a table of random numbers) in a share s of the records, T is about s^2 M.
That is the birthday test (Knuth 1998, 3.3.2) inside classes: it needs about n^2 / (2 m^k) pairs for k columns and no
list of functions, and is chosen where the characters of `congruences` would have to be listed one by one. The last
digit is looked at in the classes of every modulus too: check digits. The place in the release is one more released
column, the true values of the records before and after are further classes, and the released values of another column
make classes with true ones, as far as the noise hides residues given that column too. Not seen are functions of whole
values that do not repeat (a keyed hash), and of residues modulo other numbers than the released one has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ...table import Floats
from .cells import Bools, Integers, ScoredCells
from .congruences import CLOSED, ReleasedResidues, released_steps
from .congruences import MODULI as PRIMES_AND_POWERS
from .digit_families import STEPS
from .ledger import Ledger
from .truths import FEWEST, ORIGINAL, RELEASED, TrueColumn

Residues = npt.NDArray[np.uint16]
Places = npt.NDArray[np.int32]

LARGEST = 2_000  # modulus: every prime and power below
# Numbers of days, minutes, degrees, cents, places of a table: a function of such a residue shows modulo no divisor.
ROUND = (
    *(6, 12, 14, 15, 18, 20, 24, 28, 30, 36, 40, 48, 50, 52, 60, 72, 80, 90, 96, 99, 120, 127, 144, 150, 180),
    *(
        200,
        250,
        255,
        300,
        360,
        365,
        366,
        400,
        480,
        500,
        511,
        600,
        720,
        750,
        800,
        900,
        999,
        1_001,
        1_023,
        1_440,
    ),
)
LARGEST_OF_TWO = 1_021  # primes of hash tables of a thousand places are below
LARGEST_OF_THREE = 101  # modulus of three columns: m^3 classes
LARGEST_WITH_RELEASED = 257  # classes by a true column and another released one: 256 places of a byte
FEW_RECORDS, MOST_RECORDS = 2_000, 15_000  # drawn at random: as many as give pairs enough, see `enough`
PAIRS = 100  # neighbours of one class that are aimed at: 40% of the records in step would be seen
MOST_COLUMNS = 6  # of which classes by two and three are made: 15 and 20
MOST_RELEASED = 4  # released columns that make classes with true ones
MOST_PLACES = 5  # last digits that are left out of a true value
MODULI = tuple(sorted({*ROUND, *(m for m in PRIMES_AND_POWERS if m <= LARGEST)}))
TOO_MANY = 2**16 - 1  # a mark: neither residues nor numbered values reach it
NONE = -1  # no further column in a class
DECIMAL = 10


@dataclass(frozen=True)
class ResidueKey:
    """A true column in whole numbers, at the records drawn: the values and what they are called."""

    name: str
    steps: Integers
    is_whole: bool = True  # no digits are left out


@dataclass(frozen=True)
class ResidueClasses:
    """Classes of records by columns of `keys`: what each is called, and the places of its columns.

    `of_released` is the place of the released column that a class is made with, which it says nothing about.
    """

    names: tuple[str, ...]
    places: Integers
    of_released: tuple[int, ...] = ()

    @classmethod
    def of(cls, keys: Sequence[str], width: int) -> ResidueClasses:
        """Put so many of some columns together, in every way."""
        places = [*combinations(range(len(keys)), width)]
        names = tuple(" and ".join(keys[i] for i in some) for some in places)
        return cls(names, np.array(places, np.int64).reshape(-1, width))


@dataclass(frozen=True)
class ResidueQuestion:
    """Classes, and what they are asked of: classes x released columns, and the modulus up to which each column is."""

    classes: ResidueClasses
    is_asked: Bools
    limits: Floats

    def hidden(self, modulus: int) -> Bools:
        """Return of which released columns the classes tell nothing by design, at a modulus."""
        return np.asarray(self.is_asked & (modulus <= self.limits))


@dataclass(frozen=True)
class LastSeen:
    """Which record had a code last, and how many numbers of records are used: see `kernels.class_pairs`."""

    places: Places
    used: Integers

    @classmethod
    def of(cls, codes: int) -> LastSeen:
        """Make room for so many codes."""
        return cls(np.full(codes, NONE, np.int32), np.zeros(1, np.int64))


@dataclass(frozen=True)
class ResiduePart:
    """Released columns that are open in the same records, with the true columns at those."""

    released: tuple[ReleasedResidues, ...]
    z: Integers
    keys: tuple[ResidueKey, ...]

    @cached_property
    def steps(self) -> tuple[Integers, Bools | None]:
        """True columns in whole numbers, and where they are not open."""
        steps = np.array([one.steps for one in self.keys])
        closed = steps == CLOSED
        return np.where(closed, 0, steps), closed if closed.any() else None

    @cached_property
    def together(self) -> list[int]:
        """The columns of which classes by two and three are made: those that are released first."""
        return [i for i, one in enumerate(self.keys) if one.is_whole][:MOST_COLUMNS]

    @cached_property
    def whole(self) -> tuple[Residues, ResidueClasses]:
        """Numbered values, of one column and of two, each a class."""
        own = [_residue_codes(one.steps[:FEW_RECORDS]) for one in self.keys]
        names = [one.name for one in self.keys]
        for i, j in combinations(self.together, 2):
            both = own[i].astype(np.int64) * (TOO_MANY + 1) + own[j]
            is_open = (own[i] != TOO_MANY) & (own[j] != TOO_MANY)
            own.append(_residue_codes(np.where(is_open, both, CLOSED)))
            names.append(f"{names[i]} and {names[j]}")
        repeated = [i for i, one in enumerate(own) if len(np.unique(one)) <= len(one) - FEWEST]
        chosen = np.array(own).reshape(len(own), -1)[repeated]
        return chosen, ResidueClasses.of([names[i] for i in repeated], 1)

    @cached_property
    def digits(self) -> Residues:
        """The last digits of released values, of few records."""
        return self.released_residues(DECIMAL, FEW_RECORDS)

    @cached_property
    def of_values(self) -> ResidueQuestion:
        """The classes of `whole`."""
        return _residue_question(self.released, self.whole[1])

    @cached_property
    def singles(self) -> ResidueQuestion:
        """Classes of residues of one column."""
        return _residue_question(self.released, ResidueClasses.of([key.name for key in self.keys], 1))

    @cached_property
    def several(self) -> tuple[tuple[int, int, ResidueQuestion], ...]:
        """Classes of residues of two columns, and of three: the number, the largest modulus and the classes."""
        names = [self.keys[i].name for i in self.together]
        return tuple(
            (width, largest, _residue_question(self.released, ResidueClasses.of(names, width)))
            for width, largest in ((2, LARGEST_OF_TWO), (3, LARGEST_OF_THREE))
        )

    @cached_property
    def with_released(self) -> ResidueQuestion:
        """Classes by a true column and another released one."""
        own, others = self.together, self.released[:MOST_RELEASED]
        places = [(k, len(own) + j) for j in range(len(others)) for k in range(len(own))]
        names = tuple(f"{self.keys[i].name} and released {one.name}" for one in others for i in own)
        of_released = tuple(j - len(own) for _, j in places)
        return _residue_question(
            self.released, ResidueClasses(names, np.array(places, np.int64).reshape(-1, 2), of_released)
        )

    def residues(self, modulus: int, count: int, chosen: list[int] | None = None) -> Residues:
        """Return true values modulo a number, of the first so many records."""
        steps, closed = self.steps
        rows = slice(None) if chosen is None else chosen
        found = _remainders(steps[rows, :count], modulus)
        if closed is not None:
            found[closed[rows, :count]] = TOO_MANY
        return found

    def released_residues(self, modulus: int, count: int) -> Residues:
        """Return released values modulo a number: records x columns."""
        return np.ascontiguousarray(_remainders(self.z[:, :count], modulus).T)


def _remainders(steps: Integers, modulus: int) -> Residues:
    """Return whole numbers modulo another: by a division, which is several times faster than `%`."""
    return (steps - steps // modulus * modulus).astype(np.uint16)


def _residue_codes(values: Integers) -> Residues:
    """Number whole values, with a mark where they are not open."""
    _, codes = np.unique(values, return_inverse=True)
    return np.where(values == CLOSED, TOO_MANY, codes.ravel()).astype(np.uint16)


def residue_matches(
    ledger: Ledger,
    cells: Mapping[str, ScoredCells],
    columns: Sequence[TrueColumn],
    left: Mapping[str, float],
    seed: int,
) -> int:
    """Test released residues inside classes of true ones; return how many records were drawn for it.

    `left` is the share of each column's sd that the noises of the others leave, 1 where noises are independent.
    """
    count = len(columns[0].codes)
    chosen = np.random.default_rng([seed, 20]).permutation(count)[:MOST_RECORDS]
    found = [released_steps(own, chosen, count, left.get(name, 1.0)) for name, own in cells.items()]
    released = [one for one in found if one is not None]
    if released:
        released += [_place(one, chosen) for one in columns if one.name == RELEASED]
    parts = _parts(released, keys_of(columns, tuple(cells), chosen))
    seen = LastSeen.of(max(LARGEST_OF_TWO**2, LARGEST_OF_THREE**3, TOO_MANY) + 1)
    for part in parts:
        widest = max(one.widest for one in part.released)
        for modulus in (one for one in MODULI if one <= widest):
            _singles(ledger, part, modulus, seen)
            _several(ledger, part, modulus, seen)
            if modulus <= LARGEST_WITH_RELEASED:
                _with_released(ledger, part, modulus, seen)
    return len(chosen) if parts else 0


def _place(position: TrueColumn, chosen: Integers) -> ReleasedResidues:
    """Take the place in the release for a released column: a keyed shuffle hides all of its residues."""
    steps = np.where(position.codes < 0, CLOSED, position.codes)[chosen]
    return ReleasedResidues(position.name, 1.0, steps, steps, LARGEST, LARGEST)


def keys_of(
    columns: Sequence[TrueColumn], first: Sequence[str], chosen: Integers, beside: bool = True
) -> list[ResidueKey]:
    """Return true columns in whole numbers, released ones first, these without their last digits too.

    With those of the records before and after (`beside`), where they are asked for.
    """
    found = list[ResidueKey]()
    for column in sorted(columns, key=lambda one: one.name not in first):
        if column.distinct < 2 or (column.steps is None and column.numbers is not None):
            continue
        steps = np.where(column.codes < 0, CLOSED, column.codes) if column.steps is None else column.steps
        found.append(ResidueKey(column.name, steps[chosen]))
        if column.name in first and column.steps is not None:
            found += _without_digits(found[-1])
    positions = [one for one in columns if one.name in (ORIGINAL, RELEASED)]
    for column in [one for one in columns if beside and one.name in first][:MOST_COLUMNS]:
        if column.steps is not None:
            for position in positions:
                found += _beside(column, position, chosen)
    return found


def _beside(column: TrueColumn, position: TrueColumn, chosen: Integers) -> Iterator[ResidueKey]:
    """Return a column's values of the records before and after, by a position."""
    assert column.steps is not None
    order = position.order
    for word, to, of in (("before", order[1:], order[:-1]), ("after", order[:-1], order[1:])):
        steps = np.full(len(column.steps), CLOSED)
        steps[to] = column.steps[of]
        yield ResidueKey(f"{column.name} of the record {word} by {position.name}", steps[chosen], False)


def _without_digits(key: ResidueKey) -> Iterator[ResidueKey]:
    """Return a column without its last digits, as long as something is left of it."""
    is_open = key.steps != CLOSED
    for places in range(1, MOST_PLACES + 1):
        steps = key.steps[is_open] // DECIMAL**places
        if not len(steps) or steps.min() == steps.max():
            return
        values = np.full(len(key.steps), CLOSED)
        values[is_open] = steps
        digits = "digit" if places == 1 else f"{places} digits"
        yield ResidueKey(f"{key.name} without its last {digits}", values, False)


def _parts(released: Sequence[ReleasedResidues], keys: Sequence[ResidueKey]) -> list[ResiduePart]:
    """Put released columns together that are open in the same records."""
    patterns = dict[bytes, tuple[Bools, list[ReleasedResidues]]]()
    for one in released:
        is_open = one.z != CLOSED
        patterns.setdefault(is_open.tobytes(), (is_open, []))[1].append(one)
    found = list[ResiduePart]()
    for is_open, some in patterns.values():
        if int(is_open.sum()) >= FEWEST and keys:
            own = tuple(ResidueKey(key.name, key.steps[is_open], key.is_whole) for key in keys)
            found.append(ResiduePart(tuple(some), np.array([one.z[is_open] for one in some]), own))
    return found


def enough(modulus: int, columns: int) -> int:
    """Return of how many records n^2 / (2 m^k) pairs share a class: as many as are aimed at."""
    return int(np.clip((2 * PAIRS * float(modulus) ** columns) ** 0.5, FEW_RECORDS, MOST_RECORDS))


def _singles(ledger: Ledger, part: ResiduePart, modulus: int, seen: LastSeen) -> None:
    """Test residues inside classes of whole values, and of residues of one column; there last digits too."""
    z = part.released_residues(modulus, FEW_RECORDS)
    values, whole = part.whole
    if len(values):
        _enter(ledger, part, modulus, counts(values, whole, 0, z, seen), part.of_values)
    residues, asked = part.residues(modulus, FEW_RECORDS), part.singles
    width, further = z.shape[1], f" modulo {modulus}"
    pairs, same = counts(residues, asked.classes, 0, np.hstack([z, part.digits]), seen)
    _enter(ledger, part, modulus, (pairs, same[:, :width]), asked, further)
    if modulus != DECIMAL:
        _enter(ledger, part, DECIMAL, (pairs, same[:, width:]), asked, further)


def _several(ledger: Ledger, part: ResiduePart, modulus: int, seen: LastSeen) -> None:
    """Test residues inside classes of residues of two columns, and of three."""
    for width, largest, asked in part.several:
        if modulus > largest or not len(asked.classes.places):
            continue
        count = enough(modulus, width)
        residues, z = part.residues(modulus, count, part.together), part.released_residues(modulus, count)
        found = counts(residues, asked.classes, modulus, z, seen)
        _enter(ledger, part, modulus, found, asked, f" modulo {modulus}")


def _with_released(ledger: Ledger, part: ResiduePart, modulus: int, seen: LastSeen) -> None:
    """Test residues inside classes by a true column and another released one."""
    asked, count = part.with_released, enough(modulus, 2)
    if len(part.released) > 1 and asked.classes.names:
        z = part.released_residues(modulus, count)
        keys = np.vstack([part.residues(modulus, count, part.together), z.T[:MOST_RELEASED]])
        found = counts(keys, asked.classes, modulus, z, seen)
        _enter(ledger, part, modulus, found, asked, f" modulo {modulus}")


def counts(
    keys: Residues, classes: ResidueClasses, base: int, z: Residues, seen: LastSeen
) -> tuple[Integers, Integers]:
    """Return how many pairs each class has, and in how many of them each released column agrees."""
    from ...kernels.class_pairs import agreements

    pairs = np.zeros(len(classes.places), np.int64)
    same = np.zeros((len(pairs), z.shape[1]), np.int64)
    agreements(keys, classes.places, base, z, seen.places, seen.used, pairs, same)
    return pairs, same


def _enter(
    ledger: Ledger,
    part: ResiduePart,
    modulus: int,
    counts: tuple[Integers, Integers],
    asked: ResidueQuestion,
    further: str = "",
) -> None:
    """Enter the least probable count of agreements for one modulus: classes x released columns."""
    from scipy.special import bdtrc

    pairs, same = counts
    hidden = asked.hidden(modulus)
    if not hidden.any() or not pairs.any():
        return
    p = np.ones(same.shape)
    usable = np.nonzero((same > 0) & hidden)
    p[usable] = bdtrc(same[usable] - 1, pairs[usable[0]], 1 / modulus)
    at, row = map(int, np.unravel_index(int(p.argmin()), p.shape))
    excess = (same[at, row] / max(int(pairs[at]), 1) - 1 / modulus) / (1 - 1 / modulus)
    said = f"pairs that agree in {asked.classes.names[at]}{further}"
    where = f"its residue modulo {modulus} in {pairs[at]:,} {said}"
    tests = np.count_nonzero(hidden & (pairs > 0)[:, None])
    chance, share = min(1.0, tests * float(p[at, row])), float(max(excess, 0.0)) ** 0.5
    ledger.add("matches", part.released[row].name, STEPS, chance, share, int(pairs[at]), where, True)


def _residue_question(released: Sequence[ReleasedResidues], classes: ResidueClasses) -> ResidueQuestion:
    """Say of which released columns classes tell nothing by design, up to which modulus."""
    limits = np.array([one.together if classes.of_released else one.widest for one in released])
    is_asked = np.ones((len(classes.names), len(released)), bool)
    for at, own in enumerate(classes.of_released):
        is_asked[at, own] = False
    for row, one in enumerate(released):
        if one.name == RELEASED:  # a place is no news of itself
            is_asked[:, row] &= np.array([RELEASED not in name for name in classes.names], bool)
    return ResidueQuestion(classes, is_asked, limits)
