"""Released codes that are draws of a common generator: under a common seed by place, or under the id as the seed.

Integers in any range, words, floats and characters are monotone in the words of 32 bits that they are made of, or in
those of them that are in range. So the ranks of the first codes (by the file, or by the true ids) are held against
those of every s-th word from the o-th on, as it is and with its bytes turned round, and of words in range: k tries
give c of them right by chance with a probability of at most k / c!. Draws of few characters have ties: they count by
a rank correlation, of ten standard errors at least. Whole orders are those of `shuffles`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from ..table import Floats
from .id_readings import FEWEST, Integers, Numbers, Relation, numbers_of, rank_readings, ranks, readings
from .seeds import common_seeds, legacy_words, numpy_words, python_words, r_words
from .shuffles import least_hits, seeded_order

HEAD, RUN = 32, 1_000  # codes on which all seeds are tried, and the best of them again
MOST_WORDS = 16 * HEAD
STEPS = (1, 2, 3, 4, 6, 8, 10, 12, 14, 16)  # words between draws: two for each float of a character
PROMISING = 0.75  # correlation of the head: the best of some 3,500 seeds has .65 by chance
LEAST_CORRELATION, SURE = 0.5, 10.0  # of the run, and in standard errors
TRIES = 10_000_000  # seeds, streams, orders and readings, at most
FEW_REDRAWS = 2**22
OWN, OWN_WORDS, OWN_TRIES = 200, 12, 10_000  # records whose own seeds are tried

PROGRAMS: dict[str, Callable[[Integers, int], Integers]] = {
    "numpy's default_rng": numpy_words,
    "numpy's RandomState": legacy_words,
    "Python's random": python_words,
    "R's unif_rand": r_words,
}


@dataclass(frozen=True, slots=True)
class WordStream:
    """How a program makes draws of its words: `step` words for each, at least."""

    how: str
    step: int
    draws: Callable[[Integers], Floats]


@dataclass(frozen=True, slots=True)
class Head:
    """Codes by place in some order: `ranks` of those at `places`."""

    order: str
    places: Integers
    ranks: Integers

    def correlation(self, draws: Floats) -> Floats:
        """Return the correlation of each row of draws (seeds x places) with the ranks."""
        there = draws[:, self.places]
        target = self.ranks - self.ranks.mean()
        inside = there - there.mean(axis=1, keepdims=True)
        sizes = np.sqrt((inside**2).sum(axis=1) * (target**2).sum())
        return np.asarray(inside @ target / np.maximum(sizes, 1e-300))


def seeded_codes(lists: dict[str, list[str]]) -> Relation | None:
    """Return the common seed that gives codes, of lists of them in some orders; "" where there is none."""
    whole = {order: codes for order, codes in lists.items() if "" not in codes and len(codes) >= FEWEST}
    for order, codes in whole.items():
        for ranking in rank_readings(codes):
            found = seeded_order(ranking)
            if found is not None:
                return Relation(f"the order of {found.how}, by {order}", found.share)
    return _seeded_draws({order: codes[:RUN] for order, codes in lists.items()}, _tops(lists))


def _tops(lists: dict[str, list[str]]) -> list[int]:
    """Return the largest values that draws in range may have had: of codes without what is added to all of them."""
    codes = next(iter(lists.values()), [])
    found: set[int] = set()
    for _, numbers in readings([code for code in codes if code]):
        known = [number for number in numbers if number is not None]
        most = max(known)
        least = {0, 10 ** (len(str(most)) - 1), min(known)}
        found |= {most - low for low in least if 0 < most - low < 2**62}
    return sorted(found)


def _seeded_draws(lists: dict[str, list[str]], tops: Sequence[int]) -> Relation | None:
    seeds = common_seeds()
    heads = [(head, codes) for order, codes in lists.items() for head in _heads(order, codes[:HEAD])]
    for program, words_of in PROGRAMS.items() if heads else ():
        words, found = words_of(seeds, MOST_WORDS), list[Relation]()
        for stream in _streams(program, tops):
            draws = stream.draws(words[:, : 4 * HEAD * stream.step])[:, :HEAD]
            for head, codes in heads:
                sizes = head.correlation(draws)
                best = int(sizes.argmax())
                if sizes[best] > PROMISING:
                    again = partial(_draws_of_seed, words_of, stream, seeds[[best]])
                    share = _agreement(head, draws[best], TRIES) or _longer_agreement(codes, again)
                    how = f"{program}, {stream.how}, from the seed {seeds[best]}, by {head.order}"
                    found += [Relation(how, share)] if share else []
        if found:
            return max(found, key=lambda one: one.share)
    return None


def _heads(order: str, codes: Sequence[str]) -> Iterator[Head]:
    places = np.array([place for place, code in enumerate(codes) if code], np.int64)
    if len(places) >= FEWEST:
        for ranking in rank_readings([codes[place] for place in places.tolist()]):
            yield Head(order, places, ranking)


def _draws_of_seed(
    words_of: Callable[[Integers, int], Integers], stream: WordStream, seed: Integers, count: int
) -> Floats:
    return stream.draws(words_of(seed, 4 * stream.step * count))[0, :count]


def _agreement(head: Head, draws: Floats, tries: float) -> float:
    """Return the share of the codes whose rank is that of their draw; 0 where chance explains it."""
    hits = int((ranks(draws[head.places].tolist()) == head.ranks).sum())
    return hits / len(head.places) if hits >= least_hits(tries) else 0.0


def _longer_agreement(codes: Sequence[str], again: Callable[[int], Floats]) -> float:
    """Return the rank correlation of up to a thousand codes with the draws of one seed; 0 where chance explains it."""
    draws = again(len(codes))
    longer = [0.0]
    for head in _heads("", codes[: len(draws)]):
        size = float(head.correlation(np.argsort(np.argsort(draws))[None].astype(np.float64))[0])
        longer.append(size if size > max(LEAST_CORRELATION, SURE / len(head.places) ** 0.5) else 0.0)
    return max(longer)


def _streams(program: str, tops: Sequence[int]) -> Iterator[WordStream]:
    """List the ways from words to draws of a program."""
    for step in STEPS:
        for offset in range(step if step <= 4 else 1):
            how = f"word {offset + 1} of every {step}" if step > 1 else "words"
            yield WordStream(how, step, partial(_every, step, offset))
        if step <= 4:
            yield WordStream(f"bytes of every {4 * step}", step, partial(_turned_bytes, step))
    for span in _spans(tops) if program == "numpy's default_rng" else ():
        yield WordStream("numbers in a range", 1, partial(_products, span))
    for top in tops:
        steps, values = _values_up_to(program, top)
        if steps:
            yield WordStream("numbers in a range", steps, partial(_in_range, steps, values, top))


def _every(step: int, offset: int, words: Integers) -> Floats:
    return words[:, offset::step].astype(np.float64)


def _turned_bytes(step: int, words: Integers) -> Floats:
    """Return words with their bytes turned round, as they stand in memory."""
    return words[:, ::step].astype(np.uint32).byteswap().astype(np.float64)


def _values_up_to(program: str, top: int) -> tuple[int, Callable[[Integers], Integers]]:
    """Return of how many words a program makes a value up to a top, and how; it draws again beyond the top.

    Numpy's default_rng multiplies instead (`_products`).
    """
    bits, mask = top.bit_length(), (1 << top.bit_length()) - 1
    if program == "Python's random":
        if bits <= 32:
            return 1, lambda words: words[..., 0] >> (32 - bits)
        return 2, lambda words: words[..., 0] | words[..., 1] >> (64 - bits) << 32
    if program == "numpy's RandomState":
        if bits <= 32:
            return 1, lambda words: words[..., 0] & mask
        return 2, lambda words: (words[..., 0] << 32 | words[..., 1]) & mask
    if program == "R's unif_rand":
        chunks = bits // 16 + 1
        return (chunks, partial(_chunks, mask)) if chunks <= 3 else (0, lambda words: words)
    return 0, lambda words: words


def _chunks(mask: int, words: Integers) -> Integers:
    out = words[..., 0] >> 16
    for k in range(1, words.shape[-1]):
        out = out << 16 | words[..., k] >> 16
    return np.asarray(out & mask)


def _spans(tops: Sequence[int]) -> list[int]:
    """Return the round numbers next to the largest values: so many values in a range that numpy draws of.

    Lemire's method draws again for 2^32 mod n of the words: below four million for one in a thousand at most.
    """
    found: set[int] = set()
    for top in tops:
        if FEW_REDRAWS < top < 2**32:
            step = 10 ** (len(str(top)) - 1)
            up = -(-top // step) * step
            found |= {up - 1, up, up + 1, 1 << top.bit_length(), (1 << top.bit_length()) - 1}
    return sorted(span for span in found if FEW_REDRAWS < span < 2**32)


def _products(span: int, words: Integers) -> Floats:
    """Return what Lemire's method makes of words: floor(word x n / 2^32), but for products with a small rest."""
    product = words.astype(np.uint64) * np.uint64(span)
    fits = (product & np.uint64(0xFFFFFFFF)) >= np.uint64((2**32 - span) % span)
    return _kept_first((product >> np.uint64(32)).astype(np.int64), fits)


