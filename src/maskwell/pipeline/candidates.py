"""Changes to a plan that may help: more noise, noise on the log scale, fewer columns, swaps.

A candidate is what a steward would type: sections of the plan as text, with figures of three digits, and columns that
the schema drops. Its plan is read back from that text, so that what is tried is what can be pasted.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..attacks.joint_codes import block_codes, joint_codes
from ..calibration.scale import has_scale, scale_mask, scale_words, writable
from ..io.identities import pairwise_correlations
from ..laws import Transition
from ..masks import Chain, Coding, CorrelatedNoise, IndependentNoise, Pram, Recompute
from ..masks.resolve import NoiseOptions
from ..masks.size_grid import step_from
from ..plan import ReleasePlan
from ..plan.mask_plan import KEYS
from ..tolerances import MaxRate, Ratio
from .meet_tolerance import MaskingSetting, ToleranceResult, most_dangerous
from .plan_sections import dropped_text, masks_text, section_text, sections_without

if TYPE_CHECKING:
    from ..attacks import Risk, Risks
    from ..attacks.protocol import Ints
    from ..checks import Audit
    from ..table import Floats, Table

SKEWED = 2.0  # skewness: an exponential column has it
SHIFT_RATIO = 0.01  # of the median above 0: what is added before the logarithm where there are zeros
CALIBRATE = "calibrate"
FLOOR, TOP_VALUES, OUTER_LINKS = "fingerprint floor", "top values", "outer links"  # checks of the audit
# Others: no noise helps where a mean, a class or the size of the noise tells the value
AVERAGING, NARROW, LAST = "averaging", "narrow classes", "last record"
MOST_CODED = 2  # columns under correlated noise: a third takes minutes, by boxes in three dimensions
FEWEST_HALVED = 4  # amounts: of fewer none is left out for the noise alone
RIDGE = 1e-6  # on correlations, so that columns that repeat one another have an inverse
CODED_FROM = 0.95  # quantile: one in twenty shares the code, five times as many as the check looks at


@dataclass(frozen=True)
class Candidate:
    """A plan to be tried: its masks, whom it swaps against (nothing: as the plan says), and what leaves no more.

    `words` say what changes beside that.
    """

    words: tuple[str, ...]
    masks: tuple[Any, ...]
    dropped: tuple[str, ...] = ()
    swap: str | None = None
    removed: tuple[str, ...] = ()  # sections of the plan
    settles_groups: bool = False  # by leaving out what tells companions: no noise is needed for that

    def at(self, factor: float, table: Table) -> Candidate:
        """Return it with the scale of its noise times a factor, in the digits that are written."""
        masks = tuple(
            writable(scale_mask(mask, factor, table)) if has_scale(mask) else mask for mask in self.masks
        )
        return self if factor == 1.0 else replace(self, masks=masks)

    @property
    def said(self) -> tuple[str, ...]:
        """What changes, in words."""
        left_out = (f"leave out {', '.join(self.dropped)}",) if self.dropped else ()
        return (*left_out, *self.words)

    @property
    def has_scale(self) -> bool:
        """Whether there is noise that can be made larger."""
        return any(map(has_scale, self.masks))

    @property
    def scale(self) -> str:
        """The scale of its noise in the masks' own names."""
        noises = tuple(mask for mask in self.masks if has_scale(mask))
        return scale_words(noises[0] if len(noises) == 1 else Chain(noises)) if noises else ""

    def text(self, plan: ReleasePlan) -> str:
        """Return the sections of the plan that change, as they are typed."""
        same = self.masks == plan.masks and plan.calibrate is None
        sections = [] if same else [masks_text(self.masks)]
        if self.swap is not None:
            sections.append(section_text("swap", {"intruder": self.swap}))
        return "\n".join([*sections, *sections_without(plan, self.dropped)])

    def plan(self, plan: ReleasePlan) -> ReleasePlan:
        """Return the plan with its changed sections read back from their text; noise is then taken as given."""
        gone = (CALIBRATE, *self.removed)
        data = {name: part for name, part in plan.to_dict().items() if name not in gone}
        return ReleasePlan.from_dict(data | tomllib.loads(self.text(plan)), Path())

    def gone(self, plan: ReleasePlan) -> tuple[str, ...]:
        """Return the sections that are taken out of the plan."""
        return (*((CALIBRATE,) if plan.calibrate is not None else ()), *self.removed)

    def schema_text(self) -> str:
        """Return what changes in the schema."""
        return dropped_text(self.dropped) if self.dropped else ""

    def table(self, table: Table) -> Table:
        """Return the table with the columns dropped that no longer leave."""
        changed = {name: replace(table.schema[name], drop=True) for name in self.dropped}
        return replace(table, schema=table.schema.changed(changed))


