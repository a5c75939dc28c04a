"""The table of costs in `maskwell.pipeline.costs`, measured: what each default intruder takes, and what the table says.

One made-up file for each row: amounts with noise of three quarters of their sd, in one block or in many, in fine steps
or in steps as coarse as the noise, attacked once under the clock of the processor. `ratio` is the table's figure
divided by what was measured: from 1 on the budget of a plan is kept, below it the table must be raised.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from _harness import arguments, best, report

from maskwell.attacks import Linkage, Sample
from maskwell.attacks.attack_run import attack_by
from maskwell.attacks.linkage.em import EM
from maskwell.errors import MaskwellError, MaskwellWarning
from maskwell.keys import Key
from maskwell.masking import apply
from maskwell.masks import CorrelatedNoise, MixtureNoise
from maskwell.pipeline.attack_counts import counts_of
from maskwell.pipeline.costs import attack_seconds, mask_seconds
from maskwell.pipeline.intruders import default_intruders
from maskwell.schema import Column, Schema
from maskwell.table import Table

SIZES = (
    (1_000, 4, 1, "normal"),
    (1_000, 12, 1, "mixture"),
    (4_000, 12, 40, "normal"),
    (4_000, 12, 40, "mixture"),
    (15_000, 22, 100, "normal"),
    (15_000, 22, 100, "mixture"),
    (20_000, 5, 20, "normal"),
    (300_000, 5, 1_000, "normal"),
    # Units in sds of the noise; the finer are points for trees, the coarser cells, in parts where pairs are many
    (4_000, 3, 8, "units of 0.5"),
    (4_000, 3, 8, "units of 1"),
    (4_000, 3, 8, "units of 2"),
    (4_000, 3, 8, "units of 4"),
    (4_000, 5, 8, "units of 1"),
    (4_000, 5, 8, "units of 2"),
    (15_000, 3, 3, "units of 1"),
    (15_000, 3, 3, "units of 2"),
    (15_000, 3, 3, "units of 4"),
    (15_000, 5, 6, "units of 2"),
)
SMALL = ((400, 4, 1, "normal"), (600, 12, 6, "mixture"), (400, 3, 2, "units of 2"))
SD_RATIO = 0.75  # of the noise
SAMPLE = 1_000
STEPS = 500  # of EM, which else goes on until it rests


def made_up(records: int, fields: int, blocks: int, unit: float) -> Table:
    """Make a table of correlated amounts in blocks, in steps of a unit."""
    rng = np.random.default_rng(1)
    shared, labels = rng.standard_normal(records), [f"b{i:04d}" for i in range(blocks)]
    data: dict[str, Any] = {"BLOCK": pa.array(rng.choice(labels, records))}
    columns = [Column("BLOCK", "category", frozenset({"block"}), categories=tuple(labels))]
    for j in range(fields):
        amounts = 1000 + 100 * (shared + 2 * rng.standard_normal(records))
        data[f"X{j}"] = pa.array(np.round(np.round(amounts / unit) * unit, 1))
        columns.append(Column(f"X{j}", "continuous", frozenset({"key"}), unit=unit))
    return Table.from_frame(pa.table(data), Schema(tuple(columns)))


def rows_of(records: int, fields: int, blocks: int, noise: str) -> list[dict[str, Any]]:
    """Measure the masking and every default intruder on one file."""
    table, columns = made_up(records, fields, blocks, _unit(noise)), tuple(f"X{j}" for j in range(fields))
    mask = (
        MixtureNoise(columns, 0.56, 0.2)
        if noise == "mixture"
        else CorrelatedNoise(columns, sd_ratio=SD_RATIO)
    )
    seconds = best(lambda: apply(mask, table, key=Key.from_seed(1)).release, 2)
    masking, card = apply(mask, table, key=Key.from_seed(1)), mask.card(table)
    size = f"{records:,} x {fields}, blocks {blocks}, {noise}"
    out = [_row(f"mask, {size}", seconds, mask_seconds(records, fields))]
    for name, plan in default_intruders({"targets": Sample(SAMPLE)}).items():
        own = replace(plan, weights=EM(iterations=STEPS)) if isinstance(plan, Linkage) else plan
        try:
            seconds = best(lambda own=own: attack_by(own, masking), 1)
        except MaskwellError:  # too many records in a block for this intruder
            continue
        out.append(_row(f"{name}, {size}", seconds, attack_seconds(own, counts_of(own, table, card), SAMPLE)))
    return out


def _unit(noise: str) -> float:
    """Return the step of amounts whose sd is 100 times the root of five, fine or as the noise's name says."""
    return (
        round(float(noise.removeprefix("units of ")) * SD_RATIO * 5**0.5 * 100) if "units" in noise else 0.1
    )


def _row(job: str, seconds: float, table: float) -> dict[str, Any]:
    return {
        "job": job,
        "seconds": seconds,
        "rival": "table",
        "rival_seconds": table,
        "ratio": table / seconds,
    }


def main() -> None:
    """Measure and print."""
    own = arguments(__doc__ or "")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskwellWarning)
        for size in SMALL:  # compiles what is not compiled yet
            rows_of(*size)
        rows = [row for size in (SMALL if own.quick else SIZES) for row in rows_of(*size)]
    report("costs", rows, as_json=own.json)


if __name__ == "__main__":
    main()
