"""Noise that a guessed seed undoes: residuals against what common programs draw from common seeds.

A drawn column d is looked for in the span of the residuals of all columns: where the residuals are N L' with N drawn
and L invertible (independent or correlated noise, by whichever root), every column of N lies in it. So the figure is
the multiple correlation of d with the residuals, and one column of N is enough, the first: it comes first whether N
was filled column by column, or record by record, where it is every p-th number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..laws import SkewedBias
from ..table import Floats
from .catalogue import Measured
from .evidence import Evidence
from .findings import WARN
from .residuals import NOTHING
from .scales import law_of, noised, noised_columns
from .seeds import BY_RECORD, GENERATORS, common_seeds

FIRST, MORE = 60, 4  # records on which all seeds are tried: so many, and more for each column
THEN = 1_000  # records on which the most promising are tried again, and after them all
PROMISING = 20
WIDEST, MOST = 8, 40  # columns taken together, looked at
HIT = 0.65  # below it a guess has failed
FEWEST = 40


@dataclass(frozen=True, slots=True)
class Residuals:
    """Residuals in some order: `span` has orthonormal columns, zero where the residuals are not `known`."""

    order: str
    columns: tuple[str, ...]
    span: Floats
    known: Floats

    @property
    def label(self) -> tuple[str, tuple[str, ...]]:
        """What tells these residuals from others."""
        return self.order, self.columns

    def correlation(self, draws: Floats) -> Floats:
        """Return the multiple correlation of each draw (seeds x records) with the residuals."""
        explained = ((draws @ self.span) ** 2).sum(axis=1)
        return np.asarray(np.sqrt(explained / np.maximum(draws**2 @ self.known, 1e-300)))


@dataclass(frozen=True, slots=True)
class Guess:
    """One guess: which program, seed and filling give which residuals, and how nearly."""

    correlation: float
    generator: str
    seed: int
    stride: int
    offset: int
    residuals: int


def predictable_noise(evidence: Evidence) -> Measured:
    """Measure the largest correlation of the noise with what common programs draw from common seeds."""
    sums = dict(evidence.masking.card.recomputed)
    names = tuple(name for name in noised_columns(evidence) if name not in sums)[:MOST]
    first = FIRST + MORE * min(len(names), WIDEST)
    both = zip(_orders(evidence, names, first), _orders(evidence, names, THEN), strict=True)
    pairs = [(short, long) for short, long in both if short is not None and long is not None and _tells(long)]
    if not pairs:
        few = "there is no masked number, or too few open values: among so many seeds one fits by chance"
        return Measured(NOTHING, few)
    guesses, tries = _promising([short for short, _ in pairs], len(names), first)
    orders = [long for _, long in pairs]
    chance = max(_by_chance(one, tries) for one in orders)
    best = max(_tried_again(guesses, orders), key=lambda guess: guess.correlation)
    one = orders[best.residuals]
    if best.correlation > HIT and evidence.records > THEN:
        whole = [
            long for long in _orders(evidence, names, None) if long is not None and long.label == one.label
        ]
        best = _tried_again([replace(best, residuals=0)], whole)[0]
    told = _told(best, one, tries, chance)
    if best.correlation > HIT or not evidence.masking.card.seeded:
        return told
    seeded = "the key was made of a small seed, which the card marks as not for release: who guesses it has the noise"
    return replace(told, said=f"{told.said}; but {seeded}", verdict=WARN)


def _told(best: Guess, one: Residuals, tries: int, chance: float) -> Measured:
    where = ", ".join(one.columns)
    figures = {"largest correlation": best.correlation, "largest by chance": chance, "tries": float(tries)}
    if best.correlation <= HIT:
        said = (
            f"no common seed gives this noise: the largest correlation in {tries:,} tries is "
            f"{best.correlation:.2f}, and chance alone gives up to {chance:.2f}"
        )
        return Measured(best.correlation, said, "", figures)
    said = (
        f"the noise of {where} is that of {best.generator} from the seed {best.seed} ({one.order}; "
        f"correlation {best.correlation:.3f}): who guesses the seed takes the noise away"
    )
    return Measured(best.correlation, said, where, figures)


def _promising(orders: list[Residuals], width: int, first: int) -> tuple[list[Guess], int]:
    """Try every seed of every generator in every order and filling on the first records."""
    guesses, tries, seeds = list[Guess](), 0, common_seeds()
    spans, known = _side_by_side(orders, first)
    starts = np.cumsum([0, *(one.span.shape[1] for one in orders)])[:-1]
    for label, draw in GENERATORS.items():
        across = width if width <= BY_RECORD.get(label, 0) else 1
        drawn = draw(seeds, first * across)
        for stride, offset in {(1, 0), *((across, k) for k in range(min(across, WIDEST)))}:
            draws = np.ascontiguousarray(drawn[:, offset::stride][:, :first])
            found = np.add.reduceat((draws @ spans) ** 2, starts, axis=1) / (draws**2 @ known)
            tries += found.size
            for i, top in enumerate(found.argmax(axis=0).tolist()):
                guesses.append(Guess(float(found[top, i]), label, int(seeds[top]), stride, offset, i))
    guesses.sort(key=lambda guess: -guess.correlation)
    return guesses[:PROMISING], tries


def _tried_again(guesses: list[Guess], orders: list[Residuals]) -> list[Guess]:
    """Return guesses with their correlations on other, longer residuals."""
    tried = []
    for label, draw in GENERATORS.items():
        own = [guess for guess in guesses if guess.generator == label]
        if own:
            seeds = sorted({guess.seed for guess in own})
            most = max(guess.stride * len(orders[guess.residuals].known) for guess in own)
            drawn = dict(zip(seeds, draw(np.array(seeds), most), strict=True))
            for guess in own:
                one = orders[guess.residuals]
                column = drawn[guess.seed][guess.offset :: guess.stride][None, : len(one.known)]
                tried.append(replace(guess, correlation=float(one.correlation(column)[0])))
    return tried


def _side_by_side(orders: list[Residuals], first: int) -> tuple[Floats, Floats]:
    """Put all spans into one matrix, and where they are known into another, so that two products do all of them."""
    spans = [np.pad(one.span, ((0, first - len(one.span)), (0, 0))) for one in orders]
    known = [np.pad(one.known, (0, first - len(one.known))) for one in orders]
    return np.hstack(spans), np.column_stack(known)


def _orders(evidence: Evidence, names: tuple[str, ...], first: int | None) -> Iterator[Residuals | None]:
    """List residuals in every order in which their noise may have been drawn; of the first records, or of all."""
    kinds = _kinds(evidence, names) if names else iter(())
    for said, kind in zip(("added", "multiplied"), kinds, strict=False):
        places = np.arange(len(evidence.masking.truth))
        full = np.full((len(places), len(names)), np.nan)
        full[evidence.rows] = kind
        for order, rows in (
            (f"{said} in the truth's order", full),
            (f"{said} in the released order", kind[evidence.places]),
        ):
            head = rows[:first]
            if len(names) > 1:
                yield _spanned(order, names[:WIDEST], head[:, :WIDEST])
            for j, name in enumerate(names):
                yield _spanned(order, (name,), head[:, [j]])
                is_open = ~np.isnan(rows[:, j])
                if not is_open.all():
                    yield _spanned(f"{order}, open values", (name,), rows[is_open, j][:first, None])


def _kinds(evidence: Evidence, names: tuple[str, ...]) -> Iterator[Floats]:
    """Return residuals as the law has them; also as ratios, where no law says that noise was added."""
    columns = [noised(evidence, name) for name in names]
    with np.errstate(divide="ignore", invalid="ignore"):
        yield np.column_stack([c.error if c.size is None else c.error / c.size for c in columns])
        laws = [law_of(evidence, name) for name in names]
        if any(law is None or isinstance(law, SkewedBias) for law in laws):
            ratios = np.column_stack([column.error / column.x for column in columns])
            yield np.where(np.isfinite(ratios), ratios, np.nan)


def _spanned(order: str, names: tuple[str, ...], residuals: Floats) -> Residuals | None:
    """Give residuals an orthonormal span, where enough of them are known."""
    known = np.isfinite(residuals).all(axis=1)
    if known.sum() < FEWEST + 2 * len(names):
        return None
    inside = residuals[known] - residuals[known].mean(axis=0)
    sizes = np.sqrt((inside**2).sum(axis=0))
    if not sizes.any():
        return None
    left, singular, _ = np.linalg.svd(inside / np.where(sizes > 0, sizes, 1.0), full_matrices=False)
    span = np.zeros((len(residuals), int((singular > 1e-6 * singular[0]).sum())))
    span[known] = left[:, : span.shape[1]]
    return Residuals(order, names, span, np.asarray(known, dtype=np.float64))


def _tells(one: Residuals) -> bool:
    """Whether so many residuals tell a seed from an accident, among some millions of tries."""
    return _by_chance(one, 5_000_000) < HIT


def _by_chance(one: Residuals, tries: int) -> float:
    """Return the largest multiple correlation to be expected of so many draws that have nothing to do with it."""
    from scipy.special import betaincinv

    width, records = one.span.shape[1], one.known.sum()
    return float(np.sqrt(betaincinv(width / 2, (records - width) / 2, 1 - 1 / tries)))
