"""How much noise: Moore's critical noise and the exact one, agreement along the noise, codes that may be relaxed."""

from __future__ import annotations

from .closed_form import FieldNoise, MooreNoise, uniform_agreement
from .codes import CodeFigure, RelaxedCode, relaxed_code, with_codes
from .critical import CriticalNoise, critical_noise
from .curve import FINE_R0, AgreementCurve, CurvePoint, agreement_curve

__all__ = [
    "FINE_R0",
    "AgreementCurve",
    "CodeFigure",
    "CriticalNoise",
    "CurvePoint",
    "FieldNoise",
    "MooreNoise",
    "RelaxedCode",
    "agreement_curve",
    "critical_noise",
    "relaxed_code",
    "uniform_agreement",
    "with_codes",
]