@dataclass(frozen=True)
class Trouble:
    """What stands against a plan: what intruders found in a draw of it, its audit, and a floor that was not lowered."""

    risks: Risks
    audit: Audit
    floor: Risk | None
    companions: tuple[str, ...] = ()  # columns by which who knows whole groups finds too much
    told: tuple[str, ...] = ()  # columns that put the members of dropped groups together again

    @property
    def failed(self) -> frozenset[str]:
        """The checks of the audit that it fails."""
        return frozenset(failure.check for failure in self.audit.failures)


def told_whatever_the_noise(
    audit: Audit, checks: Sequence[str] = (AVERAGING, NARROW, LAST)
) -> tuple[str, ...]:
    """Return the columns of whose noise a mean over records alike, a class in clear or the card leaves too little."""
    found = [one for one in audit.failures if one.check in checks]
    return tuple(dict.fromkeys(name for one in found for name in one.failing_columns))


def bases(candidate: Candidate, columns: Sequence[str], audit: Audit) -> tuple[Candidate, Candidate | None]:
    """Return a plan without some columns and those that the noise does not hide, and one that keeps more of these.

    That leaves out the columns in clear whose classes tell them in their place, and of those whose sizes on the card
    tell of the last record the worst alone: another scale rounds the others' otherwise.
    """
    first = without(candidate, tuple(dict.fromkeys((*columns, *told_whatever_the_noise(audit)))))
    found = {one.check: one for one in audit.failures}
    clear = found[NARROW].without if NARROW in found else ()
    if not clear and LAST not in found:
        return first, None
    worst = (found[LAST].where,) if LAST in found else ()
    amounts = told_whatever_the_noise(
        audit, (AVERAGING,) if clear or NARROW not in found else (AVERAGING, NARROW)
    )
    instead = without(candidate, tuple(dict.fromkeys((*columns, *clear, *worst, *amounts))))
    return first, None if instead == first else instead


def masks_of(case: MaskingSetting, found: ToleranceResult) -> tuple[Any, ...]:
    """Return the masks that were drawn, with the scale that was searched."""
    return case.plan.masks if case.plan.calibrate is None else _stages(found.mask)


def candidates(
    case: MaskingSetting, first: Candidate, trouble: Trouble, instead: Candidate | None = None
) -> list[Candidate]:
    """Return what may help on this file, beginning with more of the same; what cannot be done on it is left out.

    `instead` leaves other columns out than the first does.
    """
    out: list[Candidate] = []
    floor, met = trouble.floor, case.judge.met(trouble.risks)
    if floor is None or not case.judge.hopeless(case.intruders, floor.rate):
        out += _remedies(case, first, trouble, instead)
        if trouble.companions:
            out.append(replace(without(first, trouble.companions), settles_groups=True))
        if trouble.told and _has_masks(without(first, trouble.told)):
            out.append(without(first, trouble.told))
    if floor is not None and (FLOOR in trouble.failed or not out or not met):
        columns = _columns_to_leave_out(case, trouble.audit, floor)
        out += [without(first, columns)] if columns else []
    return out + ([] if met else _with_swaps(case, first, trouble.risks))


def _remedies(
    case: MaskingSetting, first: Candidate, trouble: Trouble, instead: Candidate | None
) -> list[Candidate]:
    """Return what settles what failed, the likeliest to pass first.

    More of the same, unless largest values are read off: it seldom helps there, and comes last.
    """
    others = [] if instead is None else [instead]
    lean, out = _without_tops(case, instead or first, trouble), list[Candidate]()
    logs, named = log_masks(case.table, first.masks)
    if named:
        words = f'noise on the log scale for {", ".join(named)} (transform = "log")'
        out.append(replace(first, masks=logs, words=(*first.words, words)))
    out += _with_top_codes(case, first, trouble)
    if not lean:
        return [first, *others, *out]
    return [*lean, *out, first, *others]


