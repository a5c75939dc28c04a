"""The masks of a drafted plan: noise on amounts, and what is offered for categories that tell too many apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from .draft_decisions import DecidedSchema
from .draft_words import comment, count_phrase, names_of, plain, toml_list, toml_string
from .hidden_columns import (
    ROOM,
    STAY,
    RandomChange,
    coarsest_first,
    columns_to_drop,
    is_enough,
    random_change,
)
from .narrow_classes import START
from .sections import FIFTEEN_PERCENT

if TYPE_CHECKING:
    from ..checks.findings import Limits
    from ..table import Floats

DEFINITE = 0.01  # least eigenvalue of pairwise correlations: repaired from below 0 they leave noise without a density
FULL, OF_FULL = 0.9, 1e-4  # of the records have all values, and that eigenvalue then: few gaps move it little
SKEWED = 2.0  # skewness from which on noise on the log scale is named as the alternative


def masks_section(decided: DecidedSchema) -> list[str]:
    """Write the masks: noise on amounts, sums anew, and what to do about what leaves as it is."""
    lines = _noise(decided) if decided.amounts else []
    for total, parts in decided.sums:
        shown = "{ " + ", ".join(f"{toml_string(part)} = {c:.15g}" for part, c in parts) + " }"
        lines += [
            "",
            f"# {plain(total)} is exactly this sum of the others, so it is computed again from the masked",
        ]
        lines += [
            "# ones: noise of its own would give part of theirs away.",
            "[[masks]]",
            'mask = "Recompute"',
        ]
        lines += [f"column = {toml_string(total)}", f"parts = {shown}"]
    clear = _clear(decided)
    return [*lines, *(["", *clear] if clear and lines else clear)]


def _noise(decided: DecidedSchema) -> list[str]:
    """Write correlated noise on all amounts, or on several sets of them where one covariance cannot be had."""
    sets = _sets(decided)
    by_role = len(sets) == 1 and set(decided.amounts) == set(decided.keys)
    within = "" if len(sets) == 1 else " within a mask"
    lines = comment(
        f"Noise with the covariance of the data on {count_phrase(decided.amounts, 'amount')}: "
        f"{names_of(decided.amounts)}. Correlations stay as they are{within}, and of columns that nearly repeat one "
        "another the mean has as much noise as each of them has."
    )
    if len(sets) > 1:
        lines += comment(
            f"In {len(sets)} masks: by the records that have them together they have no covariance that noise could be "
            "drawn from. Between two masks noise is independent, so that correlations between their amounts shrink."
        )
    for i, columns in enumerate(sets):
        shown = (
            '"role: key"  # every number with the role key in the schema' if by_role else toml_list(columns)
        )
        lines += [*([""] if i else []), "[[masks]]", 'mask = "CorrelatedNoise"', f"columns = {shown}"]
        lines.append(f"sd_ratio = {START}  # the noise's sd in sds of each column; [calibrate] starts here")
    lines += [
        '#keep = "moments"  # also keeps variances: analysts then need no correction for means and variances'
    ]
    return [*lines, *_on_logs(decided)]


def _sets(decided: DecidedSchema) -> list[tuple[str, ...]]:
    """Part the amounts into sets that have a covariance: those with most values first, each in the first that fits."""
    has_gaps = bool(decided.table.closed.keys() & set(decided.amounts))
    is_long = (
        len(decided.table) > 2 * len(decided.amounts) + 2
    )  # a full file of so many records has a covariance
    if is_long and not has_gaps:
        return [decided.amounts]
    from ..io.identities import pairwise_correlations

    values = decided.table.values(list(decided.amounts))
    correlations = np.nan_to_num(pairwise_correlations(values))
    np.fill_diagonal(correlations, 1.0)
    everything = list(range(len(decided.amounts)))
    is_full = is_long and bool((~np.isnan(values).any(axis=1)).mean() >= FULL)
    definite = OF_FULL if is_full else DEFINITE
    sets = [everything] if _least_eigenvalue(correlations, everything) > definite else list[list[int]]()
    order = np.argsort(np.isnan(values).sum(axis=0), kind="stable").tolist()
    for i in order if not sets else []:
        fits = (one for one in sets if _least_eigenvalue(correlations, [*one, i]) > DEFINITE)
        place = next(fits, None)
        if place is None:
            sets.append([i])
        else:
            place.append(i)
    named = [tuple(decided.amounts[i] for i in sorted(one)) for one in sets]
    return [part for one in named for part in _covariance_blocks(decided, one)]


def _least_eigenvalue(correlations: Floats, chosen: list[int]) -> float:
    return float(np.linalg.eigvalsh(correlations[np.ix_(chosen, chosen)])[0])


def _covariance_blocks(decided: DecidedSchema, columns: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Halve a set until each part has a covariance."""
    if len(columns) == 1 or _has_covariance(decided, columns):
        return [columns]
    half = len(columns) // 2
    return [*_covariance_blocks(decided, columns[:half]), *_covariance_blocks(decided, columns[half:])]


