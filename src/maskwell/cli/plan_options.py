"""The options by which commands choose an intruder and a tolerance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from ..errors import BadPlan, nearest
from .file_options import split_names

FieldsOption = Annotated[
    str | None, typer.Option(help="Columns the intruder compares, with commas.", show_default="role key")
]
WithinOption = Annotated[
    float | None,
    typer.Option(help="The matcher's amounts agree within this share of the target's.", show_default="0.10"),
]
SmallOption = Annotated[
    int | None,
    typer.Option(help="Targets are the records in blocks of at most so many.", show_default="all records"),
]
TargetBlocksOption = Annotated[
    str | None, typer.Option(help="Columns that define those blocks, with commas.", show_default="role block")
]
MatchBlocksOption = Annotated[
    str | None,
    typer.Option(help="Columns the intruder relies on, with commas; '' for none.", show_default="role block"),
]
DistanceOption = Annotated[
    str | None,
    typer.Option(
        help="Of the nearest record: euclid, noise, release, posterior or gower.", show_default="euclid"
    ),
]
MaxRateOption = Annotated[
    float | None, typer.Option(help="Tolerated: this share of the targets linked correctly, e.g. 0.15.")
]
MaxRatioOption = Annotated[
    float | None, typer.Option(help="Tolerated: so many correct links to one incorrect, e.g. 2.")
]
ExpectedHOption = Annotated[float | None, typer.Option(help="Tolerated: a mean h of at least this, e.g. 3.")]
ProbHOption = Annotated[
    str | None, typer.Option(help="Tolerated: h below a number for at most a share, e.g. 3,0.1.")
]

DirectionOption = Annotated[
    str | None,
    typer.Option(
        help="to_masked: his record looks for its masked one; to_original: the masked for its original.",
        show_default="to_masked",
    ),
]
OneToOneOption = Annotated[bool, typer.Option("--one-to-one", help="Each candidate is linked once at most.")]

INTRUDERS = ("matcher", "nearest", "law", "fingerprint")


@dataclass(frozen=True, slots=True)
class IntruderOptions:
    """What the options say of an intruder."""

    largest_target_block: int | None = None
    target_blocks: str | None = None
    match_blocks: str | None = None
    fields: str | None = None
    within: float | None = None
    distance: str | None = None
    direction: str | None = None
    one_to_one: bool = False
    belief: Mapping[str, Any] = field(default_factory=dict)

    def plan(self, kind: str) -> Any:
        """Return the plan of an intruder by his short name."""
        from ..attacks import BayesIntruder, Fingerprint, Linkage, NearestRecord, Relative

        self._check(kind)
        shared: dict[str, Any] = {
            "largest_target_block": self.largest_target_block,
            "target_blocks": split_names(self.target_blocks),
            "match_blocks": split_names(self.match_blocks),
            "direction": self.direction or "to_masked",
        }
        if kind == "fingerprint":
            return Fingerprint(**shared, columns=split_names(self.fields))
        shared |= {
            "fields": split_names(self.fields),
            "assignment": "one-to-one" if self.one_to_one else "best",
        }
        if kind == "matcher":
            return Linkage(**shared, rule=Relative(0.10 if self.within is None else self.within))
        if kind == "nearest":
            return NearestRecord(**shared, distance=self.distance or "euclid")
        return BayesIntruder(**shared, **self.belief)

    def _check(self, kind: str) -> None:
        if kind not in INTRUDERS:
            raise BadPlan(
                f"--intruder is one of {', '.join(INTRUDERS)}, not {kind!r}{nearest(kind, INTRUDERS)}"
            )
        if self.within is not None and kind != "matcher":
            raise BadPlan("--within is the matcher's: leave it out, or say --intruder matcher")
        if self.within is not None and not 0 <= self.within < 1:
            raise BadPlan(f"--within is a share of the value, such as 0.10 for 10%, not {self.within:g}")
        if self.one_to_one and kind == "fingerprint":
            raise BadPlan("--one-to-one is not for fingerprints: they are claimed only where they are unique")
        if self.distance is not None and kind != "nearest":
            raise BadPlan("--distance is that of the nearest record: say --intruder nearest too")


def tolerance_of(
    max_rate: float | None,
    max_ratio: float | None,
    expected_h: float | None = None,
    prob_h: str | None = None,
    *,
    default: Any = None,
    needed: bool = False,
) -> Any:
    """Return the one tolerance that the options give, or the default."""
    from ..tolerances import ExpectedH, MaxRate, Ratio

    given: list[Any] = [MaxRate(max_rate)] if max_rate is not None else []
    given += [Ratio(max_ratio)] if max_ratio is not None else []
    given += [ExpectedH(expected_h)] if expected_h is not None else []
    given += [_prob_h(prob_h)] if prob_h is not None else []
    if len(given) > 1 or (needed and not given):
        raise BadPlan("say what is tolerated: exactly one of --max-rate and --max-ratio (or one on h)")
    return given[0] if given else default


def _prob_h(text: str) -> Any:
    from ..tolerances import ProbH

    try:
        below, at_most = text.split(",")
        return ProbH(int(below), float(at_most))
    except ValueError:
        raise BadPlan(
            f"--prob-h is a whole number and a share with a comma between, such as 3,0.1, not {text!r}"
        ) from None
