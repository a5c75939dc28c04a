"""Links by intruders who know the law: among all records, and among those that lie farthest out.

The largest rate = correct links / targets among the Bayesian intruder (`attacks.bayes`), the nearest record by the
card, and the plan's own attacks. Far out is by Mahalanobis' distance (1936), of the data's covariance, the noise's, and
column by column. Called by `file_checks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arrow_buffers import to_numpy
from ..attacks import BayesIntruder, NearestRecord, Quantiles, Sample, attack
from ..attacks.attack_run import attack_by
from ..attacks.known_columns import with_known_blocks
from ..attacks.protocol import Attack
from ..attacks.risk import Risk, wilson
from ..attacks.targets import RecordSet, standardised_values
from ..card import block_numbers
from ..errors import MaskwellError
from ..laws import Additive, RankSwapped
from ..laws.chain import combined_of
from ..masking.results import Masking, labels_of
from ..table import Floats
from .evidence import Evidence
from .protocol import CheckFigure
from .rank_windows import with_windows
from .scales import column_on_scale, covariance, errors, noised_columns

TARGETS = 1_000  # records that are looked for: a rate of 15% is then known to 1.1 points
ALL_UP_TO = 1_250  # records: of so few all are looked for
OUTER_TARGETS = 250  # records far out that are looked for anew
OUTER_SHARE = 0.05  # of the records, those farthest out
LEAST_OUTER = 100  # targets of an attack already made that lie far out: fewer are looked for anew
LEAST_TARGETS = 500  # of an attack already made: a rate of 15% is then known to 1.6 points
MANY_PAIRS = 30_000_000  # up to which he is tried where the plan's own intruders are weaker: some ten seconds
FEW_RECTANGLES = 1_000_000  # the same where correlated noise has limits: 15 s, a tenth of five columns coded
FEW_PAIRS = 1_500_000  # pairs within blocks up to which the Bayes intruder takes about a second
FLAT = 1e-8  # of the largest eigenvalue of correlations: below it a direction has no spread
INFORMED = ("noise", "posterior")
LAW, ALL_RECORDS = "knows the law", "{}, all records"
LIKELIEST = "likeliest record"  # by the law, without f(z): pairs of the targets alone, in blocks of any size


@dataclass(frozen=True, slots=True)
class LinkFindings:
    """What informed intruders achieve: by name, with why others could not work, and whether they know the law."""

    risks: Mapping[str, Risk]
    refused: tuple[str, ...] = ()
    informed: bool = True

    @property
    def strongest(self) -> tuple[str, Risk]:
        """The intruder who finds the largest share of his targets."""
        return max(self.risks.items(), key=lambda one: one[1].rate)


@dataclass(frozen=True, slots=True)
class Outer:
    """The share of correct links among records far out, how many were looked for, and whether there are others."""

    rate: float
    targets: int
    is_part: bool


def informed_links(evidence: Evidence) -> CheckFigure:
    """Measure the largest share of targets that an intruder who knows the law links correctly."""
    links = links_of(evidence)
    if not links.risks:
        return _refusal_figure(links)
    name, risk = links.strongest
    low, high = risk.interval or (risk.rate, risk.rate)
    sampled = f" (95% interval {low:.1%} to {high:.1%}, whose upper end counts)" if high > low else ""
    card = "the law of the noise" if links.informed else "no law to go by"
    untried = ""
    if links.informed and not any(weighs_by_law(one.attack) for one in links.risks.values()):
        untried = "; the Bayes intruder, who finds more on skewed data, takes long here and was not tried"
    said = (
        f"an intruder who has the true values and {card} links {risk.rate:.1%} of {risk.targets:,} targets to their "
        f"own released record{sampled}; guessing within blocks finds {risk.baseline:.1%}{risk.beyond_blocks}{untried}"
    )
    is_part = risk.targets < evidence.records
    return CheckFigure(
        risk.rate,
        said,
        name,
        {one: other.rate for one, other in links.risks.items()},
        risk.targets if is_part else None,
        judged=high if is_part else None,
    )


def outer_links(evidence: Evidence) -> CheckFigure:
    """Measure the share of correct links among the records that lie farthest from the centre, by any distance."""
    links = links_of(evidence)
    if not links.risks:
        return _refusal_figure(links)
    name, strongest = links.strongest
    if not evidence.numbers:
        return CheckFigure(float("nan"), "no masked column is a number, so that nobody lies far out")
    found = {
        distance: outer
        for distance, far in distances_from_centre(evidence).items()
        if (
            outer := _outer_among(evidence, strongest, far)
            or _outer_attacked(evidence, strongest.attack, far)
        )
    }
    if not found:
        return CheckFigure(float("nan"), "too few records have an open masked number to say who lies far out")
    distance = max(found, key=lambda one: found[one].rate)
    rate, count, is_part = found[distance].rate, found[distance].targets, found[distance].is_part
    low, high = wilson(min(rate, 1.0), count)
    interval = f" (95% interval {low:.1%} to {high:.1%}, whose upper end counts)" if is_part else ""
    times = f", {rate / strongest.rate:.1f} times the rate of all" if strongest.rate > 0 else ""
    said = (
        f"of {count:,} records among the {OUTER_SHARE:.0%} farthest from the centre {distance} {rate:.1%} are linked "
        f"correctly{interval}{times}: who stands out is found first{_without_place(evidence)}"
    )
    figures = {f"{name}, {one}": outer.rate for one, outer in found.items()}
    return CheckFigure(
        rate, said, name, figures, count if is_part else None, judged=high if is_part else None
    )


def _without_place(evidence: Evidence) -> str:
    """Say how many released records have no masked number that is open: nobody can say how far out they lie."""
    values = evidence.masking.truth.values(evidence.numbers)[evidence.rows]
    count = int(np.isnan(values).all(axis=1).sum())
    return f"; {count:,} records without an open masked number have no place among them" if count else ""


def distances_from_centre(evidence: Evidence) -> dict[str, Floats]:
    """Return how far each record of the truth lies out: by columns, by the data's covariance, by the noise's.

    Mahalanobis' distance by the data's covariance sees who is unlike others in a combination of columns, by the
    noise's who stands out farther than the noise reaches; noise that is small in some direction finds them there.
    Where noise is on the log scale the first is taken of logs too.
    A record with gaps is measured by the columns that it has, as a mean over as many directions.
    """
    truth = evidence.masking.truth
    x = standardised_values(truth.values(evidence.numbers))
    found = {"by columns": _mahalanobis(x, np.diag(np.nanvar(x, axis=0)))} if _has_open(x) else {}
    if found and len(evidence.numbers) > 1:
        found["by the data's covariance"] = _mahalanobis(x, covariance(x))
        names = tuple(name for name in evidence.numbers if name in noised_columns(evidence))
        if names:
            x, e = errors(evidence, names)
            whole = np.full((len(truth), len(names)), np.nan)
            whole[evidence.rows] = x - np.nanmean(x, axis=0)
            found["by the noise's covariance"] = _mahalanobis(whole, covariance(e))
            if any(column_on_scale(evidence, name).is_log for name in names):
                found["by the data's covariance on the scale of the noise"] = _mahalanobis(
                    whole, covariance(x)
                )
    return {name: far for name, far in found.items() if not np.isnan(far).all()}


def _has_open(values: Floats) -> bool:
    """Whether every column has an open value: one that has none is nobody's."""
    return bool(values.size) and bool((~np.isnan(values)).any(axis=0).all())


