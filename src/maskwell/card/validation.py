"""What is wrong with a noise card as plain data: names, types, sizes and bounds, all listed before a law is built.

A card comes from somebody else. What it says is bounded by what arithmetic can hold and by what a reader can compute
within a second: a unit of "1e-100000000" has a hundred million digits, an sd of 1e308 has no square, a correlation
matrix of a hundred thousand columns has no eigenvalues before the evening.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from ..errors import nearest

LARGEST, SMALLEST = 1e150, 1e-150  # beyond them squares overflow, or come out as 0
LARGEST_LOG_SD = 100.0  # exp(100) is a factor of 1e43
STEPS = 2**53  # units to a limit or a code: beyond so many, floating point cannot tell two neighbours apart
MOST_COLUMNS = 1_000  # of one law: the eigenvalues of so many correlations take half a second
MOST_FIGURES = 1_000_000  # of one table of changes
MOST_ENTRIES = 100_000  # of any other list
MOST_CODES = 500  # that a column avoids: every released value is held against each
LONGEST_TEXT = 10_000  # letters of a text on a card
MOST_PROBLEMS = 20  # are named; the others are counted
TOLERANCE = 1e-6  # sums of probabilities, and eigenvalues, as they come back from JSON

_UNIT = re.compile(r"[0-9]{1,200}(/[0-9]{1,200})?")
_NO_TEXT = re.compile("[\ud800-\udfff]")
_DIGEST = re.compile(r"[0-9a-f]{0,64}")

Check = Callable[[Any], bool]
Rule = tuple[Check, str]  # whether a value will do, and what it must be
Problems = list[str]


def card_problems(data: Mapping[str, Any]) -> Problems:
    """Return what is wrong with a card, one sentence each; the first twenty of many."""
    found = _fields(data, _CARD, "the card", needed=("laws",))
    laws = data.get("laws")
    if isinstance(laws, list):
        for number, law in enumerate(laws, 1):
            found += _law(law, f"law {number}", _LAWS)
            if len(found) > MOST_PROBLEMS:
                break
        found += _twice(laws)
    found += _swap_problems(data.get("swapped")) if "swapped" in data else []
    found += _recomputation_problems(data.get("recomputed")) if "recomputed" in data else []
    more = len(found) - MOST_PROBLEMS
    return found if more <= 0 else [*found[:MOST_PROBLEMS], f"and {more:,} more like these"]


def quote_name(name: object) -> str:
    """Return a name as it may stand in a sentence: quoted, and not longer than one."""
    text = str(name)
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def _is_number(value: Any) -> bool:
    """Whether a value is a number that arithmetic can hold; whole ones as long as a double has all their digits."""
    if isinstance(value, int) and not isinstance(value, bool):
        return abs(value) <= STEPS
    return isinstance(value, float) and abs(value) <= LARGEST


def _is_size(value: Any) -> bool:
    """Whether a number is an sd: 0, or with a square that is neither 0 nor infinite."""
    return _is_number(value) and (value == 0 or value >= SMALLEST)


def _is_text(value: Any) -> bool:
    """Whether a value is a text that a file can hold: no half of a character."""
    return isinstance(value, str) and 0 < len(value) <= LONGEST_TEXT and not _NO_TEXT.search(value)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_share(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1


def _is_unit(value: Any) -> bool:
    if not isinstance(value, str) or len(value) > 401 or not _UNIT.fullmatch(value):
        return False
    above, _, below = value.partition("/")
    return int(below or 1) > 0 and SMALLEST <= Fraction(int(above), int(below or 1)) <= LARGEST


def _list_of(check: Check, most: int = MOST_ENTRIES) -> Check:
    return lambda value: isinstance(value, list) and len(value) <= most and all(map(check, value))


def _names(value: Any) -> bool:
    return (
        _list_of(_is_text, MOST_COLUMNS)(value)
        and bool(value)
        and len({_key(one) for one in value}) == len(value)
    )


def _key(name: str) -> str:
    import unicodedata

    return unicodedata.normalize("NFC", name)


def _matrix(value: Any) -> bool:
    rows = _list_of(lambda row: isinstance(row, list))(value)
    return (
        rows
        and sum(map(len, value)) <= MOST_FIGURES
        and len({len(row) for row in value}) <= 1
        and all(_is_number(item) for row in value for item in row)
    )


def _any_list(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= MOST_ENTRIES


def _is_mapping(value: Any) -> bool:
    return isinstance(value, dict) and len(value) <= MOST_ENTRIES


AMOUNT: Rule = (_is_number, f"a number of at most {LARGEST:g}")
SIZE: Rule = (_is_size, f"an sd: 0, or a number between {SMALLEST:g} and {LARGEST:g}")
SIZES: Rule = (_list_of(_is_size), f"a list of sds: each 0, or between {SMALLEST:g} and {LARGEST:g}")
AMOUNTS: Rule = (_list_of(_is_number), f"a list of numbers of at most {LARGEST:g}")
CODES: Rule = (
    lambda value: _list_of(_is_number, MOST_CODES)(value) and len(set(value)) == len(value),
    f"a list of at most {MOST_CODES} different numbers of at most {LARGEST:g}",
)
SHARE: Rule = (_is_share, "a share between 0 and 1")
SHARES: Rule = (_list_of(_is_share), "a list of shares between 0 and 1")
FLAG: Rule = (_is_flag, "true or false")
TEXT: Rule = (_is_text, "a text")
NAMES: Rule = (_names, f"a list of 1 to {MOST_COLUMNS:,} different names of columns")
TEXTS: Rule = (_list_of(_is_text, MOST_ENTRIES), "a list of texts")
MATRIX: Rule = (_matrix, f"a table of at most {MOST_FIGURES:,} numbers, its rows of one length")
LIST: Rule = (_any_list, "a list")
TABLE: Rule = (_is_mapping, "a table")
COUNT: Rule = (
    lambda value: isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= STEPS,
    "a count of records",
)
UNIT: Rule = (
    _is_unit,
    f'a number or a fraction as text, such as "1/100", between {SMALLEST:g} and {LARGEST:g}',
)
DIGEST: Rule = (lambda value: isinstance(value, str) and bool(_DIGEST.fullmatch(value)), "a SHA-256")

_CARD: dict[str, Rule] = {
    "format": TEXT,
    "version": (lambda value: value == 1 and not isinstance(value, bool), "1"),
    "laws": LIST,
    "recomputed": TABLE,
    "swapped": TABLE,
    "subsampled": (lambda value: _is_share(value) and value > 0, "a share above 0 and at most 1"),
    "records": COUNT,
    "numbered": FLAG,
    "seeded": FLAG,
    "warning": TEXT,
    "data_sha256": DIGEST,
}
_OUTLET: dict[str, Rule] = {
    "unit": UNIT,
    "low": AMOUNT,
    "high": AMOUNT,
    "low_coded": FLAG,
    "high_coded": FLAG,
    "log_shift": AMOUNT,
    "avoid": CODES,
}


def _fields(data: Any, known: Mapping[str, Rule], where: str, needed: Sequence[str] = ()) -> Problems:
    """Check the names and the types of what stands under one head."""
    if not isinstance(data, dict):
        return [f"{where} must be a table"]
    strange = [name for name in data if name not in known][:MOST_PROBLEMS]
    found = [f"{where} has the unknown key {quote_name(name)}{nearest(str(name), known)}" for name in strange]
    found += [f"{where} lacks {name}" for name in needed if name not in data]
    found += [
        f"{where}: {name} must be {words}"
        for name, (check, words) in known.items()
        if name in data and not check(data[name])
    ]
    return found


def _law(law: Any, where: str, kinds: Mapping[str, Callable[[Any, str], Problems]]) -> Problems:
    form = law.get("form") if isinstance(law, dict) else None
    if not isinstance(form, str) or form not in kinds:
        return [f"{where} has no form that is known: one of {', '.join(kinds)}"]
    return kinds[form](law, where)


def _additive(law: Any, where: str) -> Problems:
    rules = {
        "form": TEXT,
        "columns": NAMES,
        "noise": TABLE,
        "outlets": LIST,
        "slope": (lambda value: _is_number(value) and 0 < value <= 1, "a number above 0 and at most 1"),
        "offsets": AMOUNTS,
        "spreads": LIST,
        "mean_corrected": FLAG,
        "categories": (_list_of(TEXTS[0], MOST_COLUMNS), "a list of lists of texts"),
    }
    found = _fields(law, rules, where, ("columns", "noise", "outlets"))
    if found:
        return found
    width = len(law["columns"])
    for name in ("outlets", "offsets", "spreads", "categories"):
        if name in law and len(law[name]) not in ((width,) if name == "outlets" else (0, width)):
            found.append(f"{where}: {name} has {len(law[name]):,} entries for {width:,} columns")
    if any(len(set(names)) < len(names) for names in law.get("categories", ())):
        found.append(f"{where}: a category is listed twice")
    found += [
        said for j, one in enumerate(law["outlets"], 1) for said in _outlet(one, f"{where}, outlet {j}")
    ]
    for j, one in enumerate(law.get("spreads", ()), 1):
        found += [] if one is None else _law(one, f"{where}, spread {j}", _SPREADS)
    found += _noise(law["noise"], f"{where}, noise", width)
    return found or _on_log_scale(law, where)


def _on_log_scale(law: Any, where: str) -> Problems:
    """Refuse noise on the log scale that would carry a value beyond all numbers."""
    if not any("log_shift" in one for one in law["outlets"]):
        return []
    noise = law["noise"]
    sizes = np.concatenate([np.ravel(noise.get(name, [])) for name in ("sds", "means")])
    if np.abs(sizes.astype(float)).max(initial=0.0) <= LARGEST_LOG_SD:
        return []
    return [f"{where}: noise on the log scale must have sds of at most {LARGEST_LOG_SD:g}"]


def _outlet(one: Any, where: str) -> Problems:
    found = _fields(one, _OUTLET, where)
    if found:
        return found
    for end in ("low", "high"):
        if one.get(f"{end}_coded") and end not in one:
            found.append(f"{where}: a {end} end that is coded needs the code")
    if "low" in one and "high" in one and not one["low"] < one["high"]:
        found.append(f"{where}: low must lie below high")
    ends = [one[name] for name in ("low", "high") if name in one] + one.get("avoid", [])
    if "unit" in one and any(abs(end) > STEPS * Fraction(one["unit"]) for end in ends):
        found.append(f"{where}: its limits and codes must lie within {STEPS:,} units of 0")
    return found


def _skewed_bias_problems(law: Any, where: str) -> Problems:
    rules = {"form": TEXT, "columns": NAMES, "bias_sd": SIZE, "sds": SIZES, "outlets": LIST}
    found = _fields(law, rules, where, ("columns", "bias_sd", "sds", "outlets"))
    if found:
        return found
    width = len(law["columns"])
    if not len(law["sds"]) == len(law["outlets"]) == width:
        found.append(f"{where}: it needs one sd and one outlet for each of its {width:,} columns")
    if law["bias_sd"] > LARGEST_LOG_SD:
        found.append(f"{where}: bias_sd must be at most {LARGEST_LOG_SD:g}")
    return found + [
        s for j, one in enumerate(law["outlets"], 1) for s in _outlet(one, f"{where}, outlet {j}")
    ]


def _transition(law: Any, where: str) -> Problems:
    rules = {"form": TEXT, "columns": NAMES, "true": TEXTS, "released_as": TEXTS, "matrix": MATRIX}
    found = _fields(law, rules, where, ("columns", "true", "released_as", "matrix"))
    if found:
        return found
    true, released, matrix = law["true"], law["released_as"], law["matrix"]
    if len(law["columns"]) != 1:
        found.append(f"{where}: a table of changes is of one column")
    if len(set(true)) < len(true) or len(set(released)) < len(released):
        found.append(f"{where}: a category is listed twice")
    if not true or len(matrix) != len(true) or len(matrix[0]) != len(released):
        found.append(
            f"{where}: its table must have a row for each true and a column for each released category"
        )
    elif any(not _is_share(p) for row in matrix for p in row) or any(
        abs(sum(r) - 1) > TOLERANCE for r in matrix
    ):
        found.append(f"{where}: the rows of its table must be probabilities that sum to 1")
    return found


def _classes(law: Any, where: str) -> Problems:
    rules = {"form": TEXT, "columns": NAMES, "breaks": AMOUNTS, "labels": TEXTS}
    found = _fields(law, rules, where, ("columns", "breaks", "labels"))
    if found:
        return found
    if len(law["columns"]) != 1:
        found.append(f"{where}: classes are of one column")
    if any(b <= a for a, b in pairwise(law["breaks"])) or len(law["labels"]) != len(law["breaks"]) + 1:
        found.append(f"{where}: the breaks must rise, and there is one label more than breaks")
    if len(set(law["labels"])) < len(law["labels"]):
        found.append(f"{where}: a label is listed twice")
    return found


def _rank_swap(law: Any, where: str) -> Problems:
    rules = {"form": TEXT, "columns": NAMES, "window_ratio": SHARE}
    return _fields(law, rules, where, ("columns", "window_ratio"))


def _chain_problems(law: Any, where: str) -> Problems:
    rules = {"form": TEXT, "columns": NAMES, "combined": TABLE, "stages": LIST}
    found = _fields(law, rules, where, ("columns", "combined", "stages"))
    if found:
        return found
    stages = law["stages"]
    if not 0 < len(stages) <= MOST_COLUMNS:
        return [f"{where}: it has {len(stages):,} stages"]
    found = _law(law["combined"], f"{where}, as a whole", _STAGES)
    for number, stage in enumerate(stages, 1):
        said = f"{where}, stage {number}"
        wrong = _fields(stage, {"label": TEXT, "law": TABLE}, said, ("label", "law"))
        found += wrong or _law(stage["law"], said, _STAGES)
    parts = [law["combined"], *(stage["law"] for stage in stages)] if not found else []
    if any(part["columns"] != law["columns"] or part["form"] != parts[0]["form"] for part in parts):
        found.append(f"{where}: its stages must be of one form and of the same columns as the whole")
    return found


def _noise(noise: Any, where: str, width: int) -> Problems:
    form = noise.get("form")
    if not isinstance(form, str) or form not in _NOISES:
        return [f"{where} has no form that is known: one of {', '.join(_NOISES)}"]
    rules, needed = _NOISES[form]
    found = _fields(noise, {"form": TEXT, **rules}, where, needed)
    return found or [f"{where}: {said}" for said in _noise_shape(noise, width)]


_MIXED = {"weights": SHARES}
_TOGETHER: dict[str, Rule] = {"sds": SIZES, "correlations": MATRIX}
_NOISES: dict[str, tuple[dict[str, Rule], tuple[str, ...]]] = {
    "normal": (_TOGETHER, ("sds",)),
    "laplace": ({"sds": SIZES}, ("sds",)),
    "mixture": ({**_MIXED, "means": MATRIX, "sds": MATRIX}, ("weights", "means", "sds")),
    "joint mixture": (
        {**_MIXED, **_TOGETHER, "unit_means": MATRIX, "within": SHARE},
        ("weights", "unit_means", "within", "sds", "correlations"),
    ),
    "rotated mixture": (
        {**_MIXED, **_TOGETHER, "unit_means": AMOUNTS, "unit_sds": SIZES},
        ("weights", "unit_means", "unit_sds", "sds", "correlations"),
    ),
}


def _noise_shape(noise: Any, width: int) -> Problems:
    """Check that the figures of a noise are as many as its columns and components, and that they are a law."""
    form, count = noise["form"], len(noise.get("weights", ()))
    found = []
    if len(noise["sds"]) != width:
        found.append(f"it has {len(noise['sds']):,} sds for {width:,} columns")
    if "weights" in noise and (not count or abs(sum(noise["weights"]) - 1) > TOLERANCE):
        found.append("the weights of its components must sum to 1")
    if form == "mixture":
        found += _components([noise["means"], noise["sds"]], width, count)
        if not all(_is_size(sd) for row in noise["sds"] for sd in row):
            found.append(f"sds must be 0, or between {SMALLEST:g} and {LARGEST:g}")
    if form == "joint mixture":
        found += _components([noise["unit_means"]], count, width)
        found += [] if noise["within"] > 0 else ["within must lie above 0"]
    if form == "rotated mixture" and not len(noise["unit_means"]) == len(noise["unit_sds"]) == count:
        found.append(f"it needs one mean and one sd for each of its {count:,} components")
    matrix = noise.get("correlations")
    return found or ([] if matrix is None else _correlations(matrix, width))


def _components(tables: Sequence[Any], rows: int, columns: int) -> Problems:
    if all(len(table) == rows and all(len(row) == columns for row in table) for table in tables):
        return []
    return [f"its means and sds must be tables of {rows:,} by {columns:,}"]


def _correlations(matrix: Any, width: int) -> Problems:
    """Check that a table is one of correlations: square, symmetric, 1 on its diagonal, no negative eigenvalue."""
    if len(matrix) != width or any(len(row) != width for row in matrix):
        return [f"its correlations must be a table of {width:,} by {width:,}"]
    table = np.array(matrix, dtype=np.float64)
    is_one = np.abs(np.diag(table) - 1.0).max(initial=0.0) <= TOLERANCE
    if (
        not is_one
        or np.abs(table - table.T).max(initial=0.0) > TOLERANCE
        or np.abs(table).max() > 1 + TOLERANCE
    ):
        return ["its correlations must be symmetric, lie between -1 and 1 and be 1 on the diagonal"]
    if np.linalg.eigvalsh(table)[0] < -TOLERANCE * width:
        return ["its correlations cannot be those of any noise: the table has a negative eigenvalue"]
    return []


def _step(one: Any, where: str) -> Problems:
    rules = {"form": TEXT, "breaks": AMOUNTS, "ratios": SIZES}
    found = _fields(one, rules, where, ("breaks", "ratios"))
    if not found and (len(one["ratios"]) != len(one["breaks"]) + 1 or not any(one["ratios"])):
        found.append(f"{where}: it needs one more ratio than breaks, not all of them 0")
    if not found and any(b <= a for a, b in pairwise(one["breaks"])):
        found.append(f"{where}: the breaks must rise")
    return found


def _power(one: Any, where: str) -> Problems:
    exponent: Rule = (lambda value: _is_number(value) and 0 < value <= 4, "a number above 0 and at most 4")
    rules = {"form": TEXT, "exponent": exponent, "floor": SIZE}
    return _fields(one, rules, where, ("exponent",))


def _bias(one: Any, where: str) -> Problems:
    return _fields(one, {"form": TEXT, "bias_sd": SIZE, "sd": SIZE}, where, ("bias_sd", "sd"))


_SPREADS: dict[str, Callable[[Any, str], Problems]] = {"step": _step, "power": _power, "bias": _bias}
_STAGES: dict[str, Callable[[Any, str], Problems]] = {"additive": _additive, "transition": _transition}
_LAWS: dict[str, Callable[[Any, str], Problems]] = {
    **_STAGES,
    "lognormal bias": _skewed_bias_problems,
    "classes": _classes,
    "rank swap": _rank_swap,
    "chained": _chain_problems,
}


def _twice(laws: Sequence[Any]) -> Problems:
    """Name columns that two laws speak of."""
    seen: set[str] = set()
    found = []
    for law in laws:
        columns = law.get("columns") if isinstance(law, dict) else None
        names = {name for name in columns if isinstance(name, str)} if isinstance(columns, list) else set()
        found += [f"two laws speak of column {quote_name(name)}" for name in sorted(names & seen)]
        seen |= names
    return found


def _swap_problems(data: Any) -> Problems:
    blocks: Rule = (lambda value: value == [] or _names(value), NAMES[1])
    rules = {"share": SHARE, "columns": NAMES, "blocks": blocks}
    found = _fields(data, rules, "swapped", ("share", "columns"))
    if not found and set(data["columns"]) & set(data.get("blocks", ())):
        found.append("swapped: a column cannot be a block and exchanged at once")
    return found


def _recomputation_problems(data: Any) -> Problems:
    if not _is_mapping(data):
        return []
    bad = [
        name
        for name, parts in data.items()
        if not (_is_text(name) and _is_mapping(parts) and parts and all(map(_is_text, parts)))
        or not all(map(_is_number, parts.values()))
    ]
    return [
        f"recomputed: {quote_name(name)} must be a table of column = coefficient"
        for name in bad[:MOST_PROBLEMS]
    ]
