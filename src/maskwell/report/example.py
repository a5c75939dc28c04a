"""The lines of Python that recipients can begin with: a model that was fitted to the release before it is printed."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .words import by_passphrase_of

if TYPE_CHECKING:
    from ..masking import Release
    from ..plan import ReleasePlan

DROP, DRAW = ", missing='drop'", ", missing='draw'"
MOST_LEVELS = 6  # of a category that stands on the right of a proposed model
TRIED = 1_500  # records on which a model is drawn, after it was checked on all: some seconds
CHAINS, DRAWS, WARMUP = 1, 40, 40  # enough to see that it runs; the line itself takes as many as it needs
NO_MODELS = frozenset({"id", "weight", "group"})
_PLAIN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*$")


def example_of(release: Release, plan: ReleasePlan) -> str:
    """Return a few lines of Python that fit one model to a release: the first of those proposed that runs.

    Without any that runs they read the release and print it.
    """
    found = next((one for one in _example_lines(release, plan) if _runs(*one, release)), None)
    asks = by_passphrase_of(plan)
    opening = ', passphrase=getpass("Passphrase of the card: ")' if asks else ', identity="my-identity.txt"'
    opening = opening if plan.card.leaves == "sealed" else ""
    lines = [
        *(["from getpass import getpass"] if asks else []),
        "import maskwell as mw",
        f"release = mw.read_release({plan.output.release.name or 'release'!r}{opening})",
        "print(release)",
    ]
    if found is not None:
        formula, family, missing = found
        kind = "" if family == "gaussian" else f", family={family!r}"
        lines += [f"posterior = mw.fit({formula!r}, release{kind}{missing})", "print(posterior)"]
    return "\n".join(lines)


def _example_lines(release: Release, plan: ReleasePlan) -> Iterator[tuple[str, str, str]]:
    """Yield models with what becomes of records that have missing or coded values: drawn, where noise chose them.

    Leaving these out would bias the answer: it comes last, where no other model runs.
    """
    models = list(_example_models(release, plan))
    for formula, family in models:
        is_closed, by_noise = _has_closed(formula, release), _coded_by_noise(formula, release)
        yield formula, family, DRAW if by_noise else DROP if is_closed else ""
    yield from ((*one, DROP) for one in models if _coded_by_noise(one[0], release))


def _example_models(release: Release, plan: ReleasePlan) -> Iterator[tuple[str, str]]:
    """Yield the models of the plan, their logarithms on the scale of the noise too, then some of the masked numbers."""
    from ..analysis.log_scale import on_noise_scale

    for model in plan.models:
        formulas = dict.fromkeys((model.formula, on_noise_scale(model.formula, release.card)))
        yield from ((formula, model.family) for formula in formulas)
    named = [_quote_name(name) for name in _numbers(release)]
    if len(named) > 1:
        yield f"{named[0]} ~ {' + '.join(named[1:3])}", "gaussian"
        yield f"{named[0]} ~ {named[1]}", "gaussian"
    yield from ((f"{name} ~ 1", "gaussian") for name in named[:3])
    if not named:
        yield from _models_of_categories(release)


def _models_of_categories(release: Release) -> Iterator[tuple[str, str]]:
    """Yield models of masked categories with two levels, by others that have few."""
    masked = set(release.card.masked)
    columns = [
        one
        for one in release.table.schema.columns
        if one.categories and not one.roles & NO_MODELS and not one.drop
    ]
    columns = sorted(columns, key=lambda column: column.name not in masked)
    responses = [_quote_name(one.name) for one in columns if len(one.categories) == 2]
    few = [_quote_name(one.name) for one in columns if len(one.categories) <= MOST_LEVELS]
    for response in responses[:3]:
        others = [name for name in few if name != response]
        yield from ((f"{response} ~ {name}", "logit") for name in [*others[:2], "1"])


def _numbers(release: Release) -> list[str]:
    """Return the numbers that a model may be about, those with noise first."""
    columns = [
        one
        for one in release.table.schema.columns
        if one.is_number and not one.roles & NO_MODELS and not one.drop
    ]
    masked = set(release.card.masked)
    return [one.name for one in sorted(columns, key=lambda column: column.name not in masked)]


def _quote_name(name: str) -> str:
    return name if _PLAIN_NAME.match(name) else f"`{name}`"


def _names(formula: str) -> set[str]:
    from ..analysis.formulas.column_uses import names_in
    from ..analysis.formulas.formula_tree import tree_of

    return set(names_in(tree_of(formula)))


def _has_closed(formula: str, release: Release) -> bool:
    """Whether a column of the formula has values that are missing or coded."""
    return not _names(formula).isdisjoint(release.table.closed)


def _coded_by_noise(formula: str, release: Release) -> bool:
    """Whether a column of the formula has values that were coded after the noise, so that it chose them."""
    from ..analysis.noise.card_columns import law_of

    laws = {name: law_of(release.card, name) for name in _names(formula) & {*release.table.closed}}
    return any(
        any(end is not None for end in law.outlets[law.columns.index(name)].codes)
        for name, law in laws.items()
        if hasattr(law, "outlets")
    )


def _runs(formula: str, family: str, closed: str, release: Release) -> bool:
    """Run the line: everything that `fit` checks on all records, and a few draws on some of them."""
    from ..analysis import fit
    from ..analysis.model_fit import DRAW as DRAWN
    from ..analysis.model_fit import DROP as LEFT_OUT
    from ..analysis.model_fit import fit_refusal
    from ..errors import MaskwellError

    try:
        missing = LEFT_OUT if closed == DROP else DRAWN
        if fit_refusal(formula, release, family=family, missing=missing):
            return False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of so few draws
            fit(
                formula, _some(release), family=family, missing=missing, naive=False, progress=False, seed=0,
                chains=CHAINS, draws=DRAWS, warmup=WARMUP,
            )  # fmt: skip
    except (MaskwellError, ArithmeticError, ValueError):  # whatever it is, it would meet the reader too
        return False
    return True


def _some(release: Release) -> Release:
    """Return records of a release that are spread over it, as many as some seconds are enough for."""
    from dataclasses import replace

    import numpy as np

    if len(release) <= TRIED:
        return release
    chosen = np.linspace(0, len(release) - 1, TRIED).astype(np.int64)
    return replace(release, table=release.table.take(chosen))
