"""Noises that agree wherever records do: any function of classes of one to three true columns.

Of pairs of consecutive records of a class made of true values, in an order drawn at random, with the sign of the score,
whether it is larger than its median, and its eighth (B = 2, 2, 8 parts),

    T = number of pairs in one part  ~  Binomial(M, 1/B),      M the number of all such pairs,

exactly, whatever the truth is: `residue_matches` for noises instead of released residues. Classes are residues modulo m
of one to three columns, whole values, and fortieths of two columns and tenths of three. A sign by a table of residues,
or by a hash of three coarse columns, has no trend and no class large enough to show in one; here its classes add up.
Own derivation. Called by `battery`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...table import Floats
from .cells import Bools, Integers
from .digit_families import STEPS
from .families import Score
from .ledger import Ledger
from .residue_matches import (
    FEW_RECORDS,
    MODULI,
    MOST_COLUMNS,
    MOST_RECORDS,
    TOO_MANY,
    LastSeen,
    ResidueClasses,
    ResidueKey,
    ResiduePart,
    Residues,
    counts,
    enough,
    keys_of,
)
from .signs import MEDIAN
from .truths import FEWEST, TrueColumn

PARTS = (2, 2, 8)  # of the sign, of the size, of the distribution
LARGEST_OF_TWO, LARGEST_OF_THREE = 211, 31  # moduli: more records than others would be needed beyond
FINE, COARSE = 40, 10  # classes by rank of which two and three columns are crossed


def noise_matches(ledger: Ledger, scores: Sequence[Score], columns: Sequence[TrueColumn], seed: int) -> None:
    """Test noises inside classes of true values."""
    count = len(columns[0].codes)
    chosen = np.random.default_rng([seed, 22]).permutation(count)[:MOST_RECORDS]
    names = [score.column for score in scores]
    ranked = _rank_shares(columns, names, chosen)
    keys = keys_of(columns, names, chosen, beside=False)
    patterns = dict[bytes, tuple[Bools, list[Score]]]()
    for score in scores:
        known = ~np.isnan(score.values[chosen])
        patterns.setdefault(known.tobytes(), (known, []))[1].append(score)
    seen = LastSeen.of(max(LARGEST_OF_TWO**2, LARGEST_OF_THREE**3, TOO_MANY) + 1)
    for known, some in patterns.values():
        if int(known.sum()) >= FEWEST and keys:
            own = tuple(ResidueKey(key.name, key.steps[known], key.is_whole) for key in keys)
            noises = _noise_parts([score.values[chosen][known] for score in some])
            labels = [score.label for score in some for _ in PARTS]
            _ranks(ledger, [(name, one[known]) for name, one in ranked], noises, labels, seen)
            _residues(ledger, ResiduePart((), np.empty((0, 0), np.int64), own), noises, labels, seen)


def _noise_parts(scores: Sequence[Floats]) -> Residues:
    """Return sign, size and eighth of each column: records x parts."""
    from scipy.special import ndtr

    found = list[Residues]()
    for y in scores:
        eighth = np.minimum(ndtr(y) * PARTS[2], PARTS[2] - 1)
        found += [one.astype(np.uint16) for one in (y > 0, np.abs(y) > MEDIAN, eighth)]
    return np.ascontiguousarray(np.array(found).T)


def _rank_shares(
    columns: Sequence[TrueColumn], first: Sequence[str], chosen: Integers
) -> list[tuple[str, Floats]]:
    """Return the shares of records below in each column, those that are released first; categories by their place."""
    able = [one for one in sorted(columns, key=lambda one: one.name not in first) if one.distinct > 1]
    found = list[tuple[str, Floats]]()
    for one in able[:MOST_COLUMNS]:
        places = np.where(one.codes < 0, np.nan, one.codes / max(one.distinct, 1))
        found.append((one.name, (places if one.numbers is None else one.shares)[chosen]))
    return found


def _ranks(
    ledger: Ledger,
    ranked: Sequence[tuple[str, Floats]],
    noises: Residues,
    labels: Sequence[str],
    seen: LastSeen,
) -> None:
    """Test noises inside crossed classes by rank."""
    for width, parts in ((2, FINE), (3, COARSE)):
        classes = ResidueClasses.of([name for name, _ in ranked], width)
        if len(classes.places):
            shares = np.array([one for _, one in ranked])
            codes = np.minimum(np.nan_to_num(shares) * parts, parts - 1)
            keys = np.where(np.isnan(shares), TOO_MANY, codes).astype(np.uint16)
            found = counts(keys, classes, parts, noises, seen)
            _enter(ledger, labels, found, classes, f"1/{parts} of ")


def _residues(
    ledger: Ledger, part: ResiduePart, noises: Residues, labels: Sequence[str], seen: LastSeen
) -> None:
    """Test noises inside classes of whole values, and of residues of one, two and three columns."""
    few = noises[:FEW_RECORDS]
    values, whole = part.whole
    if len(values):
        _enter(ledger, labels, counts(values, whole, 0, few, seen), whole)
    every, some = [key.name for key in part.keys], [part.keys[i].name for i in part.together]
    singles, twos, threes = (
        ResidueClasses.of(every, 1),
        ResidueClasses.of(some, 2),
        ResidueClasses.of(some, 3),
    )
    for modulus in MODULI:
        found = counts(part.residues(modulus, FEW_RECORDS), singles, 0, few, seen)
        _enter(ledger, labels, found, singles, after=f" modulo {modulus}")
        for width, classes, largest in ((2, twos, LARGEST_OF_TWO), (3, threes, LARGEST_OF_THREE)):
            if modulus <= largest and len(classes.places):
                count = enough(modulus, width)
                keys = part.residues(modulus, count, part.together)
                found = counts(keys, classes, modulus, noises[:count], seen)
                _enter(ledger, labels, found, classes, after=f" modulo {modulus}")


def _enter(
    ledger: Ledger,
    labels: Sequence[str],
    found: tuple[Integers, Integers],
    classes: ResidueClasses,
    before: str = "",
    after: str = "",
) -> None:
    """Enter the least probable count of agreements: classes x parts of noises."""
    from scipy.special import bdtrc

    pairs, same = found
    if not pairs.any():
        return
    chance = 1 / np.array(PARTS * (same.shape[1] // len(PARTS)))
    p, some = np.ones(same.shape), np.nonzero(same)
    p[some] = bdtrc(same[some] - 1, pairs[some[0]], chance[some[1]])
    at, row = map(int, np.unravel_index(int(p.argmin()), p.shape))
    excess = (same[at, row] / max(int(pairs[at]), 1) - chance[row]) / (1 - chance[row])
    what = ("its sign", "its size", "its eighth")[row % len(PARTS)]
    where = f"{what} in {pairs[at]:,} pairs that agree in {before}{classes.names[at]}{after}"
    least = min(1.0, np.count_nonzero(pairs) * same.shape[1] * float(p[at, row]))
    share = float(max(excess, 0.0)) ** 0.5
    ledger.add("noise matches", labels[row], STEPS, least, share, int(pairs[at]), where)
