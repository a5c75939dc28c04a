"""One small problem for each family: our posterior beside NumPyro's, whose NUTS samples the true values.

200 records, a predictor with noise of half its variance and a clean one; the priors are tight, so that one that is not
what it says would show. Printed: posterior means and sds of both, and their differences in Monte Carlo standard errors.
The script ends with 1 when one is beyond what chance allows (Bonferroni, 1 in 1,000 over all). `--json`, and
`--family NAME` for one alone. Needs numpyro in the same environment (see `fit.py`).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from _fit_contestants import maskwell, numpyro
from _fit_jobs import Job, Ops, Site, informed, log_phi, normal

COUNT = 200
SLOPE_SD, LINK_SD, SD_SCALE, SHAPE_LOG_SD = (
    0.5,
    0.5,
    0.5,
    0.5,
)  # of the priors; see `maskwell.analysis.priors`
CUT_SD = 10.0  # of the normal priors of cuts
WIDE = 1_000.0  # as good as flat
CHANCE = 1e-3


# The models, for NUTS.


def gaussian(p: Mapping[str, Any], eta: Any, y: Any, ops: Ops) -> Any:
    """Return log densities of a normal response."""
    return normal(y, eta, p["sigma"], ops)


def probit(p: Mapping[str, Any], eta: Any, y: Any, ops: Ops) -> Any:
    """Return log chances of a binary response."""
    return log_phi(eta * (2 * y - 1), ops)


def logit(p: Mapping[str, Any], eta: Any, y: Any, ops: Ops) -> Any:
    """Return log chances of a binary response."""
    return -ops.softplus(eta * (1 - 2 * y))


def poisson(p: Mapping[str, Any], eta: Any, y: Any, ops: Ops) -> Any:
    """Return log chances of a count, without the constant."""
    return y * eta - ops.exp(eta)


def negative_binomial(p: Mapping[str, Any], eta: Any, y: Any, ops: Ops) -> Any:
    """Return log chances of a count with variance mean + mean^2 / shape."""
    shape = ops.exp(p["log_shape"])
    total = ops.logaddexp(eta, p["log_shape"] + 0 * eta)
    chances = ops.gammaln(y + shape) - ops.gammaln(shape) + shape * (p["log_shape"] - total)
    return chances + y * (eta - total)


def ordered(p: Mapping[str, Any], eta: Any, y: Any, ops: Ops) -> Any:
    """Return log chances of one of three categories; the prior of the cuts is shared out over the records."""
    low, high = p["cut"], p["cut"] + ops.exp(p["log_gap"])
    below, above = 0.5 * ops.erfc((eta - low) / np.sqrt(2)), 0.5 * ops.erfc((high - eta) / np.sqrt(2))
    chance = (y == 0) * below + (y == 1) * (1 - below - above) + (y == 2) * above
    prior = -0.5 * (low**2 + high**2) / CUT_SD**2 + p["log_gap"]
    return ops.log(chance) + prior / COUNT


FAMILIES: dict[str, Callable[..., Any]] = {
    "gaussian": gaussian,
    "probit": probit,
    "logit": logit,
    "ordered": ordered,
    "poisson": poisson,
    "negative binomial": negative_binomial,
}


def density(family: str, p: Mapping[str, Any], data: Mapping[str, Any], ops: Ops) -> Any:
    """Return the log density of what was released."""
    mean = p["gamma"][0] + p["gamma"][1] * data["w"]
    true, released = informed(data["z"], data["noise"][0], mean, p["tau"], p["e"], ops)
    eta = p["beta"][0] * true + p["beta"][1] * data["w"]
    if family != "ordered":
        eta = eta + p["intercept"]
    return (released + FAMILIES[family](p, eta, data["y"], ops)).sum()


def priors(width: float, columns: list[Any], size: float) -> tuple[Any, float]:
    """Return the prior sds of slopes and of the intercept, by what the other columns leave of each."""
    left = np.sqrt(1.0 / np.diag(np.linalg.inv(np.atleast_2d(np.cov(columns, ddof=0)))))
    away = sum((column.mean() / own) ** 2 for column, own in zip(columns, left, strict=True))
    return width * size / left, width * size * float(np.sqrt(1 + away))


def sites(family: str, data: Mapping[str, Any]) -> Iterator[Site]:
    """Describe the parameters with their priors."""
    is_gaussian = family == "gaussian"
    y, columns = data["y"], [data["z"], data["w"]]
    slopes, level = priors(SLOPE_SD if is_gaussian else LINK_SD, columns, y.std() if is_gaussian else 1.0)
    yield Site("beta", "normal", (2,), slopes)
    if family == "ordered":
        yield Site("cut", "normal", (), WIDE)
        yield Site("log_gap", "normal", (), WIDE)
    else:
        yield Site("intercept", "normal", (), level, y.mean() if is_gaussian else 0.0)
    if is_gaussian:
        yield Site("sigma", "positive", (), SD_SCALE * y.std())
    if family == "negative binomial":
        yield Site("log_shape", "normal", (), SHAPE_LOG_SD)
    slopes, level = priors(SLOPE_SD, columns[1:], data["z"].std())
    yield Site("gamma", "normal", (2,), np.array([level, slopes[0]]), np.array([data["z"].mean(), 0.0]))
    yield Site("tau", "positive", (), SD_SCALE * data["z"].std())
    yield Site("e", "standard", (COUNT,))


# The files.


def response(family: str, eta: Any, rng: np.random.Generator) -> Any:
    """Draw responses."""
    if family == "poisson":
        return rng.poisson(np.exp(eta)).astype(float)
    if family == "negative binomial":
        return rng.poisson(np.exp(eta) * rng.gamma(2.0, 0.5, COUNT)).astype(float)
    noisy = eta + (rng.logistic(size=COUNT) if family == "logit" else rng.normal(size=COUNT))
    if family == "gaussian":
        return noisy
    return np.digitize(noisy, [-0.3, 0.9] if family == "ordered" else [0.0]).astype(float)


def job_of(family: str) -> Job:
    """Draw a file, noise a predictor and describe the model."""
    import pandas as pd

    import maskwell as mw

    rng = np.random.default_rng(7)
    w = rng.normal(size=COUNT)
    x = 0.8 + 0.5 * w + rng.normal(size=COUNT)
    y = response(family, 0.2 + 0.7 * (x - 0.8) - 0.4 * w, rng)
    frame = pd.DataFrame({"y": y, "x": x, "w": w})
    if family in ("probit", "logit", "ordered"):
        frame["y"] = np.array(["a", "b", "c"])[y.astype(int)]
    table = mw.Table.from_frame(frame)
    if family in ("poisson", "negative binomial"):  # a few whole numbers would be taken for a category
        schema = table.schema.changed({"y": mw.Column("y", "continuous")})
        table = mw.Table.from_frame(frame, schema)
    release = mw.apply(mw.IndependentNoise(("x",), variance_ratio=0.5), table, seed=7).release
    data = {name: release.table.floats(column) for name, column in (("y", "y"), ("z", "x"), ("w", "w"))}
    data["noise"] = release.card.laws[0].noise.sds
    others: dict[str, tuple[str, int | None]] = {"Intercept": ("intercept", None)}
    if family == "ordered":
        others = {"cut[1]": ("cut", None), "cut[2]": ("second cut", None)}
    elif family == "gaussian":
        others |= {"sigma": ("sigma", None)}
    elif family == "negative binomial":
        others |= {"shape": ("shape", None)}
    return Job(
        family,
        "y ~ x + w",
        family,
        release,
        data,
        tuple(sites(family, data)),
        partial(density, family),
        {"x": ("beta", 0), "w": ("beta", 1)},
        others,
        derived,
    )


def derived(drawn: dict[str, Any]) -> dict[str, Any]:
    """Add what we have in another form."""
    if "cut" in drawn:
        drawn["second cut"] = drawn["cut"] + np.exp(drawn["log_gap"])
    if "log_shape" in drawn:
        drawn["shape"] = np.exp(drawn["log_shape"])
    return drawn


# The comparison.


def compared(family: str, draws: int) -> Iterator[dict[str, Any]]:
    """Fit a file both ways; yield a row for each parameter."""
    from maskwell.analysis.priors import Priors

    job = job_of(family)
    given = Priors(SLOPE_SD, LINK_SD, SD_SCALE, SHAPE_LOG_SD)
    ours = maskwell(job, {"chains": 4, "draws": 2 * draws, "options": {"priors": given}})["values"]
    theirs = numpyro(job, {"chains": 4, "warm_up": 500, "draws": draws})["values"]
    for place, name in enumerate((*job.slopes, *job.others)):
        mine, other = ours[:, :, place], theirs[:, :, place]
        row = {"family": family, "parameter": name, "mean": mine.mean(), "rival_mean": other.mean()}
        row |= {"sd": mine.std(), "rival_sd": other.std()}
        row |= {"z_of_mean": standardised(mine, other, "mean"), "z_of_sd": standardised(mine, other, "sd")}
        yield {key: value if isinstance(value, str) else float(value) for key, value in row.items()}


def standardised(mine: Any, other: Any, what: str) -> float:
    """Return a difference in Monte Carlo standard errors."""
    from arviz_stats.base import array_stats

    off = mine.mean() - other.mean() if what == "mean" else mine.std() - other.std()
    errors = [array_stats.mcse(one, chain_axis=0, draw_axis=1, method=what) for one in (mine, other)]
    return float(off / np.hypot(*errors))


def main() -> None:
    """Run the comparison."""
    from scipy.stats import norm

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one family alone")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--family", choices=FAMILIES, help="one family alone")
    parser.add_argument("--draws", type=int, default=2_000, help="NumPyro's draws of each chain")
    chosen = parser.parse_args()
    if find_spec("numpyro") is None:
        print("agreement: not run, because numpyro is not installed in this environment")
        return
    families = (chosen.family,) if chosen.family else tuple(FAMILIES)[: 1 if chosen.quick else None]
    rows = [row for family in families for row in compared(family, chosen.draws)]
    limit = float(norm.isf(CHANCE / 2 / (2 * len(rows))))
    if chosen.json:
        print(json.dumps({"benchmark": "agreement", "limit": limit, "rows": rows}, indent=1))
    else:
        for row in rows:
            figures = "  ".join(f"{key} {row[key]:8.4f}" for key in row if key not in ("family", "parameter"))
            print(f"{row['family']:18}{row['parameter']:10}  {figures}")
        print(f"limit {limit:.2f}")
    sys.exit(any(abs(row[key]) > limit for row in rows for key in ("z_of_mean", "z_of_sd")))


if __name__ == "__main__":
    main()
