"""How far a top or bottom code may be relaxed at a given noise: Moore's third question, by his formula and exactly.

Formula: A = a + c sqrt(12) sd / q (Moore 1996, section XIV, question 3, from his conjecture 1). Exactly: the most
relaxed code whose expected correct links (`agreement_curves`) are no more than with the present one, by trying codes
and halving between them (own derivation). Called by the steward as `relaxed_code`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from math import ceil, floor, isnan, log10, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from ..attacks.agreement import Relative
from ..errors import BadInput, BadPlan, nearest, raise_all
from ..laws.transform import on_unit
from ..notes import Note
from ..schema import BOTTOM_CODED, OPEN, TOP_CODED, Column
from ..table import Floats, Table
from .agreement_curves import TOO_MANY_PAIRS, check_sizes
from .closed_form import ROOT_12, closed_form
from .comparison_setting import ComparisonSetting, make_situation

if TYPE_CHECKING:
    from ..attacks import Linkage
    from ..masking import Mask

STEPS = 8  # codes tried between the present one and none
BISECTIONS = 4  # between the last code that is safe and the next
SIDES = {"top": (TOP_CODED, 1), "bottom": (BOTTOM_CODED, -1)}

Codes = Mapping[str, tuple[float | None, float | None]]


@dataclass(frozen=True, slots=True)
class CodeFigure:
    """What one code leaves (`code` is nothing where the column has none): expectations over all possible noise.

    `coded` counts the records at the code, `sd` is that of the values still open, `moore_sd_ratio` Moore's c with it.
    """

    code: float | None
    coded: int
    sd: float
    agreeing: float
    correct: float
    correct_error: float
    moore_sd_ratio: float


@dataclass(frozen=True, slots=True)
class RelaxedCode:
    """How far one code may be relaxed with no more correct links expected than at the present code.

    `relaxed` is the most relaxed code tried that does so: nothing if none is needed, the present one if none can be
    relaxed. `moore` is his formula turned round, a + c sqrt(12) sd / q, with the sd at the present code, and
    `moore_consistent` with the sd at the code itself (NaN: the formula has no answer). They are figures of the steward.
    """

    column: str
    side: str
    sd_ratio: float
    targets: int
    code: float
    relaxed: float | None
    moore: float
    moore_consistent: float
    figures: tuple[CodeFigure, ...]
    notes: tuple[Note, ...] = ()

    @property
    def is_needed(self) -> bool:
        """Whether some code must stay."""
        return self.relaxed is not None

    def to_dict(self) -> dict[str, Any]:
        """Return figures only."""
        out = asdict(self)
        for one in (out, *out["figures"]):
            one |= {name: None for name, value in one.items() if isinstance(value, float) and isnan(value)}
        return out | {"is_needed": self.is_needed, "notes": [note.to_dict() for note in self.notes]}

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return what fits on one screen."""
        answer = "no code is needed" if self.relaxed is None else f"it may be relaxed to {self.relaxed:,.10g}"
        if self.relaxed == self.code:
            answer = "it cannot be relaxed"
        lines = [
            f"RelaxedCode: {self.side} code {self.code:,.10g} of {self.column} at sd ratio {self.sd_ratio:.4g}, "
            f"{self.targets:,} targets: {answer} without more correct links"
        ]
        lines.append(
            f"  Moore's formula turned round: {_format_figure(self.moore)} with the present sd, "
            f"{_format_figure(self.moore_consistent)} with the sd at the code itself"
        )
        lines += ["", f"  {'code':>12}{'coded':>9}{'noise sd':>11}{'agreeing':>11}{'correct links':>15}"]
        lines[-1] += f"{'error':>9}{'Moore c':>9}"
        for one in self.figures:
            code = "none" if one.code is None else f"{one.code:,.10g}"
            lines.append(
                f"  {code:>12}{one.coded:>9,}{self.sd_ratio * one.sd:>11,.4g}{one.agreeing:>11.1f}{one.correct:>15.2f}"
                f"{one.correct_error:>9.1g}{_format_figure(one.moore_sd_ratio):>9}"
            )
        return lines + (["", *(f"  - {note}" for note in self.notes)] if self.notes else [])


def _format_figure(value: float) -> str:
    return "none" if isnan(value) else f"{value:,.4g}" if value < 100 else f"{value:,.0f}"


