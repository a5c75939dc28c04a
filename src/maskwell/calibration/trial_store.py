"""Trials that are kept: the next run of the same plan looks them up in place of drawing and attacking again.

A search is decided by the figures of its trials alone, so that one which finds them all kept comes to the same answer,
to the bit. `of` says what they are trials of (plan, data and key): of anything else nothing is kept.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

FOLDER, FILE = "calibrated", "trials.json"
ARRAYS = ("numerators", "denominators", "zeros", "judged", "losses")


@dataclass
class KeptTrials:
    """Figures of trials in a file of the private folder, closed to others; they hold no record."""

    private: Path
    of: str
    trials: dict[str, dict[str, Any]] = field(default_factory=dict)
    used: int = 0

    @classmethod
    def read(cls, private: Path, of: str) -> KeptTrials:
        """Return what is kept in a private folder of the same plan, data and key; nothing of others."""
        file = private / FOLDER / FILE
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
            trials = data["trials"] if data["of"] == of else {}
        except (OSError, ValueError, KeyError, TypeError):  # not there, or cut off: then it is computed again
            trials = {}
        return cls(private, of, trials if isinstance(trials, dict) else {})

    def get(self, name: str) -> dict[str, Any] | None:
        """Return the figures of a trial."""
        found = self.trials.get(name)
        if found is None:
            return None
        self.used += 1
        return {key: _array(value) if key in ARRAYS else value for key, value in found.items()}

    def put(self, name: str, figures: dict[str, Any]) -> None:
        """Keep the figures of a trial."""
        self.trials[name] = {key: _plain(value) if key in ARRAYS else value for key, value in figures.items()}
        folder = self.private / FOLDER
        self.private.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        beside = folder / f"{FILE}.part"
        beside.touch(0o600)
        beside.chmod(0o600)
        beside.write_text(json.dumps({"of": self.of, "trials": self.trials}), encoding="utf-8")
        beside.replace(folder / FILE)


def _plain(values: Any) -> Any:
    """Return an array as lists, which say NaN by nothing; floats in JSON come back to the bit."""
    if values is None:
        return None
    objects = np.asarray(values, dtype=np.float64).astype(object)
    objects[np.isnan(values)] = None
    return objects.tolist()


def _array(values: Any) -> Any:
    return None if values is None else np.array(values, dtype=np.float64)
