"""The options of a fit that a file holds: the keys are the arguments of `fit` and the fields of `FitOptions`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self

from ..analysis.model_fit import DRAW, WARMUP, FitOptions, family_of
from ..analysis.priors import Priors
from ..errors import BadPlan, raise_all
from ..toml_files import check_depth, toml_of
from .parser import build_dataclass, section_of

LEVEL = 0.95  # of intervals
OF_RESULTS = ("level", "truths")  # what is written of a fit, not how it is made


@dataclass(frozen=True, slots=True, kw_only=True)
class FitPlan:
    """How a model is fitted, as `fit` and `FitOptions` have it; of the result: the level and a file for true values."""

    family: str = "gaussian"
    link: str | None = None
    missing: str = DRAW
    weights: str | None = None
    measurement_error: Mapping[str, float] = field(default_factory=dict)
    covariate_groups: bool = True
    naive: bool = True
    chains: int = 4
    draws: int | None = None
    warmup: int = WARMUP
    sampler: str = "auto"
    cores: int | None = None
    seed: int | None = None
    priors: Priors = field(default_factory=Priors)
    level: float = LEVEL
    truths: Path | None = None

    def __post_init__(self) -> None:
        problems = (
            []
            if 0 < self.level < 1
            else [f"level lies between 0 and 1, such as 0.95, and is not {self.level:g}"]
        )
        problems += [
            f"the measurement error of {name!r} must be a variance above 0"
            for name, variance in self.measurement_error.items()
            if not variance > 0
        ]
        options = {item.name for item in fields(FitOptions)}
        for check in (
            lambda: family_of(self.family, self.link),
            lambda: FitOptions(**{k: v for k, v in self.arguments.items() if k in options}),
        ):
            try:
                check()
            except BadPlan as refusal:
                problems += refusal.problems
        raise_all(problems, BadPlan)

    @property
    def arguments(self) -> dict[str, Any]:
        """What `fit` is called with: the family, and whatever else is not as it would be anyway."""
        usual = {item.name: item.default for item in fields(self)} | {
            "measurement_error": {},
            "priors": Priors(),
        }
        given = {name: getattr(self, name) for name in usual if name not in OF_RESULTS}
        out = {name: value for name, value in given.items() if value != usual[name]}
        return {"family": self.family} | out | ({"keep_truths": True} if self.truths is not None else {})

    @classmethod
    def read(cls, path: str | Path | None, beside: Mapping[str, Any]) -> Self:
        """Read a TOML file, if there is one, with what is said `beside` it; list every problem at once."""
        if path is None:
            return cls.from_dict(beside, "fit")
        data = toml_of(path, f"the options {str(path)!r}")
        raise_all(
            [f"{name} stands in {str(path)!r} too: say it once" for name in beside if name in data], BadPlan
        )
        return cls.from_dict(data | dict(beside), str(path), Path(path).parent)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str = "fit", folder: Path = Path()) -> Self:
        """Build the options of plain data; `where` they stand begins each problem."""
        check_depth(data, where)
        given, problems = dict(data), list[str]()
        priors = _priors(given.pop("priors", {}), f"{where}: priors", problems)
        built: Self = section_of(cls, given, where, folder, problems)
        raise_all(problems, BadPlan)
        return replace(built, priors=priors)


def _priors(given: Any, where: str, problems: list[str]) -> Priors:
    if not isinstance(given, Mapping):
        problems.append(f"{where} must be a section: write [priors] on a line of its own, its keys below")
        return Priors()
    placed = dict(given)
    if isinstance(named := given.get("coefficients"), Mapping):
        placed["coefficients"] = {
            name: tuple(pair) if isinstance(pair, list) else pair for name, pair in named.items()
        }
    return build_dataclass(Priors, placed, where, problems) or Priors()
