"""`maskwell release`: one plan in, a calibrated, attacked, repaired, audited and documented release out."""

from __future__ import annotations

import json
import signal
import sys
from _thread import interrupt_main
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import BadPlan
from ..pipeline.progress import STAGES
from .file_options import JsonOption, SeedOption, StudyOption
from .messages import echo_message

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

    from ..pipeline import Advice, Outcome

NO = 1  # exit code: the answer is no
STOPPED_EXIT_CODE = 130
TABLE = 2.0  # seconds of steps by which the table of costs is believed as it is
UNLIKE = 3  # times as long as the steps before it: a step from which nothing is concluded
LONG = 5.0  # seconds from which on the time left is told
SHORT, A_MINUTE = 1.0, 60.0  # seconds between looks at the clock, and between lines
WRITE = "write"
LAST = ("attack", "compare", "audit", WRITE)  # stages of every release
ADVISE = "advise"  # the last stage of one that is refused


def release(
    plan: Annotated[
        Path, typer.Argument(metavar="PLAN", help="A plan (TOML), such as `maskwell new` writes.")
    ],
    despite: Annotated[
        str | None,
        typer.Option(help="Release although it does not pass, for this reason, which goes on record."),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(
            help="A key.hex file: the same plan and key give the same bytes.", show_default="a new key"
        ),
    ] = None,
    seed: SeedOption = None,
    study: StudyOption = False,
    passphrase_file: Annotated[
        Path | None, typer.Option(help="The passphrase of a card that is sealed for no recipients.")
    ] = None,
    at_most_minutes: Annotated[
        float | None,
        typer.Option(help="Stop after so many minutes, with exit code 1.", min=0.0, show_default="no end"),
    ] = None,
    advice: Annotated[
        bool, typer.Option("--advice/--no-advice", help="Search what would pass where this does not.")
    ] = True,
    as_json: JsonOption = False,
) -> None:
    """Do all that a plan says: read, calibrate, mask, attack, swap, compare, audit, and write what passes.

    Exit code 1 where it does not pass, or where somebody who is held to the tolerance could not be tried: then
    nothing is written, and it is said which changes to the plan would help. How much is computed follows from
    [budget] in the plan.

    Examples:

    - `maskwell release plan.toml`

    - `maskwell release plan.toml --json > figures.json`
    """
    from ..pipeline.release_key import read_key
    from ..pipeline.study import check_study
    from ..plan import ReleasePlan
    from ..release_job import release as run

    check_study(seed, study)
    wanted = ReleasePlan.read(plan)
    secret = _passphrase(passphrase_file) if _by_passphrase(wanted) else None
    with ToldStages(at_most_minutes, _private_folder(wanted, study)) as told:
        outcome = run(
            wanted,
            seed=seed,
            study=study,
            key=None if key is None else read_key(key),
            despite=despite,
            progress=told,
            refusal=told.refusal,
            tried=told.tried.append,
            passphrase=secret,
            advise=advice,
        )
    typer.echo(json.dumps(outcome.to_dict(), indent=2, allow_nan=False) if as_json else summary(outcome))
    if not outcome.passed and outcome.despite is None:
        raise typer.Exit(NO)


def summary(outcome: Outcome) -> str:
    """Return an outcome as one screen of text."""
    from ..report import passing_sections, release_summary

    mind = "".join(f"\n  - {one}" for one in outcome.mind)
    return release_summary(outcome) + (f"\n\nmind{mind}" if mind else "") + passing_sections(outcome)


def _private_folder(plan: Any, study: bool) -> Path:
    from ..pipeline.study import study_plan

    folder: Path = (study_plan(plan) if study else plan).output.private
    return folder


def _left_behind(private: Path) -> str:
    from ..pipeline.release_key import left_behind

    found = left_behind(private)
    return f"; {found}" if found else ""


def _tried_so_far(advice: list[Advice]) -> str:
    """Say what a search for what would pass had come to when it was stopped, with the first that passed as typed."""
    from ..report import typed_sections

    lines = "".join(f"\n  - {one}" for one in advice)
    best = next((one for one in advice if one.passes), None)
    return f"\ntried so far:{lines}{'' if best is None else typed_sections(best)}" if advice else ""


def _by_passphrase(plan: Any) -> bool:
    return plan.card.leaves == "sealed" and not plan.card.recipients


def _passphrase(file: Path | None) -> str:
    if file is not None:
        from ..sealing import passphrase_of

        return passphrase_of(file)
    if not sys.stdin.isatty():
        raise BadPlan(
            "the card is sealed by a passphrase: give --passphrase-file, or name recipients in [card]"
        )
    return str(typer.prompt("Passphrase of the card", hide_input=True, confirmation_prompt=True))


class ToldStop(SystemExit):
    """The end of a run that was stopped and has said so itself."""


