"""Numbers between numpy and Arrow by their buffers: pyarrow's own conversions load pandas, which takes longer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa


def from_numpy(values: npt.NDArray[Any], closed: npt.NDArray[np.bool_] | None = None) -> pa.Array[Any]:
    """Make an Arrow array of numbers or flags, null where `closed`."""
    import pyarrow as pa

    held = np.packbits(values, bitorder="little") if values.dtype == bool else np.ascontiguousarray(values)
    bits = None if closed is None or not closed.any() else np.packbits(~closed, bitorder="little")
    buffers = [None if bits is None else _buffer(bits), _buffer(held)]
    made: pa.Array[Any] = pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers)
    return made


def _buffer(held: Any) -> pa.Buffer:
    import pyarrow as pa

    return pa.py_buffer(held)


def to_numpy(array: Any) -> npt.NDArray[Any]:
    """Return an Arrow array of numbers or flags in numpy, not to be written to; nulls become NaN, false among flags."""
    import pyarrow as pa

    if array.type == pa.bool_():
        set_, valid = _numbers(array.cast(pa.uint8())).view(bool), array.null_count == 0
        return set_ if valid else set_ & to_numpy(array.is_valid())
    if not array.null_count:
        return _numbers(array)
    return np.where(to_numpy(array.is_valid()), _numbers(array).astype(np.float64), np.nan)


def _numbers(array: Any) -> npt.NDArray[Any]:
    """Return what stands in the buffer of an array, whatever that is under its nulls."""
    dtype, buffer = np.dtype(array.type.to_pandas_dtype()), array.buffers()[1]
    if buffer is None:
        return np.empty(0, dtype)
    return np.frombuffer(buffer, dtype, len(array), array.offset * dtype.itemsize)
