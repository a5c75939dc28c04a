"""Matchings of a block in pieces that do not depend on each other, or only through how many pairs they have.

Pieces are the connected components of the graph of pairs that some whole matching has: a pair has one if and only if
its ends are strongly connected by exchanges from a matching at hand (Dulmage and Mendelsohn 1958). Where the number of
pairs is not fixed, pieces are coupled by the polynomials of their sums by size: the weight of m pairs is
(N - K)! / (N - K - n + m)!. A piece is summed over exactly (`kernels.permanent`) up to MOST_STATES, else sampled.
Used by `matchings`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from ....errors import BadInput
from ....table import Floats
from ...protocol import NOBODY, Bools, Ints

MOST_STATES = 1_200_000  # subsets x those met: up to 16 with 16, or 10 with 1,000


@dataclass(frozen=True, slots=True)
class Piece:
    """Known units and released records of a block that can be each other's, and weigh nothing with others.

    `units` is N of the piece, `log_weights` the log weight of each number of pairs.
    """

    known: Ints
    released: Ints
    logs: Floats
    units: int
    log_weights: Floats

    @property
    def is_small(self) -> bool:
        """Whether its matchings can be counted."""
        few, many = sorted(map(int, self.logs.shape))
        return few < 24 and (many + 1) * 2**few <= MOST_STATES

    def chances(self) -> tuple[Floats, Floats]:
        """Return the exact probability of each pair, and of each unit's having no record."""
        from ....kernels.permanent import pair_chances

        wide = self.logs.shape[0] <= self.logs.shape[1]
        chances = pair_chances(np.ascontiguousarray(self.logs if wide else self.logs.T), self.log_weights)
        pairs = chances if wide else chances.T
        return pairs, np.clip(1.0 - pairs.sum(axis=1), 0.0, 1.0)

    def log_sizes(self) -> Floats:
        """Return for each number of pairs the log of the summed weights of all matchings with so many."""
        from ....kernels.permanent import log_sizes

        wide = self.logs.shape[0] <= self.logs.shape[1]
        return log_sizes(np.ascontiguousarray(self.logs if wide else self.logs.T))


def pieces_of(logs: Floats, units: int) -> list[Piece]:
    """Return the pieces of a block; what belongs to none of them has no partner.

    Where all known units were released, or all released are known, the number of pairs is fixed and pieces are
    independent. Else their numbers of pairs are weighed together, if all pieces can be counted.
    """
    known, released = logs.shape
    weights = size_weights(known, released, units)
    logs = only_possible(logs, units)
    parts = _parts(logs)
    if units in (known, released):
        return [_alone(logs, part, units == released) for part in parts]
    pieces = [_piece(logs, part, units, np.empty(0)) for part in parts]
    if all(piece.is_small for piece in pieces):
        return _coupled_pieces(pieces, weights)
    return [_piece(logs, (np.arange(known), np.arange(released)), units, weights)]


def size_weights(known: int, released: int, units: int) -> Floats:
    """Return log (N - K)! / (N - K - n + m)! for each number m of pairs: what the others' records add."""
    from scipy.special import gammaln

    left = units - known - released + np.arange(min(known, released) + 1.0)
    return np.where(left >= 0, gammaln(units - known + 1.0) - gammaln(np.maximum(left, 0) + 1.0), -inf)


def _piece(logs: Floats, part: tuple[Ints, Ints], units: int, weights: Floats) -> Piece:
    return Piece(*part, np.ascontiguousarray(logs[np.ix_(*part)]), units, weights)


def _alone(logs: Floats, part: tuple[Ints, Ints], all_released: bool) -> Piece:
    """Return a piece in which every known unit has a record, or every record a known unit."""
    weights = np.full(min(map(len, part)) + 1, -inf)
    weights[-1] = 0.0
    return _piece(logs, part, len(part[1] if all_released else part[0]), weights)


