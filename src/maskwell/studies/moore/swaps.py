"""Swapping: the arithmetic of Moore's examples, and the swaps really made on the survey."""

from __future__ import annotations

from typing import Any

from ...masking import Swapping
from ...protect import swap
from ...tolerances import MaxRate, Ratio, SwapShare
from .matching import published_at
from .simulation import WINKLER, Draws, MooreSimulation, by_column, quiet

RATE, RATIO = MaxRate(0.15), Ratio(2.0)  # criteria 1 and 2 of section XII
TENTH = SwapShare(0.10)  # of section IX
C_SECTION_IX, C_SECTION_XII = 0.1234, 0.1005
READING = "Moore's and Winkler's: the record is what was not exchanged, here REGION"
TOLERANCES: dict[str, Any] = {
    "at most 15% correct": RATE,
    "at most 2 correct to 1 incorrect": RATIO,
    "p = 1: swap all": SwapShare(1.0),
}


def examples(simulation: MooreSimulation) -> Draws:
    """Return the examples of sections IX and XII and of appendix B, computed from the published counts."""
    twelve, nine = published_at(C_SECTION_XII), published_at(C_SECTION_IX)
    counts = twelve["correct"], twelve["incorrect"], int(sum(twelve.values()))
    to_turn, tenth = RATIO.needed(*counts), TENTH.swaps(int(nine["correct"]))
    pairs = twelve["correct"] + twelve["incorrect"]
    two_thirds = round(RATIO.max_ratio / (1 + RATIO.max_ratio), 2)
    figures = {
        "section XII, criterion 1: 15% of the targets": RATE.max_rate * counts[2],
        "section XII, criterion 1: swaps": RATE.needed(*counts),
        "section XII, criterion 2: correct links left": twelve["correct"] - to_turn,
        "section XII, criterion 2: swaps": to_turn,
        "section IX: swaps, a tenth of the correct links": tenth,
        "section IX: correct links left": nine["correct"] - tenth,
        "section IX: incorrect links after": nine["incorrect"] + tenth,
        "appendix B: swaps expected at SMP_PROB as printed": twelve["correct"] * two_thirds * to_turn / pairs,
        "appendix B: swaps expected at r_c / correct": float(to_turn),
    }
    return {name: [float(value)] for name, value in figures.items()}


def swapping_draws(simulation: MooreSimulation) -> Draws:
    """Return what swapping on the survey takes and leaves, by tolerance."""
    draws: Draws = {}
    for row, tolerance in TOLERANCES.items():
        records = [_swap_survey(simulation, seed, tolerance) for seed in simulation.seeds]
        columns = [_figures(one) for one in records]
        draws |= by_column(row, {name: [one[name] for one in columns] for name in columns[0]})
    return draws


def _swap_survey(simulation: MooreSimulation, seed: int, tolerance: Any) -> Swapping:
    with quiet():
        masking = simulation.masking(C_SECTION_XII, seed)
        record = swap(masking, WINKLER, tolerance, exempt_values=READING).swapping
    simulation.tick()
    assert record is not None
    return record


def _figures(record: Swapping) -> dict[str, float]:
    return {
        "correct before": record.before.expected_correct,
        "incorrect before": record.before.expected_incorrect,
        "needed": record.needed,
        "swaps made": record.swaps,
        "correct after": record.after.expected_correct,
        "incorrect after": record.after.expected_incorrect,
        "values found after": record.his_values.expected_correct,
        "stuck": len(record.stuck),
        "met, % of runs": 100.0 * record.met,
    }
