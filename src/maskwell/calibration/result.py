"""What calibration found: the plan, how it was confirmed, and everything that was tried on the way."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from ..masks import Chain
from ..notes import Note
from ..words.phrases import percent_phrase
from .bounded_noise import ROUND as BOUNDS
from .bounded_noise import TradeOff
from .bounds import IntervalWidening
from .columns import ColumnScales
from .measures import ALL, Measure
from .scale import scale_of, scale_words
from .trials import Trial, trace_table

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

    from ..masking import Mask
    from ..tolerances import Tolerance

MOST_LINES = 14
LONGEST_WORDS = 48


def level_of(attempt: int, level: float) -> float:
    """Return the share of the level that an attempt has, 1 / (k (k + 1)): over all attempts they sum to the level."""
    return level / (attempt * (attempt + 1))


@dataclass(frozen=True, eq=False)
class Calibration:
    """The weakest noise that meets a tolerance, confirmed on draws that had no part in finding it.

    `mask` is the plan to release with (nothing where the tolerance was not met; `closest` then is the trial that came
    nearest). `confirmation` is the last trial on fresh draws: its figure is fair. `searched` is the trial by which the
    scale was chosen, because that came out well: it flatters. `floor` is the share of records that no noise protects
    (nothing where it was not looked at), `attempts` how many scales were put to confirmation, `level` the chance that a
    scale which exceeds the tolerance is confirmed all the same, over all attempts. `trace` has every trial in order.
    `widening` has a forecast for each bound: under `mask`, or where no noise meets both tolerance and bounds under the
    plan of `trade_off` that meets the tolerance. `sampled` says that only some of the targets were looked at.
    """

    mask: Mask
    given: Mask
    tolerance: Tolerance
    over: str
    measure: Measure = field(repr=False)
    confirmation: Trial | None
    searched: Trial | None
    closest: Trial | None
    floor: float | None
    attempts: int
    level: float
    precision: float
    is_monotone: bool
    trace: tuple[Trial, ...]
    columns: ColumnScales | None = None
    widening: tuple[IntervalWidening, ...] = ()
    trade_off: TradeOff | None = None
    notes: tuple[Note, ...] = ()
    sampled: bool = False

    @property
    def met(self) -> bool:
        """Whether a scale that meets the tolerance was found and confirmed."""
        return self.mask is not None

    @property
    def scale(self) -> dict[str, Any]:
        """The figures of the calibrated scale, in the mask's own names."""
        return scale_of(self.mask) if self.met else {}

    @property
    def table(self) -> pa.Table:
        """One row for each trial, in order."""
        return trace_table(self.trace)

    @property
    def confirmed_level(self) -> float:
        """The level of the last attempt."""
        return level_of(max(self.attempts, 1), self.level)

    def to_dict(self) -> dict[str, Any]:
        """Return figures only: no record."""
        return {
            "met": self.met,
            "mask": self.mask.to_dict() if self.met else None,
            "scale": self.scale,
            "given": self.given.to_dict(),
            "tolerance": self.tolerance.to_dict(),
            "over": self.over,
            "sampled": self.sampled,
            "figure": self.measure.name,
            "limit": self.measure.limit,
            "floor": self.floor,
            "confirmation": self.confirmation.to_dict() if self.confirmation else None,
            "searched": self.searched.to_dict() if self.searched else None,
            "closest": self.closest.to_dict() if self.closest else None,
            "attempts": self.attempts,
            "level": self.level,
            "precision": self.precision,
            "is_monotone": self.is_monotone,
            "columns": asdict(self.columns) if self.columns else None,
            "widening": [one.to_dict() for one in self.widening],
            "trade_off": self.trade_off.to_dict() if self.trade_off else None,
            "trace": [trial.to_dict() for trial in self.trace],
            "notes": [note.to_dict() for note in self.notes],
        }

    def figure(self) -> Figure:
        """Return the trace as a picture: the judged figure along the scale, with its limit."""
        from .pictures import trace_picture

        return trace_picture(self)

    def plot(self, path: str | Path) -> Path:
        """Write the picture of the trace to a file (PNG, SVG or PDF)."""
        from ..figure_style import save

        return save(self.figure(), Path(path))

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return what fits on one screen."""
        kind = type(self.given).__name__
        head = f"met: {kind} with {scale_words(self.mask)}" if self.met else f"NOT met by {kind}"
        head += "" if self.trade_off is None else " within the bounds"
        lines = [*wrap(f"Calibration {head}", 100, subsequent_indent="  "), f"  tolerance   {self.tolerance}"]
        lines.append(f"  judged      {self.measure.name}, over {self._targets()}")
        intruders = len(self.trace[0].names)
        if intruders > 1:
            whose = (
                f"of the worst of {intruders} intruders in each draw, not of the one who is worst on average"
            )
            lines.append(f"              {whose}")
        if self.floor is not None:
            lines.append(f"  floor       {self.floor:.2%} of them have a fingerprint that no noise hides")
        lines += [*self._confirmation_lines(), *self._bound_lines(), *self._column_lines()]
        lines += ["", *self._trace_lines()]
        notes = [
            line
            for note in self.notes
            for line in wrap(str(note), 100, initial_indent="  - ", subsequent_indent="    ")
        ]
        return [*lines, "", *notes] if notes else lines

    def _targets(self) -> str:
        """Say over whom the figure is: all targets, or a sample of them with the size it has in a draw."""
        sizes = [int(size) for size in (self.trace[0].judged.min(), self.trace[0].judged.max())]
        size = f"{sizes[0]:,}" if sizes[0] == sizes[1] else f"{sizes[0]:,} to {sizes[1]:,}"
        if self.over == ALL:
            return f"a sample of the targets ({size} in a draw)" if self.sampled else "all targets"
        tenth = "the most outlying tenth of "
        return tenth + (f"a sample of the targets ({size} in a draw)" if self.sampled else "the targets")

    def _confirmation_lines(self) -> list[str]:
        shown = self.measure.shown
        best = self.closest
        near = (
            []
            if best is None or self.trade_off is not None
            else [f"  closest     {best.said} at {_short(best)}"]
        )
        if self.confirmation is None or self.searched is None:
            return near
        last, side = self.confirmation, "at least" if self.measure.at_least else "at most"
        bound = f"{side} {shown(last.figure_bound(self.confirmed_level))} at level {self.confirmed_level:.2g}"
        attempts = "1 attempt" if self.attempts == 1 else f"{self.attempts} attempts"
        return [
            *near,
            f"  {'confirmed' if self.met else 'unconfirmed':<12}{last.said} over {last.replicates} fresh draws",
            f"              {bound}; {attempts}",
            f"  searched    {self.searched.said} over the {self.searched.replicates} draws of the search",
            f"              at {_short(self.searched)}, chosen because that came out well",
        ]

    def _bound_lines(self) -> list[str]:
        """Say each bound's widening; where no noise meets both, that of the plan that meets the tolerance."""
        lines = [
            f"{one.words} in {one.formula} ({'' if one.met else 'NOT '}at most {percent_phrase(one.at_most)})"
            for one in self.widening
        ]
        if self.trade_off is not None:
            met, within = self.trade_off.at_tolerance, self.trade_off.at_bounds
            lines.insert(0, f"where the tolerance is met, with {scale_words(met.mask)}:")
            if within is not None:
                lines.append(f"where the bounds hold, with {scale_words(within.mask)}:")
                lines.append(f"{within.measure.name} {within.said}")
        wrapped = [part for line in lines for part in wrap(line, 84, subsequent_indent="  ")]
        return [f"  {'bounds' if i == 0 else '':<12}{line}" for i, line in enumerate(wrapped)]

    def _column_lines(self) -> list[str]:
        if self.columns is None:
            return []
        one = self.columns
        lines = [
            f"  columns     {one.objective} {one.before:.4g} with one scale for all, {one.after:.4g} with one for each",
            f"              on the draws of the search ({one.moves_kept} of {one.moves_tried} moves kept)",
        ]
        if self.confirmation is not None and self.confirmation.loss is not None:
            lines[-1] += f"; {self.confirmation.loss:.4g} on fresh draws"
        return lines

    def _trace_lines(self) -> list[str]:
        """Show the trials of the search by scale; of many those next to the limit."""
        trials = sorted((t for t in self.trace if t.round == "search"), key=lambda trial: trial.factor)
        near = sorted(trials, key=lambda trial: abs(float(trial.excess.mean())))[:MOST_LINES]
        shown = [(_short(trial), trial) for trial in trials if trial in near]
        width = max([len(words) for words, _ in shown] + [11])
        head = f"  {'scale tried':<{width}}  {self.measure.name:>22}  {'standard error':>14}"
        head += f"  {'Pr(h = 0)':>10}" if self.measure.at_least else ""
        rows = [f"  {words:<{width}}  {self._trial_words(trial)}" for words, trial in shown]
        left = len(trials) - len(near)
        return [head, *rows, *([f"  and {left} more, farther from the limit"] if left else [])]

    def _trial_words(self, trial: Trial) -> str:
        figure, se = self.measure.shown(trial.figure.mean), self.measure.shown_error(trial.figure.se)
        return f"{figure:>22}  {se:>14}" + (f"  {trial.at_zero:>10.2%}" if self.measure.at_least else "")


def _short(trial: Trial) -> str:
    """Say a scale, or where it has many figures how many times the given one it is."""
    if trial.round == BOUNDS:
        return f"{trial.factor:.3g} x the given scale, held back by the bounds"
    words = scale_words(trial.mask)
    many = isinstance(trial.mask, Chain) and len(scale_of(trial.mask)) > 1
    return f"{trial.factor:.3g} x the given scale" if many or len(words) > LONGEST_WORDS else words
