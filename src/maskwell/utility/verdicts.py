"""What the figures come to, in words: for each what is good, where the limit comes from, and what this one means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite, isnan
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ..words.phrases import name_list

if TYPE_CHECKING:
    from ..analysis.corrections import Forecast
    from .models import ModelUtility
    from .results import AssociationUtility, ColumnUtility, CorrelationUtility, Utility

GOOD, FAIR, POOR, NONE, INFORMATION = "good", "fair", "poor", "unknown", "told"
NAN = float("nan")


@dataclass(frozen=True, slots=True)
class VerdictRule:
    """Up to which figure (or from which, where `above`) a figure is good and fair, and why there."""

    good: float
    fair: float
    means: str
    reason: str
    above: bool = False

    def verdict(self, value: float, chance: float = 0.0) -> str:
        """Return what a figure comes to; chance alone moves it by so much."""
        if isnan(value):
            return NONE
        for verdict, limit in ((GOOD, self.good), (FAIR, self.fair)):
            if value >= limit if self.above else value <= limit + chance:
                return verdict
        return POOR


RULES = {
    "means": VerdictRule(
        0.75,
        0.5,
        "an overlap of at least 0.75 of the two 95% intervals",
        "the released mean is then off by less than one standard error, which sampling alone does in two of three "
        "surveys; at 0.5 it is off by two",
        above=True,
    ),
    "sds": VerdictRule(
        0.05,
        0.2,
        "an sd within 5% of the true one",
        "intervals of means are then as wide as they should be to 5%; added noise always makes sds larger",
    ),
    "sds corrected": VerdictRule(
        0.02,
        0.05,
        "an sd within {limit:.1%} of the true one once the card's noise is taken off",
        "2 points, and a standard error of such a figure for what chance leaves",
    ),
    "KS": VerdictRule(
        0.05,
        0.1,
        "at most 0.05",
        "no share of records below any value is then off by more than 5 points; a normal column reaches it when its "
        "variance grows by half",
    ),
    "Hellinger": VerdictRule(
        0.1,
        0.2,
        "at most 0.1 beyond what chance alone makes",
        "a normal column reaches it, as it does KS 0.05, when its variance grows by half",
    ),
    "categories": VerdictRule(
        0.02,
        0.05,
        "at most 2% of the records in another category on balance",
        "tables of shares then hold to 2 points",
    ),
    "associations": VerdictRule(
        0.1,
        0.2,
        "no mean of a number in a category off by more than {limit:.2f} of the number's sds",
        "a difference of 0.2 sds between groups is called small (Cohen 1988), and this is half of it, with a standard "
        "error of such a mean for what chance leaves",
    ),
    "correlations": VerdictRule(
        0.05,
        0.1,
        "no correlation off by more than 0.05",
        "the variance that one column explains of another is then right to 5 points up to a correlation of 0.5",
    ),
    "correlations corrected": VerdictRule(
        0.02,
        0.05,
        "no correlation off by more than {limit:.3f} once the noise's own is taken off",
        "2 points, and a standard error of such a figure for what chance leaves",
    ),
    "sub-domains": VerdictRule(
        0.05,
        0.2,
        "at most 5% of the sub-domain means with an overlap below 0.5",
        "these are the means that are off by two standard errors and more",
    ),
    "IL1s": VerdictRule(
        0.2,
        0.4,
        "at most 0.2",
        "another record's value in place of one's own gives 0.8, so that this is a quarter of it",
    ),
    "pMSE": VerdictRule(
        3.0,
        10.0,
        "a ratio of at most 3 to records drawn from a law that was fitted to the true ones",
        "the limits of Raab, Nowok and Dibben (2021) for synthetic data. Masked records are the same people, so that a "
        "ratio near 0 is easily reached and only a large one speaks: it says that released values must not be taken "
        "for true ones without the card, not that they are of no use",
    ),
    "model, as released": VerdictRule(
        2.0,
        4.0,
        "no coefficient off by more than 2 of its standard errors",
        "a naive interval then still holds the original estimate",
    ),
    "model, adjusted": VerdictRule(
        2.5,
        4.0,
        "no coefficient off by more than 2.5 of its standard errors",
        "of a handful of coefficients hardly one is, by chance alone",
    ),
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """One figure: its value, where it is worst, whether it is good, and what good means."""

    figure: str
    value: float
    verdict: str
    where: str = ""
    said: str = ""
    good: str = ""
    reason: str = ""

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        verdict = "" if self.verdict == INFORMATION else f" {self.verdict}."
        told = f"{self.figure}:{verdict} {self.said}."
        good = f" Good is {self.good}: {self.reason}." if self.good else ""
        return told + good

    def to_dict(self) -> dict[str, Any]:
        """Return the judgement as plain data."""
        value = self.value if isfinite(self.value) else None
        return asdict(self) | {"value": value, "sentence": self.sentence}


def judge_comparison(found: Utility) -> Utility:
    """Return a comparison with what its figures come to."""
    numbers = [column for column in found.columns if column.is_number and column.masked]
    categories = [column for column in found.columns if not column.is_number and column.masked]
    parts = [
        *_of_numbers(numbers),
        *_of_categories(categories),
        *_of_correlations(found),
        *_of_associations(found.associations),
        *_of_groups(found),
        *_of_whole(found),
    ]
    for model, ahead in zip(found.models, found.forecasts, strict=True):
        parts += _of_model(model, ahead)
    return replace(found, judgements=tuple(parts))


def _judgement(rule: str, figure: str, value: float, where: str, said: str, chance: float = 0.0) -> Judgement:
    chosen = RULES[rule]
    means = chosen.means.format(limit=chosen.good + chance)
    return Judgement(figure, value, chosen.verdict(value, chance), where, said, means, chosen.reason)


def _worst(columns: Iterable[ColumnUtility], of: Any, *, lowest: bool = False) -> tuple[float, str]:
    known = [(of(column), column.name) for column in columns if isfinite(of(column))]
    if not known:
        return float("nan"), ""
    return min(known) if lowest else max(known)


def _of_numbers(columns: Sequence[ColumnUtility]) -> list[Judgement]:
    """Judge means, sds and distributions of the masked numbers by the worst of them."""
    if not columns:
        return []
    return [*_of_means(columns), *_of_sds(columns), *_of_distances(columns)]


def _of_means(columns: Sequence[ColumnUtility]) -> list[Judgement]:
    """Judge the means as released, and as corrected where that makes them others."""
    at, found = {column.name: column for column in columns}, []
    overlap, where = _worst(columns, lambda c: c.overlap, lowest=True)
    if where:
        shift = f"the mean moved by {abs(at[where].shift):.3f} sds"
        said = f"The least overlap is {overlap:.2f}, of {where}; {shift}"
        found.append(_judgement("means", "means as released", overlap, where, said))
    after, where = _worst(columns, lambda c: c.overlap_corrected, lowest=True)
    if where and abs(after - overlap) > 0.005:
        said = f"The least overlap is {after:.2f}, of {where}"
        found.append(_judgement("means", "means corrected by the card", after, where, said))
    return found


def _of_sds(columns: Sequence[ColumnUtility]) -> list[Judgement]:
    """Judge the sds as released and as corrected."""
    at, found = {column.name: column for column in columns}, []
    ratio, where = _worst(columns, lambda c: abs(c.sd_ratio - 1))
    if where:
        said = f"The sd of {where} is {at[where].sd_ratio:.3f} times the true one"
        found.append(_judgement("sds", "sds as released", ratio, where, said))
    ratio, where = _worst(columns, lambda c: abs(c.sd_ratio_corrected - 1))
    left = [column.name for column in columns if isnan(column.sd_corrected)]
    but = f"; {name_list(left)} cannot be corrected" if left else ""
    if where:
        said = f"That of {where} is {at[where].sd_ratio_corrected:.3f} times the true one{but}"
        chance = (2 * max(at[where].records, 1)) ** -0.5
        found.append(_judgement("sds corrected", "sds corrected by the card", ratio, where, said, chance))
    return found


def _of_distances(columns: Sequence[ColumnUtility]) -> list[Judgement]:
    """Judge how far the distributions lie apart, and say how many columns are beyond the limit.

    Where chance alone makes a Hellinger distance above the limit a column is judged only if it is clearly poor.
    """
    limit = RULES["Hellinger"]
    unclear = [one for one in columns if one.hellinger_chance > limit.good and one.hellinger <= limit.fair]
    rest = [one for one in columns if one not in unclear]
    found = [
        *_of_distance("KS", "KS distance", columns, attrgetter("ks")),
        *_of_distance("Hellinger", "Hellinger distance", rest, attrgetter("hellinger")),
    ]
    if unclear:
        names = name_list([one.name for one in unclear])
        least = min(one.hellinger_chance for one in unclear)
        said = f"Not judged of {names}: chance alone makes {least:.2f} or more in so few records"
        found.append(Judgement("Hellinger distance", NAN, NONE, "", said))
    return found


def _of_distance(rule: str, name: str, columns: Sequence[ColumnUtility], of: Any) -> list[Judgement]:
    value, where = _worst(columns, of)
    if not where:
        return []
    beyond = sum(of(column) > RULES[rule].good for column in columns)
    many = f"; {beyond} of {len(columns)} columns are above {RULES[rule].good}" if beyond else ""
    return [_judgement(rule, name, value, where, f"The largest is {value:.3f}, of {where}{many}")]


def _of_categories(columns: Sequence[ColumnUtility]) -> list[Judgement]:
    if not columns:
        return []
    share, where = _worst(columns, lambda c: c.total_variation)
    said = (
        f"On balance {share:.1%} of the records of {where} stand in another category"
        if where
        else "None known"
    )
    return [_judgement("categories", "categories", share, where, said)]


def _of_correlations(found: Utility) -> list[Judgement]:
    correlations = found.correlations
    if not isfinite(correlations.largest):
        return []
    where = " and ".join(correlations.largest_pair)
    said = (
        f"The largest difference is {correlations.largest:.3f}, of {where}; the mean {correlations.mean:.3f}"
    )
    out = [_judgement("correlations", "correlations as released", correlations.largest, where, said)]
    touched = {column.name for column in found.columns if column.masked}
    free = {name for name in touched if _correctable(correlations, name)}
    if free:
        figures = correlations.largest_corrected, correlations.mean_corrected
        left = sorted((touched & set(correlations.names)) - free)
        but = f"; those of {name_list(left)} cannot be corrected" if left else ""
        said = f"The largest difference is {figures[0]:.3f}, the mean {figures[1]:.3f}{but}"
        rule, name, chance = (
            "correlations corrected",
            "correlations corrected by the card",
            correlations.fewest**-0.5,
        )
        out.append(_judgement(rule, name, figures[0], "", said, chance))
    return out


def _correctable(correlations: CorrelationUtility, name: str) -> bool:
    """Whether some correlation of a column has a corrected figure."""
    if name not in correlations.names:
        return False
    row = correlations.corrected[correlations.names.index(name)].tolist()
    return sum(map(isfinite, row)) > 1


def _of_associations(associations: Sequence[AssociationUtility]) -> list[Judgement]:
    """Judge the means of numbers by category by the one that moved most beyond chance."""
    known = [one for one in associations if isfinite(one.shift)]
    if not known:
        return []
    worst = max(known, key=attrgetter("beyond_chance"))
    where = f"{worst.column} where {worst.category} is {worst.level}"
    said = (
        f"The mean of {where} moved by {abs(worst.shift):.2f} sds; of all variance of {worst.column}, "
        f"{worst.category} explains {worst.explained:.1%} in the truth and {worst.explained_after:.1%} as released"
    )
    figure = "means by category as released"
    return [_judgement("associations", figure, abs(worst.shift), where, said, worst.chance)]


def _of_groups(found: Utility) -> list[Judgement]:
    if not found.group_count:
        return []
    worst = min(found.groups, key=lambda group: group.overlap)
    where = f"{worst.column} where {worst.group} is {worst.level}"
    said = (
        f"{found.group_poor:.1%} of {found.group_count:,} means overlap by less than 0.5; the mean overlap is "
        f"{found.group_overlap:.2f}, the least {worst.overlap:.2f} ({where})"
    )
    return [_judgement("sub-domains", "sub-domain means", found.group_poor, where, said)]


def _of_whole(found: Utility) -> list[Judgement]:
    out = []
    if isfinite(found.il1s):
        changed = any(column.masked and not column.is_number for column in found.columns)
        also = ", a changed category counted as 1" if changed else ""
        said = f"Values moved by {found.il1s:.3f} on average, in units of sqrt(2) sds{also}"
        out.append(_judgement("IL1s", "IL1s", found.il1s, "", said))
    ratio = found.propensity.ratio
    if isfinite(ratio):
        said = (
            f"A logistic model with {found.propensity.parameters} parameters tells released from true records with a "
            f"pMSE {ratio:.1f} times the mean of records drawn from a law fitted to the true ones "
            f"({found.propensity.standardised:+.1f} sds); two independent samples of one law give about "
            f"{found.propensity.two_samples:.1f}, the true records themselves 0"
        )
        out.append(_judgement("pMSE", "propensity score", ratio, "", said))
    return out


def _of_model(model: ModelUtility, ahead: Forecast) -> list[Judgement]:
    """Judge a model as released, adjusted, and by how much wider its intervals become."""
    out = []
    for which, off in (("as released", model.off_naive), ("adjusted", model.off_adjusted)):
        known = [(abs(value), name) for value, name in zip(off, model.names, strict=False) if isfinite(value)]
        if not known:
            continue
        value, where = max(known)
        how = f" ({model.adjusted_by})" if which == "adjusted" else ""
        said = f"{where} is off the original by {value:.1f} of its standard errors{how}"
        out.append(_judgement(f"model, {which}", f"{model.formula}, {which}", value, where, said))
    if model.refused:
        out.append(Judgement(f"{model.formula}, adjusted", float("nan"), NONE, said=model.refused))
    return [*out, *_of_widening(model, ahead)]


def _of_widening(model: ModelUtility, ahead: Forecast) -> list[Judgement]:
    """Judge by how much a model's intervals widen: by the forecast, else as the adjusted fit came out."""
    told, source = dict(ahead.widening), "is forecast to be"
    if not told:
        told, source = dict(zip(model.names, model.widening, strict=False)), "came out"
    known = [(wider, name) for name, wider in told.items() if not isnan(wider) and name != "sigma"]
    known = [(wider, name) for wider, name in known if name != "Intercept"] or known  # as bounds count it
    if not known:
        return []
    wider, where = max(known)
    much = f"{wider:.0%} wider" if wider >= 0.005 else "hardly wider"
    said = f"The interval of {where} {source} {much} than one from the truth"
    figure = f"{model.formula}, widening"
    if model.at_most_wider is None:
        return [Judgement(figure, wider, INFORMATION, where, said)]
    verdict = GOOD if wider <= model.at_most_wider else POOR
    reason = "the limit that the steward set"
    return [Judgement(figure, wider, verdict, where, said, f"at most {model.at_most_wider:.0%}", reason)]
