"""How much noise: by closed form, exactly, and by a search for the weakest that meets a tolerance; what it costs."""

from __future__ import annotations

from .agreement_curves import FINE_R0, AgreementCurve, CurvePoint, agreement_curve
from .bounded_noise import TradeOff
from .bounds import Bound, IntervalWidening
from .calibrate import calibrate
from .closed_form import FieldNoise, MooreNoise, uniform_agreement
from .critical_noise_search import CriticalNoise, critical_noise
from .estimates import Estimate
from .expected_rates import ExpectedFigures, ExpectedRisk, expected_risk
from .losses import LOSSES, il1s, total_variance_ratio
from .relaxed_codes import CodeFigure, RelaxedCode, relaxed_code, with_codes
from .result import Calibration
from .risk_utility_frontier import Frontier, FrontierPoint, frontier
from .scale import scale_mask, scale_of
from .search_plan import Search
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
    "IntervalWidening",
    "MooreNoise",
    "RelaxedCode",
    "Search",
    "TradeOff",
    "Trial",
    "agreement_curve",
    "calibrate",
    "critical_noise",
    "expected_risk",
    "frontier",
    "il1s",
    "relaxed_code",
    "scale_mask",
    "scale_of",
    "total_variance_ratio",
    "uniform_agreement",
    "with_codes",
]
