"""The intruder whom no noise stops: it finds who is unique by what leaves unmasked and by what is missing or coded.

A link is claimed where one known and one released record have the same fingerprint and no other has: population
uniqueness (Duncan and Lambert 1989; Skinner and Elliot 2002) on the whole file. `floor_of(mask, table,
targets_of=attack)` gives the `Risk` before any noise is drawn, for calibration: however large the noise of that mask,
an intruder with the same targets who uses all that shows finds no smaller share of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ..card import NoiseCard
from ..errors import BadInput, BadPlan, MaskwellWarning, raise_all
from ..keys import Key
from ..masking import Mask, Masking, Release
from ..notes import Note
from ..schema import OPEN, Schema
from ..table import Table
from .attack_run import attack_by
from .blocks import RecordSearch, check_fields, frozen_names
from .candidate_scores import Blocks
from .joint_codes import joint_codes
from .protocol import NOBODY, Attack, Guess, IntruderKnowledge, Ints, MarkedGuess, OrderOf
from .risk import Risk
from .sampled_uniqueness import SampledBlocks, sampled_floor
from .targets import Quantiles, number_keys
from .unchanged_values import MOST_STRAYS, on_spared, on_unchanged
from .uniqueness import Prints, floor
from .unmasked_values import (
    NOISY,
    PATTERN,
    SPARED,
    VALUES,
    Fate,
    Trait,
    comparable,
    deterministic_table,
    fates,
    trait_of,
    units_of,
)

KINDS = ("unique", "pair", "3 to 5 alike", "more alike", "none alike")
LARGEST = (1, 2, 5)  # groups of the first kinds have at most so many records
DRAWS = 5  # of the noise, to see how many come to lie there


@dataclass(frozen=True, kw_only=True)
class Fingerprint(RecordSearch):
    """Link records that are alone with all that no noise changes.

    A fingerprint has the values of every column that leaves without noise (blocks and weights too, as they leave:
    rounded, coded, grouped) and what is missing, top- or bottom-coded in every other, as far as the noise cannot
    change that. Values that the noise of their column spares count too: zeros under multiplicative noise, a range
    without noise. There he is nearly sure: he errs where another value comes to lie there, by its noise or by
    rounding, which the marks show; columns where more than half of the others do are left out.
    `columns` says what he knows of it; without it, all. He claims a link where one of his records and one released
    record have the same fingerprint and nobody else has. `rate` is the floor under every noise, and the `floor` of the
    risk says where these records are and what would remove them.

    On a release its card tells what is masked. On a table before any noise, or a release without a card, `masked`
    names those columns; on a table they are else the key columns that are numbers. Columns exchanged between some
    records count (`swapped=True`): who relies on them errs only where they were, which the marks show.
    `match_blocks` are the blocks by which guessing is counted and the floor is told, all of them unmasked.
    """

    on_tables: ClassVar[bool] = True
    codes_itself: ClassVar[bool] = True

    columns: tuple[str, ...] | None = field(default=None, kw_only=False)
    masked: tuple[str, ...] | None = None
    swapped: bool = True

    def __post_init__(self) -> None:
        problems = self.search_problems()
        for name in ("columns", "masked"):
            problems += frozen_names(self, name)
        if isinstance(self.columns, tuple):
            names = self.columns
            problems += [] if names else ["name at least one column"]
            twice = sorted({n for n in names if names.count(n) > 1})
            problems += [f"column {n!r} is named twice" for n in twice]
        if not isinstance(self.swapped, bool):
            problems.append(f"swapped must be true or false, not {self.swapped!r}")
        raise_all(problems, BadPlan)

    def told(self, masking: Masking) -> Fingerprint:
        """Return the plan with what a release without a card does not say and its links do: what was masked.

        Columns that are the same for every record count; of the others what is missing or coded does, where that is the
        same for every record.
        """
        release, truth = masking.release, masking.truth
        if self.masked is not None or _speaks(release.card) or release.table is truth:
            return self
        found = fates(release.table.schema, release.card)
        wanted = [n for n in found if n in truth.schema and (self.columns is None or n in self.columns)]
        units = units_of(release.table, release.card, planned=False)
        ours = deterministic_table(truth.take(masking.order), release.card, units)
        same = {name: _agreement(name, found[name], ours, release.table) for name in wanted}
        masked = tuple(name for name in wanted if same[name] == PATTERN and found[name].values)
        counted = tuple(name for name in wanted if same[name] is not None)
        if not counted:
            raise BadPlan(
                "no column is the same in release and truth, record by record: are the links right?"
            )
        return replace(self, columns=counted, masked=masked)

    def guess(self, known: IntruderKnowledge, release: Release, order_of: OrderOf) -> Guess:
        """Link the intruder's records with the released ones, without any link."""
        bare = release.table is known.population
        masked, notes = self._masked(release, bare)
        counted, said = _screen_spared_values(
            self._counted(known.targets, release, masked), known.population, release
        )
        units = units_of(release.table, release.card, planned=bare)
        ours = deterministic_table(known.targets, release.card, units)
        theirs = release.table
        if bare:
            theirs = ours if known.targets is theirs else deterministic_table(theirs, release.card, units)
        traits = _reconcile_traits([trait_of(name, fate, ours, theirs) for name, fate in counted.items()])
        prints = fingerprints(traits, self._block_columns(traits, release.table.schema))
        orders = order_of(known.targets, "known"), order_of(release.table, "released")
        return _guess_from_prints(self, prints, orders, notes + said + _notes(counted, release))

    def _masked(self, release: Release, bare: bool) -> tuple[tuple[str, ...], list[Note]]:
        """Return the columns that are masked beside what the card says, and what to say about them."""
        if _speaks(release.card):
            if self.masked is not None:
                raise BadPlan(
                    "the card says what is masked: leave masked out; columns=... says what he knows"
                )
            return (), []
        if self.masked is not None:
            raise_all(release.table.schema.missing_columns(self.masked), BadPlan)
            said = Note("attacks.masked_without_card", {"columns": self.masked})
            return self.masked, [] if bare else [said]
        if not bare:
            raise BadPlan(
                "the release has no card that says what was masked: name those columns in masked=..."
            )
        keys = number_keys(release.table)
        return keys, [Note("attacks.masked_as_planned", {"columns": keys})]

    @property
    def named_columns(self) -> tuple[str, ...] | None:
        """The columns of the fingerprint, as the plan names them (nothing: by the schema)."""
        return self.columns

    def with_nothing_masked(self) -> Fingerprint:
        """Return the plan for a release whose card has no law: nothing is masked where the plan does not say what."""
        return replace(self, masked=()) if self.masked is None else self

    def _counted(self, known: Table, release: Release, masked: tuple[str, ...]) -> dict[str, Fate]:
        """Return the columns that make the fingerprint, with what is sure about each."""
        card, found = release.card, fates(release.table.schema, release.card, masked)
        if self.columns is not None:
            check_fields(self.columns, known, release.table)
            anew = [name for name in self.columns if name not in found]
            raise_all(
                [f"column {n!r} is made anew or dropped: no part of a fingerprint" for n in anew], BadPlan
            )
            found = {name: found[name] for name in self.columns}
        exchanged = () if self.swapped else _swapped_columns(card)
        pairs = (
            (n, comparable(n, fate, known.schema, card)) for n, fate in found.items() if n not in exchanged
        )
        counted = {name: fate for name, fate in pairs if fate is not None}
        if not counted:
            raise BadInput(
                "the intruder's records and the release share no column that could make a fingerprint"
            )
        return counted

    def _block_columns(self, traits: Sequence[Trait], schema: Schema) -> tuple[str, ...]:
        """Return the columns that make blocks: those asked for, else the schema's as far as they are unmasked."""
        clear = [trait.column for trait in traits if trait.what == VALUES]
        asked = self.match_columns(schema)
        hidden = [name for name in asked if name not in clear]
        if hidden and self.match_blocks is not None:
            raise BadPlan(
                f"match_blocks must be columns of the fingerprint that leave unmasked, not {', '.join(hidden)}"
            )
        return tuple(name for name in asked if name in clear)

    def assessed(self, risk: Risk, marked: MarkedGuess) -> Risk:
        """Add the floor: who is alone, in which blocks, and what would remove them."""
        prints, masking = marked.guess.figures["prints"], marked.masking
        return replace(
            risk,
            floor=floor(prints, masking.release.table, risk.targets),
            records=len(masking.truth),
            notes=(*risk.notes, *on_unchanged(masking)),
        )