def with_codes(table: Table, codes: Codes) -> Table:
    """Return a table with (bottom, top) codes on some columns: values at or beyond one are closed, as `Coding` does."""
    changed: dict[str, Any] = {}
    raise_all(table.schema.missing_columns(list(codes)), BadPlan)
    for name, (bottom, top) in codes.items():
        column, values = table.schema[name], table.floats(name)
        if not column.is_number:
            raise BadPlan(f"column {name!r} is of kind {column.kind!r}: codes are for numbers")
        released = values if column.step is None else on_unit(values, column.step)
        status = table.status(name).copy()
        if top is not None:
            status[(status == OPEN) & (released >= top)] = TOP_CODED
        if bottom is not None:
            status[(status == OPEN) & (released <= bottom)] = BOTTOM_CODED
        described = replace(
            column,
            bottom=column.bottom if bottom is None else bottom,
            top=column.top if top is None else top,
        )
        changed[name] = (described, np.where(status == OPEN, values, np.nan), status)
    return table.with_columns(changed)


def relaxed_code(
    table: Table,
    column: str,
    sd_ratio: float,
    *,
    code: float,
    side: str = "top",
    attack: Linkage | None = None,
    mask: Mask | None = None,
) -> RelaxedCode:
    """Return the most relaxed code of a column with which the expected correct links are no more than with `code`.

    `table` holds the column's amounts beyond the code (see `with_codes` for the codes of other columns). The size of
    the noise, `sd_ratio`, stays: its sd is the ratio times that of the values open at each code.
    """
    amounts = _amounts(table, column, side, code)
    sign = SIDES[side][1]

    @cache
    def figure(at: float | None) -> CodeFigure:
        return _figure(_situation(table, column, side, at, attack, mask), column, side, sd_ratio)

    situation = _situation(table, column, side, code, attack, mask)
    check_sizes(situation, [sd_ratio], 0)
    present = figure(code)
    tried: list[float | None] = [code, *_codes_between(amounts, code, sign), None]
    relaxed = _most_relaxed(figure, present, tried, code, sign)
    figures = tuple(figure(at) for at in sorted(tried, key=lambda at: np.inf if at is None else sign * at))
    fixed, consistent, notes = _moore(situation, table, column, side, sd_ratio, present.sd)
    return RelaxedCode(
        column=column,
        side=side,
        sd_ratio=sd_ratio,
        targets=len(situation.targets),
        code=float(code),
        relaxed=relaxed,
        moore=fixed,
        moore_consistent=consistent,
        figures=figures,
        notes=(
            *situation.notes,
            *notes,
            *_risky(figures, present, relaxed, sign),
            *_louder(figure(relaxed), present),
        ),
    )


def _amounts(table: Table, name: str, side: str, code: float) -> Floats:
    """Return the open amounts at or beyond the code, refusing a table that does not hold them."""
    if side not in SIDES:
        raise BadPlan(f"side must be 'top' or 'bottom', not {side!r}")
    if name not in table.schema:
        raise BadInput(f"the table has no column {name!r}{nearest(name, table.schema.names)}")
    if not table.schema[name].is_number:
        raise BadPlan(f"column {name!r} is of kind {table.schema[name].kind!r}: only numbers have codes")
    status, sign = SIDES[side]
    if (table.status(name) == status).any():
        raise BadInput(
            f"column {name!r} has {side}-coded values whose amounts are not in the table: a code can be relaxed only "
            "by who holds the amounts, so give the table without codes"
        )
    values = table.floats(name)
    beyond = values[sign * values >= sign * code]
    if not len(beyond):
        raise BadInput(
            f"column {name!r} has no value at or beyond the {side} code: there is nothing to relax"
        )
    return np.asarray(beyond)


def _situation(
    table: Table, name: str, side: str, at: float | None, attack: Linkage | None, mask: Mask | None
) -> ComparisonSetting:
    column = table.schema[name]
    plain = table.with_columns({name: (_without_code(column, side), table.floats(name), table.status(name))})
    ends = (at, None) if side == "bottom" else (None, at)
    situation = make_situation(plain if at is None else with_codes(plain, {name: ends}), attack, mask)
    if name not in situation.fields:
        raise BadPlan(
            f"the intruder does not compare column {name!r}, so its code does not matter: name it in fields"
        )
    if situation.pairs is None:
        raise BadPlan(str(TOO_MANY_PAIRS))
    return situation


def _without_code(column: Column, side: str) -> Column:
    return replace(column, top=None) if side == "top" else replace(column, bottom=None)


def _figure(situation: ComparisonSetting, name: str, side: str, sd_ratio: float) -> CodeFigure:
    """Return what a code leaves, whose situation this is."""
    chances = situation.chances(sd_ratio)
    correct = situation.correct(sd_ratio, chances)
    assert correct is not None
    column, sd = situation.table.schema[name], _open_sd(situation.table, name)
    code = column.top if side == "top" else column.bottom
    rule = situation.rules[situation.fields.index(name)]
    moore = nan
    if column.top is not None and column.bottom is not None and isinstance(rule, Relative):
        moore = closed_form(rule.ratio, column.top - column.bottom, sd)
    count = int(np.count_nonzero(situation.table.status(name) == SIDES[side][0]))
    agreeing = float(chances.sum(axis=0).mean())
    return CodeFigure(code, count, sd, agreeing, correct.value, correct.error, moore)