def _coupled_pieces(pieces: Sequence[Piece], weights: Floats) -> list[Piece]:
    """Weigh each piece's number of pairs by what all others make of the rest."""
    if not pieces:  # no known unit can have any of the records
        return []
    sizes = [piece.log_sizes() for piece in pieces]
    after = [weights]
    for own in reversed(sizes[1:]):
        after.append(_log_sums(own, after[-1]))
    before, out = np.zeros(1), []
    for piece, own, rest in zip(pieces, sizes, reversed(after), strict=True):
        mine = [_log_sums(before, rest[m:])[0] if m < len(rest) else -inf for m in range(len(own))]
        out.append(replace(piece, log_weights=np.array(mine)))
        before = _log_product(before, own)
    return out


def _log_sums(own: Floats, rest: Floats) -> Floats:
    """Return log of the sum over k of own[k] rest[m + k], for each m."""
    out = np.full(len(rest), -inf)
    for k in range(min(len(own), len(rest))):
        out[: len(rest) - k] = np.logaddexp(out[: len(rest) - k], own[k] + rest[k:])
    return out


def _log_product(first: Floats, second: Floats) -> Floats:
    """Return the product of two polynomials, all on the log scale."""
    out = np.full(len(first) + len(second) - 1, -inf)
    for k in range(len(second)):
        here = slice(k, k + len(first))
        out[here] = np.logaddexp(out[here], first + second[k])
    return out


# Which pairs are possible.


def best_match(scores: Floats, units: int, none: Floats | float = 0.0) -> Ints:
    """Return the matching of the largest total score, -1 for no record; a unit with none scores `none`."""
    from scipy.optimize import linear_sum_assignment

    known, released = scores.shape
    rest = np.broadcast_to(none, (min(known, units - released), known)).T
    try:
        _, found = linear_sum_assignment(np.column_stack([scores, rest]), maximize=True)
    except ValueError:
        raise BadInput(
            "no one-to-one assignment of a block's records to its units is possible under the law: is it the card of "
            "this release, and are the known records true ones of the same block?"
        ) from None
    return np.where(found < released, found, NOBODY)


def only_possible(logs: Floats, units: int) -> Floats:
    """Return log weights where pairs that no whole matching has weigh nothing."""
    possible = logs > -inf
    if possible.all():
        return logs
    match = best_match(np.where(possible, 0.0, -inf), units)
    return np.where(possible & _exchangeable(possible, match, units), logs, -inf)


def _exchangeable(possible: Bools, match: Ints, units: int) -> Bools:
    """Tell which pairs some exchange in a circle leads to from a matching: those strongly connected with the owner.

    A unit points to all whose place it can take; the last stands for the units that are not known.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    known, released = possible.shape
    has = match >= 0
    owner = np.full(released, known)
    owner[match[has]] = np.flatnonzero(has)
    takes = np.ones((known + 1, known + 1), bool)
    takes[:known, :known][:, has] = possible[:, match[has]]
    others_unreleased = units - released - int((~has).sum()) > 0
    takes[:known, known] = others_unreleased | possible[:, owner == known].any(axis=1)
    if units == known:
        takes[known] = False
    _, label = connected_components(csr_array(takes), directed=True, connection="strong")
    return np.asarray(label[:known, None] == label[owner][None, :])


def _parts(logs: Floats) -> list[tuple[Ints, Ints]]:
    """Return the known units and the records of each connected part, parts without a pair left out."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    known, released = logs.shape
    rows, columns = np.nonzero(logs > -inf)
    if len(rows) == logs.size:
        return [(np.arange(known), np.arange(released))] if logs.size else []
    edges = coo_array((np.ones(len(rows), bool), (rows, known + columns)), shape=(known + released,) * 2)
    _, label = connected_components(edges, directed=False)
    return [
        (np.flatnonzero(label[:known] == one), np.flatnonzero(label[known:] == one))
        for one in np.unique(label[rows])
    ]
