"""Who is compared with whom on which fields: all of an attack that does not depend on the size of the noise.

For each target and field the bounds between which a released value agrees, the true values, the pairs of a block: what
`agreement_chance` and `full_agreement` need at every size c (Kim's c: noise covariance c^2 Sigma, Moore 1996, section
IV). Made once by `critical_noise`, `agreement_curve` and `relaxed_code`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..attacks import Linkage
from ..attacks.agreement import CLOSED, Rule
from ..errors import BadPlan, raise_all
from ..laws import Additive
from ..laws.transform import on_unit
from ..masking import Setting
from ..masks import CorrelatedNoise, IndependentNoise
from ..notes import Note
from ..table import Floats, Table
from .agreement_chance import Bools, Ints, Sum, chances_of_most, noise_boxes, restrict_law
from .full_agreement import AgreeingPairs, find_pairs, tie_shares

if TYPE_CHECKING:
    from ..masking import Mask

Scale = Callable[[Any, float], Any]
INFINITE = 1e8  # stands for a noise without bound: a target that agrees within a finite range then has a chance of 1e-8


def _scaled_correlated(mask: Any, sd_ratio: float) -> Any:
    return replace(mask, sd_ratio=sd_ratio, r0=None)


def _scaled_independent(mask: Any, sd_ratio: float) -> Any:
    return replace(mask, variance_ratio=sd_ratio**2)


SCALED: dict[type, Scale] = {CorrelatedNoise: _scaled_correlated, IndependentNoise: _scaled_independent}


@dataclass(frozen=True)
class ComparisonSetting:
    """An intruder and a mask before its size is known.

    `low` and `high` (targets x fields) are between which released values each field agrees with a target's, `known`
    and `released` (fields x records) the true values of targets and of all records, closed ones far above all
    others. `masked` are the fields that the mask touches.
    """

    table: Table
    attack: Linkage
    mask: Mask
    fields: tuple[str, ...]
    rules: tuple[Rule, ...]
    masked: tuple[str, ...]
    targets: Ints
    known: Floats
    released: Floats
    low: Floats
    high: Floats
    blocks: tuple[Ints, Ints]
    notes: tuple[Note, ...]

    @cached_property
    def places(self) -> list[int]:
        """Where the masked fields stand among all fields."""
        return [self.fields.index(name) for name in self.masked]

    @cached_property
    def truth(self) -> Floats:
        """The true values of the masked fields of all records, NaN unless open."""
        return _open_values(self.released[self.places].T)

    @cached_property
    def is_open(self) -> Bools:
        """Targets x masked fields: whether there is a value that the noise can change."""
        return ~np.isnan(self.truth[self.targets])

    @cached_property
    def spare(self) -> Ints:
        """Minus the number of unmasked fields on which each target disagrees with its own record (by rounding)."""
        others = [f for f in range(len(self.fields)) if f not in self.places]
        own = self.released[others][:, self.targets].T
        wrong = (own < self.low[:, others]) | (own > self.high[:, others])
        return np.asarray(-wrong.sum(axis=1))

    @cached_property
    def pairs(self) -> AgreeingPairs | None:
        """The other records that can agree fully with each target; nothing where there are too many."""
        return find_pairs(self)

    @cached_property
    def _law(self) -> Callable[[float], Additive]:
        return lru_cache(maxsize=4)(self._resolved)  # one size is asked for by several questions in a row

    def law(self, sd_ratio: float) -> Additive:
        """Return the law of the masked fields at a size of the noise, in full precision."""
        return self._law(sd_ratio)

    def _resolved(self, sd_ratio: float) -> Additive:
        plan = SCALED[type(self.mask)](self.mask, sd_ratio)
        law: Any = plan.card(self.table, Setting(exact=True)).laws[0]
        return restrict_law(law, self.masked)

    def chances(self, sd_ratio: float, disagreeing: int = 0) -> Floats:
        """Return the chance that each target's own record agrees on all but so many fields, targets x shifts."""
        law = self.law(sd_ratio)
        bounds = self.low[:, self.places], self.high[:, self.places]
        boxes = noise_boxes(law, *bounds, self.truth[self.targets])
        return chances_of_most(law, boxes, self.is_open, self.spare + disagreeing)

    def agreeing(self, sd_ratio: float, disagreeing: int = 0) -> Sum:
        """Return G: how many targets are expected to agree with their own records."""
        return Sum.of(self.chances(sd_ratio, disagreeing))

    def correct(self, sd_ratio: float, chances: Floats | None = None) -> Sum | None:
        """Return how many correct links are expected of an intruder who claims full agreements, ties shared."""
        if self.pairs is None:
            return None
        chances = self.chances(sd_ratio) if chances is None else chances
        return Sum.of(chances * tie_shares(self, self.pairs, sd_ratio))


