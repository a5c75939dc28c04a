"""Whole jobs, in order: what the command line and the demo run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from .io import read
from .io.bundle import check_halves
from .masking import Masking, apply
from .masks import CorrelatedNoise
from .plan import MaskPlan, check_columns

if TYPE_CHECKING:
    from .io.dialect import Dialect
    from .io.inspect import Proposal
    from .masking.applying import Progress
    from .table import Table


def inspect_file(path: Path, *, encoding: str = "utf-8") -> tuple[Proposal, tuple[str, ...]]:
    """Propose a schema for a file, with what the reader found on the way."""
    from .io import load
    from .io.hints import as_categories, merged, without_codes
    from .io.inspect import propose

    raw = load(path, encoding=encoding)
    proposal = propose(without_codes(raw), decimal=raw.decimal)
    schema, said = merged(as_categories(proposal.schema, raw), raw)
    return replace(proposal, schema=schema), (*raw.notes, *said)


def check_folders(plan: MaskPlan) -> None:
    """Refuse, before any work, folders that cannot be written or that would overwrite the input."""
    inputs = [path for path in (plan.input.file, plan.input.schema) if path is not None]
    check_halves(plan.output.release, plan.output.private, inputs)


def mask_by_plan(plan: MaskPlan, *, seed: int | None = None, progress: Progress | None = None) -> Masking:
    """Read the file and mask it as the plan says; nothing is written."""
    table = read(
        plan.input.file,
        plan.input.schema,
        format=plan.input.format,
        dialect=_dialect(plan),
        encoding=plan.input.encoding,
    )
    check_columns(plan.masks, table.schema)
    return apply(plan.mask, table, seed=seed, earlier=_earlier(plan), progress=progress)


def _dialect(plan: MaskPlan) -> Dialect | None:
    from .io.dialect import Dialect

    given = plan.input
    if given.delimiter is None and given.decimal is None:
        return None
    return Dialect(given.delimiter or ",", given.decimal or ".", encoding=given.encoding)


def _earlier(plan: MaskPlan) -> Masking | None:
    if plan.output.earlier is None:
        return None
    private: Path = plan.output.earlier_private or plan.output.private
    return Masking.read(release=plan.output.earlier, private=private)


def demo_masking(survey: Table, *, seed: int | None = None, progress: Progress | None = None) -> Masking:
    """Mask the five amounts of the built-in survey by Kim's noise."""
    amounts = tuple(name for name in survey.schema.with_role("key") if survey.schema[name].is_number)
    return apply(CorrelatedNoise(amounts, r0=0.97), survey, seed=seed, progress=progress)
