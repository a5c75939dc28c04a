"""Dataframes in and out: pandas, polars, pyarrow and duckdb, each back as it came."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import BadInput, MaskwellWarning, raise_all
from ..notes import Note
from ..schema import Schema
from ..table import Table
from .numbers import Array
from .parquet import clean_arrow, raw_from_arrow, warn_of_text_codes
from .raw_columns import Raw

if TYPE_CHECKING:
    import pyarrow as pa

    from .inspect import SchemaProposal


def from_native(frame: Any, schema: Schema | None = None) -> Table:
    """Make a table of a pandas, polars, pyarrow or duckdb frame; without a schema one is proposed."""
    from . import conform_proposed, conform_raw, proposal_of

    raw = raw_from_native(frame)
    if schema is not None:
        return conform_raw(raw, schema)
    proposal = proposal_of(raw)
    _warn_of_groups(proposal)
    return conform_proposed(raw, proposal)


def _warn_of_groups(proposal: SchemaProposal) -> None:
    """Say which groups and weights a proposed schema keeps inside: whoever gave a frame expects its columns."""
    found = {one.column: one.kind for one in proposal.findings if one.kind in ("group", "weight")}
    named = [column.name for column in proposal.schema.columns if column.drop and column.name in found]
    if named:
        warnings.warn(
            f"no schema was given, and the one proposed drops {', '.join(named)} (groups of records, or weights that "
            "are missing or not positive in places): give a schema that says what they are",
            MaskwellWarning,
            stacklevel=4,
        )


def to_native(table: Table) -> Any:
    """Return a frame of the kind the table came from; a pyarrow Table for tables from files."""
    warn_of_text_codes(table)
    data = clean_arrow(table)
    writers = {"pandas": _to_pandas, "polars": _to_polars, "duckdb": _to_duckdb}
    writer = writers.get(table.source.kind)
    return data if writer is None else writer(data, table.source.dialect or {})


def raw_from_native(frame: Any) -> Raw:
    """Read a frame as it is, before any schema."""
    import narwhals.dependencies as kinds

    if kinds.is_pandas_dataframe(frame):
        return _from_pandas(frame)
    if kinds.is_polars_lazyframe(frame):
        return _from_polars(_collected_frame(frame), (Note("io.lazy_frame"),))
    if kinds.is_polars_dataframe(frame):
        return _from_polars(frame)
    if kinds.is_pyarrow_table(frame):
        return raw_from_arrow(frame, "pyarrow")
    if kinds.is_duckdb_relation(frame):
        return raw_from_arrow(_relation_table(frame), "duckdb")
    raise BadInput(
        f"a {type(frame).__name__} is not a frame that can be read: give a pandas or polars DataFrame, "
        "a pyarrow Table or a duckdb relation"
    )


def _collected_frame(frame: Any) -> Any:
    try:
        return frame.collect()
    except Exception:  # polars raises many kinds, and some quote values
        raise BadInput("the lazy frame could not be collected: collect it yourself to see why") from None


def _relation_table(relation: Any) -> pa.Table:
    import duckdb

    try:
        fetched: pa.Table = relation.to_arrow_table()
    except duckdb.Error:
        raise BadInput("the duckdb relation could not be run: run it yourself to see why") from None
    return fetched


def _from_pandas(frame: Any) -> Raw:
    import pandas as pd
    import pyarrow as pa

    if any(not isinstance(name, str) for name in frame.columns):
        raise BadInput("the names of the frame's columns must all be text: rename those that are not")
    arrays, problems = [], []
    for i, name in enumerate(frame.columns):
        array, problem = _from_series(frame.iloc[:, i], name)
        arrays.append(array)
        problems += problem
    raise_all(problems, BadInput)
    plain_index = isinstance(frame.index, pd.RangeIndex) and frame.index.start == 0 and frame.index.step == 1
    notes = () if plain_index else (Note("io.pandas_index"),)
    data = pa.Table.from_arrays(arrays, names=[str(name) for name in frame.columns])
    backends = {str(name): _backend(dtype) for name, dtype in frame.dtypes.items()}
    return raw_from_arrow(data, "pandas", notes, backends)


def _from_series(series: Any, name: str) -> tuple[Any, list[str]]:
    """Return a column in Arrow, or the sentence that says why there is none."""
    import pyarrow as pa

    try:
        array = pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.nulls(len(series)), [_mixture(series, name)]
    return (pa.chunked_array([array]) if isinstance(array, pa.Array) else array), []


def _mixture(series: Any, name: str) -> str:
    present = np.flatnonzero(series.notna().to_numpy())
    kinds = [type(series.iloc[i]).__name__ for i in present]
    other = next((k for k, kind in enumerate(kinds) if kind != kinds[0]), None)
    if other is None:
        return f"column {name!r} holds values that are neither numbers nor text: convert it, or drop it"
    record = int(present[other]) + 1
    return f"column {name!r} mixes {kinds[0]} and {kinds[other]} values, first at record {record:,}: make them one type"


def _backend(dtype: Any) -> str:
    """Return how pandas holds a column: by numpy, with its own nulls, or in Arrow; never the dtype with its labels."""
    import pandas as pd

    if isinstance(dtype, pd.ArrowDtype):
        return "arrow"
    own = pd.api.types.is_extension_array_dtype(dtype) and pd.api.types.is_numeric_dtype(dtype)
    return "nullable" if own or isinstance(dtype, pd.BooleanDtype) else "numpy"


def _to_pandas(data: pa.Table, backends: dict[str, str]) -> Any:
    import pandas as pd

    columns = {name: _to_series(data.column(name), backends.get(name, "numpy")) for name in data.column_names}
    return pd.DataFrame(columns)


def _to_series(column: Array, backend: str) -> Any:
    import pandas as pd
    import pyarrow.types as types

    if backend == "arrow":
        return column.to_pandas(types_mapper=pd.ArrowDtype)
    whole = types.is_integer(column.type) or types.is_boolean(column.type)
    if (backend == "nullable" and not types.is_dictionary(column.type)) or (whole and column.null_count):
        return column.to_pandas(types_mapper=_nullable().get)
    return column.to_pandas()


def _nullable() -> dict[Any, Any]:
    import pandas as pd
    import pyarrow as pa

    sizes = (8, 16, 32, 64)
    whole = {getattr(pa, f"int{size}")(): getattr(pd, f"Int{size}Dtype")() for size in sizes}
    natural = {getattr(pa, f"uint{size}")(): getattr(pd, f"UInt{size}Dtype")() for size in sizes}
    floats = {pa.float32(): pd.Float32Dtype(), pa.float64(): pd.Float64Dtype()}
    return {**whole, **natural, **floats, pa.bool_(): pd.BooleanDtype()}


def _from_polars(frame: Any, notes: tuple[Note, ...] = ()) -> Raw:
    import narwhals as nw

    types = nw.from_native(frame, eager_only=True).schema
    unreadable = [name for name, kind in types.items() if kind == nw.Object]
    raise_all(
        (f"column {name!r} holds Python objects: convert it, or drop it" for name in unreadable), BadInput
    )
    backends = {name: "enum" for name, kind in types.items() if kind == nw.Enum}
    return raw_from_arrow(frame.to_arrow(), "polars", notes, backends)


def _to_polars(data: pa.Table, backends: dict[str, str]) -> Any:
    import narwhals as nw
    import pyarrow as pa

    labels: dict[str, Array] = {
        name: data.column(name).chunk(0)
        for name in data.column_names
        if backends.get(name) == "enum" and pa.types.is_dictionary(data.schema.field(name).type)
    }
    frame = nw.from_arrow(data, backend="polars")
    enums = [nw.col(name).cast(nw.Enum(found.dictionary.to_pylist())) for name, found in labels.items()]
    return frame.with_columns(enums).to_native()


def _to_duckdb(data: pa.Table, _: dict[str, str]) -> Any:
    import duckdb

    return duckdb.from_arrow(data)
