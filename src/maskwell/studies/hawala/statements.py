"""What the paper states in words, held against our figures: each note says whether it holds here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from statistics import fmean

from ..results import BETWEEN, Draws

POINT = 1.0  # the paper prints whole per cents: less is no change

MATCHER, NEAREST, INFORMED = "Winkler's matcher", "nearest record", "informed"
ONE_TO_ONE, NORMAL = "informed, one-to-one", "informed, normal noise"
NEAREST_BACK, INFORMED_BACK = f"{NEAREST}, from the original", f"{INFORMED}, from the original"


def notes(draws: Mapping[str, Draws]) -> list[str]:
    """Return the statements that can be checked with the tables that were run."""
    return [
        check(means(draws[name])) for name, checks in STATEMENTS.items() if name in draws for check in checks
    ]


def means(draws: Draws) -> dict[str, dict[str, float]]:
    """Return the mean over replicates by column and row."""
    out: dict[str, dict[str, float]] = {}
    for cell, values in draws.items():
        row, _, column = cell.partition(BETWEEN)
        out.setdefault(column, {})[row] = fmean(values)
    return out


Means = Mapping[str, Mapping[str, float]]


def _verdict(statement: str, holds: bool, found: str) -> str:
    return f"the paper: {statement}. {'It holds' if holds else 'It does not hold'} here: {found}."


def _row(values: Iterable[float]) -> str:
    return ", ".join(f"{round(value, 1) + 0.0:.1f}" for value in values)  # no -0.0


def _falls(values: Iterable[float]) -> bool:
    return all(b < a for a, b in pairwise(values))


def _symmetry(table: Means) -> str:
    apart = [table["asymmetric"][cv] - table["symmetric"][cv] for cv in table["symmetric"]]
    holds = min(apart) > -POINT and max(apart) >= POINT
    found = f"asymmetric less symmetric is {_row(apart)} points at the five CVs"
    return _verdict("symmetric noise is re-identified less", holds, found)


def _variation(table: Means) -> str:
    rates = list(table["k = 2"].values())[1:]
    found = f"{_row(rates)}% from CV 0.1 on, for two components"
    return _verdict("rates fall as the CV grows beyond 0.1", _falls(rates), found)


def _components(table: Means) -> str:
    apart = [table["k = 7"][cv] - table["k = 2"][cv] for cv in table["k = 2"]]
    found = f"seven components less two are {_row(apart)} points at the five CVs"
    return _verdict("the number k of components makes no difference", max(map(abs, apart)) <= POINT, found)


def _variance(table: Means) -> str:
    (rates,) = table.values()
    found = f"{_row(rates.values())}% as d grows, for this matcher"
    return _verdict("more noise d, fewer re-identifications", _falls(rates.values()), found)


def _intruders(table: Means) -> str:
    mixed = {column: rows["mixture"] for column, rows in table.items()}
    return (
        f"what the matcher misses: of the records masked by the mixture it finds {mixed[MATCHER]:.0f}%, the nearest "
        f"record {mixed[NEAREST]:.0f}%, an intruder who knows the noise {mixed[INFORMED]:.0f}% "
        f"({mixed[ONE_TO_ONE]:.1f}% one-to-one); of those masked by plain normal noise of the same variance he finds "
        f"{table[INFORMED]['normal']:.0f}%. From the original for its masked record, the nearest record finds "
        f"{mixed[NEAREST_BACK]:.0f}% and he {mixed[INFORMED_BACK]:.0f}% (normal noise: "
        f"{table[INFORMED_BACK]['normal']:.0f}%): the risk is the largest of these, not that of one direction"
    )


def _within(table: Means) -> str:
    matched, informed = (list(table[name].values()) for name in (MATCHER, INFORMED))
    found = (
        f"the matcher finds {_row(matched)}% as c grows; an intruder who knows the noise, {_row(informed)}%"
    )
    return _verdict("c makes no difference", max(matched) - min(matched) <= POINT, found)


def _informed_sentence(table: Means) -> str:
    mixed, normal = (list(table[name].values()) for name in (INFORMED, NORMAL))
    return (
        f"an intruder who knows the noise finds {_course(table[INFORMED])}: {_row(mixed)}%; with plain normal noise of "
        f"the same variances he finds {_row(normal)}%"
    )


def _course(rates: Mapping[str, float]) -> str:
    """Say in words how rates go as d grows."""
    fewest = min(rates, key=rates.__getitem__)
    first, *_, last = rates
    if fewest == last:
        return "fewer as d grows"
    return "more as d grows" if fewest == first else f"the fewest at {fewest} and more again beyond it"


STATEMENTS: dict[str, tuple[Callable[[Means], str], ...]] = {
    "1": (_symmetry,),
    "2": (_variation, _components),
    "3": (_variance,),
    "intruders": (_intruders,),
    "c": (_within,),
    "informed": (_informed_sentence,),
}