def floor_of(
    mask: Mask, table: Table, targets_of: Attack | None = None, *, columns: Sequence[str] | None = None
) -> Risk:
    """Return what `Fingerprint` would find in a release by this mask, before any noise is drawn.

    The targets are those of the attack `targets_of` (all records without one, and where it draws a sample of them). He
    knows every unmasked column, or `columns`. Where the mask releases a sample of the records, targets, correct links
    and the floor's figures are those expected over samples, of the targets in the release; all else is about the whole
    file. Where values that the noise spares count,
    the noise of this mask is drawn 5 times by keys of its own: the correct links are their mean, all else is about the
    first draw. Of these alone another scale may leave more or fewer.
    """
    card = mask.card(table)
    plan = Fingerprint(**_targets_of(targets_of), columns=None if columns is None else tuple(columns))
    release = Release(deterministic_table(table, card, units_of(table, card, planned=True)), card)
    masking = Masking(table, table, card, mask, given=(release, np.arange(len(table))))
    risk, guess, _, _ = attack_by(plan, masking)
    if card.subsampled is None:
        return _over_draws(plan, mask, table) if risk.sure_floor.spared else risk
    return _over_samples(risk, guess, card.subsampled)


def _over_samples(risk: Risk, guess: Guess, share: float) -> Risk:
    """Return the floor of a release that has each record with a chance f, expected over the samples.

    Of whom: of the targets in the release, whose number is an expected one too (see `sampled_floor`), unless the
    intruder does not know who they are.
    """
    is_known = risk.attack.response_knowledge
    sampling = SampledBlocks(share, is_known)
    found = sampled_floor(risk.sure_floor, guess.figures["prints"], sampling)
    said = Note("attacks.expected_over_samples", {"share": share, "in_release": is_known})
    targets = max(round(found.targets), 1)
    return replace(
        risk,
        targets=targets,
        expected_correct=targets * found.rate,
        baseline=float(sampling.guessing(guess.candidates).mean()),
        guessing=float(sampling.guessing(guess.ties).mean()),
        floor=found,
        released_share=share,
        among_released=is_known,
        notes=(said, *risk.notes),
    )


