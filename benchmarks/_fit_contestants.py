"""The contestants of `fit.py`, each run in a process of its own: `python _fit_contestants.py JOB WHO PLAN OUT`.

PLAN is JSON: chains, warm_up and draws (of each chain). OUT is a .npz file: values [chains, draws, parameters] in the
order of the job's slopes and other parameters, and the processor seconds of all threads for compiling, warming up and
sampling.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from _fit_jobs import HALF_T, JOBS, Job, Ops

STRETCH = 25  # draws of NumPyro that are compiled as one call
LEAST = 4  # draws of ours that show what comes before drawing
WHOSE = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
SINGLE = "--xla_cpu_multi_thread_eigen=false"


def processor_seconds() -> float:
    """Return the processor seconds of all threads, and of child processes that have ended."""
    used = [resource.getrusage(whose) for whose in WHOSE]
    return sum(one.ru_utime + one.ru_stime for one in used)


def chosen(job: Job, drawn: Mapping[str, Any]) -> Any:
    """Return [chains, draws, parameters] of the slopes and the other named parameters."""
    wanted, drawn = {**job.slopes, **job.others}, job.derived(dict(drawn))
    parts = [drawn[name] if place is None else drawn[name][..., place] for name, place in wanted.values()]
    return np.stack([np.asarray(part) for part in parts], axis=-1)


def numpyro(job: Job, plan: Mapping[str, Any]) -> dict[str, Any]:
    """Run NumPyro's NUTS in double precision, one chain after the other, in compiled stretches."""
    os.environ["XLA_FLAGS"] = SINGLE
    import jax
    from jax import random

    jax.config.update("jax_enable_x64", not plan.get("single", False))
    data = {name: jax.numpy.asarray(value) for name, value in job.data.items()}
    start = processor_seconds()
    kernel, stretch = _numpyro_kernel(job)
    state = kernel.init(random.PRNGKey(0), plan["warm_up"], _start(job, 0), (data,), {})
    compiled = jax.jit(stretch).lower(state, data).compile()
    seconds = {"compile": processor_seconds() - start, "warm_up": 0.0, "sampling": 0.0}
    chains, steps = [], []
    for chain in range(plan["chains"]):
        start = processor_seconds()
        state = kernel.init(random.PRNGKey(chain), plan["warm_up"], _start(job, chain), (data,), {})
        for _ in range(plan["warm_up"] // STRETCH):
            state, _ = jax.block_until_ready(compiled(state, data))
        seconds["warm_up"] += processor_seconds() - start
        start, found = processor_seconds(), []
        for _ in range(plan["draws"] // STRETCH):
            state, (drawn, counts) = jax.block_until_ready(compiled(state, data))
            found.append(drawn)
            steps.append(np.asarray(counts))
        seconds["sampling"] += processor_seconds() - start
        chains.append({name: np.concatenate([part[name] for part in found]) for name in _kept(job)})
    positive = {site.name for site in job.sites if site.kind == "positive"}
    stacked = {name: np.stack([chain[name] for chain in chains]) for name in _kept(job)}
    values = chosen(job, {name: np.exp(v) if name in positive else v for name, v in stacked.items()})
    return {"values": values, **seconds, "steps": float(np.mean(steps))}


def _start(job: Job, chain: int) -> dict[str, Any]:
    """Return a start near the posterior: standard normals for latents, coefficients near 0 and sds near 1."""
    rng = np.random.default_rng(chain)
    sds = {site.name: 1.0 if site.kind == "standard" else 0.1 for site in job.sites}
    return {site.name: sds[site.name] * rng.standard_normal(site.shape) for site in job.sites}


def _variances(job: Job) -> Any:
    """Return guesses of posterior variances, in the order in which jax lays out the parameters.

    NumPyro starts from 1 for all of them: its first hundred trees have a thousand steps then, as latents do have a
    variance of 1 and parameters one of about 1 / n.
    """
    small = 10 / len(job.data["y"])
    laid_out = sorted(job.sites, key=lambda site: site.name)
    return np.concatenate(
        [np.full(int(np.prod(s.shape)), 1.0 if s.kind == "standard" else small) for s in laid_out]
    )


def _kept(job: Job) -> list[str]:
    """Name the parameters whose draws are kept: all but true values and group effects."""
    return [site.name for site in job.sites if site.kind != "standard"]


def _numpyro_kernel(job: Job) -> tuple[Any, Any]:
    """Return the kernel, and a function that draws a stretch."""
    from functools import partial

    import jax
    import jax.numpy as jnp
    from jax.scipy.special import erfc, gammaln
    from numpyro.infer import NUTS

    ops = Ops(jnp.exp, jnp.log, jnp.sqrt, erfc, jnp.logaddexp, jax.nn.softplus, gammaln)
    kernel = NUTS(_numpyro_model(job, ops), inverse_mass_matrix=jnp.asarray(_variances(job)))

    def one(data: Any, state: Any, _: Any) -> Any:
        state = kernel.sample(state, (data,), {})
        return state, ({name: state.z[name] for name in _kept(job)}, state.num_steps)

    def stretch(state: Any, data: Any) -> Any:
        return jax.lax.scan(partial(one, data), state, None, length=STRETCH)

    return kernel, stretch


def _numpyro_model(job: Job, ops: Ops) -> Any:
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

    def prior(site: Any) -> Any:
        if site.kind == "positive":
            law = dist.StudentT(HALF_T[0], 0.0, site.scale)
            return dist.FoldedDistribution(law).expand(list(site.shape)).to_event(len(site.shape))
        law = dist.Normal(jnp.asarray(site.mean), jnp.asarray(site.scale))
        return law.expand(list(site.shape)).to_event(len(site.shape))

    def model(data: Any) -> None:
        parameters = {site.name: numpyro.sample(site.name, prior(site)) for site in job.sites}
        numpyro.factor("released", job.density(parameters, data, ops))

    return model


def nutpie(job: Job, plan: Mapping[str, Any]) -> dict[str, Any]:
    """Run nutpie on the PyMC model, chain by chain on one core; the split at the warm-up is by gradients."""
    import warnings

    warnings.simplefilter("ignore", FutureWarning)
    import nutpie as library

    kept, start = _kept(job), processor_seconds()
    compiled = library.compile_pymc_model(_pymc_model(job), var_names=kept)
    seconds = {"compile": processor_seconds() - start}
    start = processor_seconds()
    trace = library.sample(
        compiled,
        draws=plan["draws"],
        tune=plan["warm_up"],
        chains=plan["chains"],
        cores=1,
        seed=1,
        progress_bar=False,
    )
    total = processor_seconds() - start
    before, after = (float(part["n_steps"].sum()) for part in (trace.warmup_sample_stats, trace.sample_stats))
    return {
        "values": chosen(job, {name: trace.posterior[name].values for name in kept}),
        **seconds,
        "warm_up": total * before / (before + after),
        "sampling": total * after / (before + after),
        "steps": after / (plan["chains"] * plan["draws"]),
    }


def _pymc_model(job: Job) -> Any:
    import pymc as pm
    import pytensor.tensor as pt

    ops = Ops(pt.exp, pt.log, pt.sqrt, pt.erfc, pt.logaddexp, pt.softplus, pt.gammaln)
    with pm.Model() as model:
        parameters = {}
        for site in job.sites:
            shape = site.shape or None
            if site.kind == "positive":
                law = pm.HalfStudentT(site.name, HALF_T[0], site.scale, shape=shape)
            else:
                law = pm.Normal(site.name, site.mean, site.scale, shape=shape)
            parameters[site.name] = law
        data = {name: value if name == "noise" else pt.as_tensor(value) for name, value in job.data.items()}
        pm.Potential("released", job.density(parameters, data, ops))
    return model


def maskwell(job: Job, plan: Mapping[str, Any]) -> dict[str, Any]:
    """Run our own fit without the unadjusted one beside it: to compile, with hardly a draw, and as asked."""
    from maskwell.analysis import fit

    def fitted(draws: int) -> tuple[float, Any]:
        start = processor_seconds()
        found = fit(job.formula, job.release, family=job.family, naive=False, draws=draws, **options)
        return processor_seconds() - start, found

    options = {"chains": plan["chains"], "seed": 1} | plan.get("options", {})
    first, _ = fitted(LEAST)
    warm_up, _ = fitted(LEAST)
    clock = time.perf_counter()
    whole, posterior = fitted(plan["draws"])
    wall = time.perf_counter() - clock
    names = list(posterior.draws.names)
    values = posterior.draws.values[:, :, [names.index(name) for name in (*job.slopes, *job.others)]]
    seconds = {"compile": max(first - warm_up, 0.0), "warm_up": warm_up, "sampling": whole, "wall": wall}
    return {"values": values, **seconds}


CONTESTANTS = {"maskwell": maskwell, "numpyro": numpyro, "nutpie": nutpie}


def main() -> None:
    """Run one contestant on one job."""
    name, who, plan, out = sys.argv[1:]
    job = JOBS[name]()
    found = CONTESTANTS[who](job, json.loads(plan))
    found["peak_mb"] = max(resource.getrusage(whose).ru_maxrss for whose in WHOSE) / 1e3
    np.savez(out, **found)


if __name__ == "__main__":
    main()
