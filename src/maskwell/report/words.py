"""What figures and names are called in the reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from ..tolerances import MaxRate
from .screen import short

if TYPE_CHECKING:
    from ..attacks.risk import Risk
    from ..pipeline import Advice
    from ..plan import ReleasePlan

# What each intruder knows and does; those of a plan's own are told by the kind of their attack.
KNOWS = {
    "Winkler's matcher": "Compares field by field, as record linkage does, and does not know the noise.",
    "nearest record": "Takes the released record that lies nearest, and does not know the noise.",
    "nearest, informed": "Takes the nearest in the distance that the noise on the card makes best.",
    "without the card": "Weighs every released record, and must learn the noise from the release itself.",
    "knows the law": "Holds the card, and weighs every released record by the law of the noise.",
    "knows the law, one-to-one": "Holds the card, and knows that each released record belongs to one target.",
    "the ceiling": "Holds the card and every other record: in expectation nobody who compares the same columns record "
    "by record finds more. Who knows whole groups, further columns, or more of the population may.",
    "fingerprint alone": "Looks only at what left unmasked, is missing or is coded, which no noise hides.",
}
NO_CEILING = (
    "Holds the card and every other record, and takes exchanges for such at random in the card's share: after directed "
    "ones he is no ceiling, and who knows by which rule records were exchanged may find more."
)
KINDS = {
    "Linkage": "Compares field by field, as record linkage does.",
    "NearestRecord": "Takes the released record that lies nearest.",
    "BayesIntruder": "Weighs every released record by what the noise makes likely.",
    "Fingerprint": "Looks only at what left unmasked, is missing or is coded, which no noise hides.",
}
# Words that sentences of the other parts begin with. Anything else may be a column's name, which is kept as it is.
_FIRST = """
after columns figures give recode sums
a about added adjusted all an as at by changed code computed correlations could drop each every
exchanged fitted for found from grouped half how if in it leave less looked mask masked mean
means more most multiplied no noise none normal not nothing of on one only order out raise
records recomputed released residuals residues same sds since so some sub-domain swap that the there these this
those to top-code under until values what whatever when where who with without
"""
FIRST_WORDS = frozenset(_FIRST.split())
LEAVES = {
    "open": "The card is published with the data",
    "sealed": "The card is sealed for named recipients",
    "kept": "The card is kept inside",
}
BY_PASSPHRASE = "The card is sealed by a passphrase"
NOT_TRIED = "not tried"
MORE_NOISE = "Give more noise"  # as a check of the audit advises


def percent(share: float | None, digits: int = 1) -> str:
    """Write a share in percent; a dash where there is none."""
    if share is None or not isfinite(share):
        return "–"
    return f"{share:.{digits}%}"


def figure(value: float | None) -> str:
    """Write a figure with four digits; a dash where there is none."""
    if value is None or not isfinite(value):
        return "–"
    return short(float(value)).replace("-", "−", 1) if value < 0 else short(float(value))


def figure_text(value: float | None) -> str:
    """Write a figure that stands alone: at most three digits, no zeros at its end."""
    if value is None or not isfinite(value):
        return "–"
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return text.replace("-", "−", 1) if value < 0 else text


def count_of(count: int, one: str, many: str | None = None) -> str:
    """Write a count with its noun."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def is_seeded(outcome: Any) -> bool:
    """Whether the noise comes from a small seed: then the release is for studies, whatever its figures."""
    return outcome.masking is not None and bool(outcome.masking.card.seeded)


def by_passphrase(outcome: Any) -> bool:
    """Whether the card is sealed for whoever has the passphrase, and not for named recipients."""
    return by_passphrase_of(outcome.plan)


def by_passphrase_of(plan: ReleasePlan) -> bool:
    """Whether a plan seals the card for whoever has the passphrase, and not for named recipients."""
    return plan.card.leaves == "sealed" and not plan.card.recipients


def leaves_words(outcome: Any) -> str:
    """Say how the card leaves."""
    return BY_PASSPHRASE if by_passphrase(outcome) else LEAVES[outcome.plan.card.leaves]


def noise_is_no_help(advice: Advice) -> bool:
    """Whether it tells that more noise alone was tried in vain: a finding, and no change to the plan."""
    return (
        advice.passes is False and "factor" in advice.figures and not {"scale", "columns"} & {*advice.figures}
    )


def advice_of(outcome: Any) -> Sequence[Advice]:
    """Return the advice; where more noise was tried in vain nothing that asks for it stands beside."""
    if not any(map(noise_is_no_help, outcome.advice)):
        return tuple(outcome.advice)
    return tuple(one for one in outcome.advice if MORE_NOISE not in one.change)


def knows(name: str, risk: Risk) -> str:
    """Say what an intruder knows and does."""
    if risk.is_of_all_helpers and risk.his_record is not None:
        return NO_CEILING
    return KNOWS.get(name) or KINDS.get(type(risk.attack).__name__, "")