def _over_draws(plan: Fingerprint, mask: Mask, table: Table) -> Risk:
    """Return what is found on average over some draws of the noise."""
    from ..masking import apply

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskwellWarning)
        keys = [Key.from_seed(seed) for seed in range(DRAWS)]
        found = [attack_by(plan, apply(mask, table, key=key))[0] for key in keys]
    mean = float(np.mean([one.expected_correct for one in found]))
    said = Note("attacks.mean_of_draws", {"draws": DRAWS})
    return replace(found[0], expected_correct=mean, notes=(said, *found[0].notes))


def _targets_of(attack: Attack | None) -> dict[str, Any]:
    if attack is None:
        return {}
    return {
        "largest_target_block": attack.largest_target_block,
        "target_blocks": attack.target_blocks,
        "targets": attack.targets if isinstance(attack.targets, Quantiles) else None,
        "response_knowledge": attack.response_knowledge,
    }


def _speaks(card: NoiseCard) -> bool:
    """Whether a card says anything about what was done."""
    return bool(card.laws or card.recomputed or card.swapped or card.subsampled is not None)


def _swapped_columns(card: NoiseCard) -> tuple[str, ...]:
    """Return the columns that some records exchanged."""
    return card.swapped.columns if card.swapped is not None and card.swapped.share > 0 else ()


def _agreement(name: str, fate: Fate, ours: Table, theirs: Table) -> str | None:
    """Return what of a column is the same for every record of two tables in one order."""
    trait = trait_of(name, fate, ours, theirs)
    if np.array_equal(trait.known, trait.released):
        return trait.what
    apart = trait_of(name, NOISY, ours, theirs)
    return PATTERN if fate.values and np.array_equal(apart.known, apart.released) else None


def _notes(counted: Mapping[str, Fate], release: Release) -> list[Note]:
    """Say what a steward should know about what counts."""
    said, card = list[Note](), release.card
    unsure = tuple(name for name, fate in counted.items() if OPEN in fate.unsure)
    if unsure:
        said.append(Note("attacks.coded_by_noise", {"columns": unsure}))
    exchanged = tuple(name for name in counted if name in _swapped_columns(card))
    if exchanged and card.swapped is not None:
        figures = {"columns": exchanged, "share": card.swapped.share}
        said.append(Note("attacks.relies_on_exchanged", figures))
    if groups := release.table.schema.with_role("group"):
        said.append(Note("attacks.shared_groups", {"columns": tuple(groups)}))
    return said


def _screen_spared_values(
    counted: dict[str, Fate], truth: Table, release: Release
) -> tuple[dict[str, Fate], list[Note]]:
    """Leave spared values out where too many others come to lie among them; say which count and which do not.

    The intruder sees it: more released values lie there than true ones, of which he knows how they are distributed.
    """
    found, weighed = list[tuple[str, float, float]](), dict(counted)
    for name, fate in counted.items():
        if fate.spared is None or name not in truth.schema or not truth.schema[name].is_number:
            continue
        for spared in (fate.spared, replace(fate.spared, inner=True)):
            true, strays = spared.straying(truth.floats(name), release.table.floats(name))
            if strays <= MOST_STRAYS:
                break
        weighed[name] = replace(fate, spared=spared if strays <= MOST_STRAYS else None)
        found += [(name, true, strays)] if true > 0 else []
    return weighed, on_spared(found)


