"""Which key draws the noise of a release: one for the same records, however often a plan is run.

Noise is never drawn again until it passes. Where a plan was refused its key stays in the private folder with what was
found, and the next run draws by it: raising the scale then makes the same noise larger. Where the same plan was
released before, its key gives the same file again. Another plan on records that were released needs the earlier
release by name, so that the new noise is nested in it: two independent noises on one value average out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import BadInput, BadPlan
from ..io.bundle import private_bundles, private_half
from ..keys import Key
from ..notes import Note

if TYPE_CHECKING:
    from ..plan import ReleasePlan
    from ..table import Table
    from .outcome import Outcome

REFUSED, KEY, ATTEMPTS = "refused", "key.hex", "attempts.json"
OUTCOME = "outcome.json"
LOOSE = 0o077
JUDGED_BY = ("audit", "utility", "budget")  # sections of which no public file tells anything


def key_of(plan: ReleasePlan, table: Table) -> tuple[Key, list[Note]]:
    """Return the key of a run without one of its own, and what there is to say of it."""
    private = plan.output.private
    for half in _halves_of_records(private, table):
        if _is_same(half, plan, table):
            return read_key(half / KEY), [Note("pipeline.released_before", {"bundle": half.name})]
        raise BadPlan(
            f"the private folder holds a release of some of these records ({half.name}) by another plan: name its "
            "public folder as earlier in [output], so that the new noise is nested in it, for two independent noises "
            "average out; or, if it never left, take another private folder"
        )
    kept = private / REFUSED / KEY
    if not kept.exists():
        return Key.from_os(), []
    count = len(refused_before(private))
    if not count:
        return read_key(kept), [Note("pipeline.key_kept")]
    return read_key(kept), [Note("pipeline.noise_of_refused", {"runs": count})]


def check_given_key(plan: ReleasePlan, table: Table, key: Key) -> None:
    """Refuse a given key by which the private folder holds the same release already, judged by another plan.

    Both would have one name, and one of them would be lost: that is known before anything is drawn.
    """
    private = plan.output.private
    for half in (private_half(private, name) for name in private_bundles(private)):
        record = half / OUTCOME
        if not record.exists() or (half / KEY).read_text(encoding="ascii").strip() != key.secret.hex():
            continue
        before = json.loads(record.read_text(encoding="utf-8")).get("plan") or {}
        now = json.loads(json.dumps(plan.to_dict()))
        if (
            before != now
            and _public_sections(before) == _public_sections(now)
            and _has_same_data(half, table)
        ):
            raise BadPlan(
                f"the private folder holds this release by this key, judged by another plan ({half.name}): choose "
                "another private folder, or move that half"
            )


def _public_sections(plan: dict[str, Any]) -> dict[str, Any]:
    """Return the sections of a plan by which the public files come out as they do."""
    inside = set(JUDGED_BY)
    if "calibrate" not in plan and "swap" not in plan:  # else the noise and the swaps follow from these
        inside |= {"tolerance", "intruders", "targets"}
    return {name: section for name, section in plan.items() if name not in inside}


def refused_before(private: Path) -> list[dict[str, Any]]:
    """Return what was found in the runs that were refused since the last release."""
    record = private / REFUSED / ATTEMPTS
    if not record.exists():
        return []
    found: list[dict[str, Any]] = json.loads(record.read_text(encoding="utf-8"))
    return found


def keep_refused(outcome: Outcome, key: Key) -> None:
    """Keep the key of a run that was refused, and put what was found on record."""
    private = outcome.plan.output.private
    attempts = [*refused_before(private), _figures(outcome)]
    keep_key(private, key)
    _write(private / REFUSED / ATTEMPTS, json.dumps(attempts, indent=1) + "\n")


def keep_key(private: Path, key: Key) -> None:
    """Keep the key of a run that calibrates, so that the next run can use what this one found."""
    private.mkdir(mode=0o700, exist_ok=True)
    folder = private / REFUSED
    folder.mkdir(mode=0o700, exist_ok=True)
    _write(folder / KEY, key.secret.hex() + "\n")


def left_behind(private: Path) -> str:
    """Say what a run that was stopped leaves in its private folder and what the next does with it; or nothing."""
    from ..calibration.trial_store import FILE, FOLDER

    if not (private / REFUSED / KEY).exists():
        return ""
    kept = "its key stays"
    if (private / FOLDER / FILE).exists():
        kept = "its key and what it tried stay"
    return (
        f"{kept} in {str(private)!r} (inside, closed to others), and the next run of the plan goes on from there: the "
        "noise is not drawn anew"
    )


def forget_refused(private: Path) -> None:
    """Remove the key of refused runs once a bundle has it."""
    folder = private / REFUSED
    for name in (KEY, ATTEMPTS):
        (folder / name).unlink(missing_ok=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _figures(outcome: Outcome) -> dict[str, Any]:
    masks = outcome.plan.to_dict()["masks"]
    return {
        "masks": masks,
        "reasons": [*outcome.reasons, *outcome.not_judged],
        "attempts": [a.to_dict() for a in outcome.attempts],
    }


def _write(path: Path, text: str) -> None:
    beside = path.with_suffix(".part")
    beside.touch(0o600)
    beside.chmod(0o600)
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def read_key(file: Path) -> Key:
    """Read a key as the private half of a release has it: 64 hexadecimal digits, in a file closed to others."""
    try:
        mode, text = file.stat().st_mode, file.read_text(encoding="ascii").strip()
        secret = bytes.fromhex(text)
    except OSError as error:
        raise BadInput(f"the key file {str(file)!r} cannot be read: {error.strerror}") from None
    except ValueError:
        raise BadInput(f"the key file {str(file)!r} holds no key: 64 hexadecimal digits") from None
    if mode & LOOSE:
        raise BadInput(f"the key file {str(file)!r} is open to others: chmod 600 it first")
    return Key(secret)


def _halves_of_records(private: Path, table: Table) -> list[Path]:
    """Return the private halves that hold some of these records, by id, the newest first; studies do not count."""
    if table.schema.id_column is None:
        return []
    halves = [private_half(private, name) for name in private_bundles(private)]
    halves = [half for half in halves if not _state(half).get("seeded", True)]
    halves.sort(key=lambda half: -int(_state(half).get("number", 0)))
    return [half for half in halves if _has_common_ids(half, table)]


def _state(half: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((half / "state.json").read_text(encoding="utf-8"))
    return found


def _has_common_ids(half: Path, table: Table) -> bool:
    import pyarrow.compute as pc

    name, stored = table.schema.id_column, _truth(half)
    if name is None or name not in stored.column_names:
        return False
    found: Any = pc.any(pc.is_in(table.array(name), value_set=stored[name].combine_chunks()))
    return bool(found.as_py())


def _is_same(half: Path, plan: ReleasePlan, table: Table) -> bool:
    """Whether a bundle is of the same plan and the same data."""
    record = half / OUTCOME
    if not record.exists():
        return False
    before = json.loads(record.read_text(encoding="utf-8")).get("plan")
    if before != json.loads(json.dumps(plan.to_dict())):
        return False
    return _has_same_data(half, table)


def _has_same_data(half: Path, table: Table) -> bool:
    """Whether a bundle was made of the same records."""
    stored = _truth(half)
    return stored.column_names == list(table.names) and all(
        stored[name].combine_chunks().equals(table.array(name)) for name in table.names
    )


def _truth(half: Path) -> Any:
    import pyarrow.parquet as pq

    return pq.read_table(half / "truth.parquet")
