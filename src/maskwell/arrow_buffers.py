"""Numbers and letters between numpy and Arrow by their buffers: pyarrow's own conversions load more and take longer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

MOST_LETTERS = 2**31 - 1  # in one Arrow array of text
WIDEST_RANGE = 2  # a range of so many times the count of its numbers can be looked up as a whole


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


def is_null(array: Any) -> npt.NDArray[np.bool_]:
    """Return which values of an Arrow array are null."""
    return to_numpy(array.is_null()) if array.null_count else np.zeros(len(array), bool)


def letters_of(texts: Any) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]:
    """Return where each text of an Arrow array begins among its letters (and where the last one ends), and these."""
    import pyarrow as pa
    import pyarrow.types as types

    wide = types.is_large_string(texts.type) or types.is_large_binary(texts.type)
    if not wide and not types.is_string(texts.type) and not types.is_binary(texts.type):
        texts, wide = texts.cast(pa.large_binary()), True
    _, places, letters = texts.buffers()
    if not len(texts):
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    begins = np.frombuffer(places, np.int64 if wide else np.int32)[
        texts.offset : texts.offset + len(texts) + 1
    ]
    return begins, np.frombuffer(letters or b"", np.uint8)


def of_one_length(texts: Any) -> npt.NDArray[np.uint8] | None:
    """Return the letters of texts as texts x letters, or nothing where they differ in length."""
    if texts.null_count or not len(texts):
        return None
    begins, letters = letters_of(texts)
    lengths = np.diff(begins)
    if lengths[0] == 0 or np.any(lengths != lengths[0]):
        return None
    return letters[begins[0] : begins[-1]].reshape(len(texts), int(lengths[0]))


def take_texts(texts: Any, at: npt.NDArray[np.int64]) -> Any:
    """Return some texts of an Arrow array, in a given order."""
    import pyarrow as pa

    letters = of_one_length(texts) if pa.types.is_string(texts.type) and at.min(initial=0) >= 0 else None
    if letters is None or letters.shape[1] * len(at) > MOST_LETTERS:
        return texts.take(from_numpy(at))
    width = letters.shape[1]
    begins = np.arange(0, width * len(at) + 1, width, dtype=np.int32)
    some = letters.view(f"V{width}")[at].view(np.uint8)
    return pa.Array.from_buffers(texts.type, len(at), [None, _buffer(begins), _buffer(some)])


def codes_of(values: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], int]:
    """Number values from 0 on, the same ones alike, and say how many there are."""
    places = _near_places(values)
    if places is None:
        return dictionary_codes(from_numpy(values))
    there = np.zeros(int(places.max()) + 1, bool)
    there[places] = True
    numbers = np.cumsum(there) - 1
    return numbers[places], int(numbers[-1]) + 1


def dictionary_codes(array: Any) -> tuple[npt.NDArray[np.int64], int]:
    """Number the values of an Arrow array from 0 on, the same ones alike, and say how many there are."""
    found = array.dictionary_encode()
    return np.asarray(to_numpy(found.indices), dtype=np.int64), len(found.dictionary)


def _near_places(values: npt.NDArray[Any]) -> npt.NDArray[np.int64] | None:
    """Return how far whole numbers lie above the least; nothing where some are not whole, or their range is wide."""
    if not len(values):
        return None
    least = values.min()
    with np.errstate(over="ignore"):
        if not values.max() - least < WIDEST_RANGE * len(values):
            return None
    places = (values - least).astype(np.int64)
    return places if np.array_equal(places + least, values) else None
