"""What fits, corrections and forecasts say beside their figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..notes import Wording
from .phrases import count_phrase, name_list, quoted_list, share_phrase

UNCONVERGED = "the chains have not converged: "


def _separation(*, names: Sequence[str], counts: bool) -> str:
    what = "zeros from other counts" if counts else "responses"
    if not names:
        who = "columns of the model together separate"
    else:
        who = f"{names[0]} separates" if len(names) == 1 else f"{name_list(names)} together separate"
    one = len(names) == 1
    rest = "its coefficient rests on its prior" if one else "their coefficients rest on their priors"
    return f"{who} the {what} (no overlap, as released): {rest}"


def _prior(*, names: Sequence[str]) -> str:
    rest = "rests on its prior" if len(names) == 1 else "rest on their priors"
    return f"{name_list(names)} {rest}: the released records hardly say anything of it"


def _single_groups(*, factor: str, single: int, groups: int) -> str:
    has, tells = ("has", "it tells") if single == 1 else ("have", "they tell")
    return (
        f"{single:,} of {groups:,} groups of {factor} {has} one record: {tells} little about "
        "differences between groups"
    )


def _unanswered_records(*, count: int) -> str:
    who = (
        "1 record without a response informs"
        if count == 1
        else f"{count:,} records without a response inform"
    )
    return f"{who} the covariate model alone"


def _unknown_values(*, name: str, missing: int, coded: int, records: int) -> str:
    said = [
        f"{count:,} {what} value{'s' if count > 1 else ''} ({share_phrase(count / records)})"
        for what, count in (("missing", missing), ("coded", coded))
        if count
    ]
    verb = "is" if missing + coded == 1 else "are"
    return f"{name}: {' and '.join(said)} {verb} drawn with the rest"


def _clear_swaps(*, columns: Sequence[str], share: float) -> str:
    return (
        f"the values of {quoted_list(columns)} were exchanged in a share of {share:.2g} of the records and carry no "
        "noise; they are taken as released"
    )


def _coded_by_noise(*, columns: Sequence[str]) -> str:
    return (
        f"noise decided which records are coded in {quoted_list(columns)}, so that leaving them out selects by noise "
        "and biases the answer; missing='draw' takes them in"
    )


def _response_order(*, name: str, levels: Sequence[str]) -> str:
    return f"{name} is taken in the order {', '.join(levels)}"


def _short_chains(*, draws: int) -> str:
    return f"the chains are too short to be judged, with {count_phrase(draws, 'draw')} each: take 1,000"


def _stillness(*, name: str, others: int) -> str:
    return (
        f"{name} did not move{_other_failures(others)}; use no figure of this fit, and look for "
        "a column that the others determine or a response that they predict without error"
    )


def _other_failures(count: int) -> str:
    if not count:
        return ""
    return " (another parameter fails too)" if count == 1 else f" ({count:,} other parameters fail too)"


def _longer_chains(now: int, enough: int, faster: str) -> str:
    longer = f"take {enough:,} draws in place of {now:,} for each chain"
    return f"take sampler='auto' ({faster!r} holds here), or {longer}" if faster else longer


def _disagreement(harm: str) -> Callable[..., str]:
    """Return the words for chains that differ, with the harm that this does."""

    def words(
        *, name: str, r_hat: float, most: float, ess: float, others: int, draws: int, enough: int, faster: str
    ) -> str:
        effective = count_phrase(round(ess), "effective draw")
        return (
            f"R-hat of {name} is {figure_above(r_hat, most)} where {most:g} is the most, with {effective}"
            f"{_other_failures(others)}; {harm} {_longer_chains(draws, enough, faster)}"
        )

    return words


def _few_effective(
    *, name: str, ess: float, least: float, others: int, draws: int, enough: int, faster: str
) -> str:
    return (
        f"the chains are too short: {name} has {count_phrase(round(ess), 'effective draw')} where {least:,.0f} are "
        f"needed{_other_failures(others)}; the ends of intervals are rough, so {_longer_chains(draws, enough, faster)}"
    )


def figure_above(value: float, limit: float) -> str:
    """Write a figure with as many digits as show that it is above a limit."""
    return next((text for k in (3, 4, 5) if float(text := f"{value:.{k}f}") > limit), f"just over {limit:g}")


# What is wrong with chains that do not agree, to stand below a mark that says so
FAILURES: Mapping[str, Callable[..., str]] = {
    "analysis.stillness": _stillness,
    "analysis.disagreement": _disagreement("use no figure of this fit, and"),
    "analysis.rough_agreement": _disagreement("its figures are rough, so"),
    "analysis.near_agreement": _disagreement("that is little, and the figures can be used; to be sure"),
}


def _convergence_failure(code: str) -> Callable[..., str]:
    """Return the words of a failure as a sentence of its own."""
    return lambda **figures: UNCONVERGED + FAILURES[code](**figures)


def _simulation(*, replicates: int, amounts: int, curve: str) -> str:
    return f"{replicates} replicates at each of {amounts} amounts of added noise, {curve} curve back to none"


MORE_THAN_MOMENTS = "; fit(...) uses more than moments here and may do a little better"


def _method_by(how: str) -> Callable[..., str]:
    """Return the words of a forecast by moments."""
    return lambda *, fit_uses_more: f"{how}{MORE_THAN_MOMENTS if fit_uses_more else ''}"


def _subsample(*, share: float) -> str:
    return f"of which a subsample of {share:.0%} of the records alone makes {share**-0.5 - 1:.0%}"


WORDS: dict[str, Wording] = {
    # The model and its records
    "analysis.records_left_out": Wording(
        "{count:,} records are left out, because a value in them is missing or coded",
        "info",
        '`missing="drop"` left records out',
    ),
    "analysis.coded_by_noise": Wording(
        _coded_by_noise, "caution", "records are left out by codes that stand for noised values"
    ),
    "analysis.response_order": Wording(_response_order, "info", "the response is an ordered category"),
    "analysis.response_levels": Wording(
        "{one} of {name} counts as 1, {zero} as 0", "info", "the response is a category of two levels"
    ),
    "analysis.separation": Wording(
        "{name} separates the responses (no overlap, as released): its coefficient rests on its prior",
        "caution",
        "a column alone splits the responses without overlap",
    ),
    "analysis.joint_separation": Wording(
        _separation, "caution", "a combination of columns splits the responses without overlap"
    ),
    "analysis.single_groups": Wording(_single_groups, "info", "some groups have one record"),
    "analysis.few_groups": Wording(
        "{factor} has {groups} groups: the sd of their effects rests on its prior",
        "caution",
        "a set of group effects has fewer than five groups",
    ),
    "analysis.unanswered_records": Wording(_unanswered_records, "info", "some records miss the response"),
    "analysis.unknown_values": Wording(
        _unknown_values, "info", "some values of a column are missing or coded, and drawn"
    ),
    "analysis.true_counts": Wording(
        "{name}: true counts, whole numbers from 0 on, are drawn with the rest",
        "info",
        "the response is a count with noise",
    ),
    # The noise
    "analysis.weak_signal": Wording(
        "{name}: the noise is larger than the signal (about {reliability:.0%} of the released variance is true): "
        "what depends on it is weakly identified and leans on the priors",
        "caution",
        "less than half of a column's released variance is true",
    ),
    "analysis.values_at_limits": Wording(
        "{share:.0%} of the values of {name!r} were held at the limits of their noise: what lies behind them "
        "is taken from the tails of a normal law, so that the answer rests on it where the column is skewed",
        "caution",
        "more than 5% of a column's values stand at a limit of their noise",
    ),
    "analysis.swapped_values": Wording(
        "what swapped records carry is taken to be normal, as fitted to the released values of the block (of the file "
        "where a block has fewer than {least} records)",
        "info",
        "some noised values were exchanged between records",
    ),
    "analysis.clear_swaps": Wording(
        _clear_swaps, "caution", "values without noise were exchanged between records"
    ),
    "analysis.small_seed": Wording(
        "the noise of this release comes from a small seed: for studies",
        "caution",
        "the card says that the noise was drawn by a small seed",
    ),
    # The posterior
    "analysis.prior": Wording(
        _prior, "caution", "draws of coefficients spread nearly as widely as their priors"
    ),
    "analysis.unadjusted_unconverged": Wording(
        "the unadjusted fit beside has not converged: compare with care",
        "caution",
        "the chains of the unadjusted fit fail the limits of R-hat or effective draws",
    ),
    "analysis.short_chains": Wording(
        _short_chains, "failure", "the chains are too short for R-hat to be computed"
    ),
    "analysis.stillness": Wording(
        _convergence_failure("analysis.stillness"), "failure", "a parameter has one value in a whole chain"
    ),
    "analysis.disagreement": Wording(
        _convergence_failure("analysis.disagreement"), "failure", "an R-hat is 1.05 or more"
    ),
    "analysis.rough_agreement": Wording(
        _convergence_failure("analysis.rough_agreement"), "caution", "an R-hat is above 1.01 but below 1.05"
    ),
    "analysis.near_agreement": Wording(
        _convergence_failure("analysis.near_agreement"),
        "caution",
        "an R-hat is above 1.01 but below 1.015, and effective draws are enough",
    ),
    "analysis.few_effective_draws": Wording(
        _few_effective, "caution", "the chains agree, but have fewer than 400 effective draws of a parameter"
    ),
    # Corrections
    "analysis.incomplete_records": Wording(
        "{count:,} records with missing values were left out: right if they are missing by chance",
        "info",
        "a correction left out records with missing values",
    ),
    "analysis.weighted_records": Wording(
        "weighted by {column}; standard errors take records as drawn independently",
        "info",
        "a correction is weighted",
    ),
    "analysis.moment_errors": Wording(
        "standard errors by the sandwich of the corrected normal equations", "info", "moment correction"
    ),
    "analysis.noise_by_value": Wording(
        "noise that grows with the value is estimated for each record from its released value",
        "info",
        "moment correction of noise that depends on the value",
    ),
    "analysis.calibration_errors": Wording(
        "standard errors by the sandwich of calibration and model together", "info", "regression calibration"
    ),
    "analysis.approximate_family": Wording(
        "an approximation for {family} models: check it against fit(...)",
        "caution",
        "regression calibration of a model that is not gaussian",
    ),
    "analysis.approximate_interactions": Wording(
        "an approximation where noised columns interact with others: moment_correction is none",
        "caution",
        "regression calibration with interactions of noised columns",
    ),
    "analysis.simulation": Wording(_simulation, "info", "SIMEX: what was simulated"),
    "analysis.simulation_bias": Wording(
        "an approximation that corrects too little where the noise is large: check it against fit(...)",
        "caution",
        "SIMEX",
    ),
    "analysis.simulation_errors": Wording(
        "standard errors by the simulation jackknife of Stefanski and Cook", "info", "SIMEX: standard errors"
    ),
    "analysis.simulation_variance": Wording(
        "a variance came out below 0 at no noise: its standard error cannot be told; use more replicates",
        "caution",
        "SIMEX: the curve of a variance ends below 0",
    ),
    "analysis.residual_variance": Wording(
        "the residual variance is not above 0 once that of the noise is taken out: the noise is larger than the "
        "residuals, and sigma cannot be told from these moments",
        "caution",
        "a corrected residual variance is not positive",
    ),
    # Forecasts
    "analysis.no_forecast": Wording(
        "{reason}",
        "caution",
        "the widening of a model's intervals cannot be forecast; the reason of the refusal",
    ),
    "analysis.subsample_widening": Wording(_subsample, "info", "a forecast for a release of a subsample"),
    "analysis.forecast_asymptotic": Wording(
        _method_by("by the asymptotic covariance of the moment-corrected estimate"),
        "info",
        "how a forecast was made: in closed form",
    ),
    "analysis.forecast_by_noise_draws": Wording(
        _method_by("by the covariance of the moment-corrected estimate over drawn noise"),
        "info",
        "how a forecast was made: by moments over drawn noise",
    ),
    "analysis.forecast_by_simulation": Wording(
        "by the information of simulated released records, noised numbers normal given the rest: "
        "figures are right to about {error:.0%}",
        "info",
        "how a forecast was made: by simulated releases",
    ),
    "analysis.forecast_without_noise": Wording(
        "no noise", "info", "how a forecast was made: no column of the model carries noise"
    ),
}