def make_situation(
    table: Table, attack: Linkage | None = None, mask: Mask | None = None
) -> ComparisonSetting:
    """Resolve an attack (by default record linkage) and a mask (correlated noise on its number fields)."""
    if not isinstance(table, Table):
        raise BadPlan(f"critical noise is about a Table, not a {type(table).__name__}")
    attack = _check_linkage(attack if attack is not None else Linkage())
    targets = attack.target_records(table)
    if not len(targets):
        raise BadPlan("the table has no records, so that nobody is a target")
    known = table if len(targets) == len(table) else table.take(targets)
    compared, remarks = attack.compared(known, table)
    mask, said = (mask, []) if mask is not None else _usual_mask(table, compared.fields)
    masked = _masked_fields(mask, table, compared.fields, attack)
    low, high = compared.bounds(compared.known)
    return ComparisonSetting(
        table=table,
        attack=attack,
        mask=mask,
        fields=compared.fields,
        rules=compared.rules,
        masked=masked,
        targets=targets,
        known=compared.known,
        released=_round_unmasked(table, compared.fields, masked, compared.released),
        low=low,
        high=high,
        blocks=attack.blocks_of(known, table),
        notes=(*remarks, *said, *_attack_notes(attack)),
    )


def _check_linkage(attack: Any) -> Linkage:
    if not isinstance(attack, Linkage):
        raise BadPlan(
            f"critical noise is computed for an intruder who compares field by field: give a Linkage, not a "
            f"{type(attack).__name__}"
        )
    if not attack.to_masked:
        raise BadPlan(
            "critical noise is about true records that search: give a Linkage of direction 'to_masked'"
        )
    return attack


def _attack_notes(attack: Linkage) -> list[Note]:
    """Say where the attack goes further than what is predicted."""
    usual = attack.assignment == "best" and attack.cut_offs is None and attack.claims == "re-identifications"
    return [] if usual else [Note("calibration.predicted_links")]


def _usual_mask(table: Table, fields: tuple[str, ...]) -> tuple[Any, list[Note]]:
    """Return Kim's noise on the fields that it can touch, and what it cannot."""
    numbers = [name for name in fields if table.schema[name].is_number]
    able = [name for name in numbers if not np.isnan(table.floats(name)).all()]
    if not able:
        raise BadPlan("no field that the intruder compares holds an open number, so noise can change nothing")
    left = tuple(name for name in fields if name not in able)
    notes = [Note("calibration.unmasked_fields", {"columns": left})] if left else []
    return CorrelatedNoise(tuple(able), sd_ratio=1.0), notes


def _masked_fields(mask: Any, table: Table, fields: tuple[str, ...], attack: Linkage) -> tuple[str, ...]:
    """Return the fields the mask touches, refusing masks without a size and masks of the blocks."""
    if type(mask) not in SCALED or (isinstance(mask, IndependentNoise) and mask.variance is not None):
        raise BadPlan(
            "critical noise needs a mask whose size can be set: CorrelatedNoise, or IndependentNoise with a "
            "variance_ratio"
        )
    blocks = attack.match_columns(table.schema)
    raise_all(
        [
            f"column {name!r} is a matching block and masked: leave it out of one"
            for name in blocks
            if name in mask.columns
        ],
        BadPlan,
    )
    law: Any = SCALED[type(mask)](mask, 1.0).card(table, Setting(exact=True)).laws[0]
    masked = tuple(name for name in fields if name in law.columns)
    if not masked:
        raise BadPlan(
            "the mask touches no field that the intruder compares, so that no noise protects: mask a field"
        )
    return masked


def _round_unmasked(table: Table, fields: tuple[str, ...], masked: tuple[str, ...], values: Floats) -> Floats:
    """Put the unmasked numbers on their units, as they are released."""
    out = values.copy()
    for f, name in enumerate(fields):
        step = table.schema[name].step if table.schema[name].is_number else None
        if step is not None and name not in masked:
            here = out[f] < CLOSED
            out[f, here] = on_unit(out[f, here], step)
    return out


def _open_values(values: Floats) -> Floats:
    return np.where(values >= CLOSED, np.nan, values)
