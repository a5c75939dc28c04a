"""The commands whose figures are kept, on 1,000 records of the built-in survey; and how figures are read off JSON."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).parent / "figures"

# What later jobs read, made in this order.
PREPARED = (
    "maskwell demo --files-only --records 1000 --folder demo",
    "maskwell mask demo/survey.csv --schema demo/survey.schema.toml --sd-ratio 0.5 --seed 1 --study"
    " --release masked --private inside",
)
FILES = "--release masked-study --private inside-study"
SMALL_BLOCKS = "--largest-target-block 7"
# Plans that commands read, by the names of their files.
PLANS = {
    "untold.toml": """
[output]
release = "masked-study"
private = "inside-study"
[targets]
largest_target_block = 7
[[intruders]]
attack = "BayesIntruder"
prior = {}
""",
    "calibrate.toml": """
[input]
file = "demo/survey.csv"
schema = "demo/survey.schema.toml"
[[masks]]
mask = "CorrelatedNoise"
columns = "role: key"
sd_ratio = 0.3
[targets]
largest_target_block = 7
[tolerance]
max_rate = 0.88
intruders = ["nearest record"]
[calibrate]
replicates = 6
confirmations = 20
""",
    "fit.toml": "chains = 2\ndraws = 400\n",
}
SURVEY = "demo/survey.csv --schema demo/survey.schema.toml"
MODEL = "'HOME_VAL ~ INCOME + MORTGAGE'"
# Tables that take seconds; those of chains are held to their Monte Carlo error in tests/studies.
STUDIES = {
    "fienberg": "ranks probability telling",
    "goldstein": "1 weighted sizes 2 3",
    "hawala": "1 2 3 recipes intruders",
    "moore": "1 2 3 moments 4 shape factors 5 uncoded examples",
    "trottini": "1 2 3 kernels threshold",
}
JOBS = {
    "attack_matcher": f'maskwell attack {FILES} {SMALL_BLOCKS} --intruder "Winkler\'s matcher" --json',
    "attack_nearest": f"maskwell attack {FILES} {SMALL_BLOCKS} --intruder 'nearest record' --json",
    "attack_law": f"maskwell attack {FILES} {SMALL_BLOCKS} --intruder 'knows the law' --json",
    "attack_law_one_to_one": f"maskwell attack {FILES} {SMALL_BLOCKS} --intruder 'knows the law, one-to-one' --json",
    "attack_untold": "maskwell attack untold.toml --json",
    "attack_fingerprint": f"maskwell attack {FILES} --intruder 'fingerprint alone' --json",
    "card_value": f"maskwell card-value {FILES} {SMALL_BLOCKS} --json",
    "fingerprint": f"maskwell fingerprint {SURVEY} --json",
    "compare": f"maskwell compare {FILES} --model {MODEL} --json",
    "audit": f"maskwell audit {FILES} --json",
    "calibrate": "maskwell calibrate calibrate.toml --ignore-floor --seed 1 --json",
    "fit": f"maskwell fit masked-study {MODEL} --options fit.toml --seed 1 --json",
    "release_refused": "maskwell release demo/plan.refused.toml --seed 1 --study --no-advice --json",
    "release": "maskwell release demo/plan.toml --seed 1 --study --no-advice --json",
    **{
        f"study_{name}_{table}": f"maskwell study {name} --table {table} --replicates 1 --json"
        for name, tables in STUDIES.items()
        for table in tables.split()
    },
}

NOT_KEPT = re.compile(r"seconds|version|python|platform|date", re.IGNORECASE)
NAMES = ("check", "name", "column", "label", "cell")  # what an item of a list is called by, where it has one
Figure = float | bool | None


def words(job: str) -> list[str]:
    """Return a command as arguments, without the program's name."""
    return shlex.split(job)[1:]


def figures(value: Any, path: str = "") -> Iterator[tuple[str, Figure]]:
    """Return every number of some JSON by its path; texts are no figures, times and versions are not kept."""
    if NOT_KEPT.search(path.rpartition("/")[2]) or isinstance(value, str):
        return
    if isinstance(value, dict):
        for key, item in value.items():
            yield from figures(item, f"{path}/{key}")
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from figures(item, f"{path}/{_called(item, place, value)}")
    else:
        yield path, value


def _called(item: Any, place: int, items: list[Any]) -> str:
    """Name an item of a list by what it is called, if no other is called so, else by its place."""
    for key in NAMES:
        if isinstance(item, dict) and isinstance(item.get(key), str):
            alike = [one for one in items if isinstance(one, dict) and one.get(key) == item[key]]
            return item[key] if len(alike) == 1 else f"{item[key]} {place}"
    return str(place)
