"""The contestants of `linkage.py`, each in a process of its own: from Parquet files to the best link of each target.

`python _contestants.py NAME FOLDER START` writes FOLDER/NAME.json (seconds, memory, pattern counts, parameters) and
FOLDER/NAME.parquet (target, linked, score). START is the wall clock when the process was asked for. The clocks stop
when the links are there; what the comparison of answers needs comes after.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

FIELDS = ("F0", "F1", "F2", "F3", "F4")
RATIO = 0.1
M, U = 0.8, 0.05


class Clock:
    """Processor seconds of all threads since the process began, and wall seconds since it was asked for."""

    def __init__(self, asked: float) -> None:
        self.asked = asked

    def stop(self) -> dict[str, float]:
        """Return what the job has taken so far."""
        seconds, wall = time.process_time(), time.time() - self.asked
        with open("/proc/self/status", encoding="ascii") as file:
            peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
        return {"seconds": seconds, "wall_seconds": wall, "peak_mb": peak * 1024 / 1e6}


def schema() -> Any:
    """Describe the files to maskwell."""
    from maskwell.schema import Column, Schema

    keys = (Column(name, "continuous", frozenset({"key"}), unit=0.01) for name in FIELDS)
    return Schema(
        (Column("ID", "text", frozenset({"id"})), Column("B", "integer", frozenset({"block"})), *keys)
    )


def attack(folder: Path, clock: Clock) -> tuple[dict[str, Any], Any]:
    """What a steward does: open truth, release and links, attack with the targets' file, and mark the answer."""
    return _attack(folder, clock, "all")


def one_pass(folder: Path, clock: Clock) -> tuple[dict[str, Any], Any]:
    """The same, naming links for re-identifications only."""
    return _attack(folder, clock, "re-identified")


def _attack(folder: Path, clock: Clock, links: str) -> tuple[dict[str, Any], Any]:
    from maskwell.attacks import Linkage
    from maskwell.attacks import attack as run
    from maskwell.io import read
    from maskwell.masking import Masking

    files = (folder / f"{name}.parquet" for name in ("truth", "masked", "links"))
    masking = Masking.from_files(*files, schema=schema())
    targets = read(folder / "targets.parquet", schema())
    risk = run(Linkage(links=links), masking, targets=targets)
    said = clock.stop()
    answer = risk.table.select(["target_id", "linked_id", "score", "ties"])
    return said | _fitted(risk.fit, risk.patterns["pairs"].to_pylist()), answer


def link(folder: Path, clock: Clock) -> tuple[dict[str, Any], Any]:
    """What the rivals do: the intruder's part alone, from his file and the release; nobody marks his answer."""
    import pyarrow as pa

    from maskwell.arrow_buffers import from_numpy
    from maskwell.attacks import Linkage
    from maskwell.attacks.answers import order_of
    from maskwell.attacks.protocol import IntruderKnowledge
    from maskwell.card import NoiseCard
    from maskwell.io import read
    from maskwell.masking import Masking, Release
    from maskwell.masking.results import labels_of

    targets, masked = (read(folder / f"{name}.parquet", schema()) for name in ("targets", "masked"))
    card = NoiseCard(records=len(masked))
    order = order_of(Masking(targets, masked, card))  # ties go by a keyed order, as in `attack`
    guess = Linkage().guess(IntruderKnowledge(targets, targets), Release(masked, card), order)
    answer = pa.table(
        {
            "target_id": labels_of(targets, guess.searcher),
            "linked_id": labels_of(masked, guess.found),
            "score": from_numpy(guess.score),
            "ties": from_numpy(guess.ties),
        }
    )
    said = clock.stop()
    return said | _fitted(guess.figures["fit"], guess.figures["counts"].tolist()), answer


def _fitted(fit: Any, counts: list[int]) -> dict[str, Any]:
    found = {"m": fit.m.tolist(), "u": fit.u.tolist(), "p": fit.p, "scores": fit.scores().tolist()}
    return found | {"counts": sorted(count for count in counts if count)}


