"""Plan files: what to read, how to mask it, what is tolerated, where to write; every error is listed at once."""

from .command_plans import AttackPlan, CalibrationPlan
from .fit_plan import FitPlan
from .mask_plan import KEYS, InputPlan, MaskPlan, NoisePlan, OutputPlan
from .parser import type_words
from .release_plan import ReleasePlan
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
    "AttackPlan",
    "AuditPlan",
    "CalibratePlan",
    "CalibrationPlan",
    "CardPlan",
    "FitPlan",
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
    "type_words",
]
