"""Files that a plan names: looked at, read, masked as they are, and where a release may be written."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import BadPlan, nearest, raise_all
from ..io import conform_proposed, conform_raw, load, proposal_of
from ..io.bundle import check_halves, private_bundles
from ..io.conform import how_read
from ..masking import Masking, apply
from ..masking.release_files import read_masking, series_before
from ..notes import Note, has_code
from ..plan import InputPlan, MaskPlan, NoisePlan, OutputPlan
from ..schema import Column, Schema

if TYPE_CHECKING:
    from ..attacks.protocol import Attack
    from ..io.inspect import SchemaProposal
    from ..io.raw_columns import Raw
    from ..masking.application import Progress
    from ..table import Table

ASKING_CODES = ("spike", "code")  # findings that may offer a line missing = [...]
_NAMES_SHOWN, _LONGEST_NAME = 5, 60


def inspect_file(source: InputPlan) -> tuple[SchemaProposal, tuple[Note, ...]]:
    """Propose a schema for a file, with what the reader found on the way."""
    from ..io.hints import schema_with_hints

    raw = _load(source)
    proposal = proposal_of(raw)
    schema, said = schema_with_hints(proposal.schema, raw)
    return replace(proposal, schema=schema), (*raw.notes, *said)


def _load(source: InputPlan) -> Raw:
    return load(source.file, format=source.format, dialect=source.dialect, encoding=source.encoding)


def check_folders(plan: MaskPlan) -> None:
    """Refuse, before any work, folders that cannot be written or that would overwrite the input."""
    inputs = [path for path in (plan.input.file, plan.input.schema) if path is not None]
    check_halves(plan.output.release, plan.output.private, inputs)
    earlier = plan.output.earlier
    if earlier is not None and earlier.resolve() == plan.output.release.resolve():
        raise BadPlan(
            "[output]: the release would overwrite the earlier one in which it is nested: give it a folder of its own"
        )


def mask_by_plan(plan: MaskPlan, *, seed: int | None = None, progress: Progress | None = None) -> Masking:
    """Read the file and mask it as the plan says; nothing is written."""
    earlier, table = earlier_of(plan.output), read_input(plan)
    return apply(plan.mask(table.schema), table, seed=seed, earlier=earlier, progress=progress)


def unrelated_releases(plan: MaskPlan) -> list[Note]:
    """Say where earlier releases lie in the private folder and the new noise would be independent of theirs."""
    count = len(private_bundles(plan.output.private))
    if plan.output.earlier is not None or not count:
        return []
    return [Note("pipeline.unrelated_releases", {"count": count})]


def read_input(plan: NoisePlan) -> Table:
    """Read the input by its schema, or by one proposed that leaves nothing open about what is masked or in clear."""
    schema = None if plan.input.schema is None else Schema.read(plan.input.schema)
    raw = _load(plan.input)
    if schema is not None:
        table = conform_raw(raw, schema)
        raise_all(_read_otherwise(plan, table.schema, raw), BadPlan)
        return table
    proposal = proposal_of(raw)
    otherwise = _read_otherwise(plan, proposal.schema, raw)
    if undecided := _open_decisions(plan, proposal):
        otherwise = otherwise or proposal.schema.missing_columns(plan.columns)
    raise_all([*otherwise, *undecided], BadPlan)
    return conform_proposed(raw, proposal)


def read_table(source: InputPlan) -> Table:
    """Read a file by its schema, or by one proposed."""
    raw = _load(source)
    return conform_raw(raw, None if source.schema is None else Schema.read(source.schema))


def _open_decisions(plan: NoisePlan, proposal: SchemaProposal) -> list[str]:
    """Say, without any value, what must be decided: dropped or coded columns to be masked, identifiers in clear."""
    decide = "decide it in a schema, which maskwell inspect proposes"
    masked, asked = plan.masked(proposal.schema), proposal.questions()
    found: list[str] = []
    for column in proposal.schema.columns:
        of, name = proposal.of(column.name), f"column {column.name!r}"
        if column.name in masked and column.drop:
            found += [f"{name} cannot be masked as it is ({finding.text}): {decide}" for finding in of]
        elif column.name in masked and any(
            finding.kind in ASKING_CODES and finding.suggestion for finding in of
        ):
            found.append(f"{name} holds what may be codes for no value, which noise would hide: {decide}")
        elif column.name not in masked and has_code(asked.get(column.name, ()), "io.asks_identifier"):
            found.append(f"{name} looks like an identifier and would leave in clear: {decide}")
    return found


def _read_otherwise(plan: NoisePlan, schema: Schema, raw: Raw) -> list[str]:
    """List the columns that are not there, and how the file was read where that may be the reason."""
    names, absent = raw.data.column_names, schema.missing_columns(plan.columns)
    wanted = [name for name in plan.columns if name not in schema]
    trimmed = {name.strip() for name in names if name != name.strip()}
    if not absent or (len(names) > 1 and all(nearest(w, names) and w not in trimmed for w in wanted)):
        return []
    return [*absent[:-1], f"{absent[-1]}; {_how_read(names, raw)}"]


def _how_read(names: list[str], raw: Raw) -> str:
    """Say how the file was read, with the first names unless they look like values."""
    how = f"was {how_read(raw.notes) or 'read'}"
    if any(
        re.fullmatch(r"\s*[+-]?[\d.,]*\d\s*", part) for name in names for part in re.split("[|;,\t]", name)
    ):
        return f"the file {how}: check that its first line holds the names of the columns"
    listed = ", ".join(repr(name[:_LONGEST_NAME]) for name in names[:_NAMES_SHOWN])
    more = f" and {len(names) - _NAMES_SHOWN:,} more" if len(names) > _NAMES_SHOWN else ""
    if len(names) == 1:
        return f"the file {how}, with the one column {listed}: if another sign separates them, give it as delimiter"
    return f"the file {how}, with the columns {listed}{more}"


def earlier_of(target: OutputPlan) -> Masking | None:
    """Open the earlier release that a plan names."""
    if target.earlier is None:
        return None
    return read_masking(target.earlier, _private_folders(target))


def before_of(target: OutputPlan, earlier: Masking | None) -> tuple[Masking, ...]:
    """Open the releases of the series before the earlier one, those whose private halves lie where the plan says."""
    return () if earlier is None else series_before(earlier, _private_folders(target))


def _private_folders(target: OutputPlan) -> list[Path]:
    return [*target.earlier_private, target.private]


def read_targets(path: Path, schema: Schema, plans: Iterable[Attack]) -> Table:
    """Read a file that intruders hold: the columns they need of it, as numbers or names without codes or units.

    He has collected them himself, so amounts beyond a code and fractions are read as they are; the attack codes
    them as the release does.
    """
    raw = _load(InputPlan(file=path))
    wanted: set[str | None] = {schema.id_column}
    for plan in plans:
        wanted |= {*plan.match_columns(schema), *(plan.named_columns or schema.with_role("key"))}
    names = [name for name in raw.data.column_names if name in wanted and name in schema]
    columns = tuple(_as_collected(schema[name]) for name in names)
    return conform_raw(replace(raw, data=raw.data.select(names)), replace(schema, columns=columns))


def _as_collected(column: Column) -> Column:
    kind = "continuous" if column.kind == "integer" else column.kind
    return replace(column, kind=kind, top=None, bottom=None, unit=None, drop=False)