def _in_range(steps: int, values: Callable[[Integers], Integers], top: int, words: Integers) -> Floats:
    """Return the first values that are in range."""
    count = words.shape[1] // steps
    drawn = values(words[:, : count * steps].reshape(len(words), count, steps))
    return _kept_first(drawn, drawn <= top)


def _kept_first(drawn: Integers, fits: npt.NDArray[np.bool_]) -> Floats:
    """Return the first values that fit, for a quarter of the draws; 0 where they run out."""
    count = drawn.shape[1]
    starts = np.cumsum(fits.sum(axis=1)) - fits.sum(axis=1)
    most = max(count // 4, 1)
    there = np.arange(most) < fits.sum(axis=1)[:, None]
    flat = np.append(drawn[fits], np.zeros(most, np.int64))
    return np.where(there, flat[starts[:, None] + np.arange(most)], 0).astype(np.float64)


def codes_of_own_seeds(codes: Sequence[str], sources: dict[str, list[str]]) -> Relation | None:
    """Return the generator that gives the code of each record when it is seeded by the record's id or number."""
    tops = _tops({"": list(codes)})
    for what, texts in sources.items():
        numbers = numbers_of(texts)
        picked = [i for i, code in enumerate(codes) if code and (numbers is None or numbers[i] is not None)][
            :OWN
        ]
        heads = list(_heads("", [codes[i] for i in picked]))
        found = [
            Relation(f"{program}, seeded anew by the {what} of each record, {stream.how}", share)
            for program, words in (_own_words([texts[i] for i in picked], numbers, picked) if heads else ())
            for stream in _own_streams(program, tops)
            if (share := max(_agreement(head, stream.draws(words)[:, 0], OWN_TRIES) for head in heads))
        ]
        if found:
            return max(found, key=lambda one: one.share)
    return None


def _own_streams(program: str, tops: Sequence[int]) -> Iterator[WordStream]:
    for offset in range(4):
        yield WordStream(f"word {offset + 1}", 1, partial(_every, OWN_WORDS, offset))
    yield from (one for one in _streams(program, tops) if "word" not in one.how)


def _own_words(
    texts: Sequence[str], numbers: Numbers | None, picked: Sequence[int]
) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
    """Return the first words that programs draw from the seed of each record: records x words."""
    yield "Python's random", np.array([_python_words(text) for text in texts], np.int64)
    if numbers is None:
        return
    seeds = [numbers[i] or 0 for i in picked]
    yield "Python's random", np.array([_python_words(seed) for seed in seeds], np.int64)
    yield "numpy's default_rng", np.array([_numpy_words(seed) for seed in seeds], np.int64)
    if max(seeds) < 2**32:
        yield "numpy's RandomState", legacy_words(np.array(seeds), OWN_WORDS)
    if max(seeds) < 2**31:
        yield "R's unif_rand", r_words(np.array(seeds), OWN_WORDS)


def _python_words(seed: int | str) -> list[int]:
    rng = random.Random(seed)  # noqa: S311 (what others did is made again)
    return [rng.getrandbits(32) for _ in range(OWN_WORDS)]


def _numpy_words(seed: int) -> list[int]:
    words: list[int] = np.random.default_rng(seed).integers(0, 2**32, OWN_WORDS, dtype=np.uint32).tolist()
    return words