def _has_covariance(decided: DecidedSchema, columns: tuple[str, ...]) -> bool:
    from ..errors import BadPlan
    from ..masks import CorrelatedNoise

    try:
        CorrelatedNoise(columns, sd_ratio=START).card(decided.table)
    except BadPlan:
        return False
    return True


def _on_logs(decided: DecidedSchema) -> list[str]:
    """Name the amounts that noise on the log scale suits, with the shift that zeros need."""
    skewed = _skewed_amounts(decided)
    plain = [name for name, values in skewed.items() if values.min() > 0]
    shifted = [name for name in skewed if name not in plain]
    lines = []
    if plain:
        lines += comment(
            f"Strongly skewed and positive: {names_of(plain)}. Noise on the log scale suits such amounts "
            '(proportional, never negative): give them a mask of their own, with columns = [...] and transform = "log".'
        )
    if shifted:
        shift = min(_shift(skewed[name]) for name in shifted)
        lines += comment(
            f"Strongly skewed, with zeros: {names_of(shifted)}. Noise on the log scale needs a shift there, of the "
            f'size of small amounts: a mask of their own, with transform = "log" and shift = {shift:g}.'
        )
    return lines


def _skewed_amounts(decided: DecidedSchema) -> dict[str, Floats]:
    """Return amounts that are never negative and have a long upper tail, with their values."""
    found = {}
    for name in decided.amounts:
        values = decided.table.values([name])[:, 0]
        values = values[~np.isnan(values)]
        sd = values.std() if len(values) else 0.0
        if sd > 0 and values.min() >= 0 and float((((values - values.mean()) / sd) ** 3).mean()) > SKEWED:
            found[name] = values
    return found


def _shift(values: Floats) -> float:
    """Return a power of ten about a tenth of the median positive amount."""
    return float(10.0 ** np.floor(np.log10(np.median(values[values > 0]) / 10)))


def _clear(decided: DecidedSchema) -> list[str]:
    """Say what leaves as it is, how many that tells apart, and what would change it."""
    names = decided.categories
    if decided.changed:
        lines = comment(
            f"Categories are changed at random: {names_of(decided.changed)}. The card says by which chances."
        )
        return [*lines, *_pram(decided.changed, STAY, active=True)]
    if not names or decided.floor is None:
        return []
    floor = decided.floor
    same = [name for name in _unmasked_columns(decided) if not decided.codes(name).any()]
    beside = f" (and {names_of(same)}, the same for all records)" if same else ""
    lines = comment(
        f"These leave as they are: {clear_words(decided)}{beside}. An intruder who knows them relies on them: together "
        f"they tell {floor.rate:.1%} of the records apart (the fingerprint floor), whom no noise protects."
    )
    change = pram_offer(decided)
    if change is None:
        lines += comment(
            'Where that is too much, drop columns in the schema, or put categories in classes (mask = "Grouping").'
        )
        return lines
    remain = f"{alone_share(decided, change.columns):.1%} remain"
    lines += comment(
        f"Where that is too much, change categories at random, as here those that tell most ({remain}), "
        "or drop columns in the schema. Intruders then weigh them by the chances of a change."
    )
    lines += _pram(change.columns, change.stay, active=False)
    lines += comment(
        'Other ways: classes of categories (mask = "Grouping"), or noise on ordered codes (mask = "CodeNoise").'
    )
    return lines


