"""Noise that a guessed seed undoes: residuals against what common programs draw from common seeds.

A drawn column d is looked for in the span of the residuals of all columns: where the residuals are N L' with N drawn
and L invertible (independent or correlated noise, by whichever root), every column of N lies in it. So the figure is
the multiple correlation of d with the residuals, and one column of N is enough, the first: it comes first whether N
was filled column by column, or record by record, where it is every p-th number.

A program that seeds anew for each record, by its number or by a column, draws the first number (or the j-th for the
j-th column) of each of those seeds: these are tried as well, on a few records, and so are digests of its id or values
(`guessed_seeds`), as uniforms and as seeds. Own derivation; what chance gives is the largest of that many multiple
correlations (Anderson 2003, section 4.4, for the law of one). Called by `noise_checks`.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..laws import SkewedBias
from ..table import Floats, Table
from .evidence import Evidence
from .findings import WARN
from .protocol import CheckFigure
from .residuals import NOTHING
from .scales import column_on_scale, law_of, noised_columns
from .seeds import BY_RECORD, GENERATORS, common_seeds

FIRST, MORE = 60, 4  # records on which all seeds are tried: so many, and more for each column
THEN = 1_000  # records on which the most promising are tried again, and after them all
PROMISING = 20  # guesses that are tried again on more records
# Records on which seeds of each record are tried: chance gives .4 among a few thousand tries
BY_RECORDS = 120
# Columns that may be seeds of their record, and numbers drawn from each seed
MOST_SEEDING, MOST_NUMBERS = 12, 4
SEEDED_BY_HASH = tuple(GENERATORS)[:5:2]  # normals of numpy and of Python
WIDEST, MOST = 8, 40  # columns taken together, looked at
HIT = 0.65  # below it a guess has failed
FEWEST = 40  # known records, and two for each column: with fewer, chance looks like a seed


@dataclass(frozen=True, slots=True)
class Residuals:
    """Residuals in some order: `span` has orthonormal columns, zero where the residuals are not `known`.

    `is_released` says whether the records stand as they leave.
    """

    order: str
    columns: tuple[str, ...]
    span: Floats
    known: Floats
    is_released: bool = False

    @property
    def label(self) -> tuple[str, tuple[str, ...]]:
        """What tells these residuals from others."""
        return self.order, self.columns

    def correlation(self, draws: Floats) -> Floats:
        """Return the multiple correlation of each draw (seeds x records) with the residuals."""
        explained = ((draws @ self.span) ** 2).sum(axis=1)
        return np.asarray(np.sqrt(explained / np.maximum(draws**2 @ self.known, 1e-300)))


@dataclass(frozen=True, slots=True)
class SeedGuess:
    """One guess: which program, seed and filling give which residuals, and how nearly."""

    correlation: float
    generator: str
    seed: int
    stride: int
    offset: int
    residuals: int


def predictable_noise(evidence: Evidence) -> CheckFigure:
    """Measure the largest correlation of the noise with what common programs draw from common seeds."""
    sums = dict(evidence.masking.card.recomputed)
    names = tuple(name for name in noised_columns(evidence) if name not in sums)[:MOST]
    first = FIRST + MORE * min(len(names), WIDEST)
    both = zip(_orders(evidence, names, first), _orders(evidence, names, THEN), strict=True)
    pairs = [(short, long) for short, long in both if short is not None and long is not None and _tells(long)]
    if not pairs:
        few = "there is no masked number, or too few open values: among so many seeds one fits by chance"
        return CheckFigure(NOTHING, few)
    guesses, tries = _promising_guesses([short for short, _ in pairs], len(names), first)
    orders = [long for _, long in pairs]
    chance = max(_by_chance(one, tries) for one in orders)
    best = max(_tried_again(guesses, orders), key=lambda guess: guess.correlation)
    one = orders[best.residuals]
    if best.correlation > HIT and evidence.records > THEN:
        whole = [
            long for long in _orders(evidence, names, None) if long is not None and long.label == one.label
        ]
        best = _tried_again([replace(best, residuals=0)], whole)[0]
    told = _guess_figure(best, one, tries, chance)
    seeded_anew = _seeded_by_record(evidence, names)
    if seeded_anew is not None and seeded_anew.figure > max(best.correlation, HIT):
        return seeded_anew
    if best.correlation > HIT or not evidence.masking.card.seeded:
        return told
    seeded = "the key was made of a small seed, which the card marks as not for release: who guesses it has the noise"
    return replace(told, said=f"{told.said}; but {seeded}", verdict=WARN)


def _guess_figure(best: SeedGuess, one: Residuals, tries: int, chance: float) -> CheckFigure:
    where = ", ".join(one.columns)
    figures = {"largest correlation": best.correlation, "largest by chance": chance, "tries": float(tries)}
    if best.correlation <= HIT:
        said = (
            f"no common seed gives this noise: the largest correlation in {tries:,} tries is "
            f"{best.correlation:.2f}, and chance alone gives up to {chance:.2f}"
        )
        return CheckFigure(best.correlation, said, "", figures)
    said = (
        f"the noise of {where} is that of {best.generator} from the seed {best.seed} ({one.order}; "
        f"correlation {best.correlation:.3f}): who guesses the seed takes the noise away"
    )
    return CheckFigure(best.correlation, said, where, figures)


def _seeded_by_record(evidence: Evidence, names: tuple[str, ...]) -> CheckFigure | None:
    """Return the largest correlation of a column's noise with what programs draw from a seed for each record."""
    columns = [
        one
        for order, rows, is_released in _rows(evidence, names, BY_RECORDS)
        for j, name in enumerate(names[:MOST_SEEDING])
        if (one := _orthonormal_residuals(order, (name,), rows[:BY_RECORDS, [j]], is_released)) is not None
    ]
    best = CheckFigure(0.0, "")
    for is_released in sorted({one.is_released for one in columns}):
        own = [one for one in columns if one.is_released == is_released]
        for what, seeds in _record_seeds(evidence, is_released):
            for generator, draw in GENERATORS.items():
                best = _better(
                    best, own, draw(seeds, MOST_NUMBERS).T, f"{generator} seeded for each record by {what}"
                )
        best = _try_record_hashes(evidence, own, best, names, is_released)
    return best if best.said else None


