"""All matchings of few known units with the records of their block, at one value of the noise parameters.

    sum over matchings of (product of their pairs' weights) x (weight of the number of pairs), and each pair's share

The units of a job (those of one group in one block) are bits of a subset; the records of the block are met one after
the other, each with one of the units or with none. That is 2^units x records steps, of the order of Ryser (1963), with
positive terms only, so that nothing cancels. Weights are those of the unit's row divided by the largest, so that sums
need no logarithms. Where even so they vanish, a matching is taken to be impossible.
Chosen by `attacks/bayes/matching_posterior/enumeration`; the sum replaces (6) of Trottini, Fienberg, Makov and Meyer
(2003), with the posterior weight of each matching in place of its prior weight.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from . import announce

announce(__file__)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
LEAST = 1e-12  # of a record's density is left to others, at least: less is rounding
NOBODYS = -1e4  # log density of a record that no other unit can have
NEGLIGIBLE = 30.0  # a node so far below the largest, in the log, adds nothing


class Jobs(NamedTuple):
    """The jobs of all groups, group after group, and their units: who they are, and which records their blocks have.

    `others` counts the true records of the block that the group does not know, `log_sizes` has for every job from
    `size_from` on the log weight of each number of pairs. `is_true` marks units whose own record is a true one.
    """

    group_from: Ints
    unit_from: Ints
    units: Ints
    is_true: Bools
    first: Ints
    last: Ints
    others: Floats
    size_from: Ints
    log_sizes: Floats


class NodeView(NamedTuple):
    """Log kernels at a node: pairs of units (`row[a] + i`), of the true records that are theirs, and of all together.

    `log_all` has the log of the sum of the kernels of all true records of the block (empty: `given` has log f(z)),
    `own` the log weight of each unit without a record.
    """

    logs: Floats
    twins: Floats
    row: Ints
    log_all: Floats
    given: Floats
    own: Floats
    log_prior: float


class Tally(NamedTuple):
    """What has been added up: for each group the log of the largest weight and the sum, for each pair its share."""

    top: Floats
    total: Floats
    pairs: Floats


class MatchingRoom(NamedTuple):
    """Space to work in."""

    weight: Floats
    top: Floats
    free: Floats
    stages: Floats
    size: Floats
    behind: Floats
    next: Floats


def room_for(jobs: Jobs) -> MatchingRoom:
    """Return space for the largest job."""
    few = int(np.max(np.diff(jobs.unit_from), initial=1))
    many = int(np.max(jobs.last - jobs.first, initial=1))
    subsets = 1 << few
    return MatchingRoom(
        np.empty((few, many)), np.empty(few), np.empty(many), np.empty((many + 1, subsets)),
        np.empty(subsets), np.empty(subsets), np.empty(subsets),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _fill_free(jobs: Jobs, job: int, view: NodeView, free: Floats) -> float:
    """Put the log density of every record under the others into `free`; return their sum."""
    first, total = jobs.first[job], 0.0
    for i in range(jobs.last[job] - first):
        record = first + i
        if len(view.log_all) == 0:
            free[i] = view.given[record]
        elif jobs.others[job] == 0 or view.log_all[record] == -math.inf:
            free[i] = 0.0 if jobs.others[job] == 0 else NOBODYS
        else:
            rest = 1.0
            for at in range(jobs.unit_from[job], jobs.unit_from[job + 1]):
                if jobs.is_true[at]:
                    rest -= math.exp(view.twins[view.row[jobs.units[at]] + record] - view.log_all[record])
            share = math.log(max(rest, LEAST) / jobs.others[job])
            free[i] = max(view.log_all[record] + share, NOBODYS)
        total += free[i]
    return total


@njit(cache=True, nogil=True)
def _fill_weights(jobs: Jobs, job: int, view: NodeView, room: MatchingRoom) -> None:
    """Put the weights of all pairs into the room, and those of the subsets of units that have a record."""
    first, many, begin = jobs.first[job], jobs.last[job] - jobs.first[job], jobs.unit_from[job]
    few = jobs.unit_from[job + 1] - begin
    for a in range(few):
        unit, top = jobs.units[begin + a], -math.inf
        for i in range(many):
            log = view.logs[view.row[unit] + first + i] - room.free[i] - view.own[unit]
            room.weight[a, i] = log
            top = max(top, log)
        room.top[a] = top if top > -math.inf else 0.0
        for i in range(many):
            room.weight[a, i] = math.exp(room.weight[a, i] - room.top[a])
    room.size[0] = 0.0
    for subset in range(1, 1 << few):
        bits, logs = 0, 0.0
        for a in range(few):
            if subset >> a & 1:
                bits += 1
                logs += room.top[a]
        weight = jobs.log_sizes[jobs.size_from[job] + bits] if bits <= many else -math.inf
        room.size[subset] = logs + weight
    room.size[0] = jobs.log_sizes[jobs.size_from[job]]


@njit(cache=True, nogil=True)
def _meet(few: int, many: int, room: MatchingRoom) -> tuple[float, float]:
    """Meet the records one after the other; return the largest log weight of a subset, and the sum relative to it."""
    subsets = 1 << few
    room.stages[0, :subsets] = 0.0
    room.stages[0, 0] = 1.0
    for i in range(many):
        before, after = room.stages[i], room.stages[i + 1]
        for subset in range(subsets):
            after[subset] = before[subset]
        for a in range(few):
            weight, bit = room.weight[a, i], 1 << a
            for subset in range(subsets if weight > 0.0 else 0):
                if subset & bit:
                    after[subset] += before[subset ^ bit] * weight
    top = -math.inf
    for subset in range(subsets):
        if room.stages[many, subset] > 0.0:
            top = max(top, room.size[subset])
    total = 0.0
    for subset in range(subsets):
        room.behind[subset] = math.exp(room.size[subset] - top) if top > -math.inf else 0.0
        total += room.stages[many, subset] * room.behind[subset]
    return top, total


@njit(cache=True, nogil=True)
def _log_sum(jobs: Jobs, job: int, view: NodeView, room: MatchingRoom) -> float:
    """Return the log weight of a block: of all its matchings together, and of its records."""
    free = _fill_free(jobs, job, view, room.free)
    _fill_weights(jobs, job, view, room)
    few, many = jobs.unit_from[job + 1] - jobs.unit_from[job], jobs.last[job] - jobs.first[job]
    top, total = _meet(few, many, room)
    return free + top + math.log(total) if total > 0.0 else -math.inf


@njit(cache=True, nogil=True)
def _add_pairs(
    jobs: Jobs, job: int, view: NodeView, room: MatchingRoom, weight: float, pairs: Floats
) -> None:
    """Add the shares of all pairs of a block, times a weight: the records are met again, from the last to the first."""
    begin, first, many = jobs.unit_from[job], jobs.first[job], jobs.last[job] - jobs.first[job]
    few = jobs.unit_from[job + 1] - begin
    whole = 0.0
    for subset in range(1 << few):
        whole += room.stages[many, subset] * room.behind[subset]
    behind, new = room.behind, room.next
    for i in range(many - 1, -1, -1):
        for subset in range(1 << few):
            new[subset] = behind[subset]
        for a in range(few):
            own, bit, share = room.weight[a, i], 1 << a, 0.0
            for subset in range(1 << few if own > 0.0 else 0):
                if not subset & bit:
                    step = own * behind[subset | bit]
                    new[subset] += step
                    share += room.stages[i, subset] * step
            pairs[view.row[jobs.units[begin + a]] + first + i] += weight * share / whole
        behind, new = new, behind


@njit(cache=True, nogil=True)
def _scale_pairs(jobs: Jobs, group: int, view: NodeView, factor: float, pairs: Floats) -> None:
    """Multiply what has been added up for the pairs of a group."""
    for job in range(jobs.group_from[group], jobs.group_from[group + 1]):
        for at in range(jobs.unit_from[job], jobs.unit_from[job + 1]):
            row = view.row[jobs.units[at]]
            for record in range(jobs.first[job], jobs.last[job]):
                pairs[row + record] *= factor


@njit(cache=True, nogil=True)
def weigh_node(jobs: Jobs, view: NodeView, room: MatchingRoom, groups: int, out: Floats) -> None:
    """Put the log weights of a node for the first groups into `out`."""
    for group in range(groups):
        out[group] = view.log_prior
        for job in range(jobs.group_from[group], jobs.group_from[group + 1]):
            out[group] += _log_sum(jobs, job, view, room)


@njit(cache=True, nogil=True)
def add_node(jobs: Jobs, view: NodeView, room: MatchingRoom, tally: Tally, out: Floats) -> None:
    """Add a node to all groups, and put its log weights into `out`."""
    for group in range(len(out)):
        out[group] = view.log_prior
        begin, end = jobs.group_from[group], jobs.group_from[group + 1]
        for job in range(begin, end):
            out[group] += _log_sum(jobs, job, view, room)
        if not out[group] > tally.top[group] - NEGLIGIBLE:
            continue
        if out[group] > tally.top[group]:
            factor = math.exp(tally.top[group] - out[group])
            tally.top[group] = out[group]
            tally.total[group] *= factor
            _scale_pairs(jobs, group, view, factor, tally.pairs)
        weight = math.exp(out[group] - tally.top[group])
        tally.total[group] += weight
        for job in range(begin, end):
            if end - begin > 1:
                _log_sum(jobs, job, view, room)
            _add_pairs(jobs, job, view, room, weight, tally.pairs)
