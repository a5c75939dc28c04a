"""How much noise: by closed form, exactly, and by a search for the weakest that meets a tolerance; what it costs."""

from __future__ import annotations

from .bounds import Bound, Widening
from .calibrate import calibrate
from .calibrated import Calibration
from .closed_form import FieldNoise, MooreNoise, uniform_agreement
from .codes import CodeFigure, RelaxedCode, relaxed_code, with_codes
from .critical import CriticalNoise, critical_noise
from .curve import FINE_R0, AgreementCurve, CurvePoint, agreement_curve
from .estimates import Estimate
from .expected import ExpectedFigures, ExpectedRisk, expected_risk
from .frontier import Frontier, FrontierPoint, frontier
from .held_back import TradeOff
from .losses import LOSSES, il1s, total_variance_ratio
from .scaling import scale_of, scaled
from .trials import Trial

__all__ = [
    "FINE_R0",
    "LOSSES",
    "AgreementCurve",
    "Bound",
    "Calibration",
    "CodeFigure",
    "CriticalNoise",
    "CurvePoint",
    "Estimate",
    "ExpectedFigures",
    "ExpectedRisk",
    "FieldNoise",
    "Frontier",
    "FrontierPoint",
    "MooreNoise",
    "RelaxedCode",
    "TradeOff",
    "Trial",
    "Widening",
    "agreement_curve",
    "calibrate",
    "critical_noise",
    "expected_risk",
    "frontier",
    "il1s",
    "relaxed_code",
    "scale_of",
    "scaled",
    "total_variance_ratio",
    "uniform_agreement",
    "with_codes",
]
