"""How the named models are fitted three times, and which way the adjusted fit goes.

The original and the naive fit are ordinary ones (maximum likelihood, standard errors by the sandwich, White 1980), both
over the records that are complete in the columns of the model. The adjusted fit is over the same records: by the
moments of the noise for linear models (Fuller 1987), which is exact but for chance and takes no time, also where limits
cut off so little of the noise that it does not show; else by `fit`, with few draws; else by regression calibration
(Carroll and others 2006, chapter 4). Where there are too many records for `fit`, all three fits are of the same sample.
Called by `comparison` for the models of a plan.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..analysis.complete_records import without_ends
from ..analysis.corrections import Forecast, forecast, moment_correction, regression_calibration
from ..analysis.corrections.design_arrays import CorrectionRequest, arrays, read_formula
from ..analysis.corrections.glm import OrdinaryFit, family_of, fit_ordinary
from ..analysis.corrections.interval_forecast import no_forecast
from ..analysis.corrections.result import reported_estimates
from ..card import NoiseCard
from ..errors import BadInput, BadPlan, MaskwellError, NoLaw, raise_all
from ..laws import Additive
from ..laws.chain import combined_of
from ..masking import Release
from ..masking.results import Integers
from ..notes import Note, texts
from ..schema import OPEN
from ..table import Floats, Table
from .models import Model, ModelUtility, floats
from .pairs import TruthAndRelease

if TYPE_CHECKING:
    from ..analysis import Posterior
from collections.abc import Mapping

from ..laws import Normal, Outlet
from ..laws.noise import sds_and_correlations

FITTED = 1_500  # records of a sampled fit: some seconds
SIGMA = "sigma"  # no coefficient: its error depends on the tails
LOST = 1.2  # R-hat from which on chains of a fit tell nothing
UNEQUAL = 1.25  # times the error that trusts the model: beyond it records scatter unequally
MOST_CUT = 0.2  # share of values at a limit beyond which limits are never ignored
# Share at a limit times the noise's share of the variance: the attenuation is off by less than this
SLIGHT = 0.01
REFUSALS = (BadPlan, BadInput, NoLaw)
CHAINS, DRAWS, WARMUP = 2, 400, 200  # of an adjusted fit whose means and sds alone are read
LONGER = 5  # times as many draws where chains did not agree: what then does not is said not to be fitted


@dataclass(frozen=True, slots=True)
class ModelEstimates:
    """Estimates with their standard errors, and what was decided on the way."""

    names: tuple[str, ...]
    estimates: tuple[float, ...]
    errors: tuple[float, ...]
    records: int
    by: str = ""
    notes: tuple[Note, ...] = ()
    sample: Integers | None = field(default=None, repr=False)
    plain_errors: tuple[
        float, ...
    ] = ()  # of an ordinary fit, where the model is trusted: all records scatter alike
    trusts_model: bool = False  # draws from a posterior: its errors hold where all records scatter alike


def model_utilities(sides: TruthAndRelease, models: Sequence[Model], seed: int) -> tuple[ModelUtility, ...]:
    """Fit every model to the truth, to the release as it is, and adjusted."""
    return tuple(_utility(sides, model, seed) for model in models)


def forecasts(sides: TruthAndRelease, models: Sequence[Model], seed: int) -> tuple[Forecast, ...]:
    """Forecast by how much the noise of the card widens the intervals of every model."""
    return tuple(_forecast(sides, model, seed) for model in models)


def _forecast(sides: TruthAndRelease, model: Model, seed: int) -> Forecast:
    try:
        card = with_totals(sides.masking.card, _columns(model, sides.truth))
        return forecast(model.formula, sides.truth, card, family=model.family, seed=seed)
    except REFUSALS as refusal:
        return no_forecast(model.formula, model.family, refusal)


def check_models(models: Sequence[Model], table: Table) -> None:
    """Refuse models that name columns which the table does not have; all of them at once, before any work."""
    from ..analysis.formulas.column_uses import names_in
    from ..analysis.formulas.formula_tree import tree_of

    problems = []
    for model in models:
        try:
            missing = table.schema.missing_columns(sorted(set(names_in(tree_of(model.formula)))))
        except BadPlan as refusal:
            missing = list(refusal.problems)
        problems += [f"model {model.formula!r}: {problem}" for problem in missing]
    raise_all(problems, BadPlan)


def _utility(sides: TruthAndRelease, model: Model, seed: int) -> ModelUtility:
    tables = sides.truth, sides.released
    empty = ModelUtility(model.formula, model.family, at_most_wider=model.at_most_wider)
    try:
        original = _fit_table(model, tables[0], seed)
    except REFUSALS as refusal:
        why = _refusal_note("utility.no_true_fit", refusal)
        return replace(empty, refused=str(why), notes=(why,))
    refused, found = tuple[Note, ...](), None
    try:
        found = _fit_release(sides, model, seed)
        if found.sample is not None:
            tables = _both(sides, found.sample)
            original = _fit_table(model, tables[0], seed)
        found = _match_names(found, original)
        original = _comparable(original, found)
    except REFUSALS as refusal:
        refused = (_refusal_note("utility.no_adjusted_fit", refusal),)
    naive, notes = _naive(model, tables[1], original, seed)
    notes = [
        *original.notes,
        *notes,
        *(() if found is None else found.notes),
        *refused,
    ]
    filled = empty if naive is None else replace(empty, naive=naive.estimates, naive_errors=naive.errors)
    if found is not None and not refused:
        filled = replace(filled, adjusted=found.estimates, adjusted_errors=found.errors)
        filled = replace(filled, adjusted_by=found.by, adjusted_records=found.records)
    return replace(
        filled,
        names=original.names,
        original=original.estimates,
        original_errors=original.errors,
        records=original.records,
        refused="".join(texts(refused)),
        notes=tuple(dict.fromkeys(notes)),
    )


def _refusal_note(code: str, refusal: MaskwellError) -> Note:
    return Note(code, {"reasons": tuple(refusal.problems)})


def _comparable(original: ModelEstimates, found: ModelEstimates) -> ModelEstimates:
    """Return the original with errors of the kind that the adjusted fit has, and say where the two kinds differ."""
    if not found.trusts_model or not original.plain_errors:
        return original
    ratios = {
        name: robust / plain
        for name, robust, plain in zip(original.names, original.errors, original.plain_errors, strict=True)
        if plain > 0 and name != SIGMA
    }
    name = max(ratios, key=lambda one: ratios[one], default="")
    if not name or ratios[name] < UNEQUAL:
        return replace(original, errors=original.plain_errors)
    said = Note("utility.unequal_scatter", {"name": name, "times": ratios[name]})
    return replace(original, errors=original.plain_errors, notes=(*original.notes, said))


def _both(sides: TruthAndRelease, sample: Integers) -> tuple[Table, Table]:
    """Return the same sampled records of the truth and of the release."""
    rows = sample if isinstance(sides.rows, slice) else sides.rows[sample]
    return sides.truth.take(rows), sides.released.take(sample)


def _naive(
    model: Model, table: Table, original: ModelEstimates, seed: int
) -> tuple[ModelEstimates | None, list[Note]]:
    """Fit the released values as they are, or say why not."""
    try:
        return _match_names(_fit_table(model, table, seed), original), []
    except REFUSALS as refusal:
        return None, [_refusal_note("utility.no_naive_fit", refusal)]


def _match_names(found: ModelEstimates, original: ModelEstimates) -> ModelEstimates:
    """Put estimates in the order of the original's names; what the release has no coefficient of is not a number."""
    at = {name: i for i, name in enumerate(found.names)}
    if not set(at) & set(original.names):
        raise BadPlan(
            "the columns of the model were released in another form: its coefficients have no counterpart"
        )
    pick = [at.get(name) for name in original.names]
    nan = float("nan")
    return replace(
        found,
        names=original.names,
        estimates=tuple(nan if i is None else found.estimates[i] for i in pick),
        errors=tuple(nan if i is None else found.errors[i] for i in pick),
    )


