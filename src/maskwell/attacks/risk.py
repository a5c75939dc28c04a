"""What an attack found: flat figures, one table, and one screen of text.

rate = (sum over claimed links of the share 1 / ties that is right) / targets. Where targets are a sample it has
Wilson's interval (1927), on the effective number of targets for whole blocks (`cluster_sample`). `h`, `belief` and
`floor` are measured by their intruders.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isnan
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from ..notes import Note
from ..table import Floats
from ..words.attacks import brief
from .cluster_sample import ClusterSample
from .linkage.em import EMFit
from .nearest.h_index import HIndex
from .targets import Sample

if TYPE_CHECKING:
    import pyarrow as pa

    from .bayes.assumptions import AttackAssumptions
    from .bayes.belief import Belief
    from .bayes.matching_posterior.ceiling_bound import Ceiling
    from .protocol import Attack
    from .uniqueness import Floor

# Notes that change how a rate is read: whose bound it is, what was not settled, what was left unused.
LIMITS = (
    "attacks.upper_bound",
    "attacks.undecided_links",
    "attacks.matchings_not_converged",
    "attacks.chains_not_converged",
    "attacks.not_settled",
    "attacks.error_plays_no_part",
    "attacks.no_ceiling",
    "attacks.not_used",
)


@dataclass(frozen=True, slots=True)
class ClassCount:
    """The links of one class; `correct` is about the links drawn among ties, `expected_correct` over all ties.

    Of links that the plan did not look up neither is known: None and NaN.
    """

    name: str
    links: int
    correct: int | None
    expected_correct: float

    @property
    def incorrect(self) -> int | None:
        """The links that are wrong."""
        return None if self.correct is None else self.links - self.correct

    def line(self) -> str:
        """Return the counts as a line of text; a dash stands for what was not looked up."""
        whole = ["-" if count is None else f"{count:,}" for count in (self.correct, self.incorrect)]
        expected = "-" if isnan(self.expected_correct) else tenths(self.expected_correct)
        return f"  {self.name:<20}{self.links:>8,}{whole[0]:>10}{whole[1]:>11}{expected:>18}"


@dataclass(frozen=True)
class Risk:
    """What one intruder achieves on one release. It never leaves the steward: its table is a table of links.

    `targets` counts the intruder's records; of the links he stands by, `correct` are right as drawn among ties and
    `expected_correct` on average over them; `rate` is the latter's share of the targets, exact for this release.
    `baseline` is the rate of guessing within blocks, `guessing` that among records alike in what is missing or coded
    too (see `blind_guess`), `best_correct` how many best links are right, claimed or not;
    `classes` split all links. `table` has one row for each record that searched. `patterns`, `m`, `u`, `p` and `fit`
    are those of record linkage, `true_m` what the m really are; `h` is that of the nearest-record intruder, `floor`
    what no noise protects; `belief` is what the Bayesian intruder thinks of his links, `assumed` what he compared and
    took for granted. Where records exchanged values, `his_record` and `his_values` are the two attacks of which this is
    the worse, each `by` the columns that tell it most, and `exempt` the reason where the values do not count.
    `records` counts those of the truth; `interval` has the rate among all of them where the targets
    are a sample, of whole blocks as good as `effective` single ones. `gap` is of one-to-one links: no assignment has a
    total score that is larger by more.
    Where not all records were released, `released_share` of the targets were. `among_released`: he knows who, and
    these alone are his targets; else all are. `rate_of_released` and `rate_of_all` are there in any case.
    `ceiling` bounds what anybody can expect to find, where blocks are too large for all matchings: the interval then
    reaches to its upper end.
    """

    attack: Attack
    targets: int
    claims: int
    correct: int
    expected_correct: float
    baseline: float
    guessing: float
    classes: tuple[ClassCount, ...]
    table: pa.Table = field(repr=False, compare=False)
    best_correct: float = 0.0
    fields: tuple[str, ...] = ()
    fit: EMFit | None = field(default=None, repr=False, compare=False)
    patterns: pa.Table | None = field(default=None, repr=False, compare=False)
    true_m: Floats | None = field(default=None, repr=False, compare=False)
    h: HIndex | None = field(default=None, repr=False, compare=False)
    floor: Floor | None = field(default=None, repr=False, compare=False)
    belief: Belief | None = field(default=None, repr=False, compare=False)
    assumed: AttackAssumptions | None = field(default=None, repr=False, compare=False)
    records: int | None = None
    effective: float | None = None
    gap: float | None = None
    ceiling: Ceiling | None = field(default=None, repr=False, compare=False)
    notes: tuple[Note, ...] = ()
    by: str = ""
    exempt: str | None = None
    his_record: Risk | None = field(default=None, repr=False, compare=False)
    his_values: Risk | None = field(default=None, repr=False, compare=False)
    released_share: float | None = None
    among_released: bool = False

    @property
    def counted(self) -> tuple[Risk, ...]:
        """The attacks that a tolerance is held against: this one, or after a swap his record and his values."""
        sides = (self.his_record, None if self.exempt else self.his_values)
        return tuple(one for one in sides if one is not None) or (self,)

    @property
    def rate(self) -> float:
        """The share of the targets that the intruder links correctly, ties shared."""
        return self.expected_correct / self.targets

    @property
    def rate_of_released(self) -> float:
        """The share of the targets in the release that he finds; nobody else can be found."""
        if self.among_released or not self.released_share:
            return self.rate
        return self.rate / self.released_share

    @property
    def rate_of_all(self) -> float:
        """The share of all targets, released or not, that he finds."""
        share = 1.0 if self.released_share is None else self.released_share
        return share * self.rate_of_released

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's 95% interval of the rate among all records; nothing where all were targets: the rate is exact.

        With a bound on the ceiling it is that of what the best intruder finds: from this rate to the bound's upper end.
        """
        chosen = self.attack.targets
        if isinstance(chosen, ClusterSample):
            whole = self.targets == self.records
        else:
            whole = (
                not isinstance(chosen, Sample) or self.targets < chosen.sample or self.targets == self.records
            )
        count = self.targets if self.effective is None else self.effective
        ends = (self.rate, self.rate) if whole else wilson(min(self.rate, 1.0), count)
        if self.ceiling is not None:
            return ends[0], max(self.ceiling.high, self.rate)
        return None if whole else ends

    @property
    def is_of_all_helpers(self) -> bool:
        """Whether this is the ceiling: the intruder holds the card and every other unit."""
        return self.attack.helpers == "all" and self.attack.prior is None

    @property
    def sure_floor(self) -> Floor:
        """The floor of a risk that has one: what a `Fingerprint` found."""
        assert self.floor is not None
        return self.floor

    @property
    def sure_belief(self) -> Belief:
        """The belief of a risk that has one: what a `BayesIntruder` thinks of his links."""
        assert self.belief is not None
        return self.belief

    @property
    def expected_incorrect(self) -> float:
        """How many of the links the intruder stands by are wrong, ties shared."""
        return self.claims - self.expected_correct

    @property
    def name(self) -> str:
        """The attack's name."""
        return type(self.attack).__name__

    @property
    def m(self) -> dict[str, float] | None:
        """The estimated probability that each field agrees in a match."""
        return None if self.fit is None else dict(zip(self.fields, map(float, self.fit.m), strict=True))

    @property
    def u(self) -> dict[str, float] | None:
        """The estimated probability that each field agrees in a pair that is no match."""
        return None if self.fit is None else dict(zip(self.fields, map(float, self.fit.u), strict=True))

    @property
    def p(self) -> float | None:
        """The estimated share of pairs that are matches."""
        return None if self.fit is None else self.fit.p

    def class_of(self, name: str) -> ClassCount:
        """Return the counts of one class."""
        return next(one for one in self.classes if one.name == name)

    def to_dict(self) -> dict[str, Any]:
        """Return figures only: no record."""
        out: dict[str, Any] = {"attack": self.attack.to_dict()}
        for name in ("targets", "claims", "correct", "expected_correct", "rate", "baseline", "guessing"):
            out[name] = getattr(self, name)
        out["best_correct"] = None if isnan(self.best_correct) else self.best_correct
        out["classes"] = {
            one.name: {
                "links": one.links,
                "correct": one.correct,
                "incorrect": one.incorrect,
                "expected_correct": None if one.correct is None else one.expected_correct,
            }
            for one in self.classes
        }
        if self.fit is not None:
            out |= {"m": self.m, "u": self.u, "p": self.p, "converged": self.fit.converged}
            out["identified"] = self.fit.identified
            agree, disagree = ([float(w) for w in side] for side in self.fit.weights)
            out["weights"] = {"agree": agree, "disagree": disagree}
            out["true_m"] = None if self.true_m is None else [float(m) for m in self.true_m]
        if self.patterns is not None:
            out["patterns"] = self.patterns.to_pylist()
        if self.released_share is not None:
            out["released_share"] = self.released_share
            out["response_knowledge"] = self.among_released
            out |= {"rate_of_released": self.rate_of_released, "rate_of_all": self.rate_of_all}
        if self.interval is not None:
            out["interval"] = list(self.interval)
            out |= {} if self.effective is None else {"effective_targets": self.effective}
        for name, side in (("his_record", self.his_record), ("his_values", self.his_values)):
            if side is not None:
                out[name] = {"rate": side.rate, "expected_correct": side.expected_correct, "by": side.by}
        if self.exempt is not None:
            out["exempt"] = self.exempt
        for name in ("h", "floor", "ceiling", "belief", "assumed"):
            if getattr(self, name) is not None:
                out[name] = getattr(self, name).to_dict()
        if self.gap is not None:
            out["gap"] = self.gap
        out["notes"] = [note.to_dict() for note in self.notes]
        return out

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    @property
    def beyond_blocks(self) -> str:
        """What guessing finds by all that shows in clear, in words, where that is more than within blocks."""
        return f", by all that shows in clear {self.guessing:.1%}" if self.guessing > self.baseline else ""

    def lines(self) -> list[str]:
        """Return what fits on one screen."""
        who = "target" if self.targets == 1 else "targets"
        links = "link" if self.claims == 1 else "links"
        lines = [f"{self.name}: {self.targets:,} {who}, {self.claims:,} {links} claimed"]
        lines.append(
            f"  correct {tenths(self.expected_correct)} (ties shared; {self.correct:,} as drawn): "
            f"rate {self.rate:.1%}, guessing within blocks {self.baseline:.1%}{self.beyond_blocks}"
        )
        if self.interval is not None and self.ceiling is None:
            low, high = self.interval
            what = "a sample" if self.effective is None else "those of whole blocks, drawn"
            lines.append(
                f"  the targets are {what}: the rate of all is {low:.1%} to {high:.1%} (95%, Wilson)"
            )
        lines += self._side_lines()
        lines += [] if self.assumed is None else self.assumed.lines()
        if self.classes:
            lines += ["", f"  {'':<20}{'links':>8}{'correct':>10}{'incorrect':>11}{'expected correct':>18}"]
            lines += [one.line() for one in self.classes]
        lines += self._fit_lines()
        for part in (self.h, self.floor, self.ceiling, self.belief):
            lines += [] if part is None else part.lines()
        notes = [
            line
            for note in self.notes
            for line in wrap(str(note), 100, initial_indent="  - ", subsequent_indent="    ")
        ]
        return [*lines, "", *notes] if notes else lines

    def _side_lines(self) -> list[str]:
        """Say what is found of the record and of the exchanged values, where records exchanged any."""
        if self.his_record is None or self.his_values is None:
            return []
        sides = {"his record": self.his_record, "his exchanged values": self.his_values}
        said = "; ".join(f"{name} {one.rate:.1%} (by {one.by})" for name, one in sides.items())
        end = "the larger counts" if self.exempt is None else f"the values do not count: {self.exempt}"
        return wrap(f"{said}; {end}", 100, initial_indent="  ", subsequent_indent="    ")

    def _fit_lines(self) -> list[str]:
        if self.fit is None:
            return []
        true = self.true_m if self.true_m is not None else np.full(len(self.fields), np.nan)
        width = max(len(name) for name in self.fields)
        head = f"  {'':<{width}}  {'m':>7}  {'u':>7}  {'m in truth':>10}  {'agree':>7}  {'disagree':>8}"
        agree, disagree = self.fit.weights
        rows = [
            f"  {name:<{width}}  {m:>7.4f}  {u:>7.4f}  {t:>10.4f}  {a:>7.2f}  {d:>8.2f}"
            for name, m, u, t, a, d in zip(
                self.fields, self.fit.m, self.fit.u, true, agree, disagree, strict=True
            )
        ]
        how = f"  weights {self.fit.how}, p = {self.fit.p:.3g}"
        if self.fit.starts:
            ended = f"converged in {self.fit.iterations:,} steps" if self.fit.converged else "NOT CONVERGED"
            how += f", {ended} from the best of {self.fit.starts} starts"
        return ["", head, *rows, how]


