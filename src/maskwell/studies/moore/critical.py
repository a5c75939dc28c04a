"""Table 5 and what comes of it: Moore's critical c and the exact one, the fine sweep of R0, relaxed codes."""

from __future__ import annotations

from ...calibration import FINE_R0, agreement_curve, critical_noise, relaxed_code, with_codes
from ...calibration.closed_form import FieldNoise, MooreNoise, moore_noise
from ...schema import TOP_CODED
from ...table import Table
from .matching import c_of
from .simulation import FIELDS, TOLERANCE, WINKLER, Draws, LinkCounts, MooreSimulation, by_column

EPSILONS = (0.05, 0.02, 0.01)
LARGE_C = 3.0  # the largest noise of table 4
LOST, ONE_MAY = f"lost by c {LARGE_C:g}", ", one may disagree"
C_RELAXED = 0.1759  # from where, the paper says, very little protection is gained
RELAXED = ("HOME_VAL", "INCOME")
BY_FORMULA = "(formula)"


def closed_forms(simulation: MooreSimulation, disagreeing: int = 0) -> MooreNoise:
    """Return Moore's closed form on the survey."""
    rules = (TOLERANCE,) * len(FIELDS)
    return moore_noise(simulation.survey, FIELDS, rules, disagreeing=disagreeing)


def table_5(simulation: MooreSimulation) -> Draws:
    """Return range, sd and Moore's c of each field."""
    draws: Draws = {}
    for one in closed_forms(simulation).fields:
        draws |= by_column(one.column, {name: [value] for name, value in _of_field(one).items()})
    return draws


def _of_field(one: FieldNoise) -> dict[str, float]:
    span = float(one.top or 0) - float(one.bottom or 0)
    return {"range": span, "sd": one.sd, "c": one.sd_ratio}


# The critical c, and whether it is one.


def critical(simulation: MooreSimulation) -> Draws:
    """Return Moore's and the exact c, and what more noise would still gain there: exactly, and simulated."""
    sizes = _his(simulation) | _exact(simulation)
    gains = [_gains(simulation, list(sizes.values()), disagreeing) for disagreeing in (0, 1)]
    last = simulation.links(LARGE_C)
    draws: Draws = {}
    for i, (row, c) in enumerate(sizes.items()):
        pairs = list(zip(simulation.links(c), last, strict=True))
        columns = {
            "c": [c],
            "to gain": [gains[0][i]],
            "to gain" + ONE_MAY: [gains[1][i]],
            "correct": [now.correct / now.targets for now, _ in pairs],
            LOST: [(now.correct - then.correct) / now.targets for now, then in pairs],
            LOST + ONE_MAY: [(_relaxed_rule(now) - _relaxed_rule(then)) / now.targets for now, then in pairs],
        }
        draws |= by_column(row, columns)
    return draws


def _relaxed_rule(links: LinkCounts) -> float:
    """Return the right links of an intruder who claims questionable links too."""
    return links.correct + links.questionable_right


def _his(simulation: MooreSimulation) -> dict[str, float]:
    moore = closed_forms(simulation)
    return {
        "Moore, smallest": moore.smallest,
        "Moore, most open values": moore.most_open,
        "Moore, largest": moore.largest,
    }


def _exact(simulation: MooreSimulation) -> dict[str, float]:
    """Return the c beyond which no noise makes more than a share of the targets disagree."""
    out = {}
    for disagreeing, words in enumerate(("all agree", "one may disagree")):
        for epsilon in EPSILONS:
            found = critical_noise(
                simulation.survey,
                attack=WINKLER,
                epsilon=epsilon,
                disagreeing=disagreeing,
                sd_ratios=[LARGE_C],
            )
            out[f"exact, {words}, {epsilon:.0%}"] = found.critical_sd_ratio
            simulation.tick()
    return out


def _gains(simulation: MooreSimulation, sizes: list[float], disagreeing: int) -> list[float]:
    """Return which share of the targets unlimited noise would still make disagree."""
    curve = agreement_curve(simulation.survey, attack=WINKLER, disagreeing=disagreeing, sd_ratios=sizes)
    return [point.share - curve.floor.share for point in curve.points]


# The fine sweep.


def sweep(simulation: MooreSimulation) -> Draws:
    """Return simulated and predicted correct links, and G, in steps of 0.001 of R0."""
    curve = agreement_curve(simulation.survey, attack=WINKLER, r0=FINE_R0)
    draws: Draws = {}
    for r0, point in zip(FINE_R0, curve.points, strict=True):
        columns = {
            "correct": [one.correct for one in simulation.links(c_of(r0))],
            "correct, predicted": [float(point.correct or 0)],
            "true record agrees": [point.agreeing],
        }
        draws |= by_column(f"R0 {r0:.3f}, c {point.sd_ratio:.4f}", columns)
    return draws


# Relaxed codes.


def relaxed_code_draws(simulation: MooreSimulation) -> Draws:
    """Return what is expected of the intruder as the top code of one field is relaxed, the others coded as before."""
    draws: Draws = {}
    for name in RELAXED:
        columns = {field: simulation.survey.schema[field] for field in FIELDS}
        codes = {field: (one.bottom, None if field == name else one.top) for field, one in columns.items()}
        table = with_codes(simulation.uncoded, codes)
        found = relaxed_code(table, name, C_RELAXED, code=float(columns[name].top or 0), attack=WINKLER)
        for one in found.figures:
            code = "no code" if one.code is None else f"code {one.code:,.0f}"
            draws |= _leaves(f"{name}, {code}", one.coded, one.agreeing, one.correct)
        draws |= _by_formula(table, name, found.moore)
        simulation.tick()
    return draws


def _by_formula(table: Table, name: str, code: float) -> Draws:
    """Return the same for the code that Moore's formula gives when it is turned round."""
    coded = with_codes(table, {name: (None, code)})
    (point,) = agreement_curve(coded, attack=WINKLER, sd_ratios=[C_RELAXED]).points
    count = float((coded.status(name) == TOP_CODED).sum())
    return _leaves(f"{name}, code {code:,.0f} {BY_FORMULA}", count, point.agreeing, float(point.correct or 0))


def _leaves(row: str, coded: float, agreeing: float, correct: float) -> Draws:
    figures = {"coded records": coded, "true record agrees": agreeing, "correct, predicted": correct}
    return by_column(row, {column: [float(figure)] for column, figure in figures.items()})
