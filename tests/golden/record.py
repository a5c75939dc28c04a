"""Write the golden figures anew: `python tests/golden/record.py [NAME ...]`.

For figures that must change only: the change is seen in the diff of `figures/`, and told in the changelog.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from jobs import FIGURES, JOBS, PLANS, PREPARED, figures, words


def _output(job: str) -> str:
    done = subprocess.run([sys.executable, "-m", "maskwell", *words(job)], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{job}\n{done.stderr}")
    return done.stdout


def main() -> None:
    """Run the jobs that were asked for, and keep their figures."""
    FIGURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for file, text in PLANS.items():
            Path(file).write_text(text, encoding="utf-8")
        for job in PREPARED:
            _output(job)
        for name in sys.argv[1:] or JOBS:
            found = dict(figures(json.loads(_output(JOBS[name]))))
            kept = {"command": JOBS[name], "figures": found}
            (FIGURES / f"{name}.json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
            print(f"{name}: {len(found)} figures")


if __name__ == "__main__":
    main()