def _with_top_codes(case: MaskingSetting, first: Candidate, trouble: Trouble) -> list[Candidate]:
    """Code the largest values after the noise where these are what is read off or found, in columns no sum is made of.

    Under correlated noise few columns are coded: densities of more are probabilities of boxes in as many dimensions.
    """
    if not trouble.failed & {TOP_VALUES, OUTER_LINKS}:
        return []
    found = next((one for one in trouble.audit.findings if one.check == TOP_VALUES), None)
    figures = {} if found is None else found.by_column
    noised = _noise_columns(case, first)
    able = [name for name in noised if _may_be_coded(case.table, name) and (name in figures)]
    able.sort(key=lambda name: -figures[name])
    most = MOST_CODED if any(isinstance(one, CorrelatedNoise) for one in first.masks) else len(able)
    chosen = able[:most]
    if not chosen:
        return []
    tops = tuple(float(step_from(float(np.quantile(_open(case.table, name), CODED_FROM)))) for name in chosen)
    said = ", ".join(f"{name} from {top:g}" for name, top in zip(chosen, tops, strict=True))
    coded = Coding(tuple(chosen), top=tops)
    sums = tuple(one for one in first.masks if isinstance(one, Recompute))
    rest = tuple(one for one in first.masks if not isinstance(one, Recompute))
    words = (*first.words, f"top codes on {said} on (mask Coding)")
    return [replace(first, masks=(*rest, coded, *sums), words=words)]


def _without_tops(case: MaskingSetting, candidate: Candidate, trouble: Trouble) -> list[Candidate]:
    """Leave the amounts out whose largest values are read off, where others are left: what else stands against the
    plan is in the candidate already, so that this is all of it in one change.
    """
    amounts = told_whatever_the_noise(trouble.audit, (TOP_VALUES,))
    gone = tuple(name for name in amounts if name not in candidate.dropped)
    leaner = without(candidate, gone)
    return [leaner] if gone and _noised_by(leaner.table(case.table), leaner) else []


def _noise_columns(case: MaskingSetting, first: Candidate) -> list[str]:
    """Return the columns that masks of the plan add noise to, in order, but for those that are coded already."""
    named: list[str] = []
    for mask in first.masks:
        if isinstance(mask, IndependentNoise | CorrelatedNoise):
            own = _keys(case.table) if mask.columns == (KEYS,) else mask.columns
            named += [name for name in own if mask.transform is None and name not in first.dropped]
    parts = {name for mask in first.masks if isinstance(mask, Recompute) for name, _ in mask.parts}
    coded = {name for mask in first.masks if isinstance(mask, Coding) for name in mask.columns}
    return [name for name in dict.fromkeys(named) if name not in parts | coded]


def _may_be_coded(table: Table, name: str) -> bool:
    """Whether a column has a long tail and no top code yet."""
    return table.schema[name].top is None and has_long_tail(table, name)


def _has_masks(candidate: Candidate) -> bool:
    """Whether something is masked yet by masks of which one alone draws something."""
    return any(not isinstance(one, Recompute) for one in candidate.masks)


def _with_swaps(case: MaskingSetting, first: Candidate, risks: Risks) -> list[Candidate]:
    """Add swaps where the plan makes none and the tolerance is one that swaps can meet; take them out where it does."""
    if case.plan.swap is not None:
        return [replace(first, removed=("swap",), words=(*first.words, "no swaps (take [swap] out)"))]
    if not isinstance(case.judge.tolerance, MaxRate | Ratio):
        return []
    against = most_dangerous(case, risks)
    if against is None:
        return []
    return [
        replace(first, swap=against, words=(*first.words, f"records swapped against {against!r} ([swap])"))
    ]


def _columns_to_leave_out(case: MaskingSetting, audit: Audit, floor: Risk) -> tuple[str, ...]:
    """Return the columns to leave out, one after the other, until neither tolerance nor audit is hopeless.

    Gaps and codes count too: a column whose pattern tells records apart goes with them.
    """
    limit = next((one.limits.fail for one in audit.findings if one.check == FLOOR), None)
    columns: list[str] = []
    for step in floor.sure_floor.steps.to_pylist():
        columns.append(step["column"])
        share = step["remaining"] / floor.targets
        if not case.judge.hopeless(case.intruders, share) and (limit is None or share <= limit):
            return tuple(dict.fromkeys(columns))
    return ()


