"""Mask the same small file as test_stored.py does and write it; the environment may ask for death on the way."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

from maskwell.masking import Masking, apply
from maskwell.masks import IndependentNoise
from maskwell.schema import Column, Schema
from maskwell.table import Table


def masked(seed: int) -> Masking:
    """Mask forty records."""
    schema = Schema((Column("ID", "text", frozenset({"id"})), Column("A", "continuous")))
    frame = pa.table({"ID": [f"r{i}" for i in range(40)], "A": np.arange(40.0)})
    return apply(IndependentNoise("A", variance=4.0), Table.from_frame(frame, schema), seed=seed)


if __name__ == "__main__":
    root = Path(sys.argv[1])
    masked(int(sys.argv[2])).write(release=root / "release", private=root / "private", format="csv")
