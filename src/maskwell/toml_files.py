"""TOML files from anybody: read whole or refused in a sentence, however long, deep or broken they are."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from .errors import BadPlan

MOST_BYTES = 2**22  # ten thousand categories with long labels are a quarter of it
DEEPEST = 40  # tables and lists within each other: no plan and no schema has more than six


def toml_of(path: str | Path, what: str) -> dict[str, Any]:
    """Return the content of a TOML file; `what` it is, such as "the plan 'plan.toml'", begins each refusal."""
    file = Path(path)
    try:
        if (size := file.stat().st_size) > MOST_BYTES:
            raise BadPlan(
                f"{what} has {size:,} bytes, more than the {MOST_BYTES:,} that are read: shorten it"
            )
        return toml_data(file.read_text(encoding="utf-8-sig"), what)
    except OSError as error:
        raise BadPlan(f"{what} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadPlan(f"{what} is not UTF-8 text; save it as UTF-8") from None


def toml_data(text: str, what: str) -> dict[str, Any]:
    """Return the content of TOML text."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadPlan(f"{what} is not valid TOML: {error}") from None
    except (ValueError, RecursionError):
        raise BadPlan(f"{what} is nested too deeply, or has a number of too many digits") from None
    check_depth(data, what)
    return data


def check_depth(data: Any, what: str) -> None:
    """Refuse plain data that is nested so deeply that whoever walks through it might not come back."""
    level = [data]
    for _ in range(DEEPEST):
        level = [item for one in level for item in _items(one)]
        if not level:
            return
    raise BadPlan(f"{what} is nested too deeply: no section has more than {DEEPEST} levels")


def _items(one: Any) -> list[Any]:
    inner = one.values() if isinstance(one, dict) else one if isinstance(one, list | tuple) else ()
    return [item for item in inner if isinstance(item, dict | list | tuple)]
