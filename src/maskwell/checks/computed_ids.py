"""Released ids that are computed from true ones, or from the place in the file.

Codes are held against texts of the true id (or number) of their record, and digests of these (`id_texts`); against
what arithmetic makes of their numbers (`id_arithmetic`); against draws and orders of common generators (`id_draws`);
one step from each record to the next, and rank correlations. `id_readings` has the chance that any of them holds.
Own derivation, by the union bound. Called by `clear_records`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..arrow_buffers import from_numpy, take_texts
from .evidence import Evidence
from .id_arithmetic import constants, maps_of_numbers, most_common, places_of_signs, steps_with_modulus
from .id_draws import RUN, codes_of_own_seeds, seeded_codes
from .id_readings import FEWEST, NEARLY, Relation, numbers_of, ranks, readings, without_frame
from .id_texts import digests_of_forms, plain_texts
from .relations import correlation, shared_ranks
from .shuffles import least_hits

MOST = 3_000  # records that are looked at: of a relation in 1% of them thirty show
SHARE, LEAST = 0.01, 10  # of the records that a relation must give, and how many at least
MOST_OF_THEM = 0.5  # a constant that gives so many codes is told, and no other relation is looked for
CHANCE_TRIES = 500  # relations and readings of all columns, at most
SURE = 6.0  # standard errors of a rank correlation, of some dozen that are tried: 1e-7 by chance
MOST_ORDERED = 500_000  # records whose whole order is held against those of seeds


def computed_columns(evidence: Evidence) -> dict[str, Relation]:
    """Return the released columns that are computed from the true ids or from places in the file."""
    picked = evidence.sample(purpose=(9,), most=MOST)
    if len(picked) < FEWEST:
        return {}
    by_file = np.argsort(evidence.masking.order)  # places in the release, in the order of the file
    where, run = by_file[picked], by_file[picked[0] : picked[0] + MOST]
    sources = _sources(evidence, evidence.masking.order[where])
    table, found = evidence.masking.release.table, dict[str, Relation]()
    for name in _coded_columns(evidence):
        codes, following = code_texts(table, name, where), code_texts(table, name, run)
        if len(set(codes) - {""}) > NEARLY * len(codes):
            is_id = "id" in table.schema[name].roles
            lists = _lists_of(evidence, name, by_file[:MOST_ORDERED])
            relation = computed_from(codes, sources, following, lists, in_order=is_id)
            found |= {} if relation is None else {name: relation}
    return found


def _sources(evidence: Evidence, rows: Any) -> dict[str, list[str]]:
    """Return what codes may be computed from: the true id, and the number of the record."""
    truth = evidence.masking.truth
    sources = {"number in the file": [str(row) for row in rows.tolist()]}
    sources["number in the file, from 1 on"] = [str(row + 1) for row in rows.tolist()]
    if truth.ids is not None:
        sources["id"] = [str(text) for text in take_texts(truth.ids, rows).to_pylist()]
    return sources


def _lists_of(evidence: Evidence, name: str, by_file: Any) -> dict[str, list[str]]:
    """Return the codes of a column by the file and by true ids; "" for records that were not released, by the file."""
    codes = code_texts(evidence.masking.release.table, name, by_file)
    rows = evidence.masking.order[by_file]
    lists = _lists(
        codes, {one: texts for one, texts in _sources(evidence, rows).items() if not one.endswith("on")}
    )
    first = int(np.searchsorted(rows, RUN))
    if first < RUN <= rows[-1]:
        at = dict(zip(rows[:first].tolist(), codes, strict=False))
        lists["the number in the whole file"] = [at.get(row, "") for row in range(RUN)]
    return lists


def _coded_columns(evidence: Evidence) -> list[str]:
    """Return the released id, texts, and numbers that the truth does not have: what a program may have computed.

    The ids that a release of our own has come from its key.
    """
    masking = evidence.masking
    truth, released = masking.truth.schema, masking.release.table
    return [
        column.name
        for column in released.schema.columns
        if column.name in released.names
        and ("id" not in column.roles or masking.given is not None)
        and "group" not in column.roles
        and (column.kind == "text" or "id" in column.roles or (column.is_number and column.name not in truth))
    ]


def code_texts(table: Any, name: str, at: Any) -> list[str]:
    """Return the values of a released column at some places as texts, "" where there is none."""
    return [_text(value) for value in table.array(name).take(from_numpy(at)).to_pylist()]


def _text(value: Any) -> str:
    if value is None:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def computed_from(
    codes: Sequence[str],
    sources: dict[str, list[str]],
    following: Sequence[str] = (),
    lists: dict[str, list[str]] | None = None,
    *,
    in_order: bool = True,
) -> Relation | None:
    """Return how codes come from the records; nothing where chance explains them.

    `following` are codes of records that follow one another in the file, `lists` codes from the first record on, by
    the file and by true ids. A rank correlation counts `in_order` alone: ids have none, whatever the file is sorted by.
    """
    found = list(_counted_relations(codes, sources, following))
    if max((one.share for one in found), default=0.0) < MOST_OF_THEM:
        found += _verified_relations(codes, sources, following)
    if found:
        return max(found, key=lambda one: one.share)
    drawn = seeded_codes(_lists(codes, sources) if lists is None else lists)
    if drawn is not None:
        return drawn
    return codes_of_own_seeds(codes, sources) or (_in_order(codes, sources) if in_order else None)


def _counted_relations(
    codes: Sequence[str], sources: dict[str, list[str]], following: Sequence[str]
) -> Iterator[Relation]:
    """Yield the relations that hold for one in a hundred of all records."""
    needed = max(SHARE * len(codes), LEAST, least_hits(CHANCE_TRIES * len(codes)))
    cores = without_frame([code.lower() for code in codes])
    for what, texts in sources.items():
        for how, count in (*plain_texts(cores, texts), *constants(codes, cores, texts)):
            if count >= needed:
                yield Relation(how.replace("the id", f"the {what}"), count / len(codes))
    for reading, numbers in readings(following):
        pairs = [(one, other) for one, other in pairwise(numbers) if one is not None and other is not None]
        count = most_common(after - before for before, after in pairs)
        if count >= max(SHARE * len(following), needed):
            yield Relation(f"one step from each record to the next{reading}", count / len(following))


def _verified_relations(
    codes: Sequence[str], sources: dict[str, list[str]], following: Sequence[str]
) -> Iterator[Relation]:
    """Yield the relations that a few records fix and all others verify, and digests of many forms."""
    cores = without_frame([code.lower() for code in codes])
    for what, texts in sources.items():
        for one in (
            *maps_of_numbers(codes, texts),
            *places_of_signs(cores, texts),
            *digests_of_forms(codes, cores, texts),
        ):
            yield Relation(one.how.replace("the id", f"the {what}"), one.share)
    yield from steps_with_modulus(following)


def _lists(codes: Sequence[str], sources: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return all codes by the numbers of their records and by their true ids, as texts and as numbers."""
    found: dict[str, list[str]] = {}
    for what, texts in sources.items():
        numbers = numbers_of(texts)
        if numbers is not None and None not in numbers:
            order = np.argsort(ranks(numbers))  # type: ignore[arg-type]
            found[f"the {what}"] = [codes[i] for i in order.tolist()]
        if what == "id":
            by_text = [codes[i] for i in np.argsort(ranks(list(texts))).tolist()]
            found |= {"the id as a text": by_text} if by_text not in found.values() else {}
    return found


def _in_order(codes: Sequence[str], sources: dict[str, list[str]]) -> Relation | None:
    """Return along what of the records codes rise or fall, beyond chance."""
    best = Relation("", 0.0)
    for what, texts in sources.items():
        a = numbers_of(texts)
        for _, b in () if a is None else readings(codes):
            pairs = [(x, y) for x, y in zip(a or (), b, strict=True) if x is not None and y is not None]
            if len(pairs) >= FEWEST:
                size = abs(correlation(*map(shared_ranks, np.array(pairs, np.float64).T)))
                if size > max(best.share, 0.1, SURE / (len(pairs) - 1) ** 0.5):
                    best = Relation(f"in the order of the {what}", size)
    return best if best.share else None