def _mahalanobis(values: Floats, spread: Floats) -> Floats:
    """Return the root of the mean square over all directions with a spread, by the columns that each record has.

    Mahalanobis' distance from zero over the root of the number of directions; NaN where no value is open.
    """
    sds = np.sqrt(np.diag(spread))
    kept = sds > 0
    out = np.full(len(values), np.nan)
    scaled = values[:, kept] / sds[kept]
    correlations = spread[np.ix_(kept, kept)] / np.outer(sds[kept], sds[kept])
    known = ~np.isnan(scaled)
    patterns, whose = known[:1], np.zeros(len(known), np.int64)
    if not known.all():
        patterns, whose = np.unique(known, axis=0, return_inverse=True)
    for i, pattern in enumerate(patterns):
        if pattern.any():
            here = np.flatnonzero(whose.ravel() == i)
            eigenvalues, vectors = np.linalg.eigh(correlations[np.ix_(pattern, pattern)])
            seen = eigenvalues > FLAT * eigenvalues[-1]
            along = scaled[np.ix_(here, pattern)] @ vectors[:, seen]
            out[here] = np.sqrt((along**2 / eigenvalues[seen]).mean(axis=1))
    return out


def links_of(evidence: Evidence) -> LinkFindings:
    """Return what informed intruders achieve, attacked once for all checks of an audit."""
    return evidence.once("links", lambda: _earlier_attacks(evidence) or _attack_sample(evidence))