def _fit_table(model: Model, table: Table, seed: int) -> ModelEstimates:
    """Fit a model to a table taken at its word; by draws where the family or its groups have no ordinary fit."""
    try:
        family = family_of(model.family)
        named = read_formula(model.formula, table)
    except BadPlan:
        records = _few(np.arange(len(table)), seed)
        return _fit_by_draws(model, Release(table.take(records), NoiseCard()), seed)
    asked = CorrectionRequest(model.formula, family)
    problem = arrays(named, asked, np.ones(len(table)), ())
    found = fit_ordinary(problem.data, family)
    names, estimates, covariance = reported_estimates(problem.names, found.estimates, found.joint, family)
    trusted = reported_estimates(
        problem.names, found.estimates, _model_based_covariance(found, len(problem)), family
    )[2]
    with np.errstate(invalid="ignore"):
        errors, plain = (floats(np.sqrt(np.diag(one))) for one in (covariance, trusted))
    return ModelEstimates(
        names, floats(estimates), errors, len(problem), "an ordinary fit", problem.notes, plain_errors=plain
    )


def _model_based_covariance(found: OrdinaryFit, records: int) -> Floats:
    """Return the covariance of coefficients and residual variance where records are normal and scatter alike."""
    joint = np.zeros_like(found.joint)
    p = len(found.coefficients)
    joint[:p, :p] = found.covariance
    joint[p:, p:] = 2 * found.variance**2 / records
    return joint


