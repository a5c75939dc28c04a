"""What searches of noise, curves of agreement and expected risks say beside their figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict

from ..notes import Wording
from .phrases import percent_phrase


class EstimateFigures(TypedDict):
    """A judged figure over draws: its name, mean and standard error, and of a mean h Pr(h = 0)."""

    measure: str
    mean: float
    se: float
    is_share: bool
    at_zero: float | None


def measured_figure(figure: float, is_share: bool) -> str:
    """Write a judged figure: a share in percent."""
    return f"{figure:.2%}" if is_share else f"{figure:.4g}"


def measured_error(se: float, is_share: bool) -> str:
    """Write the standard error of a judged figure."""
    return f"{se:.2%}" if is_share else f"{se:.2g}"


def estimate_phrase(found: EstimateFigures) -> str:
    """Write a judged figure with its standard error; a mean h never without Pr(h = 0)."""
    se, is_share = found["se"], found["is_share"]
    error = f"± {measured_error(se, is_share)}" if se else "in every draw"
    shown = f"{measured_figure(found['mean'], is_share)} {error}"
    return shown if found["at_zero"] is None else f"{shown}, with Pr(h = 0) = {found['at_zero']:.2%}"


def widening_phrase(coefficient: str, wider: float | None) -> str:
    """Write by how much the interval of a coefficient widens; without end where there is no figure."""
    return f"{coefficient} is lost" if wider is None else f"{coefficient} wider by {wider:.1%}"


def least_phrase(kind: str, least: float | None) -> str:
    """Write the least figure that a floor allows; none where no link can be wrong."""
    return "no link to be wrong" if least is None else f"no {kind} below {least:.4g}"


def _floor(*, floor: float, kind: str, least: float | None) -> str:
    return (
        f"judged by the given attacks alone: whoever looks at all that leaves unmasked finds {floor:.2%} of the "
        f"records judged whatever the noise, which allows {least_phrase(kind, least)}"
    )


def _out_of_reach(ending: str) -> Callable[..., str]:
    """Return the words of a tolerance that no scale meets, with what may help."""
    return lambda *, factor: f"no scale up to {factor:.4g} times the given one meets the tolerance{ending}"


def _raised_scale(*, times: int, share: float) -> str:
    first = "the scale that the search found was not confirmed on fresh draws"
    if times == 1:
        return f"{first}: raised by {share:.0%}, and confirmed on others"
    return f"{first}: raised {times} times, by {share:.0%} first and more each time, and confirmed on others"


def _rising_risk(*, means: Sequence[float], factors: Sequence[float], is_share: bool, scales: int) -> str:
    shown = [
        f"{measured_figure(mean, is_share)} at {factor:.3g}"
        for mean, factor in zip(means, factors, strict=True)
    ]
    return (
        f"the risk does not fall throughout as the scale grows ({shown[0]} times the given scale, {shown[1]}): "
        f"searched by a grid of {scales} scales for the weakest from which on all larger ones meet the tolerance"
    )


def _bounded_noise(
    *,
    factor: float,
    formula: str,
    coefficient: str,
    wider: float | None,
    less: Sequence[str],
    more: Sequence[str],
) -> str:
    said = (
        f"one scale for all, {factor:.3g} times the given one, meets the tolerance as well, but leaves "
        f"{widening_phrase(coefficient, wider)} in {formula}: less noise in {', '.join(less)}"
    )
    return f"{said}, more in {', '.join(more)}" if more else said


def _trade_off(
    *,
    formula: str,
    coefficient: str,
    wider: float | None,
    at_most: float,
    at_bounds: EstimateFigures | None,
    times: float,
    others: Sequence[str],
) -> str:
    asked = (
        f"at the risk tolerance the least widening found is {widening_phrase(coefficient, wider)} in {formula} "
        f"(at most {percent_phrase(at_most)} was asked)"
    )
    if at_bounds is None:
        left = "no noise that the plan allows keeps the bounds"
    else:
        left = (
            f"the noise that the bounds allow leaves a {at_bounds['measure']} of {estimate_phrase(at_bounds)}"
        )
    both = f"no noise was found that meets both: {asked}; {left}"
    most = f"with {times:.0f} times the sd of one scale for all in {', '.join(others)}, which no bound names"
    return f"{both}, {most}" if others else both


def _unmasked_fields(*, columns: Sequence[str]) -> str:
    return f"not masked, so that the true record always agrees on them: {', '.join(columns)}"


def _least_size(*, sd_ratio: float, units: bool) -> str:
    why = " (less would be lost in the units of the columns)" if units else ""
    return f"the least noise that was tried is enough: c = {sd_ratio:g}{why}"


SEARCH: Mapping[str, Wording] = {
    "calibration.floor": Wording(
        _floor, "caution", "more records are unique without their masked values than the tolerance allows"
    ),
    "calibration.idle_intruder": Wording(
        "{name} took no part: {reason}", "caution", "an intruder cannot attack such a release; the reason"
    ),
    "calibration.too_few_draws": Wording(
        _out_of_reach(" beyond doubt: the draws and targets are too few to tell; take more confirmations"),
        "caution",
        "a scale meets the tolerance on average, but would not be confirmed",
    ),
    "calibration.largest_scale": Wording(
        _out_of_reach(", which is the largest that this mask has: take another mask"),
        "caution",
        "the largest scale of a mask does not meet the tolerance",
    ),
    "calibration.no_effect": Wording(
        _out_of_reach("; so little noise makes no difference at all: start from a larger scale"),
        "caution",
        "no scale tried has less risk than the smallest",
    ),
    "calibration.falling_risk": Wording(
        _out_of_reach("; the risk still falls: start from a larger scale"),
        "caution",
        "no scale tried meets the tolerance, and the risk falls up to the largest",
    ),
    "calibration.constant_risk": Wording(
        _out_of_reach(", and there the risk no longer falls: more noise of this kind does not help"),
        "caution",
        "no scale tried meets the tolerance, and the risk has come to rest",
    ),
    "calibration.raised_scale": Wording(
        _raised_scale, "info", "the scale of the search failed on fresh draws, and a larger one passed"
    ),
    "calibration.no_confirmation": Wording(
        "no scale was confirmed: fresh draws exceeded the tolerance, or came too near to it, at every attempt",
        "caution",
        "no scale passed on fresh draws",
    ),
    "calibration.rising_risk": Wording(
        _rising_risk, "caution", "a larger scale is riskier than a smaller one, beyond Monte Carlo error"
    ),
    "calibration.least_tried": Wording(
        "the least that was tried, {factor:.3g} of the given scale, is enough: hardly any noise is needed",
        "info",
        "the smallest scale that is looked at meets the tolerance",
    ),
    "calibration.least_in_budget": Wording(
        "the least scale that is within the budget is enough; from {factor:.3g} of the given scale on down, attacks "
        "on a draw take longer by the table of costs than the budget has (units that are coarse beside the noise), "
        "and it is not known whether less noise would do: more minutes in [budget] would tell",
        "info",
        "smaller scales take longer than the budget has",
    ),
    "calibration.least_allowed": Wording(
        "the least scale that the plan allows is enough: less would be refused (lost in a unit)",
        "info",
        "the smallest scale that is not refused meets the tolerance",
    ),
    "calibration.no_claims": Wording(
        "no link was claimed in any draw, so that there is no ratio: that is taken as met",
        "caution",
        "a ratio of correct to incorrect links, and no link",
    ),
    "calibration.mean_h": Wording(
        "a mean hides: with this mean h, {at_zero:.1%} of the targets are taken for themselves (h = 0); "
        "ProbH does not hide them",
        "caution",
        "a tolerance of a mean h",
    ),
    "calibration.little_gain": Wording(
        "scales for each column saved no more than the precision of the scale: one scale for all is kept",
        "info",
        "`per_column` gained next to nothing",
    ),
    "calibration.no_gain_on_fresh_draws": Wording(
        "confirmed on fresh draws, scales for each column cost no less than one scale for all did in the search: "
        "what they seemed to save was luck; take more replicates, or leave per_column out",
        "caution",
        "`per_column` gained nothing on fresh draws",
    ),
    "calibration.bounds_not_objective": Wording(
        "scales for each column are chosen for the bounds, not for the objective of per_column",
        "info",
        "`per_column` beside bounds that one scale for all breaks",
    ),
    "calibration.bounded_noise": Wording(
        _bounded_noise, "info", "columns that a bound's model uses have less noise for the bound's sake"
    ),
    "calibration.no_confirmation_in_bounds": Wording(
        "more noise was held back by the bounds: take more draws, or allow a little more of risk or widening",
        "caution",
        "no scale was confirmed within the bounds",
    ),
    "calibration.trade_off": Wording(
        _trade_off, "caution", "no noise meets both the tolerance and the bounds"
    ),
    "calibration.independent_groups": Wording(
        "noise is correlated within the groups that have a scale of their own, and independent between them",
        "info",
        "correlated noise came apart, because a bound's model uses some of its columns",
    ),
    "calibration.trade_off_advice": Wording(
        "allow more widening or more risk, or leave out or code columns; trade_off has both plans, unconfirmed",
        "info",
        "no noise meets both the tolerance and the bounds: what to do",
    ),
}

AGREEMENT: Mapping[str, Wording] = {
    "calibration.unmasked_fields": Wording(
        _unmasked_fields, "info", "the intruder compares fields that noise does not touch"
    ),
    "calibration.predicted_links": Wording(
        "correct links are predicted for best links that agree on all fields, claimed alone",
        "info",
        "the intruder claims other links than those that are predicted",
    ),
    "calibration.too_many_pairs": Wording(
        "correct links are not predicted: more than {most:,} pairs of targets and other records share a block and "
        "their closed fields; name largest_target_block",
        "info",
        "too many pairs of records for correct links to be predicted",
    ),
    "calibration.no_open_values": Wording(
        "no target has open values enough for noise to make it disagree",
        "caution",
        "noise can make no target disagree with its record",
    ),
    "calibration.rising_agreement": Wording(
        "agreement does not fall throughout as the noise grows: searched in {steps} steps a decade",
        "caution",
        "agreement is larger at a larger noise",
    ),
    "calibration.agreement_beyond": Wording(
        "beyond the critical noise agreement rises above the tolerance again",
        "caution",
        "a larger noise than the critical one leaves more agreement than is tolerated",
    ),
    "calibration.least_size": Wording(_least_size, "info", "the smallest noise that is looked at is enough"),
    "calibration.less_safe_codes": Wording(
        "some codes between the present one and the answer are less safe than both",
        "caution",
        "a code between the present one and the relaxed one has more correct links",
    ),
    "calibration.noise_at_answer": Wording(
        "the sd ratio stays, so that the noise at the answer has {times:.2f} times the present sd",
        "info",
        "the open values at the relaxed code have another sd",
    ),
    "calibration.formula_needs_code": Wording(
        "Moore's formula needs a {side} code of {column} to count from",
        "info",
        "the closed form has no answer",
    ),
    "calibration.formula_needs_rule": Wording(
        "Moore's formula needs a relative agreement rule with a positive ratio",
        "info",
        "the closed form has no answer",
    ),
}

WORDS: dict[str, Wording] = {
    **SEARCH,
    **AGREEMENT,
    # Frontiers and expected risks
    "calibration.refused_intruder": Wording(
        "{name}: {reason}", "caution", "an intruder cannot attack such a release; the reason"
    ),
    "calibration.refused_scale": Wording(
        "{mask} at {factor:g} times its scale is refused: {reason}",
        "info",
        "a plan refuses a scale of the grid; the reason",
    ),
    "calibration.largest_growth": Wording(
        "{mask} cannot grow beyond {factor:.4g} times its scale",
        "info",
        "the grid goes beyond a mask's largest scale",
    ),
    "calibration.unattacked_mask": Wording(
        "{mask} is not chosen, because {intruder} cannot attack it: {reason}",
        "caution",
        "a mask's risk before all intruders is not known",
    ),
    "calibration.no_point": Wording(
        "no point meets the tolerance ({tolerance})",
        "caution",
        "no mask and scale of a frontier meets the tolerance",
    ),
    "calibration.chosen_point": Wording(
        "chosen (>): least loss within the tolerance ({tolerance}), Monte Carlo error allowed for; chosen because it "
        "came out well, so confirm it by calibrate",
        "caution",
        "a point of a frontier is chosen",
    ),
}
