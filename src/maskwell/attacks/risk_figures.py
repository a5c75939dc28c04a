"""From a marked answer to a `Risk`."""

from __future__ import annotations

from math import fsum
from typing import Any

import numpy as np

from ..arrow_buffers import from_numpy
from ..card import NoiseCard
from ..masking.results import labels_of
from ..notes import Note
from ..table import Floats, Table
from .blind_guess import guessing_rate
from .linkage.em import EMFit, pattern_bits
from .protocol import Attack, Guess, Ints, Marks
from .risk import ClassCount, Risk

NOTICEABLE = 0.01  # a difference of m and u that rounding and constant fields do not make


def score(
    plan: Attack, guess: Guess, marks: Marks, tables: tuple[Table, Table], card: NoiseCard, targets: int
) -> Risk:
    """Sum a marked answer up: `tables` are the intruder's and the released records, `targets` how many are judged."""
    sides = tables if guess.to_masked else tables[::-1]
    claimed = guess.claimed
    fit = guess.figures.get("fit")
    true_m = _true_agreement(guess, marks) if fit is not None else None
    notes = [*guess.notes, *(_doubts(fit, guess, marks, true_m) if fit is not None else [])]
    return Risk(
        attack=plan,
        targets=targets,
        claims=int(claimed.sum()),
        correct=int((marks.correct & claimed).sum()),
        expected_correct=fsum(marks.share[claimed]),  # no bit depends on the order of the file
        baseline=float((1.0 / guess.candidates[marks.findable]).sum()) / targets,
        guessing=guessing_rate(plan, guess, marks, tables, card, targets),
        classes=_classes(guess, marks),
        table=_table(guess, marks, *sides),
        best_correct=float(marks.share.sum()) if guess.figures.get("looked_up", "all") == "all" else np.nan,
        fields=tuple(guess.figures.get("fields", ())),
        fit=fit,
        patterns=_patterns(guess.figures["counts"], fit) if fit is not None else None,
        true_m=true_m,
        gap=guess.figures.get("gap"),
        notes=tuple(notes),
    )


def _classes(guess: Guess, marks: Marks) -> tuple[ClassCount, ...]:
    out = []
    for i, name in enumerate(guess.kinds):
        here = guess.kind == i
        links = int(here.sum())
        if guess.figures.get("looked_up", "all") == "all" or i == 0:
            out.append(ClassCount(name, links, int(marks.correct[here].sum()), fsum(marks.share[here])))
        else:
            out.append(ClassCount(name, links, None, np.nan))
    return tuple(out)


def _table(guess: Guess, marks: Marks, near: Table, far: Table) -> Any:
    import pyarrow as pa

    kinds: Any = from_numpy(guess.kind)
    columns: dict[str, Any] = {
        "target_id": labels_of(near, guess.searcher),
        "linked_id": _record_labels(far, guess.found),
        "score": _scores(guess.score),
        "class": pa.array(guess.kinds, pa.string()).take(kinds),
        "claimed": from_numpy(guess.claimed),
        "correct": from_numpy(marks.correct),
        "expected_correct": from_numpy(marks.share),
        "ties": from_numpy(guess.ties),
        "candidates": from_numpy(guess.candidates),
    }
    if guess.second is not None:
        columns["second_id"] = _record_labels(far, guess.second)
        columns["second_score"] = _scores(guess.second_score)
    return pa.table(columns | {name: from_numpy(values) for name, values in guess.columns.items()})


def _scores(values: Any) -> Any:
    return from_numpy(values, np.isnan(values))


def _record_labels(table: Table, records: Ints) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    names = labels_of(table, np.maximum(records, 0))
    if (records >= 0).all():
        return names
    return pc.if_else(from_numpy(records >= 0), names, pa.scalar(None, names.type))


def _patterns(counts: Ints, fit: EMFit) -> Any:
    """Return the patterns that occur, best score first."""
    import pyarrow as pa

    scores, chance, expected = fit.scores(), fit.posterior(), fit.expected(int(counts.sum()))
    used = np.flatnonzero(counts)
    used = used[np.argsort(-scores[used], kind="stable")]
    bits = pattern_bits(len(fit.m))[used]
    written = ["".join("1" if bit else "0" for bit in row) for row in bits]
    columns: dict[str, Any] = {
        "pattern": written,
        "agreeing": bits.sum(axis=1),
        "pairs": counts[used],
        "expected": expected[used],
        "score": scores[used],
        "probability": chance[used],
    }
    return pa.table(columns)


def _true_agreement(guess: Guess, marks: Marks) -> Floats | None:
    """Return in what share of the true pairs each field agrees."""
    patterns_of = guess.figures["patterns_of"]
    rows = np.flatnonzero(marks.counterpart >= 0)
    if not len(rows):
        return None
    pattern, comparable = patterns_of(rows, marks.counterpart[rows])
    if not comparable.any():
        return None
    width = len(guess.figures["fields"])
    return np.asarray(pattern_bits(width)[pattern[comparable]].mean(axis=0))


def _doubts(fit: EMFit, guess: Guess, marks: Marks, true_m: Floats | None) -> list[Note]:
    """Say whether the latent class that EM found looks like matches at all."""
    if not fit.starts:
        return []
    names, pairs = guess.figures["fields"], int(guess.figures["counts"].sum())
    matches, size = int(marks.findable.sum()), fit.p * pairs
    is_sized = 0.5 * matches <= size <= 1.5 * matches
    against = tuple(name for name, m, u in zip(names, fit.m, fit.u, strict=True) if m < u - NOTICEABLE)
    far: tuple[str, ...] = ()
    if true_m is not None:
        far = tuple(n for n, m, t in zip(names, fit.m, true_m, strict=True) if abs(m - t) > 0.1)
    said = [] if fit.converged else [Note("attacks.em_stopped", {"steps": fit.iterations})]
    if fit.optima > 1:
        said.append(Note("attacks.em_other_optima", {"others": fit.optima - 1, "starts": fit.starts}))
    if not fit.identified:
        return [*said, Note("attacks.em_not_identified")]
    if is_sized and not against and not far:
        return [*said, Note("attacks.em_like_matches", {"pairs": size, "matches": matches})]
    doubts = {"pairs": None if is_sized else size, "matches": matches, "against": against, "off_truth": far}
    return [*said, Note("attacks.em_unlike_matches", doubts)]
