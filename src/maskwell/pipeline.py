"""Whole jobs, in order: what the command line and the demo run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from .errors import BadPlan, raise_all
from .io import conform_raw, load
from .io.bundle import check_halves, private_bundles
from .masking import Masking, apply
from .masks import CorrelatedNoise
from .plan import InputPlan, MaskPlan, OutputPlan
from .schema import Schema

if TYPE_CHECKING:
    from .io.inspect import Proposal
    from .io.raw import Raw
    from .masking.applying import Progress
    from .table import Table


def inspect_file(source: InputPlan) -> tuple[Proposal, tuple[str, ...]]:
    """Propose a schema for a file, with what the reader found on the way."""
    from .io.hints import merged

    raw = _load(source)
    proposal = _proposal(raw)
    schema, said = merged(proposal.schema, raw)
    return replace(proposal, schema=schema), (*raw.notes, *said)


def _load(source: InputPlan) -> Raw:
    return load(source.file, format=source.format, dialect=source.dialect, encoding=source.encoding)


def _proposal(raw: Raw) -> Proposal:
    from .io.hints import as_categories, without_codes
    from .io.inspect import propose

    proposal = propose(without_codes(raw), decimal=raw.decimal)
    return replace(proposal, schema=as_categories(proposal.schema, raw))


def check_folders(plan: MaskPlan) -> None:
    """Refuse, before any work, folders that cannot be written or that would overwrite the input."""
    inputs = [path for path in (plan.input.file, plan.input.schema) if path is not None]
    check_halves(plan.output.release, plan.output.private, inputs)


def mask_by_plan(plan: MaskPlan, *, seed: int | None = None, progress: Progress | None = None) -> Masking:
    """Read the file and mask it as the plan says; nothing is written."""
    earlier, table = _earlier(plan.output), _read(plan)
    return apply(plan.mask(table.schema), table, seed=seed, earlier=earlier, progress=progress)


def unrelated_releases(plan: MaskPlan) -> list[str]:
    """Say where earlier releases lie in the private folder and the new noise would be independent of theirs."""
    count = len(private_bundles(plan.output.private))
    if plan.output.earlier is not None or not count:
        return []
    some = f"{count:,} earlier release{'s' if count > 1 else ''}"
    return [
        f"the private folder holds {some}: if of the same records, name the last as earlier, or whoever holds "
        "both averages part of the noise out"
    ]


def _read(plan: MaskPlan) -> Table:
    """Read the input by its schema, or by one proposed that asks nothing about the columns to be masked."""
    from .io.inspect import taken

    schema = None if plan.input.schema is None else Schema.read(plan.input.schema)
    raw = _load(plan.input)
    if schema is not None:
        return conform_raw(raw, schema)
    proposal = _proposal(raw)
    raise_all(_undecided(plan.columns, proposal), BadPlan)
    table = conform_raw(raw, taken(proposal.schema))
    return replace(table, notes=(*table.notes, "no schema was given: one was proposed from the data"))


def _undecided(columns: Sequence[str], proposal: Proposal) -> list[str]:
    """Say what must be decided about columns that are to be masked but that the proposal would drop."""
    dropped = [
        f"column {name!r} cannot be masked as it is ({finding.text}): decide it in a schema, "
        "which maskwell inspect proposes"
        for name in columns
        if name in proposal.schema and proposal.schema[name].drop
        for finding in proposal.of(name)
    ]
    return [*proposal.schema.missing_columns(columns), *dropped] if dropped else []


def _earlier(target: OutputPlan) -> Masking | None:
    if target.earlier is None:
        return None
    return Masking.read(release=target.earlier, private=target.earlier_private or target.private)


def demo_masking(survey: Table, *, seed: int | None = None, progress: Progress | None = None) -> Masking:
    """Mask the five amounts of the built-in survey by Kim's noise."""
    amounts = tuple(name for name in survey.schema.with_role("key") if survey.schema[name].is_number)
    return apply(CorrelatedNoise(amounts, r0=0.97), survey, seed=seed, progress=progress)