def is_informed(plan: Any) -> bool:
    """Whether an intruder uses the card as it is, and nobody else's help: who has that is the ceiling."""
    if isinstance(plan, BayesIntruder):
        return plan.prior is None and plan.error is None and not plan.helpers
    return isinstance(plan, NearestRecord) and (plan.distance in INFORMED or plan.shrink is not None)


def _earlier_attacks(evidence: Evidence) -> LinkFindings | None:
    """Return the attacks already made by who knows the law and is not held back; nothing where there is none.

    Where none of them is the best there is, or all look for records in small blocks alone, own ones stand beside them.
    """
    if evidence.risks is None:
        return None
    found = {name: risk for name, risk in evidence.risks.items() if is_at_full_strength(evidence, risk)}
    if not found:
        return None
    best_known = any(_is_best(risk.attack) for risk in found.values())
    if best_known and any(risk.attack.largest_target_block is None for risk in found.values()):
        return LinkFindings(found)
    blocks = next(iter(found.values())).attack.match_blocks
    plans = _informed_plans(evidence)
    own = {ALL_RECORDS.format(name): replace(plan, match_blocks=blocks) for name, plan in plans.items()}
    return LinkFindings({**found, **_try_plans(own, evidence)[0]})


def weighs_by_law(plan: Any) -> bool:
    """Whether an intruder weighs records by the law and by how common they are."""
    return isinstance(plan, BayesIntruder) and plan.kernel == "coherent" and is_informed(plan)


def _is_best(plan: Any) -> bool:
    """Whether an intruder takes, for each target, the record of the largest posterior: nobody does better alone."""
    return (
        isinstance(plan, BayesIntruder)
        and (plan.kernel, plan.marginal, plan.direction) == ("coherent", "truth", "to_masked")
        and plan.assignment == "best"
    )


def is_at_full_strength(evidence: Evidence, risk: Risk) -> bool:
    """Whether an attack already made shows what the informed intruder can do: nothing in its plan holds him back.

    He compares every masked key and whatever left as it was, claims every link, and looks for enough records.
    """
    plan = risk.attack
    if (
        not is_informed(plan)
        or plan.threshold > 0
        or (isinstance(plan, NearestRecord) and plan.weights is not None)
    ):
        return False
    return _compares_all(evidence, risk) and _looks_for_enough(evidence, risk)


def _compares_all(evidence: Evidence, risk: Risk) -> bool:
    """Whether an intruder uses every masked number that he may know, and every block and key that left as it was.

    Whoever relies on a column that carries noise is misled.
    """
    plan, schema = risk.attack, evidence.masking.truth.schema
    relied_on = set(plan.match_columns(evidence.masking.release.table.schema))
    if relied_on & set(noised_columns(evidence)):
        return False
    compared = relied_on | set(risk.fields)
    fields = _fields(evidence)
    known = {name for name in fields if schema[name].may_be_known} or set(fields)
    return compared >= set(evidence.known_blocks) and compared >= known