def splink(folder: Path, clock: Clock) -> tuple[dict[str, Any], Any]:
    """Splink on DuckDB: EM on the pattern counts of all blocked pairs to its own tolerance, then predict."""
    import logging

    import duckdb
    from splink import DuckDBAPI, Linker, SettingsCreator, block_on

    connection = duckdb.connect()
    api = DuckDBAPI(connection)
    sides = []
    for name, file in (("a_searching", "targets"), ("b_found", "masked")):  # the left side is first by name
        connection.execute(f"create table {name} as from read_parquet('{folder / file}.parquet')")
        sides.append(api.register(name, dataset_display_name=name))
    settings = SettingsCreator(
        link_type="link_only",
        comparisons=[_comparison(name) for name in FIELDS],
        blocking_rules_to_generate_predictions=[block_on("B")],
        probability_two_random_records_match=0.02,
        unique_id_column_name="ID",
        retain_matching_columns=False,
    )
    linker = Linker(sides, settings, log_level=logging.ERROR)
    linker.training.estimate_parameters_using_expectation_maximisation(
        block_on("B"),
        estimate_without_term_frequencies=True,
        fix_u_probabilities=False,
        populate_probability_two_random_records_match_from_trained_values=True,
    )
    pairs = linker.inference.predict().physical_name
    best = f"select ID_l, arg_max(ID_r, match_weight), max(match_weight) from {pairs} group by ID_l"
    answer = connection.sql(best).to_arrow_table().rename_columns(["target_id", "linked_id", "score"])
    said = clock.stop()
    # A pattern has a weight of its own.
    counts = connection.sql(f"select count(*) from {pairs} group by match_weight").fetchall()
    model = linker.misc.save_model_to_json()
    agree = [one["comparison_levels"][0] for one in model["comparisons"]]
    found = {
        "m": [level["m_probability"] for level in agree],
        "u": [level["u_probability"] for level in agree],
        "p": model["probability_two_random_records_match"],
        "counts": sorted(count for (count,) in counts),
    }
    return said | found, answer


def _comparison(name: str) -> Any:
    import splink.comparison_level_library as levels
    import splink.comparison_library as comparisons

    agree = levels.CustomLevel(f"abs({name}_l - {name}_r) <= {RATIO}::double * abs({name}_l)", "agrees")
    both = [
        agree.configure(m_probability=M, u_probability=U),
        levels.ElseLevel().configure(m_probability=1 - M, u_probability=1 - U),
    ]
    return comparisons.CustomComparison(output_column_name=name, comparison_levels=both)


def sql(folder: Path, clock: Clock) -> tuple[dict[str, Any], Any]:
    """Plain DuckDB: join on the block and count the patterns; join again and take the best by given scores. No EM."""
    import duckdb

    scores = json.loads((folder / "link.json").read_text(encoding="utf-8"))["scores"]
    connection = duckdb.connect()
    for name, file in (("l", "targets"), ("r", "masked")):
        connection.execute(f"create table {name} as from read_parquet('{folder / file}.parquet')")
    agree = (f"abs(l.{name} - r.{name}) <= {RATIO}::double * abs(l.{name})" for name in FIELDS)
    pattern = " + ".join(f"({one})::int * {1 << f}" for f, one in enumerate(agree))
    pairs = f"select l.ID as t, r.ID as f, {pattern} as pattern from l join r using (B)"
    counts = connection.sql(f"select count(*) from ({pairs}) group by pattern").fetchall()
    listed = ", ".join(f"{score!r}::double" for score in scores)
    scored = f"select t, f, ([{listed}])[pattern + 1] as s from ({pairs})"
    best = f"select t, arg_max(f, s), max(s) from ({scored}) group by t"
    answer = connection.sql(best).to_arrow_table().rename_columns(["target_id", "linked_id", "score"])
    return clock.stop() | {"counts": sorted(count for (count,) in counts)}, answer


CONTESTANTS = {one.__name__: one for one in (attack, one_pass, link, splink, sql)}


def main(name: str, folder: Path, asked: float) -> None:
    """Run a contestant and write what it says."""
    import pyarrow.parquet as pq

    said, answer = CONTESTANTS[name](folder, Clock(asked))
    (folder / f"{name}.json").write_text(json.dumps(said), encoding="utf-8")
    pq.write_table(answer, folder / f"{name}.parquet")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]))