def _try_record_hashes(
    evidence: Evidence, own: list[Residuals], best: CheckFigure, names: tuple[str, ...], released: bool
) -> CheckFigure:
    """Try digests of each record's id, number and values, as uniforms and as seeds."""
    rows = _first_rows(evidence, released)
    for what, texts in record_texts(evidence.masking.truth, rows, MOST_SEEDING):
        for label, drawn in hash_normals(texts, names[:MOST_NUMBERS]):
            best = _better(best, own, drawn, f"{label} of {what} of each record")
        for label, seeds in hash_seeds(texts):
            for generator in SEEDED_BY_HASH:
                drawn = GENERATORS[generator](seeds, MOST_NUMBERS).T
                best = _better(best, own, drawn, f"{generator} seeded for each record by {label} of {what}")
    return best


def _better(best: CheckFigure, columns: list[Residuals], drawn: Floats, how: str) -> CheckFigure:
    for one in columns:
        figure = float(one.correlation(drawn).max())
        if figure > best.figure:
            said = f"the noise of {one.columns[0]} is that of {how} (correlation {figure:.3f})"
            told = f"{said}: who guesses that takes the noise away"
            best = CheckFigure(figure, told, one.columns[0], {"largest correlation": figure})
    return best


def _record_seeds(evidence: Evidence, released: bool) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
    """Return what a program may have taken as the seed of each of the first records."""
    truth, rows = evidence.masking.truth, _first_rows(evidence, released)
    yield "its number", np.arange(len(rows))
    yield "its number, from 1 on", np.arange(1, len(rows) + 1)
    whole = [column.name for column in truth.schema.columns if column.is_number]
    for name in whole[:MOST_SEEDING]:
        seeds = np.nan_to_num(truth.floats(name)[rows], nan=0.0)
        if len(np.unique(seeds)) > len(seeds) // 4 and not (seeds % 1).any() and 0 <= seeds.min() < 2**32:
            yield name, np.minimum(seeds, 2**32 - 1).astype(np.int64)


def _first_rows(evidence: Evidence, released: bool) -> npt.NDArray[np.int64]:
    """Return the first records of the release, or of the truth, by their numbers in the truth."""
    masking = evidence.masking
    return (masking.order if released else np.arange(len(masking.truth)))[:BY_RECORDS]


def _promising_guesses(orders: list[Residuals], width: int, first: int) -> tuple[list[SeedGuess], int]:
    """Try every seed of every generator in every order and filling on the first records."""
    guesses, tries, seeds = list[SeedGuess](), 0, common_seeds()
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
                guesses.append(SeedGuess(float(found[top, i]), label, int(seeds[top]), stride, offset, i))
    guesses.sort(key=lambda guess: -guess.correlation)
    return guesses[:PROMISING], tries


def _tried_again(guesses: list[SeedGuess], orders: list[Residuals]) -> list[SeedGuess]:
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
    for order, rows, is_released in _rows(evidence, names, first):
        head = rows[:first]
        if len(names) > 1:
            yield _orthonormal_residuals(order, names[:WIDEST], head[:, :WIDEST], is_released)
        for j, name in enumerate(names):
            yield _orthonormal_residuals(order, (name,), head[:, [j]], is_released)
            is_open = ~np.isnan(rows[:, j])
            if not is_open.all():
                yield _orthonormal_residuals(
                    f"{order}, open values", (name,), rows[is_open, j][:first, None], is_released
                )


def _rows(
    evidence: Evidence, names: tuple[str, ...], first: int | None
) -> Iterator[tuple[str, Floats, bool]]:
    """Return residuals as collected (NaN for records that are not released) and as released.

    Of a large file only so many records as hold the first ones that are open, were one of twenty.
    """
    if not names:
        return
    most = len(evidence.masking.truth) if first is None else min(20 * first, len(evidence.masking.truth))
    count = int(np.searchsorted(evidence.rows, most))
    kinds = zip(
        _kinds(evidence, names, np.arange(count)),
        _kinds(evidence, names, evidence.places[:most]),
        strict=True,
    )
    for said, (collected, released) in zip(("added", "multiplied"), kinds, strict=False):
        full = np.full((most, len(names)), np.nan)
        full[evidence.rows[:count]] = collected
        yield f"{said} in the truth's order", full, False
        yield f"{said} in the released order", released, True