def _open_sd(table: Table, name: str) -> float:
    values = table.floats(name)
    return float(np.nanstd(values, ddof=1))


def _codes_between(amounts: Floats, code: float, sign: int) -> list[float | None]:
    """Return codes that leave even shares of the amounts coded, at distances of two digits from the present one."""
    shares = np.arange(1, STEPS) / STEPS
    distances = np.quantile(np.abs(amounts - code), shares)
    rounded = sorted({_two_digits_up(float(d)) for d in distances if d > 0})
    return [float(code + sign * distance) for distance in rounded]


def _two_digits_up(distance: float) -> float:
    step = 10.0 ** (floor(log10(distance)) - 1)
    return float(f"{ceil(distance / step * (1 - 1e-12)) * step:.12g}")


def _most_relaxed(
    figure: Any, present: CodeFigure, tried: list[float | None], code: float, sign: int
) -> float | None:
    """Return the most relaxed code that is as safe as the present one; codes tried on the way join `tried`."""

    def is_safe(at: float | None) -> bool:
        one = figure(at)
        return bool(one.correct <= present.correct + present.correct_error + one.correct_error)

    if is_safe(None):
        return None
    codes = [at for at in tried if at is not None]
    safe = [at for at in codes if at == code or is_safe(at)]
    best = max(safe, key=lambda at: sign * at)
    unsafe = [at for at in codes if sign * at > sign * best]
    limit = min(unsafe, key=lambda at: sign * at, default=None)
    for _ in range(BISECTIONS if limit is not None else 0):
        assert limit is not None
        middle = code + sign * _two_digits_up((abs(best - code) + abs(limit - code)) / 2)
        if middle in (best, limit):
            break
        tried.append(middle)
        best, limit = (middle, limit) if is_safe(middle) else (best, middle)
    return float(best)


def _risky(
    figures: tuple[CodeFigure, ...], present: CodeFigure, relaxed: float | None, sign: int
) -> list[Note]:
    """Say where a code that is less relaxed than the answer is less safe."""
    end = np.inf if relaxed is None else sign * relaxed
    riskier = [
        one
        for one in figures
        if one.code is not None and sign * one.code < end
        if one.correct > present.correct + present.correct_error + one.correct_error
    ]
    return [Note("calibration.less_safe_codes")] if riskier else []


def _louder(answer: CodeFigure, present: CodeFigure) -> list[Note]:
    """Say what the answer costs: the noise is in proportion to the sd of the values that are open."""
    times = answer.sd / present.sd
    return [Note("calibration.noise_at_answer", {"times": times})] if times != 1 else []


def _moore(
    situation: ComparisonSetting, table: Table, name: str, side: str, sd_ratio: float, sd: float
) -> tuple[float, float, list[Note]]:
    """Return Moore's formula turned round: with the present sd, and with the sd that the code itself leaves."""
    rule, column, sign = (
        situation.rules[situation.fields.index(name)],
        table.schema[name],
        SIDES[side][1],
    )
    other, word = (column.bottom, "bottom") if side == "top" else (column.top, "top")
    if other is None:
        return nan, nan, [Note("calibration.formula_needs_code", {"side": word, "column": name})]
    if not isinstance(rule, Relative) or not rule.ratio > 0:
        return nan, nan, [Note("calibration.formula_needs_rule")]
    reach = sd_ratio * ROOT_12 / rule.ratio
    values = np.sort(sign * table.floats(name)[table.status(name) == OPEN])
    values = values[values > sign * other]
    return float(other + sign * reach * sd), float(sign * _consistent(values, sign * other, reach)), []


def _consistent(values: Floats, start: float, reach: float) -> float:
    """Return the largest code A with A - start <= reach x sd of the values below A (NaN: there is none).

    The sd stays while A moves between two neighbouring values.
    """
    counts = np.arange(1, len(values) + 1)
    centred = values - values.mean()
    means, squares = np.cumsum(centred) / counts, np.cumsum(centred**2)
    sds = np.sqrt(np.maximum(squares - counts * means**2, 0.0) / np.maximum(counts - 1, 1))
    ends = np.minimum(start + reach * sds, np.append(values[1:], np.inf))
    possible = np.flatnonzero(ends > values)
    return float(ends[possible[-1]]) if len(possible) else nan