def title_of(outcome: Any) -> str:
    """Return the report's title: the plan's, else the name of the file."""
    given: str = outcome.plan.report.title
    return given or outcome.plan.input.file.stem.replace("_", " ") or "Masked release"


def held_names(outcome: Any) -> tuple[str, ...]:
    """Return the intruders that the tolerance holds for, of those who attacked."""
    return tuple(name for name in outcome.held if name in outcome.after) or tuple(outcome.after)


def worst_name(outcome: Any) -> str:
    """Return the intruder, of those that the tolerance holds for, who finds most in the final release."""
    return max(held_names(outcome), key=lambda name: outcome.after[name].rate)


def limit_rate(outcome: Any) -> float | None:
    """Return the rate among all targets that is tolerated; nothing where the tolerance is about another figure."""
    tolerance = outcome.plan.tolerance
    limit = tolerance.tolerance.max_rate if isinstance(tolerance.tolerance, MaxRate) else None
    return None if limit is None or tolerance.over != "all" else float(limit)


def tolerance_words(outcome: Any) -> str:
    """Say the tolerance, shares in percent."""
    tolerance = outcome.plan.tolerance
    limit = tolerance.tolerance.max_rate if isinstance(tolerance.tolerance, MaxRate) else None
    whose = "the targets" if tolerance.over == "all" else "the most outlying tenth of the targets"
    if limit is not None:
        return f"at most {100 * limit:.4g}% of {whose}"
    return f"{tolerance.tolerance}" + ("" if tolerance.over == "all" else f", over {whose}")


def is_not_judged(outcome: Any) -> bool:
    """Whether nothing stands against it but that somebody who is held to the tolerance was not tried."""
    return bool(outcome.not_judged) and not outcome.reasons


def every_reason(outcome: Any) -> tuple[str, ...]:
    """Return why it does not pass, and then what was not judged."""
    return (*outcome.reasons, *(f"not judged: {one}" for one in outcome.not_judged))


def not_held_words(outcome: Any) -> list[str]:
    """Say against whom the plan does not hold the tolerance, and what it takes as not known, with its reasons."""
    given, columns = outcome.plan.tolerance.not_held, outcome.plan.targets.not_known
    said = [f"not held to the tolerance by the plan: {name} ({reason})" for name, reason in given.items()]
    said += [f"taken as known to no intruder by the plan: {name} ({why})" for name, why in columns.items()]
    unaware = outcome.plan.targets.presence_not_known
    if unaware is not None:
        said.append(f"rates are over all records by the plan, as nobody knows who was released ({unaware})")
    return said


def laxer_words(outcome: Any) -> list[str]:
    """Say what of a green light is the plan's own doing: limits it made laxer, and who finds more than it tolerates."""
    given = outcome.laxer_limits
    said = []
    if given:
        head = f"the plan judges {count_of(len(given), 'check')} by laxer limits than the audit does"
        said.append(f"{head}: {'; '.join(given)}")
    return [*said, *([outcome.beyond_tolerance] if outcome.beyond_tolerance else [])]


def released_words(risk: Risk) -> str:
    """Say the rate among the targets that were released and that among all; nothing where all were."""
    if risk.released_share is None:
        return ""
    whose = "he knows that they are in it" if risk.among_released else "taken as not known to him"
    return (
        f"of the targets in the release ({whose}) he finds {percent(risk.rate_of_released)}, of all targets, "
        f"{percent(risk.released_share)} of whom are in it, {percent(risk.rate_of_all)}"
    )


def sampled_words(risk: Risk) -> str:
    """Say how many targets were sampled, with the rate's interval, or its bound; nothing where it is exact."""
    if risk.interval is None:
        return ""
    low, high = risk.interval
    if risk.ceiling is not None:
        return f"bounded: at most {percent(high)}"
    return f"{risk.targets:,} sampled: {percent(low)} to {percent(high)}"


def and_list(names: Sequence[str]) -> str:
    """Return names as a sentence lists them."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def whole_lines(lines: Iterable[str]) -> list[str]:
    """Return texts that were wrapped for a terminal as they were: an indented line goes on with the one before."""
    found = list[str]()
    for line in lines:
        if line.startswith(" ") and found:
            found[-1] = f"{found[-1]} {line.strip()}"
        else:
            found.append(line.strip())
    return found


def sentence(text: str) -> str:
    """Return text as a sentence: a full stop, and a capital first letter where a word and no name stands first."""
    text = text.strip()
    if not text:
        return ""
    ended = text if text[-1] in ".!?:" else f"{text}."
    is_word = ended.split(maxsplit=1)[0].rstrip(",:;.").lower() in FIRST_WORDS
    return ended[0].upper() + ended[1:] if is_word else ended
