"""Attacks on a release whose records exchanged values: "the record" and "the values" of a target are two questions.

After a swap a released row carries, in the exchanged columns E, the values of a donor, and in the rest R (all else that
leaves) those of its own record. An intruder who finds the row whose R is the target's has found the *record*; one who
finds the row whose E is the target's has found the *values*. They are two attacks, each with the best of several
guesses (own derivation of the mixtures):

- by R alone, and by E alone: no swap changes what the one finds of the record and the other of the values;
- by both, mixed with the share s of records that were exchanged, as the card tells it. For the record the density of a
  row is p(z_R | x) [(1 - s) p(z_E | x) + s f(z_E)]; for the values p(z_E | x) [(1 - s) p(z_R | x) + s f(z_R)];
- by both, with s the share of the records at risk that were exchanged, and with s = 0.9: swaps are directed, so that
  targets that can be found were exchanged more often than the card's share.

Which guess is best is seen by the links, which no intruder has: the rate is that of one who chooses luckily, and so a
little high rather than low. Where blocks are too large to be matched, the bound on the ceiling is that of the answers
by both, the larger of the two questions; it supposes exchanges at random in the card's share.

An exchange between two records whose R is the same, value by value, only renames their rows: each then has the other's
whole record, and is marked so. Else a column that is nearly constant, or a coin, would hide who is found as surely as
one that tells every record apart. One guess marked twice would understate both questions: where R is drowned in noise,
an intruder who goes by both misses the values that E alone gives away. A tolerance is held against the larger of the
two rates, unless the steward exempted the values. Chosen by `attack_run` for every masking with an exchange.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..card import NoiseCard, SwapParameters, block_numbers
from ..errors import MaskwellError
from ..masking.hidden_cards import is_withheld
from ..masking.results import Masking, Release
from ..masking.swap_record import Exchange, rest_columns
from .answers import Answer, AttackResult, answer_of
from .linkage.em import Fixed
from .linkage.plan import Linkage
from .nearest.plan import NearestRecord
from .protocol import MOVED, Attack, Ints

if TYPE_CHECKING:
    from ..table import Table
    from .bayes.matching_posterior.ceiling_bound import Ceiling
    from .risk import Risk

BOTH, REST, EXCHANGED = "both", "the rest of the row", "the exchanged columns"
FROM_DONORS = "both, from where the exchanged columns stand"
SURELY = 0.99  # of a larger share nothing would be left that stayed
DIRECTED = "both, as if most had been exchanged"
DIRECTED_FROM_DONORS = "both, as if most had been, from where the exchanged columns stand"
# The share of those whom an intruder would find that were exchanged: about what directed swaps leave
MOST = 0.9
MOSTLY = "both, as if nine in ten had been exchanged"
MOSTLY_FROM_DONORS = "both, as if nine in ten had been, from where the exchanged columns stand"
APART = 0.05  # shares that differ by less lead to the same links
HIS_RECORD = (BOTH, DIRECTED, MOSTLY, EXCHANGED, REST)
HIS_VALUES = (FROM_DONORS, DIRECTED_FROM_DONORS, MOSTLY_FROM_DONORS, BOTH, DIRECTED, MOSTLY, EXCHANGED, REST)
LISTS = ("fields", "match_blocks", "columns", "masked")  # options of plans that name columns


@dataclass(frozen=True, slots=True)
class SwapView:
    """What of a release an intruder goes by: a masking with these columns alone, and his plan for them."""

    by: str
    plan: Attack
    masking: Masking


def attack_exchanged(
    plan: Attack, masking: Masking, targets: Table | None, shared: dict[Any, Any], among: Ints | None = None
) -> AttackResult:
    """Attack a release with exchanged records for his record and for his values; return the worse of the two.

    The `Risk` has both, `his_record` and `his_values`. Where the values are exempt it is that of the record.
    """
    exchange = masking.exchange
    assert exchange is not None
    answers = _answers(plan, masking, targets, shared, among)
    donors = exchange.donors(masking.order)
    rest = rest_columns(masking.release.table, exchange.columns, exchange.blocks)
    owners = _owners(masking, donors, rest)
    record = _best(answers, HIS_RECORD, owners, _foreign(exchange, masking, exchange.columns))
    values = _best(answers, HIS_VALUES, donors, _foreign(exchange, masking, rest))
    exempt = exchange.exempt if is_exempt(exchange, record.risk) else None
    counted = [record] if exempt else [record, values]
    chosen = max(counted, key=lambda one: one.risk.rate)
    risk = replace(
        chosen.risk,
        attack=plan,
        exempt=exempt,
        his_record=record.risk,
        his_values=values.risk,
        ceiling=highest([one.risk.ceiling for one in counted]),
    )
    return chosen._replace(risk=risk)


def highest(bounds: Iterable[Ceiling | None]) -> Ceiling | None:
    """Return the bound with the highest upper end, of those that there are."""
    return max((one for one in bounds if one is not None), key=lambda one: one.high, default=None)


def _owners(masking: Masking, donors: Ints, rest: tuple[str, ...]) -> Ints:
    """Return whose record each released row is: its own one's, or the donor's where the rest of both is the same."""
    kinds = block_numbers(masking.release.table, rest)
    place = np.full(len(masking.truth), -1, np.int64)
    place[masking.order] = np.arange(len(masking.order))
    return np.where(kinds == kinds[place[donors]], donors, masking.order)


def is_exempt(exchange: Exchange, risk: Risk) -> bool:
    """Whether finding the exchanged values does not count: by the plan, and where this intruder knows them anyway."""
    return exchange.exempt is not None and (not risk.fields or set(exchange.columns) <= set(risk.fields))


def found_by_part(plan: Attack, masking: Masking, columns: tuple[str, ...], by: str) -> Risk | None:
    """Return what an intruder finds by the columns that a swap would move, or by the rest, alone.

    No swap changes that. Nothing where he cannot work by them.
    """
    blocks = tuple(plan.match_columns(masking.release.table.schema))
    view = _part(plan, masking, columns, blocks, by)
    try:
        return None if view is None else answer_of(view.plan, view.masking, None, {}).found().risk
    except MaskwellError:
        return None


def _answers(
    plan: Attack, masking: Masking, targets: Table | None, shared: dict[Any, Any], among: Ints | None
) -> dict[str, Answer]:
    """Let the intruder answer by both, by the exchanged columns, and by the rest, as far as he can work by each."""
    whole = replace(masking, exchange=None, given=(masking.release, masking.order))
    answers = {BOTH: answer_of(plan, whole, targets, shared, among)}
    for view in _views(plan, masking, answers[BOTH]):
        own = shared.setdefault(("view", view.by), _carried_by_all(shared, view.by))
        try:
            answers[view.by] = answer_of(view.plan, view.masking, targets, own, among)
            if view.by != FROM_DONORS:  # by a part of what he has, or by another share, nothing is bounded
                answers[view.by] = _without_bound(answers[view.by])
        except MaskwellError:  # by these columns alone he has no field to compare, or no law to go by
            continue
    return answers


def _carried_by_all(shared: Mapping[Any, Any], by: str) -> dict[Any, Any]:
    """Return what was computed already and does not depend on the share: the law of what exchanged rows carry."""
    if by in (DIRECTED, MOSTLY):
        same: Mapping[Any, Any] = shared
    elif by in (DIRECTED_FROM_DONORS, MOSTLY_FROM_DONORS):
        same = shared.get(("view", FROM_DONORS), {})
    else:
        return {}
    return {key: value for key, value in same.items() if isinstance(key, tuple) and key[0] == MOVED}


def _without_bound(answer: Answer) -> Answer:
    """Return an answer that leaves nothing for a bound on the ceiling."""
    figures = {name: value for name, value in answer.guess.figures.items() if name != "bound"}
    return replace(answer, guess=replace(answer.guess, figures=figures))


def _views(plan: Attack, masking: Masking, whole: Answer) -> Iterable[SwapView]:
    """Return the other ways to look at the release."""
    exchange = masking.exchange
    assert exchange is not None
    compared = set(whole.guess.figures.get("fields", ()))
    relied_on = plan.match_columns(masking.release.table.schema)
    rest = rest_columns(masking.release.table, exchange.columns, exchange.blocks)
    compares_both = not compared or not (compared | set(relied_on)).isdisjoint(rest)
    informed = plan.needs_law
    if compares_both or informed:
        parts = [EXCHANGED] if plan.swapped else []  # a fingerprint may leave them out
        for by in [*parts, REST] if compares_both else parts:
            if view := _part(plan, masking, exchange.columns, exchange.blocks, by):
                yield view
    told = informed and plan.prior is None  # who has no card does not know the share
    if not told or not compares_both:
        return
    views = {FROM_DONORS: _from_donors(plan, masking, rest)}
    if not plan.helpers:  # whole matchings take minutes
        share = MOST if exchange.at_risk_share is None else min(exchange.at_risk_share, SURELY)
        names = {(DIRECTED, DIRECTED_FROM_DONORS): share}
        names |= {(MOSTLY, MOSTLY_FROM_DONORS): MOST} if abs(share - MOST) > APART else {}
        for (both, donors), supposed in names.items():
            views[both] = _with_share(SwapView(BOTH, plan, masking), both, supposed)
            views[donors] = _with_share(views[FROM_DONORS], donors, supposed)
    yield from (view for view in views.values() if view is not None)


def _with_share(view: SwapView | None, by: str, share: float) -> SwapView | None:
    """Look at the same as if so large a share had been exchanged, where the card says that some were."""
    if view is None or is_withheld(view.masking.release.card) or view.masking.release.card.swapped is None:
        return None
    cards = [
        replace(card, swapped=replace(card.swapped, share=max(share, card.swapped.share)))
        for card in (view.masking.card, view.masking.release.card)
        if card.swapped is not None
    ]
    given = Release(view.masking.release.table, cards[-1]), view.masking.order
    return SwapView(by, view.plan, replace(view.masking, card=cards[0], given=given, exchange=None))


def _part(
    plan: Attack, masking: Masking, columns: tuple[str, ...], blocks: tuple[str, ...], by: str
) -> SwapView | None:
    """Look at the exchanged columns alone, or at the rest alone, within the blocks of the swap."""
    table = masking.release.table
    left_out = columns if by == REST else rest_columns(table, columns, blocks)
    names = [name for name in table.names if name not in left_out]
    own = _restrict_plan(plan, names)
    if own is None:
        return None
    cards = [_card_on(card, names) for card in (masking.card, masking.release.card)]
    if not cards[1].laws:
        own = own.with_nothing_masked()
    given = Release(table.select(names), cards[1]), masking.order
    return SwapView(by, own, replace(masking, card=cards[0], given=given, exchange=None))


def _from_donors(plan: Attack, masking: Masking, rest: tuple[str, ...]) -> SwapView | None:
    """Look at all columns from where the exchanged ones stand: to them it is the rest that comes from another."""
    exchange, card = masking.exchange, masking.release.card
    assert exchange is not None
    if card.swapped is None or is_withheld(card):
        return None
    blocks = tuple(
        name for name in masking.release.table.schema.with_role("block") if name in exchange.blocks
    )
    own = replace(plan, match_blocks=blocks if plan.match_blocks is None else exchange.blocks)
    swapped = replace(card.swapped, columns=rest)
    cards = [replace(one, swapped=swapped) for one in (masking.card, card)]
    given = Release(masking.release.table, cards[1]), masking.order
    return SwapView(FROM_DONORS, own, replace(masking, card=cards[0], given=given, exchange=None))


def _restrict_plan(plan: Attack, names: Iterable[str]) -> Attack | None:
    """Return a plan that speaks of some columns only; nothing where it would compare none."""
    there, changes = set(names), dict[str, Any]()
    options = {option.name for option in fields(plan)}
    for name in options & set(LISTS):
        given = getattr(plan, name)
        if given is not None:
            changes[name] = tuple(one for one in given if one in there)
            if not changes[name] and name in ("fields", "columns"):
                return None
    if isinstance(plan, Linkage):
        changes["rules"] = tuple((name, rule) for name, rule in dict(plan.rules).items() if name in there)
    if isinstance(plan, Linkage | NearestRecord):
        changes["weights"] = _weights_on(plan, there)
    return replace(plan, **changes)


def _weights_on(plan: Linkage | NearestRecord, there: set[str]) -> Any:
    """Return the weights of the fields that are left."""
    weights: Any = plan.weights
    at = [i for i, name in enumerate(plan.fields or ()) if name in there]
    if isinstance(weights, tuple) and weights and isinstance(weights[0][0], str):
        return tuple(pair for pair in weights if pair[0] in there) or None
    if isinstance(weights, tuple) and weights:
        return tuple(tuple(weights[i][j] for j in at) for i in at)
    if isinstance(weights, Fixed) and isinstance(weights.u, tuple | list) and at:
        return replace(weights, m=_some(weights.m, at), u=_some(weights.u, at))
    return weights


def _some(given: Any, at: list[int]) -> Any:
    return tuple(given[i] for i in at) if isinstance(given, tuple | list) else given


def _card_on(card: NoiseCard, names: Iterable[str]) -> NoiseCard:
    """Return what a card says of some columns, none of which came from elsewhere."""
    there = set(names)
    laws = tuple(law for law in card.laws if set(law.columns) <= there)
    sums = tuple(one for one in card.recomputed if {one[0], *dict(one[1])} <= there)
    return card if is_withheld(card) else replace(card, laws=laws, recomputed=sums, swapped=None)


def _best(
    answers: Mapping[str, Answer], wanted: Iterable[str], owners: Ints | None, foreign: SwapParameters
) -> AttackResult:
    """Mark the answers by whose rows, or by whose values, they found, and return the best."""
    able = [by for by in wanted if by in answers]
    best = max(able, key=lambda by: answers[by].correct(owners))
    found = answers[best].found(owners, foreign)
    whole = able[0]  # by both, as the card says: what he has in all
    bound = found.risk.ceiling
    if best != whole and answers[whole].guess.figures.get("bound") is not None:
        bound = highest([bound, answers[whole].found(owners, foreign).risk.ceiling])
    return found._replace(
        risk=replace(found.risk, by=best if best in (EXCHANGED, REST) else BOTH, ceiling=bound)
    )


def _foreign(exchange: Exchange, masking: Masking, columns: tuple[str, ...]) -> SwapParameters:
    """Say which columns a row does not have from the one who owns it in the question asked."""
    told = masking.release.card.swapped
    share = exchange.pairs.size / len(masking.order) if told is None else told.share
    return SwapParameters(share, columns, exchange.blocks)