def _looks_for_enough(evidence: Evidence, risk: Risk) -> bool:
    """Whether the targets stand for all records, or are those in small blocks, whom the steward fears for."""
    targets = risk.attack.targets
    if isinstance(targets, Quantiles | RecordSet):
        return False
    if risk.targets >= min(LEAST_TARGETS, evidence.records):
        return True
    is_whole = targets is None or (isinstance(targets, Sample) and targets.sample >= LEAST_TARGETS)
    return is_whole and risk.attack.largest_target_block is not None


def _attack_sample(evidence: Evidence) -> LinkFindings:
    """Attack a sample: by who knows the law, else (no card, or a mask that has no law) by distance alone."""
    refused: tuple[str, ...] = ()
    for informed, plans in ((True, _informed_plans(evidence)), (False, _uninformed_plans(evidence))):
        found, why = _try_plans(plans, evidence)
        refused = (*refused, *why)
        if found:
            return LinkFindings(found, refused, informed)
    return LinkFindings({}, refused)


def _try_plans(plans: Mapping[str, Attack], evidence: Evidence) -> tuple[dict[str, Risk], list[str]]:
    chosen = Sample(TARGETS) if evidence.records > ALL_UP_TO else None
    given = () if evidence.risks is None else evidence.risks.values()
    aware = all(risk.attack.response_knowledge for risk in given)  # as the plan has it
    found, refused = dict[str, Risk](), list[str]()
    for name, plan in plans.items():
        try:
            found[name] = attack(
                replace(plan, targets=chosen, response_knowledge=aware), _seen(evidence, plan)
            )
        except MaskwellError as error:
            refused.append(error.problems[0])
    return found, refused


def _seen(evidence: Evidence, plan: Any) -> Masking:
    """Return the masking as an intruder weighs it: by the law, rank swaps are windows of ranks."""
    if not weighs_windows(plan):
        return evidence.masking
    return evidence.once("rank windows", lambda: with_windows(evidence.masking))


def weighs_windows(plan: Any) -> bool:
    """Whether an intruder weighs exchanges of ranks too: all who weigh by the law and name no fields do."""
    return isinstance(plan, BayesIntruder) and plan.fields is None


def _informed_plans(evidence: Evidence) -> dict[str, Any]:
    """Return intruders who know the law: the Bayesian one where he is quick, and the nearest record by the card."""
    masked = set(evidence.masked_columns)
    laws = [law for law in evidence.masking.release.card.laws if set(law.columns) & masked]
    if not laws:
        return {}
    plans: dict[str, Any] = {}
    if _has_swaps(evidence):  # no distance knows of exchanges
        plans = _uninformed_plans(evidence)
    elif _fields(evidence):
        plans = {f"nearest by {distance}": _nearest(evidence, distance) for distance in INFORMED}
    likeliest = _on_clear(BayesIntruder(kernel="forward"), evidence)
    if is_quick(evidence, given=evidence.risks is not None):
        plans[LAW] = _on_clear(BayesIntruder(), evidence)
    elif not plans or not _law_has_rectangles(evidence):
        plans[LIKELIEST] = likeliest
    return plans


def _on_clear(plan: BayesIntruder, evidence: Evidence) -> Any:
    """Let an intruder rely on all that leaves in clear and may be known, whatever its roles."""
    return with_known_blocks(plan, evidence.masking.truth, evidence.known_blocks)


def _uninformed_plans(evidence: Evidence) -> dict[str, Any]:
    if not _fields(evidence):
        return {}
    names = {"nearest, whitened by the release": "release", "nearest": "euclid"}
    return {name: _nearest(evidence, distance) for name, distance in names.items()}


def _nearest(evidence: Evidence, distance: str) -> NearestRecord:
    return NearestRecord(
        fields=_fields(evidence), distance=distance, match_blocks=evidence.known_blocks, largest_h=1
    )


def _fields(evidence: Evidence) -> tuple[str, ...]:
    """Return the masked numbers that an intruder compares; totals of others tell nothing more."""
    sums = {total for total, _ in evidence.masking.card.recomputed}
    return tuple(name for name in evidence.numbers if name not in sums)