def without(candidate: Candidate, columns: tuple[str, ...]) -> Candidate:
    """Return a candidate that leaves some columns out, of its masks too."""
    if not columns:
        return candidate
    kept = [one for mask in candidate.masks if (one := _mask_without_columns(mask, columns)) is not None]
    return replace(candidate, masks=tuple(kept), dropped=(*candidate.dropped, *columns))


def leaner(case: MaskingSetting, first: Candidate, told: Sequence[str] = ()) -> list[Candidate]:
    """Return changes that leave out more, so that less noise may do: categories by which records are few, amounts.

    An intruder who knows the law finds by how many numbers he compares, whatever their correlations, and among how many
    records: so one, two or all categories more, half of the amounts, or both. Of categories that are changed at random
    one, two and up to half, those first that tell most as they leave; `told` are left out beside in each.
    """
    first = without(first, tuple(name for name in told if name not in first.dropped))
    table = first.table(case.table)
    amounts = _amounts_to_spare(table, _noised_by(table, first))
    classes = _classes_to_spare(table, first)
    changed = _changed_to_spare(table, first)
    sets = [classes[:1], amounts, (*classes[:1], *amounts), classes[:2], classes, (*classes, *amounts)]
    sets += [changed[:count] for count in sorted({1, 2, len(changed) // 2}) if count <= len(changed) // 2]
    sets += [(*classes[:1], *changed[: len(changed) // 2])] if classes and len(changed) > 1 else []
    different = dict.fromkeys(one for one in sets if one)
    return [one for one in (without(first, columns) for columns in different) if _has_masks(one)]


def _changed_to_spare(table: Table, first: Candidate) -> tuple[str, ...]:
    """Return the categories that are changed at random, those first that tell most of the true ones as they leave."""
    laws = [law for mask in first.masks if isinstance(mask, Pram) for law in mask.card(table).laws]
    told = {law.columns[0]: _mutual_information(table, law) for law in laws if isinstance(law, Transition)}
    return tuple(sorted(told, key=lambda name: -told[name]))


def _mutual_information(table: Table, law: Transition) -> float:
    """Return how much a released category tells of the true one: the sum of p m log(m / p m), summed over both."""
    codes, chances = table.floats(law.columns[0]), np.array(law.matrix)
    shares = np.bincount(codes[~np.isnan(codes)].astype(np.int64), minlength=len(chances)).astype(float)
    shares /= max(shares.sum(), 1.0)
    joint, released = shares[:, None] * chances, np.broadcast_to(shares @ chances, chances.shape)
    some = joint > 0
    return float((joint[some] * np.log(chances[some] / released[some])).sum())


def _noised_by(table: Table, first: Candidate) -> list[str]:
    """Return the columns with noise that no sum is made of."""
    named: list[str] = []
    for mask in first.masks:
        if isinstance(mask, IndependentNoise | CorrelatedNoise):
            named += _keys(table) if mask.columns == (KEYS,) else mask.columns
    parts = {name for mask in first.masks if isinstance(mask, Recompute) for name, _ in mask.parts}
    return [name for name in dict.fromkeys(named) if name not in parts]


def _amounts_to_spare(table: Table, amounts: Sequence[str]) -> tuple[str, ...]:
    """Return half of the amounts, each time the one that the others tell most of (1 - 1 / its inverse correlation)."""
    if len(amounts) < FEWEST_HALVED:
        return ()
    left, gone = list(amounts), list[str]()
    values = table.values(left)
    every = np.nan_to_num(pairwise_correlations(values))
    np.fill_diagonal(every, 1.0 + RIDGE)
    while len(left) > (len(amounts) + 1) // 2:
        at = [amounts.index(name) for name in left]
        told = np.diagonal(np.linalg.pinv(every[np.ix_(at, at)]))
        gone.append(left.pop(int(np.argmax(told))))
    return tuple(gone)


def _classes_to_spare(table: Table, first: Candidate) -> tuple[str, ...]:
    """Return the categories that leave in clear, each time the one without which fewest combinations are left."""
    masked = {name for mask in first.masks for name in mask.columns}
    able = [
        c.name
        for c in table.schema.columns
        if table.has_classes(c.name) and not c.drop and c.name not in masked
    ]
    codes = {name: block_codes(table, table, (name,))[0] for name in able}
    gone: list[str] = []
    while able:
        counts = {name: _combinations(codes, able, name) for name in able}
        gone.append(min(able, key=lambda name: counts[name]))
        able.remove(gone[-1])
    return tuple(gone)


def _combinations(codes: Mapping[str, Ints], names: Sequence[str], without_name: str) -> int:
    rest = [codes[name] for name in names if name != without_name]
    if not rest:
        return 1
    return int(joint_codes([(one, int(one.max(initial=0)) + 1) for one in rest], len(rest[0])).max()) + 1


def _mask_without_columns(mask: Any, columns: tuple[str, ...]) -> Any:
    """Return a mask without some of its columns; nothing where none is left."""
    if isinstance(mask, Recompute) and mask.column in columns:
        return None
    kept = tuple(name for name in mask.columns if name not in columns)
    if kept == mask.columns:
        return mask
    return replace(mask, columns=kept, **_limits_of(mask, kept)) if kept else None


def _limits_of(mask: Any, columns: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(mask, NoiseOptions) or not mask.limits:
        return {}
    return {"limits": tuple(limit for limit in mask.limits if limit[0] in columns)}


def log_masks(table: Table, masks: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """Put the noise of columns with long tails on the log scale, where their values allow it; with their names.

    Zeros need a shift: a round share of the median, which tells no extreme. Columns with values below 0 keep their
    noise, as do masks whose noise depends on the value or keeps all moments.
    """
    out: list[Any] = []
    named: list[str] = []
    for mask in masks:
        able = isinstance(mask, IndependentNoise) or (
            isinstance(mask, CorrelatedNoise) and mask.keep == "means"
        )
        plain = able and mask.transform is None and mask.spread is None and not _is_absolute(mask)
        columns = _keys(table) if plain and mask.columns == (KEYS,) else mask.columns
        long = [name for name in columns if plain and has_long_tail(table, name)]
        if not long:
            out.append(mask)
            continue
        named += long
        rest = tuple(name for name in columns if name not in long)
        out += [replace(mask, columns=rest, **_limits_of(mask, rest))] if rest else []
        out += _on_log_scale(table, mask, long)
    return tuple(out), tuple(named)


def _is_absolute(mask: Any) -> bool:
    """Whether the noise has a variance in the units of the data, which means another thing on the log scale."""
    return isinstance(mask, IndependentNoise) and mask.variance is not None


def _keys(table: Table) -> tuple[str, ...]:
    """Return the numbers that leave and have the role key."""
    columns = [column for column in table.schema.columns if "key" in column.roles]
    return tuple(column.name for column in columns if column.is_number and not column.drop)


def _on_log_scale(table: Table, mask: Any, columns: list[str]) -> list[Any]:
    """Return masks on the log scale, one for each shift that the columns need."""
    by_shift: dict[float, list[str]] = {}
    for name in columns:
        by_shift.setdefault(shift_of(_open(table, name)), []).append(name)
    return [
        replace(mask, columns=tuple(names), transform="log", shift=shift, **_limits_of(mask, tuple(names)))
        for shift, names in by_shift.items()
    ]


def has_long_tail(table: Table, name: str) -> bool:
    """Whether a column is skewed, has no value below 0, and has more values above 0 than not."""
    values = _open(table, name)
    if len(values) < 3 or values.min() < 0 or not values.std() > 0 or np.median(values) <= 0:
        return False
    return bool(((values - values.mean()) ** 3).mean() / values.std() ** 3 > SKEWED)


def shift_of(values: Floats) -> float:
    """Return what is added before the logarithm: nothing, or where there are zeros a round share of the median."""
    return 0.0 if values.min() > 0 else float(step_from(SHIFT_RATIO * float(np.median(values[values > 0]))))


def _open(table: Table, name: str) -> Floats:
    values = table.floats(name)
    return values[~np.isnan(values)]


def _stages(mask: Any) -> tuple[Any, ...]:
    if isinstance(mask, Chain):
        return tuple(one for stage in mask.masks for one in _stages(stage))
    return (mask,)