def _fit_release(sides: TruthAndRelease, model: Model, seed: int) -> ModelEstimates:
    """Fit a model to the release with its noise taken into account, the best way that does not take minutes."""
    columns, card = _columns(model, sides.released), sides.masking.card.public()
    records = _complete(sides, columns)
    table = sides.released.select(_present(sides, columns))
    whole = Release(without_ends(table.take(records), table, columns), card)
    try:
        return _by_moments(model, whole)
    except (BadPlan, NoLaw) as refusal:
        why = refusal
    if isinstance(why, NoLaw):
        raise why
    if _is_gaussian(model) and (found := _limits_ignored(model, whole, columns)) is not None:
        return found
    few = _few(np.arange(len(whole)), seed)
    try:
        found = _fit_by_draws(model, Release(whole.table.take(few), card), seed)
    except MaskwellError as refusal:
        return _calibrated_estimates(model, whole, refusal)
    if len(few) == len(whole):
        return found
    note = Note("utility.sampled_fit", {"count": len(few), "records": len(whole)})
    return replace(found, notes=(*found.notes, note), sample=records[few])


def _calibrated_estimates(model: Model, whole: Release, refusal: MaskwellError) -> ModelEstimates:
    """Fall back on regression calibration; where that is refused too, the first reason counts."""
    try:
        found = regression_calibration(model.formula, whole, family=model.family)
    except (BadPlan, BadInput, NoLaw):
        raise BadPlan(refusal.problems) from None
    return _of(found, Note("utility.calibration_instead", {"reason": refusal.problems[0]}))


def _by_moments(model: Model, whole: Release) -> ModelEstimates:
    if not _is_gaussian(model):
        raise BadPlan("moments correct linear models only")
    columns = _columns(model, whole.table)
    return _of(moment_correction(model.formula, replace(whole, card=with_totals(whole.card, columns))))


def _is_gaussian(model: Model) -> bool:
    return family_of(model.family).has_scale


def _of(found: Any, *notes: Note) -> ModelEstimates:
    return ModelEstimates(
        found.names, found.estimates, found.standard_errors, found.records, found.method, notes
    )


def _fit_by_draws(model: Model, release: Release, seed: int) -> ModelEstimates:
    """Fit by draws, few of them (the estimate's own error is then a twentieth of its sd), more where chains differ."""
    found = _fit(model, release, seed, 1)
    if _is_lost(found):
        found = _fit(model, release, seed, LONGER)
    if _is_lost(found):
        raise BadPlan(
            f"the chains of the adjusted fit did not agree after {LONGER * (DRAWS + WARMUP):,} draws each: less noise "
            "on its columns, or a simpler model"
        )
    rows = list(found.summary())
    notes = () if found.converged else (Note("utility.few_draws"),)
    return ModelEstimates(
        tuple(row.name for row in rows),
        tuple(float(row.estimate) for row in rows),
        tuple(float(row.sd) for row in rows),
        len(release),
        "fit",
        notes,
        trusts_model=True,
    )


def _fit(model: Model, release: Release, seed: int, times: int) -> Posterior:
    from ..analysis import fit

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: Posterior = fit(
            model.formula, release, family=model.family, naive=False, seed=seed, progress=False,
            chains=CHAINS, draws=times * DRAWS, warmup=times * WARMUP,
        )  # fmt: skip
    return found


def _is_lost(found: Posterior) -> bool:
    return float(np.nanmax(found.diagnostics.r_hat)) > LOST


def _columns(model: Model, table: Table) -> tuple[str, ...]:
    from ..analysis.formulas.column_uses import names_in
    from ..analysis.formulas.formula_tree import tree_of

    named = set(names_in(tree_of(model.formula)))
    return tuple(name for name in table.names if name in named)


def _present(sides: TruthAndRelease, columns: Sequence[str]) -> list[str]:
    """Return the columns of the model and those that the card ties to them by a law, a sum or an exchange."""
    wanted, card = set(columns), sides.masking.card
    wanted |= set(card.swapped.blocks) if card.swapped is not None else set()
    for law in card.laws:
        if wanted & set(law.columns):
            wanted |= set(law.columns)
    for total, parts in card.recomputed:
        wanted |= {name for name, _ in parts} if total in wanted else set()
    return [name for name in sides.released.names if name in wanted]


