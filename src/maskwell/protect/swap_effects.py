"""What an exchange did to the figures of a file: covariances, and means of sub-domains, before and after.

Means and covariances among the columns that move together are the same sums in another order, to rounding (Moore 1996,
section X); covariances with columns that stay and means of sub-domains are not, and are told. Made by `directed_swaps`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..card import block_numbers
from ..engines.local import Local
from ..errors import BadPlan, raise_all
from ..masking.results import Integers
from ..masking.swap_record import COVARIANCES, DOMAINS, figures_table
from ..masking.totals import amounts
from ..table import Floats, Table
from .reach import Reach

Domain = str | Sequence[str]


def asked_domains(
    domains: Sequence[Domain] | str | None, masked: Table, reach: Reach
) -> list[tuple[str, ...]]:
    """Return the sub-domains asked for as tuples of columns, refusing columns that move."""
    if domains is None:
        unmatched = [name for name in masked.schema.with_role("block") if name not in reach.blocks]
        return [(name,) for name in unmatched if name not in reach.columns]
    out = _as_tuples(domains)
    names = [name for one in out for name in one]
    problems = masked.schema.missing_columns(names)
    problems += [
        f"column {name!r} is swapped, so it defines no sub-domain" for name in names if name in reach.columns
    ]
    raise_all(problems, BadPlan)
    return out


def _as_tuples(domains: Any) -> list[tuple[str, ...]]:
    """Return domains as tuples of names, refusing what is none."""
    out = [_as_names(one) for one in ([domains] if isinstance(domains, str) else _items(domains))]
    if not all(one and all(isinstance(name, str) for name in one) for one in out):
        raise BadPlan(
            f"domains are names of columns, or tuples of names to be crossed, such as ['EDU', ('HH', 'SEX')], "
            f"not {domains!r}"
        )
    return out


def _as_names(domain: Any) -> tuple[Any, ...]:
    return (domain,) if isinstance(domain, str) else _items(domain)


def _items(given: Any) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, Iterable) else (given,)


def covariances(before: Table, after: Table, kept: Integers | None, columns: Sequence[str]) -> Any:
    """Compare the covariances of swapped columns with each other and with every other amount."""
    names, first, others = _figures(before, kept, columns)
    _, second, _ = _figures(after, kept, columns)
    moments = [Local().moments(values) for values in (first, second)]
    sds = [np.where(one.counts > 1, one.sds, np.nan) for one in moments]
    own = len(names) - others
    pairs = [(i, j) for i in range(own) for j in range(i, len(names))]
    rows, places = [i for i, _ in pairs], [j for _, j in pairs]
    correlations = [one.correlations[rows, places] for one in moments]
    found = [r * sd[rows] * sd[places] for r, sd in zip(correlations, sds, strict=True)]
    out: dict[str, Any] = {
        "column": [names[i] for i in rows],
        "other": [names[j] for j in places],
        "both_swapped": [j < own for j in places],
    }
    out |= dict(zip(("before", "after"), found, strict=True))
    out |= dict(zip(("correlation_before", "correlation_after"), correlations, strict=True))
    return figures_table(COVARIANCES, out)


def _figures(table: Table, kept: Integers | None, columns: Sequence[str]) -> tuple[list[str], Floats, int]:
    """Return names and values: the swapped columns, then all other amounts, and how many those are."""
    names, values = _swapped_values(table, columns)
    others = [name for name in amounts(table) if name not in columns]
    whole = np.column_stack([values, table.values(others)])
    return [*names, *others], whole if kept is None else whole[kept], len(others)


def _swapped_values(table: Table, columns: Sequence[str]) -> tuple[list[str], Floats]:
    """Return the swapped amounts, and for each category of swapped ones whether it is the record's; NaN: closed."""
    names, values = list[str](), list[Floats]()
    for name in columns:
        column = table.schema[name]
        if column.kind == "text":
            continue
        found = table.floats(name)
        if column.is_number:
            names, values = [*names, name], [*values, found]
            continue
        for code, label in enumerate(column.categories):
            names.append(f"{name} is {label}")
            values.append(np.where(np.isnan(found), np.nan, found == code))
    return names, np.column_stack(values) if values else np.empty((len(table), 0))


def domain_means(
    before: Table,
    after: Table,
    kept: Integers | None,
    columns: Sequence[str],
    domains: Sequence[tuple[str, ...]],
) -> Any:
    """Compare the means of swapped columns in every value of the sub-domains."""
    records = np.arange(len(before)) if kept is None else kept
    names, first = _swapped_values(before, columns)
    second = _swapped_values(after, columns)[1]
    first, second = first[records], second[records]
    moments = Local().moments(first)
    sds = np.where((moments.counts > 1) & (moments.sds > 0), moments.sds, np.nan)
    out: dict[str, list[Any]] = {name: [] for name in DOMAINS}
    for domain in domains:
        numbers, labels = _values_of(before, domain, records)
        for j, name in enumerate(names):
            open_before, mean_before = _means(first[:, j], numbers)
            open_after, mean_after = _means(second[:, j], numbers)
            out["domain"] += [" x ".join(domain)] * len(labels)
            out["value"] += labels
            out["records"] += np.bincount(numbers).tolist()
            out["column"] += [name] * len(labels)
            out["open_before"] += open_before.tolist()
            out["open_after"] += open_after.tolist()
            out["mean_before"] += mean_before.tolist()
            out["mean_after"] += mean_after.tolist()
            out["shift_in_sds"] += ((mean_after - mean_before) / sds[j]).tolist()
    return figures_table(DOMAINS, out)


def _values_of(table: Table, domain: tuple[str, ...], records: Integers) -> tuple[Integers, list[str]]:
    """Number the values of a sub-domain among some records, and name them as they are written."""
    import pyarrow as pa

    _, firsts, numbers = np.unique(
        block_numbers(table, domain)[records], return_index=True, return_inverse=True
    )
    parts = [table.written(name).take(records[firsts]).cast(pa.string()).to_pylist() for name in domain]
    labels = [
        " x ".join("missing" if text is None else text for text in row) for row in zip(*parts, strict=True)
    ]
    order = sorted(range(len(labels)), key=labels.__getitem__)
    return np.argsort(order)[numbers], [labels[i] for i in order]


def _means(values: Floats, numbers: Integers) -> tuple[Integers, Floats]:
    """Return how many values of each group are open, and their mean (NaN: of none)."""
    is_open, groups = ~np.isnan(values), int(numbers.max(initial=-1)) + 1
    counts = np.bincount(numbers[is_open], minlength=groups)
    sums = np.bincount(numbers[is_open], weights=values[is_open], minlength=groups)
    return counts, np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