def _kinds(evidence: Evidence, names: tuple[str, ...], at: npt.NDArray[np.int64]) -> list[Floats]:
    """Return residuals as the law has them; also as ratios, where no law says that noise was added."""
    added, ratios = np.empty((len(at), len(names))), np.empty((len(at), len(names)))
    with np.errstate(divide="ignore", invalid="ignore"):
        for j, name in enumerate(names):
            column = column_on_scale(evidence, name)
            error = column.error[at]
            added[:, j] = error if column.size is None else error / column.size[at]
            ratios[:, j] = error / column.x[at]
    laws = [law_of(evidence, name) for name in names]
    if any(law is None or isinstance(law, SkewedBias) for law in laws):
        return [added, np.where(np.isfinite(ratios), ratios, np.nan)]
    return [added]


def _orthonormal_residuals(
    order: str, names: tuple[str, ...], residuals: Floats, is_released: bool
) -> Residuals | None:
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
    return Residuals(order, names, span, np.asarray(known, dtype=np.float64), is_released)


def _tells(one: Residuals) -> bool:
    """Whether so many residuals tell a seed from an accident, among some millions of tries."""
    return _by_chance(one, 5_000_000) < HIT


def _by_chance(one: Residuals, tries: int) -> float:
    """Return the largest multiple correlation to be expected of so many draws that have nothing to do with it."""
    from scipy.special import betaincinv

    width, records = one.span.shape[1], one.known.sum()
    return float(np.sqrt(betaincinv(width / 2, (records - width) / 2, 1 - 1 / tries)))


# Noise that is a hash of the record: uniforms made of digests of its id or of a true value, as programs write
# them.
#
# With h = md5, sha1, sha256 or crc32 of a text, u = (first or last 32 bits of h) / 2^32 or (h mod 10^6) / 10^6,
# and noise Phi^-1(u): who knows the text has the noise. Texts are an id or a whole number, alone and joined with
# the name of the noised column. The same 32 bits may seed a generator for each record. A secret in the text (a
# keyed hash) makes it sound, and nobody can see the difference.


Integers = npt.NDArray[np.int64]

HASHES: dict[str, Callable[[bytes], bytes]] = {
    "md5": lambda text: hashlib.md5(text, usedforsecurity=False).digest(),
    "sha1": lambda text: hashlib.sha1(text, usedforsecurity=False).digest(),
    "sha256": lambda text: hashlib.sha256(text).digest(),
    "crc32": lambda text: zlib.crc32(text).to_bytes(4, "big"),
}
JOINED = ("{text}{name}", "{text}_{name}", "{text}:{name}", "{name}{text}", "{name}_{text}", "{name}:{text}")
WORD, MILLION = 2**32, 10**6


def record_texts(truth: Table, rows: Integers, most: int) -> Iterator[tuple[str, list[str]]]:
    """Return what a program may hash for each record: its number, its id, texts and whole numbers of the truth."""
    yield "its number", [str(row) for row in rows.tolist()]
    for column in truth.schema.columns[:most]:
        if column.is_number:
            values = truth.floats(column.name)[rows]
            whole = not (np.nan_to_num(values) % 1).any()
            texts = [str(int(one)) if whole and one == one else str(one) for one in values.tolist()]
        else:
            texts = [str(one) for one in truth.array(column.name).take(rows).to_pylist()]
        if len(set(texts)) > len(texts) // 4:
            yield column.name, texts


def hash_normals(texts: Sequence[str], names: Sequence[str]) -> Iterator[tuple[str, Floats]]:
    """Return normal numbers by the digests of texts, alone and joined with column names: draws x records."""
    from scipy.special import ndtri

    forms = ["{text}", *(form.replace("{name}", name) for form in JOINED for name in names)]
    for label, digest in HASHES.items():
        rows = list[Integers]()
        for form in forms:
            found = [digest(form.replace("{text}", text).encode()) for text in texts]
            rows += [_words(found, slice(None, 4)), _words(found, slice(-4, None))]
            rows.append(np.array([int.from_bytes(one, "big") % MILLION * WORD // MILLION for one in found]))
        yield label, np.asarray(ndtri((np.array(rows) + 0.5) / WORD))


def hash_seeds(texts: Sequence[str]) -> Iterator[tuple[str, Integers]]:
    """Return the 32 bits of digests of texts that programs seed generators with."""
    for label, digest in HASHES.items():
        found = [digest(text.encode()) for text in texts]
        yield f"the first bits of {label}", _words(found, slice(None, 4))
        if label != "crc32":  # it has no others
            yield f"the last bits of {label}", _words(found, slice(-4, None))


def _words(digests: Sequence[bytes], part: slice) -> Integers:
    return np.array([int.from_bytes(one[part], "big") for one in digests], np.int64)