def _complete(sides: TruthAndRelease, columns: Sequence[str]) -> Integers:
    """Return the released records that the truth has open in all columns of a model.

    What became of them under noise does not matter, but those that carry another record's gap or code are left out.
    """
    swapped = sides.masking.card.swapped
    moved = () if swapped is None else swapped.columns
    is_open = np.ones(len(sides.released), bool)
    for name in columns:
        is_open &= sides.truth.status(name)[sides.rows] == OPEN
        if name in moved:
            is_open &= sides.released.status(name) == OPEN
    return np.flatnonzero(is_open)


def _few(records: Integers, seed: int) -> Integers:
    if len(records) <= FITTED:
        return records
    chosen = np.random.default_rng([seed, len(records)]).choice(len(records), FITTED, replace=False)
    return records[np.sort(chosen)]


def _limits_ignored(model: Model, whole: Release, columns: Sequence[str]) -> ModelEstimates | None:
    """Correct by moments as if no limit had cut the noise off, where that changes next to nothing."""
    laws, most, worst = [], 0.0, 0.0
    for law in map(combined_of, whole.card.laws):
        if isinstance(law, Additive) and set(law.columns) & set(columns):
            for j, name in enumerate(law.columns):
                if name in columns:
                    share, noise = _cut(law, j, whole.table)
                    most, worst = max(most, share), max(worst, share * noise)
            law = replace(law, outlets=tuple(replace(o, low=None, high=None) for o in law.outlets))
        laws.append(law)
    if not 0 < most < MOST_CUT or worst > SLIGHT:
        return None
    try:
        found = _by_moments(model, replace(whole, card=replace(whole.card, laws=tuple(laws))))
    except (BadPlan, NoLaw):
        return None
    note = Note("utility.limits_ignored", {"share": most})
    return replace(found, by=f"{found.by}, limits ignored", notes=(*found.notes, note))


def _cut(law: Additive, j: int, table: Table) -> tuple[float, float]:
    """Return the share of a column's values at a limit, and the noise's share of its variance."""
    values, outlet = table.floats(law.columns[j]), law.outlets[j]
    at = np.isin(values, [limit for limit in (outlet.low, outlet.high) if limit is not None])
    variance = float(np.nanvar(values))
    noise = float(law.noise.covariance[j, j]) / law.slope**2
    return float(at.mean()) if len(at) else 0.0, noise / variance if variance > 0 else 1.0


# A card on which recomputed totals have a law of their own: the noise of a sum is the sum of the noises.


def with_totals(card: NoiseCard, wanted: Sequence[str]) -> NoiseCard:
    """Return a card whose laws speak of the wanted totals too, where all their noised parts share one normal law."""
    laws, kept = [combined_of(law) for law in card.laws], list(card.recomputed)
    for total, parts in card.recomputed:
        if total not in wanted:
            continue
        noised = {name for law in laws for name in law.columns} & dict(parts).keys()
        at = [i for i, law in enumerate(laws) if noised and noised <= set(law.columns)]
        if at and (summed := _law_with_total(laws[at[0]], total, dict(parts))) is not None:
            laws[at[0]] = summed
            kept.remove((total, parts))
    return replace(card, laws=tuple(laws), recomputed=tuple(kept))


def _law_with_total(law: object, total: str, parts: Mapping[str, float]) -> Additive | None:
    """Return a law with one column more; nothing where limits, logs or a slope would make the sum another."""
    if not isinstance(law, Additive) or not isinstance(law.noise, Normal) or any(law.spreads):
        return None
    if law.slope != 1.0 or law.categories or any(outlet.log_shift is not None for outlet in law.outlets):
        return None
    turn = np.vstack([np.eye(len(law.columns)), [parts.get(name, 0.0) for name in law.columns]])
    sds, correlations = sds_and_correlations(turn @ law.noise.covariance @ turn.T)
    offsets = turn @ np.array(law.offsets or (0.0,) * len(law.columns))
    return replace(
        law,
        columns=(*law.columns, total),
        noise=Normal(tuple(map(float, sds)), tuple(tuple(map(float, row)) for row in correlations)),
        outlets=(*law.outlets, Outlet()),
        offsets=tuple(map(float, offsets)) if law.offsets else (),
        spreads=(),
    )
