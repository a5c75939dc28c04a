"""What is calibrated: models for every kernel and family, masks for every law."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "analysis"))

from geweke import Setting, World, differences, limit, scores

from maskwell.laws import Power, Step
from maskwell.masks import (
    BiasNoise,
    Chain,
    CodeNoise,
    Coding,
    CorrelatedNoise,
    Grouping,
    IndependentNoise,
    MixtureNoise,
    Pram,
)

__all__ = [
    "CODES",
    "FAMILIES",
    "KERNELS",
    "NUMBERS",
    "Setting",
    "World",
    "differences",
    "limit",
    "scores",
    "settings_of",
]

BOTH = ("x1", "x2")
MIXED: dict[str, Any] = {"variance_ratio": 1.2, "within_variance_ratio": 0.4}
NOISE = IndependentNoise(BOTH, variance=0.5)
NUMBERS: dict[str, tuple[Any, dict[str, Any]]] = {  # masks of x1 and x2, and what the schema says of x1
    "independent": (NOISE, {}),
    "correlated": (CorrelatedNoise(BOTH, sd_ratio=0.9), {}),
    "moment-preserving": (CorrelatedNoise(BOTH, r0=0.6, keep="moments"), {}),
    "mixture": (MixtureNoise(BOTH, **MIXED), {}),
    "joint mixture": (MixtureNoise(BOTH, **MIXED, components=3, correlated=True), {}),
    "rotated mixture": (MixtureNoise(BOTH, **MIXED, correlated=True, construction="rotation"), {}),
    "Laplace": (IndependentNoise(BOTH, variance=0.5, shape="laplace"), {}),
    "normal bias": (BiasNoise(BOTH, 0.4, sd=0.4), {}),
    "lognormal bias": (BiasNoise(BOTH, 0.3, sd=0.4, shape="lognormal"), {}),
    "clamped": (IndependentNoise(BOTH, variance=0.5, limits=(("x1", 0.0, 1.0),)), {}),
    "coded after noise": (Chain((NOISE, Coding(("x1",), top=0.9))), {}),
    "coded before noise": (NOISE, {"top": 1.0}),
    "coded, no noise": (Coding(("x1",), top=0.8), {}),
    "classes": (Grouping(("x1",), breaks=(0.0, 0.6, 1.2)), {}),
    "coarse unit": (NOISE, {"unit": 1.0}),
    "log scale": (IndependentNoise(BOTH, variance=0.3, transform="log"), {}),
    "step": (IndependentNoise(BOTH, variance=0.5, spread=Step((0.3,), (0.5, 1.5))), {}),
    "power": (IndependentNoise(BOTH, variance=0.3, spread=Power(0.5, 0.2)), {}),
}
CODES: dict[str, Any] = {
    "code noise, clamped": CodeNoise(("k", "m"), variance=0.3),
    "code noise, rounded": CodeNoise(("k", "m"), variance=0.3, rounded=True),
    "PRAM": Pram(("k", "m"), stay=0.75),
}
KERNELS: dict[
    str, tuple[str, str, dict[str, Any]]
] = {  # the right side of a model of numbers, its family, more
    "normal": ("y ~ x1 + x2", "gaussian", {}),
    "coordinate blocks": ("y ~ x1*x2", "gaussian", {}),
    "slices": ("y ~ x1 + I(x1**2)", "gaussian", {}),
    "slices beside numbers": ("y ~ x2 + I(x1**2)", "gaussian", {}),
    "probit": ("b ~ x1 + w", "probit", {}),
    "logit": ("b ~ x1 + w", "logit", {}),
    "ordered": ("o ~ x1 + w", "ordered", {}),
    "poisson": ("c ~ x1 + w", "poisson", {}),
    "negative binomial": ("c ~ x1", "negative binomial", {}),
    "group intercepts": ("y ~ x1 + (1|school)", "gaussian", {"records": 16}),
    "group slopes": ("y ~ x1 + (x1|school)", "gaussian", {"records": 16}),
    "nested groups": ("y ~ x1 + (1|school) + (1|school:room)", "gaussian", {"records": 16}),
    "missing cells": ("y ~ x1 + x2", "gaussian", {"missing": ("x2", "y", "x1")}),
}
FAMILIES: dict[str, tuple[str, str]] = {
    "probit": ("b", "probit"),
    "logit": ("b", "logit"),
    "ordered": ("o", "ordered"),
    "poisson": ("c", "poisson"),
    "negative binomial": ("c", "negative binomial"),
    "gaussian": ("y", "gaussian"),
}


def settings_of(kernel: str, law: str) -> Setting | None:
    """Return the product of a kernel and a law, nothing where the two do not meet."""
    formula, family, more = KERNELS[kernel]
    if law in NUMBERS:
        mask, schema = NUMBERS[law]
        if "missing" in more and "unit" in schema:
            return None  # the table of the harness has no missing values on a coarse unit
        return Setting(formula, family, mask, **schema, **more)
    if kernel in ("coordinate blocks", "slices", "slices beside numbers", "group slopes"):
        return None  # kernels of numbers
    formula = formula.replace("x1", "k").replace("x2", "m")
    more = {
        name: tuple(x.replace("x1", "k").replace("x2", "m") for x in v) if name == "missing" else v
        for name, v in more.items()
    }
    return Setting(formula, family, CODES[law], **more)
