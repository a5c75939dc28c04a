"""The verdict on a masking: whether the tolerance, the bounds on models and the audit all let it leave."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from ..errors import MaskwellError, MaskwellWarning

if TYPE_CHECKING:
    from ..attacks import Risks
    from ..checks import Audit
    from ..masking import Masking
    from ..plan import ModelPlan, ReleasePlan
    from .meeting import Situation

INTERCEPT = "Intercept"


@dataclass(frozen=True)
class Verdict:
    """Why a masking may not leave: nothing said is yes."""

    reasons: tuple[str, ...]
    audit: Audit

    @property
    def passed(self) -> bool:
        """Whether nothing stands against it."""
        return not self.reasons


def judged(case: Situation, masking: Masking, risks: Risks) -> Verdict:
    """Judge a masking by everything that the plan asks."""
    with case.stages.stage("audit"):
        found = audited(case, masking, risks)
    wider = [said for model in case.plan.models if (said := too_wide(model, masking))]
    failed = [f"the audit fails by {one.check}: {one.said}" for one in found.failures]
    return Verdict((*case.judge.reasons(risks), *wider, *failed), found)


def audited(case: Situation, masking: Masking, risks: Risks) -> Audit:
    """Audit a masking as the plan says."""
    from ..checks import audit

    own = case.plan.audit
    earlier = () if case.earlier is None else (case.earlier,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskwellWarning)
        return audit(masking, limits=own.limits, risks=risks, earlier=earlier, largest=own.largest)


def too_wide(model: ModelPlan, masking: Masking) -> str:
    """Say where the intervals of a model are forecast to widen by more than the plan allows."""
    if model.at_most_wider is None:
        return ""
    wider = widening(model, masking)
    if wider is None:
        return f"{model.formula}: by how much its intervals widen cannot be forecast, so the bound is not known to hold"
    name, share = wider
    if share <= model.at_most_wider * (1 + 1e-9):
        return ""
    much = f"by {share:.0%}" if isfinite(share) else "beyond all measure"
    return (
        f"{model.formula}: the interval of {name} widens {much}, allowed is {model.at_most_wider:.0%}: less noise, or "
        "a wider bound"
    )


def widening(model: ModelPlan, masking: Masking) -> tuple[str, float] | None:
    """Return the coefficient whose interval widens most, and by which share; nothing where it cannot be forecast."""
    from ..analysis import forecast

    try:
        found = forecast(model.formula, masking.truth, masking.card, family=model.family)
    except MaskwellError:
        return None
    slopes = {name: share for name, share in found.widening.items() if name != INTERCEPT} or found.widening
    return max(slopes.items(), key=lambda one: one[1]) if slopes else None


def compared(plan: ReleasePlan, masking: Masking) -> Any:
    """Compare a masking with its truth as the plan says."""
    from ..utility import Model, compare

    models = tuple(Model(one.formula, one.family, one.at_most_wider) for one in plan.models)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskwellWarning)
        return compare(masking, models=models, groups=plan.utility.groups)
