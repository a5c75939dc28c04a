"""`kim_winkler`: as much noise as is tolerable or useful, then as few swaps as the tolerance needs (Moore 1996, XIII).

c = the smaller of sqrt((1 - R0) / R0) and the critical noise (`calibration.critical_noise_search`). Called by the
steward; release plans name noise and swap apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..attacks import Linkage
from ..calibration import critical_noise
from ..calibration.comparison_setting import make_situation
from ..errors import BadPlan, raise_all
from ..keys import Key
from ..masking import Masking, apply
from ..masks import CorrelatedNoise
from ..notes import Note
from ..table import Table
from ..tolerances import is_real
from .directed_swaps import swap
from .swap_effects import Domain

if TYPE_CHECKING:
    from ..tolerances import SwapAim

DIGITS = 3  # of the critical noise: more would say nothing


def kim_winkler(
    table: Table,
    attack: Linkage,
    tolerance: SwapAim,
    *,
    r0: float | None = None,
    epsilon: float | None = 0.01,
    columns: Sequence[str] | str | None = None,
    exempt_values: str | None = None,
    domains: Sequence[Domain] | str | None = None,
    key: Key | None = None,
    seed: int | None = None,
) -> Masking:
    """Mask a table by Kim's noise and swap what is still re-identifiable until the tolerance holds.

    The noise is as strong as is tolerable (`r0`, the lowest non-distortion factor; None: no limit) or as is useful
    (beyond the critical noise more saves at most `epsilon` of the targets; None: no limit), whichever is less. Then
    `swap` makes as few swaps as the tolerance needs. `columns` are noised (the number fields of the attack). Moore and
    Winkler count who finds the record, which is what was not exchanged: say so in `exempt_values` (see `swap`), or the
    swaps cannot help.
    """
    names = _columns(table, attack) if columns is None else _column_names(columns)
    size, note = _noise(table, attack, names, r0, epsilon)
    masking = apply(CorrelatedNoise(names, sd_ratio=size), table, key=key, seed=seed)
    masking = replace(masking, notes=(*masking.notes, note))
    return swap(masking, attack, tolerance, exempt_values=exempt_values, domains=domains)


def _noise(
    table: Table, attack: Linkage, names: tuple[str, ...], r0: float | None, epsilon: float | None
) -> tuple[float, Note]:
    """Return Kim's c and why it is that."""
    if r0 is None and epsilon is None:
        raise BadPlan("say how much noise: the lowest tolerable r0, epsilon of the critical noise, or both")
    if r0 is not None and not (is_real(r0) and 0 < r0 < 1):
        raise BadPlan(f"r0 is the lowest tolerable non-distortion factor, between 0 and 1, not {r0!r}")
    tolerable = None if r0 is None else CorrelatedNoise(("x",), r0=r0).noise_sd_ratio
    if epsilon is None:
        assert tolerable is not None
        return tolerable, _tolerable_note(tolerable, r0)
    mask = CorrelatedNoise(names, sd_ratio=1.0)
    critical = critical_noise(table, attack=attack, mask=mask, epsilon=epsilon)
    useful = float(f"{critical.critical_sd_ratio:.{DIGITS}g}")
    if not useful:
        raise BadPlan("no target has an open value that noise could protect: only swapping is left")
    if tolerable is not None and tolerable < useful:
        return tolerable, _tolerable_note(tolerable, r0, useful)
    return useful, Note("masking.useful_noise", {"sd_ratio": useful, "epsilon": epsilon})


def _tolerable_note(sd_ratio: float, r0: float | None, useful: float | None = None) -> Note:
    return Note("masking.tolerable_noise", {"sd_ratio": sd_ratio, "r0": r0, "useful": useful})


def _column_names(columns: Any) -> tuple[str, ...]:
    """Return the columns asked for; one may be named alone."""
    names = (
        (columns,) if isinstance(columns, str) else tuple(columns) if isinstance(columns, Iterable) else ()
    )
    if not names or not all(isinstance(name, str) for name in names):
        raise BadPlan(f"columns are names, such as ('INCOME', 'TAXES'), not {columns!r}")
    return names


def _columns(table: Table, attack: Linkage) -> tuple[str, ...]:
    """Return the number fields of the attack: what noise can be added to."""
    names = tuple(name for name in make_situation(table, attack, None).fields if table.schema[name].is_number)
    raise_all([] if names else ["the attack compares no numbers: there is nothing to add noise to"], BadPlan)
    return names
