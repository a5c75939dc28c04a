"""The demo's two plans on the built-in survey: one that is refused, and one that passes.

What was found on the way to the second: of the 771 homes in small blocks 81% are unique by what leaves in clear alone,
so no noise helps before classes are coarser. What is missing or coded in an amount shows too: with all five amounts,
6% of the records have a pattern of their own even in coarse blocks. With three amounts and without BATHS and BEDROOMS
under 1% do. Amounts of money are skewed, so that their noise is on the log scale: on their own it would put every fifth
income at the limit, and a model would have to guess from a normal tail what lies there. With BEDROOMS left in, 26% of
the homes are found under noise of 0.3; exchanging all three amounts of these homes would only rename rows (nothing else
would stay in the row), and exchanging their income alone takes longer to attack than a demo should.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import MaskwellWarning
from ..io import write

if TYPE_CHECKING:
    from ..schema import Schema
    from ..table import Table

SURVEY, SCHEMA, FEWER_COLUMNS = "survey.csv", "survey.schema.toml", "survey.fewer.schema.toml"
REFUSED, PASSING = "plan.refused.toml", "plan.toml"
AMOUNTS = ("HOME_VAL", "INCOME", "MORTGAGE")
MODEL = "log(HOME_VAL) ~ log(INCOME) + log(MORTGAGE)"
DRAWS, WARMUP = 2000, 150  # of each of four chains: they agree, in seconds
LEFT_OUT = ("BATHS", "BEDROOMS", "MAINTAIN", "TAXES")

REFUSED_PLAN = """\
# Light noise on all amounts, every class as it is. It is refused.
[input]
file = "survey.csv"
schema = "survey.schema.toml"

[[masks]]
mask = "CorrelatedNoise"
columns = "role: key"
r0 = 0.995

[tolerance]
max_rate = 0.15

[targets]                          # the homes that few others are like
largest_target_block = 7

[output]
release = "refused"
private = "refused.private"
"""

PASSING_PLAN = """\
# Coarser classes, fewer columns, more noise. It passes.
[input]
file = "survey.csv"
schema = "survey.fewer.schema.toml"      # without BATHS, BEDROOMS, MAINTAIN, TAXES

[[masks]]
mask = "Grouping"
columns = "YR_BLT"

[masks.groups]
"before 1940" = ["1919", "1920", "1930"]
"1940 to 1969" = ["1940", "1950", "1960"]
"1970 and later" = ["1970", "1975", "1980", "1985", "1990"]

[[masks]]
mask = "IndependentNoise"
columns = ["INCOME", "HOME_VAL", "MORTGAGE"]
variance_ratio = 0.5
transform = "log"

[tolerance]
max_rate = 0.15

[targets]                                # the same homes
largest_target_block = 7
target_blocks = ["REGION", "BEDROOMS", "BATHS", "YR_BLT"]

[budget]                                 # by the table of costs; it takes a tenth of that here
minutes = 20

[[models]]
formula = "log(HOME_VAL) ~ log(INCOME) + log(MORTGAGE)"

[report]
title = "The housing survey, a public use file"

[output]
release = "release"
private = "private"
"""


def demo_plans(folder: str | Path, survey: Table) -> tuple[Path, Path]:
    """Write the survey, its schemas and both plans to a folder; return the plan that is refused, then the other."""
    place = Path(folder)
    write(survey, place / SURVEY)
    texts = {
        SCHEMA: survey.schema.to_toml(),
        FEWER_COLUMNS: _without(survey.schema).to_toml(),
        REFUSED: REFUSED_PLAN,
        PASSING: PASSING_PLAN,
    }
    for name, text in texts.items():
        (place / name).write_text(text, encoding="utf-8")
    return place / REFUSED, place / PASSING


def _without(schema: Schema) -> Schema:
    return schema.changed({name: replace(schema[name], drop=True) for name in LEFT_OUT})


@dataclass(frozen=True, slots=True)
class Recipient:
    """What somebody who holds the release alone finds, beside what the original says: estimates and intervals."""

    formula: str
    records: int
    names: tuple[str, ...]
    original: tuple[float, ...]
    naive: tuple[float, ...]
    adjusted: tuple[float, ...]
    intervals: tuple[tuple[float, float], ...]
    warning: str | None


def recipients_fit(release: str | Path, survey: Table, *, seed: int | None = None) -> Recipient:
    """Fit the demo's model to a written release as a recipient would, and to the survey, which only we have."""
    from ..analysis import fit, moment_correction
    from ..analysis.complete_records import complete
    from ..card import NoiseCard
    from ..masking import Release, read_release

    options: dict[str, Any] = {"missing": "drop", "progress": False, "draws": DRAWS, "warmup": WARMUP}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskwellWarning)  # `warning` has it
        found = fit(MODEL, read_release(release), seed=seed, **options)
        original = moment_correction(MODEL, complete(Release(survey, NoiseCard()), AMOUNTS)[0])
    rows = [row for row in found.summary() if row.name != "sigma"]
    return Recipient(
        MODEL,
        found.records,
        tuple(row.name for row in rows),
        tuple(float(original[row.name]) for row in rows),
        tuple(row.naive for row in rows),
        tuple(row.estimate for row in rows),
        tuple((row.low, row.high) for row in rows),
        None if found.warning is None else str(found.warning),
    )