def tenths(count: float) -> str:
    """Write a count that need not be whole; sums of the same links in another order are written alike."""
    return f"{round(count, 6):,.1f}"


def wilson(rate: float, count: float, z: float = 1.959964) -> tuple[float, float]:
    """Return Wilson's interval of a share of so many draws."""
    centre = (rate + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z / (1 + z**2 / count) * np.sqrt(rate * (1 - rate) / count + z**2 / (4 * count**2))
    return max(float(centre - half), 0.0), min(float(centre + half), 1.0)


class Risks(Mapping[str, Risk]):
    """Several intruders side by side: a mapping from their names to what each achieves.

    `refused` says of intruders who cannot work on this release why not.
    """

    def __init__(self, risks: Mapping[str, Risk], refused: Mapping[str, str] | None = None) -> None:
        self._risks, self.refused = dict(risks), dict(refused or {})

    def __getitem__(self, name: str) -> Risk:
        return self._risks[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._risks)

    def __len__(self) -> int:
        return len(self._risks)

    @property
    def largest(self) -> Risk:
        """The intruder with the highest rate."""
        return max(self._risks.values(), key=lambda risk: risk.rate)

    @property
    def found_by_any(self) -> int:
        """How many of the intruder's records some intruder links correctly, as drawn among ties."""
        import pyarrow.compute as pc

        found: set[Any] = set()
        for risk in self._risks.values():
            right = risk.table.filter(pc.and_(risk.table["correct"], risk.table["claimed"]))
            found |= set(right["target_id" if risk.attack.to_masked else "linked_id"].to_pylist())
        return len(found)

    def to_dict(self) -> dict[str, Any]:
        """Return figures only."""
        return {
            "intruders": {name: risk.to_dict() for name, risk in self.items()},
            "found_by_any": self.found_by_any,
            "refused": self.refused,
            "notes": [note.to_dict() for note in self.on_ceiling()],
        }

    def __repr__(self) -> str:
        width = max(len(name) for name in self)
        heads = f"{'targets':>8}  {'claims':>8}  {'correct':>9}  {'rate':>7}  {'guessing':>8}"
        lines = [f"{'':<{width}}  {heads}"]
        for name, risk in self.items():
            counts = f"{risk.targets:>8,}  {risk.claims:>8,}  {tenths(risk.expected_correct):>9}"
            lines.append(f"{name:<{width}}  {counts}  {risk.rate:>7.1%}  {risk.guessing:>8.1%}")
        whose: dict[str, list[str]] = {}
        for name, reason in self.refused.items():
            whose.setdefault(reason, []).append(name)
        lines += [f"{'; '.join(names)}: {reason}" for reason, names in whose.items()]
        lines += [
            *self.on_sides(),
            *self.on_released(),
            *self.on_fields(),
            *self.on_clear(),
            *self.on_limits(),
        ]
        lines += [line for note in self.on_ceiling() for line in wrap(str(note), 100, subsequent_indent="  ")]
        return "\n".join([*lines, f"found by any of them: {self.found_by_any:,}"])

    def on_sides(self) -> list[str]:
        """Set beside each other what is found of the record and of the exchanged values, where any were."""
        rows = [
            f"{name} {risk.his_record.rate:.1%} / {risk.his_values.rate:.1%}"
            for name, risk in self.items()
            if risk.his_record is not None and risk.his_values is not None
        ]
        if not rows:
            return []
        reason = next((risk.exempt for risk in self._risks.values() if risk.exempt), None)
        end = "" if reason is None else f" (the values do not count: {reason})"
        text = f"his record / his exchanged values{end}: {'; '.join(rows)}"
        return wrap(text, 100, subsequent_indent="  ")

    def on_released(self) -> list[str]:
        """Set beside each other what is found of the released and of all targets, where not all were released."""
        some = {name: risk for name, risk in self.items() if risk.released_share is not None}
        if not some:
            return []
        rows = [f"{name} {one.rate_of_released:.1%} / {one.rate_of_all:.1%}" for name, one in some.items()]
        unaware = [name for name, one in some.items() if not one.among_released]
        end = f" (not known, who was released, to: {'; '.join(unaware)})" if unaware else ""
        text = f"of the targets in the release / of all targets{end}: {'; '.join(rows)}"
        return wrap(text, 100, subsequent_indent="  ")

    def on_ceiling(self) -> list[Note]:
        """Say in which sense the ceiling is one: over the noise, and not after exchanges; nothing without one."""
        tops = {name: risk for name, risk in self.items() if risk.is_of_all_helpers}
        if not tops:
            return []
        names = tuple(tops)
        if any(risk.his_record is not None for risk in tops.values()):
            return [Note("attacks.ceiling_after_exchanges", {"names": names})]
        highest = max(risk.rate for risk in tops.values())
        above = tuple(name for name, risk in self.items() if name not in tops and risk.rate > highest)
        return [Note("attacks.ceiling_in_expectation", {"names": names, "above": above})]

    def on_fields(self) -> list[str]:
        """Name the fields compared, each list once."""
        said: dict[tuple[str, ...], list[str]] = {}
        for name, risk in self.items():
            if risk.fields:
                said.setdefault(risk.fields, []).append(name)
        whose = ["; ".join(names) if len(said) > 1 else "" for names in said.values()]
        texts = [
            f"fields compared{f' by {names}' if names else ''}: {', '.join(columns)}"
            for columns, names in zip(said, whose, strict=True)
        ]
        return [line for text in texts for line in wrap(text, 100, subsequent_indent="  ")]

    def on_limits(self) -> list[str]:
        """Say of whom a rate is an upper bound, or rests on what was not settled: notes that change how it is read."""
        said: dict[str, list[str]] = {}
        for name, risk in self.items():
            for note in risk.notes:
                if note.code in LIMITS:
                    said.setdefault(brief(note), []).append(name)
        texts = [f"{'; '.join(names)}: {note}" for note, names in said.items()]
        return [line for text in texts for line in wrap(text, 100, subsequent_indent="  ")]

    def on_clear(self) -> list[str]:
        """Name what left in clear and was compared exactly by some of the intruders, each list once."""
        said: dict[tuple[str, ...], list[str]] = {}
        for name, risk in self.items():
            if risk.assumed is not None and risk.assumed.in_clear:
                said.setdefault(risk.assumed.in_clear, []).append(name)
        texts = [
            f"LEFT IN CLEAR and compared exactly by {'; '.join(names)}: {', '.join(columns)}"
            for columns, names in said.items()
        ]
        return [line for text in texts for line in wrap(text, 100, subsequent_indent="  ")]
