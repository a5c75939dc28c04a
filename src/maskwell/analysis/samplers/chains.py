"""Several chains at once, on all cores: warmed up, recorded, and carried on until they agree.

Starts are dispersed around a first fit, so that R-hat can show what has not converged (Gelman and Rubin 1992). Each
chain sweeps by `gibbs.linear_gaussian` where that holds, else by `gibbs.sweeps`. Called by `choice` where no sampler in
closed form or with unknowns integrated out holds.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..priors import Priors
from ..results.draws import Draws
from ..system import System
from .gibbs.chain_record import Record, combine_chains
from .gibbs.layout import unknown_variables
from .gibbs.linear_gaussian import linear_gaussian_chain
from .gibbs.sweeps import GibbsChain, SweepPlan, plan_of, start, step

Progress = Callable[[int, int], None]
MOST_TRUTHS = 200  # draws of the true values kept of each chain


@dataclass(frozen=True, slots=True)
class ChainSettings:
    """How long chains run: `draws` of each after `warmup`, on so many `cores` (None: all).

    `quickly` takes the one loop of `gibbs.linear_gaussian` where it holds.
    """

    chains: int = 4
    draws: int = 1000
    warmup: int = 500
    cores: int | None = None
    keep_truths: bool = False
    keep_effects: bool = True
    quickly: bool = True


def run_gibbs(
    system: System,
    priors: Priors,
    running: ChainSettings,
    seed: np.random.SeedSequence,
    progress: Progress | None = None,
) -> Draws:
    """Run chains of Gibbs sampling from dispersed starts and return their draws."""
    plan = plan_of(system, priors)
    counter = _Counter(running.chains * (running.warmup + running.draws), progress)
    rngs = [np.random.Generator(np.random.SFC64(child)) for child in seed.spawn(running.chains)]
    cores = min(running.cores or os.cpu_count() or 1, running.chains)
    with ThreadPoolExecutor(cores) as pool:
        try:
            done = list(pool.map(lambda rng: _run(plan, running, rng, counter), rngs))
        except BaseException:  # said before the pool waits for the other chains
            counter.stop.set()
            raise
    evaluations = sum(chain.slices for chain, _ in done)
    info = {"slice evaluations": evaluations} if evaluations else {}
    return combine_chains(plan, [record for _, record in done], describe_kernels(plan), info)


def _run(
    plan: SweepPlan, running: ChainSettings, rng: np.random.Generator, counter: _Counter
) -> tuple[GibbsChain, Record]:
    quickly = running.quickly
    chain = start(plan, rng)
    quick = linear_gaussian_chain(chain) if quickly else None
    move = partial(step, chain) if quick is None else quick.step
    for _ in range(running.warmup):
        move()
        counter()
    truths = min(running.draws, MOST_TRUTHS) if running.keep_truths else 0
    record = Record.of(plan, running.draws, truths, effects=running.keep_effects)
    for t in range(running.draws):
        move()
        if quick is not None and truths:
            quick.tell_state()
        record.keep(chain, t)
        counter()
    return chain, record


class _Counter:
    """Counts the steps of all chains, tells of them, and stops the chains when one fails."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.total, self.progress = total, progress
        self.done, self.lock, self.stop = 0, threading.Lock(), threading.Event()

    def __call__(self) -> None:
        if self.stop.is_set():
            raise InterruptedError("another chain failed")
        if self.progress is None:
            return
        with self.lock:
            self.done += 1
            if self.done % max(self.total // 200, 1) == 0 or self.done == self.total:
                self.progress(self.done, self.total)


def describe_kernels(plan: SweepPlan) -> str:
    """Say in words which kernels a plan uses."""
    laid_out, system = plan.laid_out, plan.system
    if not unknown_variables(system):
        ways = []
    else:
        ways = ["categories by enumeration"] if laid_out.categories else []
        if system.is_count_unknown:
            ways.append(f"{system.variables[system.interest.response].name} among the whole numbers")
        blocks = (*laid_out.early, *laid_out.late)
        exact = [block for block in blocks if not len(block.other) and not block.spread]
        sliced = [block for block in blocks if len(block.other) or block.spread]
        if exact:
            ways.append("numbers from their normal conditional")
        if sliced:
            names = [system.variables[j].name for block in sliced for j in block.variables]
            ways.append(f"{', '.join(names)} by elliptical slices")
    return "Gibbs" + (f" ({'; '.join(ways)})" if ways else "")
