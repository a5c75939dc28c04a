"""A masking whose intruder succeeds often, and the intruder."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.attacks.protocol import Attack, Guess
from maskwell.schema import Column, Schema

FIELDS = ("INCOME", "TAX", "AGE")
LINKAGE = mw.Linkage(fields=FIELDS, match_blocks=("REGION", "SEX"), weights=mw.attacks.Fixed())
SMALL = Schema(
    (
        Column("ID", "text", frozenset({"id"})),
        Column("BLOCK", "category", frozenset({"block"}), categories=tuple("abcd")),
        Column("A", "continuous", frozenset({"key"})),
        Column("B", "continuous", frozenset({"key"})),
        Column("ANSWER", "text"),
    )
)
KNOWN = Column("INCOME", "continuous", frozenset({"key"}), unit=0.01, top=90_000, missing=(-9,))


def quietly(work: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        return work()


@pytest.fixture(scope="session")
def linkage() -> mw.Linkage:
    return LINKAGE


@pytest.fixture(scope="session")
def masked(make_people) -> Any:
    """Return a function that masks people by little noise, as they are or in another order."""

    def make(mask: Any = None, records: int = 240, order: Any = None, seed: int = 5) -> mw.Masking:
        people = make_people(records)
        people = replace(people, schema=people.schema.changed({"INCOME": KNOWN}))
        table = people if order is None else people.take(order)
        return quietly(lambda: mw.apply(mask or mw.CorrelatedNoise(FIELDS, sd_ratio=0.1), table, seed=seed))

    return make


@pytest.fixture(scope="session")
def masking(masked) -> mw.Masking:
    return masked()


@pytest.fixture(scope="session")
def small() -> Any:
    """Return a function that makes a masking of a few records with next to no noise, by block and two amounts."""

    def make(blocks: str, a: list[float], b: list[float]) -> mw.Masking:
        ids = [f"p{i}" for i in range(len(blocks))]
        data = pa.table(
            {
                "ID": ids,
                "BLOCK": list(blocks),
                "A": a,
                "B": b,
                "ANSWER": [f"answer {i}" for i in range(len(blocks))],
            }
        )
        mask = mw.IndependentNoise(("A", "B"), variance_ratio=1e-12)
        return quietly(lambda: mw.apply(mask, mw.Table.from_frame(data, SMALL), seed=2))

    return make


@dataclass(frozen=True)
class Closest(Attack):
    """A plan that is none of ours: the released record closest in TAX, among all; ties shared."""

    to_masked: bool = True

    def to_dict(self) -> dict[str, Any]:
        return {"attack": "Closest"}

    def guess(self, known: Any, release: mw.Release, order_of: Any) -> Guess:
        x, z = (np.nan_to_num(table.floats("TAX"), nan=-1e9) for table in (known.targets, release.table))
        order = order_of(release.table)
        far = np.abs(x[:, None] - z[None, :])
        best = far.min(axis=1)

        def partners(record: int) -> Any:
            ranked = order[np.argsort(far[record][order], kind="stable")]
            return ranked[far[record][ranked] > best[record]]

        guess = Guess(
            searcher=np.arange(len(x)),
            found=order[np.argmin(far[:, order], axis=1)],
            score=-best,
            ties=(far == best[:, None]).sum(axis=1),
            candidates=np.full(len(x), len(z)),
            claimed=best < 1e8,
            kind=np.zeros(len(x), np.int64),
            kinds=("closest",),
            is_tied=lambda rows, found: far[rows, found] == best[rows],
            in_block=lambda rows, found: np.ones(len(rows), bool),
            partners=partners,
            figures={"fields": ("TAX",)},
        )
        return guess if self.to_masked else replace(guess, to_masked=False)


@pytest.fixture(scope="session")
def closest() -> Closest:
    return Closest()
