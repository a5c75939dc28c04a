"""Whole jobs, in order: what the command line and the demo run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .io import load, read
from .io.bundle import check_halves
from .masking import Masking, apply
from .masks import CorrelatedNoise
from .plan import InputPlan, MaskPlan, OutputPlan

if TYPE_CHECKING:
    from .io.inspect import Proposal
    from .masking.applying import Progress
    from .table import Table


def inspect_file(source: InputPlan) -> tuple[Proposal, tuple[str, ...]]:
    """Propose a schema for a file, with what the reader found on the way."""
    from .io.hints import as_categories, merged, without_codes
    from .io.inspect import propose

    raw = load(source.file, format=source.format, dialect=source.dialect, encoding=source.encoding)
    proposal = propose(without_codes(raw), decimal=raw.decimal)
    schema, said = merged(as_categories(proposal.schema, raw), raw)
    return replace(proposal, schema=schema), (*raw.notes, *said)


def check_folders(plan: MaskPlan) -> None:
    """Refuse, before any work, folders that cannot be written or that would overwrite the input."""
    inputs = [path for path in (plan.input.file, plan.input.schema) if path is not None]
    check_halves(plan.output.release, plan.output.private, inputs)


def mask_by_plan(plan: MaskPlan, *, seed: int | None = None, progress: Progress | None = None) -> Masking:
    """Read the file and mask it as the plan says; nothing is written."""
    earlier, source = _earlier(plan.output), plan.input
    table = read(
        source.file, source.schema, format=source.format, dialect=source.dialect, encoding=source.encoding
    )
    return apply(plan.mask(table.schema), table, seed=seed, earlier=earlier, progress=progress)


def _earlier(target: OutputPlan) -> Masking | None:
    if target.earlier is None:
        return None
    return Masking.read(release=target.earlier, private=target.earlier_private or target.private)


def demo_masking(survey: Table, *, seed: int | None = None, progress: Progress | None = None) -> Masking:
    """Mask the five amounts of the built-in survey by Kim's noise."""
    amounts = tuple(name for name in survey.schema.with_role("key") if survey.schema[name].is_number)
    return apply(CorrelatedNoise(amounts, r0=0.97), survey, seed=seed, progress=progress)
