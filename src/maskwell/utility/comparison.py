"""compare(): what a release still tells, figure by figure, beside the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..attacks.class_codes import in_groups
from ..calibration.losses import il1s
from ..errors import BadPlan
from ..masking import Masking
from ..notes import Note
from ..schema import OPEN
from .associations import associations
from .columns import column_utilities
from .correction import ColumnCorrection, corrected_correlations, undoings
from .domains import domain_means
from .models import Model
from .moments import pairwise_moments
from .pairs import TruthAndRelease
from .propensity import propensity
from .regressions import check_models, forecasts, model_utilities
from .results import ColumnUtility, CorrelationUtility, Utility
from .verdicts import judge_comparison


def compare(
    masking: Masking,
    *,
    models: Sequence[str | Model | Mapping[str, Any]] | str | Model = (),
    groups: Sequence[str] | None = None,
    seed: int = 0,
) -> Utility:
    """Compare a release with the truth it was made of: distributions, correlations, means by category and more.

    `models` are formulas, or `Model`s with a family and a limit on how much wider their intervals may be; `groups`
    names the columns whose levels are sub-domains (else the schema's groups, else its blocks). Figures are weighted by
    the schema's weight column, models are not. The seed decides which records a model sees where it cannot see all.
    """
    if not isinstance(masking, Masking):
        raise BadPlan(f"compare needs a masking, not a {type(masking).__name__}: apply(mask, table)")
    named = [models] if isinstance(models, str | Model) else models
    chosen = tuple(Model.of(model) for model in named)
    sides = TruthAndRelease(masking)
    if not sides.columns:
        raise BadPlan("no column that leaves is a number or a category: there is nothing to compare")
    check_models(chosen, sides.truth)
    in_released_groups = TruthAndRelease(
        in_groups(masking)
    )  # models of the original have the classes that analysts get
    known = undoings(sides)
    domains = domain_means(sides, groups)
    lost, why = _il1s_or_reason(masking)
    columns = column_utilities(sides, known)
    found = Utility(
        records=len(sides.truth),
        released=len(sides.released),
        weighted=sides.weights is not None,
        columns=columns,
        correlations=_correlations(sides, known),
        groups=domains.groups,
        group_count=domains.count,
        group_overlap=domains.overlap,
        group_poor=domains.poor,
        il1s=lost,
        propensity=propensity(sides, seed),
        models=model_utilities(in_released_groups, chosen, seed),
        forecasts=forecasts(in_released_groups, chosen, seed),
        judgements=(),
        notes=(*domains.notes, *why, *_notes(sides), *_reservations(columns)),
        associations=associations(sides),
    )
    return judge_comparison(found)


def _reservations(columns: Sequence[ColumnUtility]) -> list[Note]:
    """Return what the corrected figures of numbers are to be read with."""
    return [note for column in columns if column.is_number for note in column.notes]


def _il1s_or_reason(masking: Masking) -> tuple[float, tuple[Note, ...]]:
    """Return Yancey's IL1s, or why there is none."""
    try:
        return il1s(masking), ()
    except BadPlan:
        return float("nan"), (Note("utility.no_il1s"),)


def _correlations(sides: TruthAndRelease, known: dict[str, ColumnCorrection]) -> CorrelationUtility:
    """Return the correlations of the numbers, as they were, as released and as corrected."""
    names = sides.numbers
    centres = np.array([_centre(sides, name) for name in names])
    before = pairwise_moments(names, sides.before, sides.weights, centres)
    same = not sides.touched & set(names) and not sides.subsampled
    after = before if same else pairwise_moments(names, sides.after, sides.weights_after, centres)
    corrected = corrected_correlations(sides, known, after, names)
    matrices = before.correlations, after.correlations, corrected.correlations
    pairs = after.records[np.triu_indices(len(names), 1)]
    return CorrelationUtility(
        names, *matrices, int(pairs[pairs > 1].min(initial=len(sides.truth))), corrected.notes
    )


def _centre(sides: TruthAndRelease, name: str) -> float:
    values = sides.before(name)
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else 0.0


def _notes(sides: TruthAndRelease) -> list[Note]:
    """Say what a reader must know of the comparison itself."""
    found = []
    if sides.subsampled:
        found.append(Note("utility.subsample"))
    swapped = sides.masking.card.swapped
    if swapped is not None and swapped.share > 0:
        found.append(Note("utility.exchanged_values", {"share": swapped.share}))
    closed = tuple(column.name for column in sides.columns if _closes(sides, column.name))
    if closed:
        found.append(Note("utility.closed_values", {"columns": closed}))
    if sides.weights is not None:
        found.append(Note("utility.weights"))
    return found


def _closes(sides: TruthAndRelease, name: str) -> bool:
    """Whether the release closes values of a column that the truth has open."""
    after = sides.masked.closed.get(name)
    if after is None or name not in sides.touched:
        return False
    return bool(((after != OPEN) & (sides.truth.status(name) == OPEN)).any())
