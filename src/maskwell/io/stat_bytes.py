"""The creation times in the headers of statistics files, overwritten so that equal tables give equal bytes."""

from __future__ import annotations

from pathlib import Path

from ..errors import CannotWrite

_SPSS_TIME = (92, b"01 Jan 7000:00:00")
_SAS_TIME = b"01JAN70:00:00:00"
_SAS_PLACES = (144, 160, 464, 480)
_STATA_TAG, _STATA_TIME = b"<timestamp>", b"01 Jan 1970 00:00"
_STATA_HEAD_BYTES = 4096


def fix_times(path: Path, ending: str) -> None:
    """Overwrite the creation times of a file that pyreadstat has just written."""
    with path.open("r+b") as file:
        head = file.read(_STATA_HEAD_BYTES)
        for place, text in _times(head, ending):
            file.seek(place)
            file.write(text)


def _times(head: bytes, ending: str) -> list[tuple[int, bytes]]:
    if ending == "xpt":
        return [(place, _SAS_TIME) for place in _SAS_PLACES]
    if ending == "dta":
        return [(_stata_place(head), _STATA_TIME)]
    return [_SPSS_TIME]


def _stata_place(head: bytes) -> int:
    """Return where the time stands: after the tag and one byte that holds its length."""
    tag = head.find(_STATA_TAG)
    place = tag + len(_STATA_TAG) + 1
    if tag < 0 or head[place - 1] != len(_STATA_TIME):
        raise CannotWrite(
            "the Stata file's header is not as expected: this version of pyreadstat cannot be used"
        )
    return place
