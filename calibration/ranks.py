"""Simulation-based calibration (Talts and others 2018): where a true parameter ranks among draws of its posterior."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from products import CODES, FAMILIES, NUMBERS, Setting, World
from scipy import stats

DRAWS, RECORDS, BINS = 39, 20, 8
FORGOTTEN, PILOT = 200, 80  # first sweeps of a chain, and those that tell how far apart its draws must be
LONGEST, ENOUGH = (
    2560,
    12,
)  # a pilot is doubled up to so many sweeps, until it has so many times its correlation time
CLOSEST, FARTHEST = 6, 400  # sweeps between two draws
ORDINARY = 100.0  # files with a larger count or amount are passed over
INTERVALS = {0.5: (10, 29), 0.8: (4, 35), 0.95: (1, 38)}  # ranks 0 to 39 inside a central interval


def setting_of(family: str, law: str) -> Setting:
    """Return the model of a family with a law on its predictors."""
    response, kind = FAMILIES[family]
    if law in NUMBERS:
        mask, schema = NUMBERS[law]
        return Setting(f"{response} ~ x1 + w", kind, mask, records=RECORDS, **schema)
    return Setting(f"{response} ~ m + w", kind, CODES[law], records=RECORDS)


def ranks_of(
    family: str, law: str, files: int, seed: int
) -> tuple[tuple[str, ...], NDArray[np.int64], float]:
    """Return the names of the parameters of interest, their ranks (files x parameters), sweeps between draws (mean).

    Draws that go together would rank the truth too far out, so that each file has as many sweeps between them as its
    own chain needs.
    """
    from maskwell.analysis.samplers.gibbs.chain_record import names_of, values_of

    world = World(setting_of(family, law), seed)
    part, chain = world.plan.laid_out.parts[-1], world.chain

    def after(sweeps: int) -> NDArray[np.float64]:
        for _ in range(sweeps):
            world.step()
        return values_of(chain, part).copy()

    ranks, apart = [], []
    for _ in range(files):
        draw_ordinary(world)
        truth = values_of(chain, part).copy()
        world.begin()  # not at the truth
        apart.append(sweeps_apart(after))
        after(2 * apart[-1])
        ranks.append(sum(after(apart[-1]) < truth for _ in range(DRAWS)))
    return names_of(world.system, part), np.array(ranks, np.int64), float(np.mean(apart))


def draw_ordinary(world: World) -> None:
    """Draw a file of the joint distribution whose response and released values are of ordinary size.

    The priors of residual sds have heavy tails, and counts of 10^17 pin a chain for longer than anyone waits.
    The truth has uniform ranks among posterior draws given any set of data: passing files over by what is seen of
    them, and by nothing else, leaves the test exact.
    """
    while True:
        world.fresh()
        seen = [world.chain.state[:, -1], *world.z.values()]
        if max(np.nanmax(np.abs(values)) for values in seen) <= ORDINARY:
            return


def sweeps_apart(after: Callable[[int], NDArray[np.float64]]) -> int:
    """Return how many sweeps must lie between two draws, from the chain's own first ones."""
    after(FORGOTTEN)
    length = PILOT
    while True:
        pilot = np.array([after(1) for _ in range(length)])
        time = max(map(correlation_time, pilot.T))
        if ENOUGH * time <= length or length >= LONGEST:
            return int(np.clip(np.ceil(2.0 * time), CLOSEST, FARTHEST))
        length *= 2


def correlation_time(values: NDArray[np.float64]) -> float:
    """Return how many draws have the worth of one (Geyer's initial positive sequence)."""
    away = values - values.mean()
    power = np.abs(np.fft.rfft(away, 2 * len(away))) ** 2
    lags = np.fft.irfft(power)[: len(away)]
    if lags[0] <= 0.0:
        return 1.0
    pairs = (lags[1:-1:2] + lags[2::2]) / lags[0]
    end = np.flatnonzero(pairs < 0.0)
    return float(1.0 + 2.0 * pairs[: end[0] if len(end) else None].sum())


def judged(ranks: NDArray[np.int64]) -> dict[str, Any]:
    """Return chi-square p-values against uniform ranks, and how often central intervals hold the truth."""
    counts = np.stack([np.bincount(own * BINS // (DRAWS + 1), minlength=BINS) for own in ranks.T])
    p_values = stats.chisquare(counts, axis=1).pvalue
    inside = {level: (ranks >= low) & (ranks <= high) for level, (low, high) in INTERVALS.items()}
    away = {str(level): found.mean(axis=1) - level for level, found in inside.items()}
    return {
        "p": [round(float(p), 6) for p in p_values],
        "held": {str(level): found.sum(axis=0).tolist() for level, found in inside.items()},
        "files' shares": {k: [round(own.sum(), 6), round((own**2).sum(), 6)] for k, own in away.items()},
        "files": len(ranks),
        "bins": counts.tolist(),
    }


def binomial_limits(level: float, files: int, tests: int, chance: float = 0.001) -> tuple[float, float]:
    """Return the counts between which coverage lies, but for a chance over all tests (Bonferroni)."""
    law = stats.binom(files, level)
    return float(law.ppf(chance / 2 / tests)), float(law.isf(chance / 2 / tests))
