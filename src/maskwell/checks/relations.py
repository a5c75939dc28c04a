"""Checks of columns against one another: order, identities, columns said twice.

Order: rank correlations (Spearman 1904) and those of neighbours (von Neumann 1941). Identities A x = 0: share of the
noise left by z - V A' (A V A' + R)^+ A z (generalised least squares, Aitken 1936). Near duplicates: 1 / (1' V^-1 1).
Called by `noise_checks`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..arrow_buffers import take_texts
from ..table import Floats
from .evidence import Evidence
from .findings import PASS
from .near_identities import NearSum, near_identities
from .protocol import CheckFigure
from .residuals import FEWEST, NOTHING, SURE
from .scales import covariance, errors, noised_columns
from .seeds import common_seeds
from .shuffles import KnownOrder, hash_keys, least_hits, seeded_order

# Of the sd of a noise, as the check "averaging" warns and fails: where two columns leave more nothing averages out.
# Of the larger noise the other column alone leaves less, which is no averaging where sizes are much alike.
LEFT, LEFT_OF_LARGER = 0.95, 0.8
MOST_SORTED = 20_000  # records of which hashes are made
SURE_OF_MANY = 6.0  # standard errors of a rank correlation, one of a dozen that are tried: 2e-8 by chance
LEAST_STEPS = 0.1  # of the records, from which on a common step from each to the next counts
TOLD = 0.5  # correlations between columns from which on they are listed


def order_of_truth(evidence: Evidence) -> CheckFigure:
    """Measure how far the released order follows the original one: by rank, by neighbours, by a common seed or a hash.

    A file that leaves in its own order has sound residuals.
    """
    places = evidence.places
    if len(places) < FEWEST:
        return CheckFigure(NOTHING, f"fewer than {FEWEST} records: their order says nothing")
    rank = correlation(np.arange(len(places), dtype=np.float64), places.astype(np.float64))
    together = float((np.abs(np.diff(places)) == 1).mean()) - 2 / len(places)
    figures = {"rank correlation": rank, "neighbours still together": max(together, 0.0)}
    error = SURE / np.sqrt(len(places))
    figure = max(abs(rank), together)
    if figure > error:
        said = (
            f"the released order has a rank correlation of {rank:.2f} with the original one, and "
            f"{max(together, 0):.0%} of neighbours are still together: the order tells who is who"
        )
        return CheckFigure(figure, said, "", figures)
    known = seeded_order(places) or _sorted_by(evidence) or _in_steps(places)
    if known is not None:
        said = (
            f"the released order is that of {known.how} ({known.share:.0%}): who guesses that has the order"
        )
        return CheckFigure(known.share, said, "", figures | {known.how: known.share})
    said = (
        f"the released order has nothing to do with the original one ({figure:.3f}, within the {error:.3f} that chance "
        f"allows for {len(places):,} records), and none of {len(common_seeds()):,} common seeds gives it"
    )
    return CheckFigure(figure, said, "", figures, verdict=PASS)


def _sorted_by(evidence: Evidence) -> KnownOrder | None:
    """Return what of the true ids the order follows: themselves, or a hash; a rank correlation beyond chance."""
    truth, picked = evidence.masking.truth, evidence.sample(purpose=(8,), most=MOST_SORTED)
    if truth.ids is None:
        return None
    texts = take_texts(truth.ids, evidence.masking.order[picked]).to_pylist()
    found = []
    for how, ranks in hash_keys([str(text) for text in texts]):
        size = abs(correlation(np.arange(len(texts), dtype=np.float64), ranks.astype(np.float64)))
        found.append(KnownOrder(f"a sort by {how}", size))
    best = max(found, key=lambda one: one.share)
    return best if best.share > max(0.1, SURE_OF_MANY / np.sqrt(len(texts) - 1)) else None


def _in_steps(places: Any) -> KnownOrder | None:
    """Return the step from each record to the next, modulo the file, where it is one and the same beyond chance."""
    steps, counts = np.unique(np.diff(places) % len(places), return_counts=True)
    hits = int(counts.max())
    if hits < max(least_hits(len(places)), LEAST_STEPS * len(places)):
        return None
    return KnownOrder(f"every {int(steps[counts.argmax()]):,}th record of the original", hits / len(places))


def order_of_columns(evidence: Evidence) -> CheckFigure:
    """Measure how far the released order follows any released or true column: by rank, and from record to record.

    A sorted file has sound residuals.
    """
    count = evidence.records
    if count < FEWEST:
        return CheckFigure(NOTHING, f"fewer than {FEWEST} records: their order says nothing")
    picked = evidence.sample(purpose=(3,))
    start = 0 if len(picked) == count else int(picked[0]) % (count - len(picked))
    found: dict[str, float] = {}
    beyond: dict[str, float] = {}
    for label, values in _columns(evidence):
        spread = _against_order(values, picked)
        run = _from_one_to_next(values[start : start + len(picked)])
        for size, records in (spread, run):
            found[label] = max(found.get(label, 0.0), size)
            beyond[label] = max(beyond.get(label, 0.0), size if size > SURE / np.sqrt(records) else 0.0)
    if not found:
        return CheckFigure(NOTHING, "no column has enough open values to be compared with the order")
    worst = max(found, key=lambda label: (beyond[label], found[label]))
    sure = beyond[worst] > 0
    said = (
        f"the released order goes with {worst} (rank correlation with the place, or between neighbours, "
        f"{found[worst]:.2f}): a sorted file gives values and neighbours away"
        if sure
        else f"the released order goes with no column (largest rank correlation {found[worst]:.3f}, within what "
        f"chance allows for {len(picked):,} records)"
    )
    return CheckFigure(
        found[worst], said, worst, found, evidence.looked_at(picked), verdict=None if sure else PASS
    )


def _columns(evidence: Evidence) -> Iterator[tuple[str, Floats]]:
    """Return every column that leaves in the released order, and the true values of masked ones."""
    masked, truth = evidence.masking.masked, evidence.masking.truth.schema
    for column in masked.schema.columns:
        if column.drop or not (column.is_number or masked.has_classes(column.name)):
            continue
        yield column.name, evidence.released(column.name)[evidence.places]
        if column.name in evidence.masked_columns and column.name in truth:
            yield f"{column.name} (true)", evidence.true(column.name)[evidence.places]


def _against_order(values: Floats, picked: Any) -> tuple[float, int]:
    chosen = values[picked]
    known = ~np.isnan(chosen)
    if known.sum() < FEWEST:
        return 0.0, FEWEST
    return abs(correlation(np.flatnonzero(known).astype(np.float64), shared_ranks(chosen[known]))), int(
        known.sum()
    )


def _from_one_to_next(values: Floats) -> tuple[float, int]:
    known = values[~np.isnan(values)]
    if len(known) < FEWEST:
        return 0.0, FEWEST
    ranks = shared_ranks(known)
    return max(0.0, correlation(ranks[:-1], ranks[1:])), len(known)


def shared_ranks(values: Floats) -> Floats:
    """Return ranks from 1 on, ties shared, without `scipy.stats`, which takes half a second to import."""
    _, member, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[member.ravel()])


def correlation(first: Floats, second: Floats) -> float:
    """Return the correlation of two columns, 0 where one is constant."""
    a, b = first - first.mean(), second - second.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b / size) if size > 0 else 0.0


def identities(evidence: Evidence) -> CheckFigure:
    """Measure the noise left once linear identities of nearly all true records are used to filter it.

    It is the law that lets the noise be filtered, whatever was drawn from it: residuals are sound.
    """
    from ..io.identities import find_identities
    from ..masking.totals import amounts

    noisy, sample = noised_columns(evidence), evidence.sample(purpose=(4,))
    truth = evidence.masking.truth.schema
    names = [name for name in amounts(evidence.masking.masked) if name in truth and truth[name].is_number]
    if len(names) < 2 or not noisy:
        return CheckFigure(NOTHING, "an identity needs two numbers that are released, one of them noised")
    x = np.column_stack([evidence.true(name)[sample] for name in names])
    every = near_identities(x, names, find_identities(x, names))
    found = [one for one in every if {one.identity.total, *dict(one.identity.parts)} & set(noisy)]
    if not found:
        return CheckFigure(
            1.0,
            "no identity between the released columns holds in nearly all true records: nothing averages out",
        )
    z = np.column_stack([evidence.noised(name)[sample] for name in names])
    left = _gls_variance_shares(z - x, names, found)
    left = {name: share for name, share in left.items() if name in noisy}
    if not left:
        return CheckFigure(NOTHING, "too few records have all members of an identity open")
    worst = min(left, key=lambda name: left[name])
    told = "; ".join(str(one) for one in found[:3])
    said = (
        f"with {told}, which the truth obeys, {left[worst]:.0%} of the noise variance of {worst} is left after "
        "filtering"
    )
    return CheckFigure(left[worst], said, worst, left, evidence.looked_at(sample))


def _gls_variance_shares(noise: Floats, names: list[str], found: list[NearSum]) -> dict[str, float]:
    """Return the share of each member's noise variance left by generalised least squares under the identities.

    With A x = 0 in the truth, up to rounding of variance R, and noise of covariance V, x is estimated by
    z - V A' (A V A' + R)^+ A z.
    """
    rules, members = _rules(found, names)
    inside = noise[:, [names.index(name) for name in members]]
    inside = inside[~np.isnan(inside).any(axis=1)]
    if len(inside) < FEWEST + 10 * len(members):
        return {}
    v = inside.T @ inside / len(inside)
    sds = np.sqrt(np.diag(v))
    scale = np.where(sds > 0, sds, 1.0)
    v, rules = v / np.outer(scale, scale), rules * scale
    sizes = np.maximum(np.linalg.norm(rules, axis=1), 1e-300)
    rules /= sizes[:, None]
    rounding = np.diag((np.array([one.slack for one in found]) / sizes) ** 2)
    seen = np.linalg.pinv(rules @ v @ rules.T + rounding, rcond=1e-9, hermitian=True)
    gain = v @ rules.T @ seen @ rules @ v
    left = np.clip(1 - np.diag(gain) / np.where(sds > 0, np.diag(v), 1.0), 0.0, 1.0)
    return {name: float(share) for name, share, sd in zip(members, left, sds, strict=True) if sd > 0}


def _rules(found: list[NearSum], names: list[str]) -> tuple[Floats, list[str]]:
    """Write identities as rows A with A x = 0, and name the columns that take part in them."""
    each = [one.identity for one in found]
    members = [n for n in names if any(n == one.total or n in dict(one.parts) for one in each)]
    rules = np.zeros((len(each), len(members)))
    for row, one in zip(rules, each, strict=True):
        row[members.index(one.total)] = -1.0
        for part, coefficient in one.parts:
            row[members.index(part)] = coefficient
    return rules, members


def near_duplicates(evidence: Evidence) -> CheckFigure:
    """Measure the largest correlation between masked numbers whose noises average out.

    Such noises are sound draws of a law that averages out: residuals do not tell.
    """
    names, sample = noised_columns(evidence), evidence.sample(purpose=(6,))
    sums = dict(evidence.masking.card.recomputed)
    names = tuple(name for name in names if name not in sums)
    if len(names) < 2:
        return CheckFigure(NOTHING, "fewer than two numbers are noised: none can repeat another")
    x, e = errors(evidence, names, sample)
    if len(x) < FEWEST:
        return CheckFigure(NOTHING, f"fewer than {FEWEST} records")
    pairs = _averaged_pairs(_correlations(x), _noise_in_sds(x, e), names)
    if not pairs:
        return CheckFigure(
            0.0,
            f"no two masked numbers together leave less than {LEFT:.0%} of the noise of one: none averages out",
        )
    worst = max(pairs, key=lambda pair: pairs[pair][0])
    size, left, whose = pairs[worst]
    said = (
        f"{worst} have a correlation of {size:.3f}, and both together leave {left:.0%} of the noise of {whose}"
        + (": two looks at one quantity" if size > 0.9 else ", though they are far from one quantity")
    )
    told = {pair: one[0] for pair, one in pairs.items() if one[0] > TOLD or pair == worst}
    return CheckFigure(size, said, worst, told, evidence.looked_at(sample))


def _averaged_pairs(
    data: Floats, noise: Floats, names: tuple[str, ...]
) -> dict[str, tuple[float, float, str]]:
    """Return the pairs of which one noise averages out: their correlation, what is left of that noise, and whose.

    In sds of the columns, and with z1 = x + e1 and z2 = x + d + e2, where the columns differ by d of variance 1 - r^2,
    the best unbiased combination of both leaves the variance 1 / (1' V^-1 1), V the covariance of e1 and d + e2.
    Of the smaller noise less must be left than of a value that is released twice, of the larger less than fails there.
    """
    found = dict[str, tuple[float, float, str]]()
    for i in range(len(names)):
        for j in range(i):
            r = float(data[i, j])
            small, large = ([i, j], [j, i]) if noise[i, i] <= noise[j, j] else ([j, i], [i, j])
            for pair, most in ((small, LEFT), (large, LEFT_OF_LARGER)):
                left = _noise_share_left(noise[np.ix_(pair, pair)], r)
                if left < most:
                    found[f"{names[i]}, {names[j]}"] = (abs(r), left, names[pair[0]])
                    break
    return found


def _noise_share_left(noise: Floats, r: float) -> float:
    """Return the share of the first column's noise, by its sd, that is left with the second."""
    own, cross = noise[0, 0], float(np.sign(r)) * noise[0, 1]
    other = noise[1, 1] + 1 - r**2
    size = own + other - 2 * cross
    if own <= 0 or size <= 0:
        return 1.0
    return float(np.sqrt(max(own * other - cross**2, 0.0) / (size * own)))


def _noise_in_sds(x: Floats, e: Floats) -> Floats:
    """Return the covariance of the noises, each column in sds of its values."""
    sds = np.sqrt(np.diag(covariance(x)))
    return covariance(e / np.where(sds > 0, sds, 1.0))


def _correlations(values: Floats) -> Floats:
    matrix = covariance(values)
    sds = np.sqrt(np.diag(matrix))
    scale = np.where(sds > 0, sds, 1.0)
    return np.asarray(np.clip(matrix / np.outer(scale, scale), -1.0, 1.0))