def is_quick(evidence: Evidence, *, given: bool) -> bool:
    """Whether the Bayes intruder takes about a second, or some where given attacks are to be held against him."""
    most = MANY_PAIRS if given or _has_swaps(evidence) else FEW_PAIRS
    if _law_has_rectangles(evidence):
        most = FEW_RECTANGLES if given else 0
    table = evidence.masking.release.table
    blocks = list(evidence.known_blocks)
    sizes = np.bincount(block_numbers(table, blocks)) if blocks else np.array([len(table)])
    return float((sizes.astype(np.float64) ** 2).sum()) <= most


def _has_swaps(evidence: Evidence) -> bool:
    return any(isinstance(law, RankSwapped) for law in evidence.masking.release.card.laws)


def _law_has_rectangles(evidence: Evidence) -> bool:
    return any(map(_has_rectangles, evidence.masking.release.card.laws))


def _has_rectangles(law: Any) -> bool:
    """Whether a density needs the probability of a rectangle: correlated noise on columns with limits."""
    law = combined_of(law)
    if not isinstance(law, Additive) or not law.noise.correlations:
        return False
    return any(outlet.low is not None or outlet.high is not None for outlet in law.outlets)


def _outer_among(evidence: Evidence, risk: Risk, distances: Floats) -> Outer | None:
    """Return the share of correct links among the targets of an attack that lie far out; nothing where they are few."""
    import pyarrow.compute as pc

    truth = evidence.masking.truth
    if not risk.attack.to_masked or "target_id" not in risk.table.column_names:
        return None
    ids = risk.table["target_id"].combine_chunks()
    places: Any = pc.index_in(ids, value_set=labels_of(truth))
    if places.null_count:  # a file of his own, with others in it
        return None
    rows = to_numpy(places).astype(np.int64)
    limit = np.nanquantile(distances, 1 - OUTER_SHARE)
    outer = distances[rows] >= limit
    if outer.sum() < LEAST_OUTER:
        return None
    claimed = to_numpy(risk.table["claimed"].combine_chunks()).astype(bool)
    found = np.where(claimed, to_numpy(risk.table["expected_correct"].combine_chunks()), 0.0)
    count = int(outer.sum())
    return Outer(
        float(found[outer].sum()) / count, count, count < int((distances[evidence.rows] >= limit).sum())
    )


def _outer_attacked(evidence: Evidence, plan: Any, distances: Floats) -> Outer | None:
    """Attack records spread over the outer share by the strongest intruder; he looks for each by itself."""
    ranked = np.argsort(distances, kind="stable")[: int(np.count_nonzero(~np.isnan(distances)))]
    every = int(OUTER_SHARE * len(ranked))
    count = min(OUTER_TARGETS, every)
    if count < 1:
        return None
    at = 1 - OUTER_SHARE * (np.arange(count) + 0.5) / count
    chosen = ranked[np.ceil(at * len(ranked) - 1e-9).astype(np.int64) - 1]
    slow = isinstance(plan, BayesIntruder) and not is_quick(evidence, given=False)
    if slow and _fields(evidence) and not _has_swaps(evidence):
        plan = replace(_nearest(evidence, "posterior"), match_blocks=plan.match_blocks)
    changes: dict[str, Any] = {"targets": RecordSet(tuple(np.unique(chosen).tolist())), "assignment": "best"}
    changes |= {"largest_target_block": None, "target_blocks": None, "direction": "to_masked"}
    if isinstance(plan, NearestRecord):
        changes["largest_h"] = 1
    try:
        shared = evidence.once(
            "densities of outer records", dict[Any, Any]
        )  # they are the same at every distance
        risk = attack_by(replace(plan, **changes), _seen(evidence, plan), None, shared)[0]
    except MaskwellError:
        return None
    return Outer(risk.rate, risk.targets, count < every)


def _refusal_figure(links: LinkFindings) -> CheckFigure:
    why = links.refused[0] if links.refused else "no masked column is a number and no law is on the card"
    return CheckFigure(float("nan"), f"no intruder can compare records of this release: {why}")