def _unmasked_columns(decided: DecidedSchema) -> list[str]:
    """Return the columns that leave as they are, constant ones too."""
    masked = {*decided.amounts, *decided.changed, *(total for total, _ in decided.sums)}
    return [
        c.name
        for c in decided.schema.columns
        if not c.drop and c.name not in masked and not c.roles & {"id", "group"}
    ]


def clear_words(decided: DecidedSchema) -> str:
    """Name everything that noise does not change and that tells records apart: categories, weights, gaps and codes."""
    floor = None if decided.floor is None else decided.floor.floor
    if floor is None:
        return names_of(decided.categories)
    values = [name for name in decided.schema.names if name in floor.values]
    said = [names_of(values)] if values else []
    said += [f"what is missing or coded in {names_of(floor.patterns)}"] if floor.patterns else []
    return ", and ".join(said)


def _pram(columns: Sequence[str], stay: float, *, active: bool) -> list[str]:
    lines = ["[[masks]]", 'mask = "Pram"', f"columns = {toml_list(columns)}"]
    lines += [f"stay = {stay:g}  # the chance that a category stays; else any other is equally likely"]
    return lines if active else [f"#{line}" for line in lines]


def pram_offer(decided: DecidedSchema) -> RandomChange | None:
    """Return the random change that is offered: of what tells too much, or of a category; none where it is no help."""
    columns = to_drop(decided) or ([] if categories_to_hide(decided) else list(decided.categories[:1]))
    made = decided.once("random change", lambda: random_change(decided.clear, columns, guessing_limit()))
    return cast("RandomChange | None", made)


def to_drop(decided: DecidedSchema) -> list[str]:
    """Return the columns to drop so that neither the audit's floor nor guessing objects; none if nothing is enough."""
    clear = decided.clear
    if is_enough(clear, (), floor_limit(), drafted_rate()):
        return []
    limits = floor_limit(), guessing_limit()
    return list(decided.once("to drop", lambda: columns_to_drop(clear, *limits)))


def categories_to_hide(decided: DecidedSchema) -> list[str]:
    """Return the categories to hide, those that tell most first, until neither the audit nor guessing objects."""
    return list(decided.once("telling", lambda: _fewest_hidden_categories(decided)))


def _fewest_hidden_categories(decided: DecidedSchema) -> list[str]:
    floor = None if decided.floor is None else decided.floor.floor
    if floor is None or _is_hidden(decided, []):
        return []
    order = coarsest_first(decided.clear)
    few, enough = 1, len(order)  # what is hidden beside tells nobody more, so that halving finds the fewest
    while few < enough:
        middle = (few + enough) // 2
        few, enough = (few, middle) if _is_hidden(decided, order[:middle]) else (middle + 1, enough)
    return order[:enough]


def _is_hidden(decided: DecidedSchema, chosen: Sequence[str]) -> bool:
    """Whether few enough are alone, and found by guessing, once some categories are hidden."""
    limit = drafted_rate() if not chosen else guessing_limit()
    return decided.clear.guessing(chosen) <= limit and alone_share(decided, chosen) <= floor_limit()


def alone_share(decided: DecidedSchema, hidden: Sequence[str]) -> float:
    """Return the share of records that stay alone where categories are hidden; what is missing in them still shows."""
    from ..attacks import Fingerprint, attack

    masked = (*decided.amounts, *(total for total, _ in decided.sums), *decided.changed, *hidden)
    return float(attack(Fingerprint(masked=masked), decided.table).rate)


def floor_limit() -> float:
    """Return the share of records alone with what no noise changes from which on the audit fails."""
    return _limits("fingerprint floor").fail or 1.0


def drafted_rate() -> float:
    """Return the share of records that may be found: where the audit begins to warn of informed links.

    The strongest intruder finds about a third more than the one by whom noise is searched, and those farthest out are
    found most: at the share from which on the audit fails, a release that just meets the tolerance would fail by both.
    """
    return _limits("informed links").warn or FIFTEEN_PERCENT.max_rate


def guessing_limit() -> float:
    """Return the share of records that guessing may find where columns are hidden for it."""
    return ROOM * drafted_rate()


def _limits(check: str) -> Limits:
    from ..checks.catalogue import checks

    return next(one.limits for one in checks() if one.name == check)
