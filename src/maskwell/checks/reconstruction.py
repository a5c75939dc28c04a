"""Checks of what is left of the noise: best estimates, sums over groups, joins with earlier releases.

Best estimate: error left of S - S (S + V)^-1 S, the linear Bayes estimate (Anderson 2003, section 2.5). Group sums:
mean of (sum of noise)^2 / sum of its squares, 1 for independent noise. Joined releases: 1 / (1' V^-1 1) of all against
the best alone (generalised least squares, Aitken 1936). Called by `noise_checks`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..laws import Additive, SkewedBias
from ..masking import Masking
from ..schema import OPEN
from ..table import Floats
from .evidence import Evidence
from .findings import PASS
from .protocol import CheckFigure
from .quantile_residuals.cells import score_column
from .residuals import FEWEST, NOTHING
from .scales import (
    column_on_scale,
    covariance,
    errors,
    expected_release,
    is_of_whole_file,
    law_of,
    noised_columns,
)

Integers = npt.NDArray[np.int64]

NULL = 1e-8  # of the largest eigenvalue of the data's correlations: below it columns determine one another
MOST_GROUPS = 0.7  # of the records: groups of one record each say nothing
ACCIDENT = 1e-4  # probability, over all sums of an audit together, below which one is taken for no accident


def best_estimate(evidence: Evidence) -> CheckFigure:
    """Measure the error of the linear Bayes estimate of the true values, over their sd: worst column and direction.

    With data of covariance S and noise of covariance V the estimate E(x | z) leaves S - S (S + V)^-1 S. Along the
    directions that S and S + V share, the share left is 1 minus the eigenvalues of S in units of S + V. It judges the
    law, which residuals take for granted.
    """
    sample = evidence.sample(purpose=(7,))
    names = tuple(name for name in noised_columns(evidence) if _varies(evidence.true(name)[sample]))
    if not names or evidence.records < FEWEST + 10 * len(names):
        return CheckFigure(
            NOTHING, "there is no noised number, or too few records to estimate its covariance"
        )
    x, e = errors(evidence, names, sample)
    left, direction, along = _left_by_estimate(covariance(x), covariance(e))
    figures = dict(zip(names, left.tolist(), strict=True))
    worst = min(figures, key=lambda name: figures[name])
    share = figures[worst]
    said = (
        f"the best linear estimate of {worst} from all released numbers is off by {share:.0%} of its sd, and that of "
        f"the best known combination of columns by {direction:.0%}"
    )
    figures["best direction"] = direction
    weights = ", ".join(
        names[i] for i in np.argsort(-np.abs(along), kind="stable")[:3] if abs(along[i]) > 0.3
    )
    where = worst if share <= direction * (1 + 1e-6) else f"combination of {weights}"
    return CheckFigure(min(share, direction), said, where, figures, evidence.looked_at(sample))


def _varies(values: Floats) -> bool:
    known = values[~np.isnan(values)]
    return len(known) > 1 and bool(known.min() < known.max())


def _left_by_estimate(data: Floats, noise: Floats) -> tuple[Floats, float, Floats]:
    """Return the error left over the sd of each column and of the best-known direction, and that direction."""
    from scipy.linalg import eigh

    sds = np.sqrt(np.diag(data))
    data, noise = data / np.outer(sds, sds), noise / np.outer(sds, sds)
    eigenvalues, vectors = np.linalg.eigh(data)
    turn = vectors[:, eigenvalues > NULL * eigenvalues[-1]]
    inside, both = turn.T @ data @ turn, turn.T @ (data + noise) @ turn
    error = inside - inside @ np.linalg.solve(both, inside)
    columns = np.clip(np.diag(turn @ error @ turn.T), 0.0, None)
    shares, axes = eigh(inside, both)
    along = data @ turn @ axes[:, -1]
    return np.sqrt(columns), float(np.sqrt(max(0.0, 1 - shares[-1]))), along / np.abs(along).max()


def group_sums(evidence: Evidence) -> CheckFigure:
    """Measure the noise in sums over groups, over what independent noise would leave there; folded: 1 is best.

    Columns whose values were exchanged over the whole file keep its sums by design and are passed over. Of many sums
    some lie far out by chance: only those count that would be no accident among so many (Bonferroni's bound). Sums are
    held against the true ones, residuals against the law's: noise on the log scale whose mean is not corrected is sound
    by its card and shifts every total. Cells of more than two blocks are added up here alone. Noise that multiplies
    with a corrected mean is skewed, and its sums are never normal: they are added up as normal scores instead.
    """
    columns = noised_columns(evidence)
    names = [name for name in columns if not is_of_whole_file(evidence, name)]
    found: dict[str, tuple[float, float]] = {}
    for label, member in _groupings(evidence):
        for name in names:
            one = _noise_ratio(evidence, name, member)
            found |= {} if one is None else {f"{name} by {label}": one}
    ratios = {pair: ratio for pair, (ratio, _) in found.items()}
    folded = {
        pair: min(ratio, 1 / max(ratio, 1e-12)) if chance * len(found) < ACCIDENT else 1.0
        for pair, (ratio, chance) in found.items()
    }
    if not ratios:
        return CheckFigure(NOTHING, "there is no noised number with groups of records to add it up over")
    worst = min(folded, key=lambda pair: folded[pair])
    sure = folded[worst] < 1
    said = (
        f"sums of {worst} carry {ratios[worst]:.3g} times the noise variance that independent noise gives: "
        + ("members give the last one away" if ratios[worst] < 1 else "the noise shifts totals")
        if sure
        else f"sums over {len(ratios)} combinations of column and grouping carry the noise that independent noise gives"
    )
    return CheckFigure(folded[worst], said, worst if sure else "", ratios, verdict=None if sure else PASS)


def _groupings(evidence: Evidence) -> Iterator[tuple[str, Integers]]:
    """Return the whole file, each clear category and group column, and the cells of all block columns together."""
    from functools import reduce

    yield "the whole file", np.zeros(evidence.records, np.int64)
    schema, members = evidence.masking.masked.schema, dict[str, Integers]()
    for name in evidence.clear:
        column = schema[name]
        if evidence.masking.masked.has_classes(name) or column.roles & {"block", "group"}:
            array = evidence.masking.masked.array(name)
            codes = np.asarray(array.dictionary_encode().indices.fill_null(-1))[evidence.rows]
            members[name] = codes.astype(np.int64)
    yield from members.items()
    blocks = [members[name] for name in members if "block" in schema[name].roles]
    if len(blocks) > 1:
        together = reduce(lambda a, b: a * (int(b.max()) + 2) + b + 1, blocks)
        yield "all blocks", np.unique(together, return_inverse=True)[1].ravel()


def _noise_ratio(evidence: Evidence, name: str, member: Integers) -> tuple[float, float] | None:
    """Return what sums of a column's noise carry, and how probably chance leads so far away.

    A factor exp(s g - s^2 / 2) keeps every mean, but with s = 3 nearly all of its draws lie far below 1 and the sums of
    any file with them: too much noise in sums counts only where the scores by the law have too much of it as well. Too
    little does as it stands, for what sums to zero does so on this scale.
    """
    step = evidence.masking.masked.schema[name].step
    noise = evidence.noised(name) - expected_release(evidence, name)
    plain = _sum_ratio(noise, member, 0.0 if step is None else float(step))
    if plain is None or plain[0] <= 1 or not _is_skewed(evidence, name):
        return plain
    scores = evidence.lately(f"scores {name}", lambda: score_column(evidence, name).scores)
    by_law = None if scores is None else _sum_ratio(scores[evidence.rows], member, 0.0)
    return plain if by_law is None else by_law


def _is_skewed(evidence: Evidence, name: str) -> bool:
    """Whether the law of a column multiplies, and keeps means all the same."""
    law = law_of(evidence, name)
    if isinstance(law, Additive):
        return law.mean_corrected and law.outlets[0].log_shift is not None
    return isinstance(law, SkewedBias)


def _sum_ratio(noise: Floats, member: Integers, step: float) -> tuple[float, float] | None:
    """Return the mean of (sum of noise)^2 / (sum of squares) over groups, 1 in expectation, and how probable it is
    that chance alone leads so far away.

    Squares of the noise itself stand for its variance, so that it need not be the same for all records. Sums of
    values on a unit (`step`) are zero now and then: all that is known of such a sum is that it lies within half a step.
    """
    from scipy.special import chdtr, chdtrc

    known = ~np.isnan(noise) & (member >= 0)
    if known.sum() < FEWEST:
        return None
    sums = np.bincount(member[known], noise[known])
    squares = np.bincount(member[known], noise[known] ** 2)
    counts = np.bincount(member[known])
    told = (counts > 1) & (squares > 0)
    groups = int(told.sum())
    if not groups or groups > MOST_GROUPS * known.sum():
        return None
    ratio = float((sums[told] ** 2 / squares[told]).mean())
    most = float(((np.abs(sums[told]) + step / 2) ** 2 / squares[told]).mean())
    tail = min(chdtr(groups, groups * most), chdtrc(groups, groups * ratio))
    return ratio, min(1.0, 2 * float(tail))


def earlier_release(evidence: Evidence) -> CheckFigure:
    """Measure the error left when a release is joined with earlier ones of the same records, over the best alone.

    Residuals given the earlier release are tested where it is nested; of two that are not, each alone is sound.
    """
    if not evidence.earlier:
        return CheckFigure(NOTHING, "no earlier release of these records was given")
    left: dict[str, float] = {}
    joined = [(Evidence(one), _earlier_places(evidence, one)) for one in evidence.earlier]
    for name in noised_columns(evidence):
        found = [_earlier_error(evidence, known, where, name) for known, where in joined]
        others = [error for error in found if error is not None]
        if others:
            left[name] = _left_joined(np.column_stack([column_on_scale(evidence, name).error, *others]))
    left = {name: value for name, value in left.items() if value == value}
    if not left:
        return CheckFigure(NOTHING, "no record and column can be paired with the earlier releases by id")
    worst = min(left, key=lambda name: left[name])
    count = len(evidence.earlier)
    said = (
        f"joined with {count} earlier release{'s' if count > 1 else ''}, {left[worst]:.0%} of the error of {worst} is "
        "left that the best of the releases has alone"
    )
    return CheckFigure(left[worst], said, worst, left)


def _earlier_places(evidence: Evidence, earlier: Masking) -> Integers:
    """Return where each record stands in the earlier truth, -1 where it does not; records without ids by number."""
    import pyarrow.compute as pc

    ids, before = evidence.masking.truth.ids, earlier.truth.ids
    if ids is None or before is None:
        same = len(earlier.truth) == len(evidence.masking.truth)
        return evidence.rows if same else np.full(evidence.records, -1)
    found: Any = pc.index_in(ids, value_set=before).fill_null(-1)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)[evidence.rows]


def _earlier_error(evidence: Evidence, known: Evidence, where: Integers, name: str) -> Floats | None:
    """Return the error that an earlier release had in a column, NaN where the value was another or not there.

    Errors of another scale (logarithms then, not now) are put on the present one by what they do to the value.
    """
    earlier, is_log = known.masking, column_on_scale(evidence, name).is_log
    schema = earlier.masked.schema
    if name not in schema or schema[name].drop or not schema[name].is_number or not known.records:
        return None
    at = np.searchsorted(known.rows, where).clip(0, known.records - 1)
    here = (where >= 0) & (known.rows[at] == where) & (known.true(name)[at] == evidence.true(name))
    if name not in noised_columns(known):
        shown = earlier.masked.status(name)[known.rows[at]] == OPEN
        return np.where(here & shown, 0.0, np.nan)  # in clear then: nothing hides it now
    then = column_on_scale(known, name)
    error = then.error[at]
    if then.is_log and not is_log:
        error = (known.noised(name) - known.true(name))[at]
    elif is_log and not then.is_log:
        with np.errstate(divide="ignore", invalid="ignore"):
            error = error / known.true(name)[at]
    return np.where(here & np.isfinite(error), error, np.nan)


def _left_joined(noises: Floats) -> float:
    """Return the sd of the best unbiased combination of several releases over that of the best of them alone."""
    inside = noises[~np.isnan(noises).any(axis=1)]
    if len(inside) < FEWEST * noises.shape[1]:
        return NOTHING
    v = inside.T @ inside / len(inside)
    least = float(np.diag(v).min())
    if np.diag(v).max() == 0:
        return NOTHING
    if least <= 1e-12 * np.diag(v).max():
        return 0.0
    ones = np.ones(len(v))  # the slight ridge lets a combination without any noise come out as one
    combined = 1 / float(ones @ np.linalg.solve(v / least + 1e-9 * np.eye(len(v)), ones))
    return float(np.sqrt(min(1.0, combined)))