class ToldStages:
    """Tells every stage with its seconds: at a terminal as it runs; elsewhere when it is done, and a line a minute.

    `at_most` is a number of minutes after which the work is stopped, but for the writing, which is short. The clock
    decides nothing else. Of a run that is stopped it is said what it leaves in the `private` folder, and what was tried
    of changes that would pass.
    """

    def __init__(self, at_most: float | None = None, private: Path | None = None) -> None:
        self.begun = perf_counter()
        self.at_most = at_most
        self.private = private
        self.started: dict[str, float] = {}
        self.stepped: dict[str, float] = {}  # the seconds after which the last step of a stage was done
        self.expected: dict[
            str, Sequence[float]
        ] = {}  # seconds of the steps of a stage by the table of costs
        self.running: str = ""
        self.known: tuple[int, int] = (0, 0)
        self.refused = ""
        self.tried: list[Advice] = []
        self.stopped = False
        self._ignored = False
        self.console: Console | None = None
        self.status: Status | None = None
        self._over, self._entered = Event(), Event()
        self._watch = Thread(target=self._watched, daemon=True)

    def __enter__(self) -> ToldStages:
        from rich.console import Console

        console = Console(stderr=True)
        if console.is_terminal:
            self.console = console
            self.status = console.status("")
            self.status.start()
        if self.at_most is not None and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # shells have jobs behind `&` ignore it
            self._ignored = True
        self._watch.start()
        self._entered.set()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._over.set()
        if self._ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        if self.status is not None:
            self.status.stop()
        if kind is None or not issubclass(kind, KeyboardInterrupt):
            return
        where = f" during {self.running!r}" if self.running else ""
        limit = f" after {self.at_most:g} minutes (--at-most-minutes)" if self.stopped else ""
        what = "the release is whole or not there" if self.running == WRITE else "nothing was released"
        left = "" if self.private is None else _left_behind(self.private)
        self._tell_refused()
        echo_message(f"stopped{where}{limit}: {what}{left}{_tried_so_far(self.tried)}")
        if self.stopped:
            raise typer.Exit(NO)
        raise ToldStop(STOPPED_EXIT_CODE)

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Take note of a step."""
        if done == 0:
            self.started[stage] = perf_counter()
        self.running, self.known = stage, (done, total)
        spent = perf_counter() - self.started.get(stage, perf_counter())
        self.stepped[stage] = spent if done else 0.0
        if total and done >= total and stage in self.started:
            self._ended(stage, spent)
        else:
            self._update()

    def costs(self, stage: str, seconds: Sequence[float], /) -> None:
        """Take note of what the steps of a stage cost by the table of costs."""
        self.expected[stage] = tuple(seconds)

    def refusal(self, reasons: tuple[str, ...]) -> None:
        """Take note of why nothing is released: told while it is searched what would pass, should that take long."""
        self.refused = f"nothing is released: {'; '.join(reasons)}; now looking for what would pass"
        if self.console is not None:
            self._tell_refused()

    def _tell_refused(self) -> None:
        if self.refused and self.console is not None:
            self.console.print(self.refused, highlight=False)
        elif self.refused:
            echo_message(self.refused)
        self.refused = ""

    def line(self) -> str:
        """Say which stage runs, how far it is, and what is left."""
        stage = self.running
        spent = perf_counter() - self.started.get(stage, perf_counter())
        follows = STAGES[STAGES.index(stage) + 1 :] if stage in STAGES and stage != ADVISE else ()
        coming = [name for name in LAST if name in follows]
        then = f"; then {', '.join(coming)}" if coming else ""
        part = " for this part" if stage.startswith(f"{ADVISE},") else ""  # other candidates come after it
        told = _progress_text(
            *self.known, spent, self.stepped.get(stage, 0.0), part, self.expected.get(stage, ())
        )
        return f"{stage}{told}{then}"

    def _update(self) -> None:
        if self.status is not None:
            self.status.update(self.line())

    def _watched(self) -> None:
        """Tell a line a minute, and stop the work where its time is over."""
        self._entered.wait()  # on a busy machine the time may be over before __exit__ is there to tell it
        told = perf_counter()
        while not self._over.wait(SHORT):
            now = perf_counter()
            self._update()
            if self.console is None and now - told >= A_MINUTE and self.running in self.started:
                self._tell_refused()
                echo_message(self.line())
                told = now
            late = self.at_most is not None and now - self.begun > A_MINUTE * self.at_most
            if late and self.running != WRITE:
                self.stopped = True
                interrupt_main()
                return

    def _ended(self, stage: str, spent: float) -> None:
        del self.started[stage]
        line = f"{stage:<20}{spent:>7.1f} s"
        if self.console is not None:
            self.console.print(line, highlight=False)
        else:
            echo_message(line)


def _progress_text(
    done: int, total: int, spent: float, stepped: float, part: str = "", costs: Sequence[float] = ()
) -> str:
    """Say how far a stage is, and how long it will take if it goes on as the steps that are done.

    `stepped` are the seconds that these took. A step that takes far longer than they did tells nothing of those that
    follow: then it is only said how long it has been running. `costs` are seconds of the steps by the table of costs,
    where it knows them: how much slower this machine is follows from those done.
    """
    if not total:
        return f", {spent:.0f} s" if spent >= LONG else ""
    stepped = stepped or spent
    share, now = f", {done:,} of {total:,}", spent - (stepped if done else 0.0)
    if done >= total or spent < LONG:
        return share
    if len(costs) == total and sum(costs) > 0:
        own = (stepped + TABLE) / (sum(costs[:done]) + TABLE) if done else 1.0
        this, after = own * costs[done], own * sum(costs[done + 1 :])
        before = f"about {this:.0f} s were expected"
    elif not done:
        return f"{share}, this one for {spent:.0f} s"
    else:
        each = stepped / done
        this, after = each, each * (total - done - 1)
        before = f"those before took {each:.0f} s each" if each >= 1 else "those before less than 1 s each"
    if now > UNLIKE * this or (now > this and after < SHORT):
        return f"{share}, this one for {now:.0f} s so far ({before})"
    return (
        f"{share}, about {max(this - now, 0.0) + after * max(now / max(this, SHORT), 1.0):.0f} s left{part}"
    )
