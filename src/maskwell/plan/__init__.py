"""Plan files: what to read, how to mask it, what is tolerated, where to write; every error is listed at once."""

from .building import wanted
from .noise import KEYS, InputPlan, MaskPlan, NoisePlan, OutputPlan
from .release import ReleasePlan
from .sections import (
    DEFAULT_INTRUDERS,
    AuditPlan,
    CalibratePlan,
    CardPlan,
    ModelPlan,
    ReportPlan,
    SwapPlan,
    TargetsPlan,
    TolerancePlan,
    UtilityPlan,
)

__all__ = [
    "DEFAULT_INTRUDERS",
    "KEYS",
    "AuditPlan",
    "CalibratePlan",
    "CardPlan",
    "InputPlan",
    "MaskPlan",
    "ModelPlan",
    "NoisePlan",
    "OutputPlan",
    "ReleasePlan",
    "ReportPlan",
    "SwapPlan",
    "TargetsPlan",
    "TolerancePlan",
    "UtilityPlan",
    "wanted",
]