def _reconcile_traits(traits: list[Trait]) -> list[Trait]:
    """Let pairs that are alone by what is sure agree on spared values too, so that no stray value parts them."""
    if not any(trait.what == SPARED and trait.known is not trait.released for trait in traits):
        return traits
    pairs = fingerprints([_sure(trait) for trait in traits], ()).pairs
    return [_align_pair_codes(trait, pairs) if trait.what == SPARED else trait for trait in traits]


def _sure(trait: Trait) -> Trait:
    if trait.what != SPARED or trait.pattern is None:
        return trait
    return replace(trait, known=trait.pattern[0], released=trait.pattern[1])


def _align_pair_codes(trait: Trait, pairs: tuple[Ints, Ints]) -> Trait:
    released = trait.released.copy()
    released[pairs[1]] = trait.known[pairs[0]]
    return replace(trait, released=released)


def fingerprints(traits: Sequence[Trait], block_columns: tuple[str, ...]) -> Prints:
    """Number the fingerprints of both sides alike, and find the pairs that are alone with theirs."""
    known, released = _combination_codes(traits, traits)
    count = 1 + int(max(known.max(), released.max()))
    ours, theirs = (np.bincount(side, minlength=count) for side in (known, released))
    alone = (ours == 1) & (theirs == 1)
    places = []
    for side in (known, released):
        place = np.full(count, NOBODY, np.int64)
        place[side] = np.arange(len(side))
        places.append(place[alone])
    blocks = _combination_codes([trait for trait in traits if trait.column in block_columns], traits)
    return Prints(tuple(traits), (known, released), (places[0], places[1]), block_columns, blocks)


def _combination_codes(some: Sequence[Trait], traits: Sequence[Trait]) -> tuple[Ints, Ints]:
    """Number the combinations of some traits alike on both sides."""
    cut, total = len(traits[0].known), len(traits[0].known) + len(traits[0].released)
    speaking = [trait for trait in some if trait.count > 1]
    if all(trait.known is trait.released for trait in traits):
        codes = joint_codes(((trait.known, trait.count) for trait in speaking), cut)
        return codes, codes
    codes = joint_codes(((np.concatenate([t.known, t.released]), t.count) for t in speaking), total)
    return codes[:cut], codes[cut:]


def _guess_from_prints(
    plan: Fingerprint, prints: Prints, orders: tuple[Ints, Ints], notes: Sequence[Note]
) -> Guess:
    """Put the links into the form in which all intruders answer; of records alike the first in keyed order is taken."""
    near, far = (0, 1) if plan.to_masked else (1, 0)
    here, there = prints.numbers[near], prints.numbers[far]
    count = 1 + int(max(here.max(), there.max()))
    alike, own = (np.bincount(side, minlength=count)[here] for side in (there, here))
    first = np.full(count, NOBODY, np.int64)
    first[there[orders[far][::-1]]] = orders[far][::-1]
    group = np.where(alike > 0, np.maximum(alike, own), 0)
    blocks, block = Blocks(*prints.blocks, orders), prints.blocks
    return Guess(
        searcher=np.arange(len(here)),
        found=first[here],
        score=np.where(alike > 0, 1.0 / np.maximum(alike, 1), np.nan),
        ties=alike,
        candidates=blocks.sizes(released=not plan.to_masked),
        claimed=group == 1,
        kind=np.where(group > 0, np.searchsorted(LARGEST, group), len(KINDS) - 1),
        kinds=KINDS,
        is_tied=lambda rows, found: here[rows] == there[found],
        in_block=lambda rows, found: block[near][rows] == block[far][found],
        partners=lambda known: _partners(prints, blocks, known),
        to_masked=plan.to_masked,
        columns={"own_alike": own},
        figures={"fields": _fields(prints), "prints": prints},
        notes=tuple(notes),
    )


def _fields(prints: Prints) -> tuple[str, ...]:
    """Return the columns that tell records of a block apart."""
    return tuple(t.column for t in prints.traits if t.count > 1 and t.column not in prints.block_columns)


def _partners(prints: Prints, blocks: Blocks, known: int) -> Ints:
    """Return the released records of a block with another fingerprint, those that share most traits first."""
    others = blocks.released_with(known)
    others = others[prints.numbers[1][others] != prints.numbers[0][known]]
    shared = np.zeros(len(others), np.int64)
    for trait in prints.traits:
        shared += trait.released[others] == trait.known[known]
    return np.asarray(others[np.argsort(-shared, kind="stable")])
