"""What an outsider takes for f(z), the density of released records: one normal law for all amounts, or one given.

    log f(z) = log share of z's cell in its block + log N(z_inside; mean, C) P(the others beyond) - log P(inside limits)

cells by statuses, categories and what left in clear (see `log_gaussian`). Moments are those of the release, fitted to
limits by `censored_normal`, and no direction of C has less variance than the noise. Own derivation; it stands for the
model (1) of Trottini, Fienberg, Makov and Meyer (2003) that users are told. Chosen by `marginal="gaussian"`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....card import NoiseCard
from ....errors import BadInput, BadPlan
from ....laws import Additive, Outlet, SkewedBias
from ....laws.noise import conditional_sds
from ....laws.transform import FINE, ReleasedCell
from ....schema import BOTTOM_CODED, OPEN, TOP_CODED
from ....table import Floats, Table
from ...candidate_scores import members
from ...joint_codes import block_codes, joint_codes
from ...pair_density import laws_on
from ...protocol import Bools, Ints
from .censored_normal import ABOVE, BELOW, SEEN, UNSEEN, Partly

# A unit u up to this share of a column's sd given the others needs no interval here: the normal density at the
# multiples of u, times u, sums to 1 within 1e-16 over all of them, and within 0.003 between limits.
FINE_HERE = 0.5
SINGULAR = 1e-12  # eigenvalues of correlations below this are rounding error, as the laws have it
FAR_IN_SDS = 8.0  # a limit as far away as this cuts nothing off
Codes = tuple[Ints, int]  # numbers from 0 on, and how many there are
MOST_BOUNDED = 24  # the most coordinates of one rectangle
CLOSED = UNSEEN  # the place of a missing value; other statuses follow


def log_given(marginal: Callable[[Table], Any], released: Table) -> Floats:
    """Return the log f(z) that a user's own function has for each released record, checked."""
    logs = np.asarray(marginal(released))
    if logs.shape != (len(released),) or logs.dtype.kind not in "fiu":
        raise BadPlan(
            f"the marginal must return one log density for each of the {len(released):,} released records, not an "
            f"array of shape {logs.shape} and type {logs.dtype}"
        )
    wrong = np.flatnonzero(~np.isfinite(logs))
    if len(wrong):
        raise BadPlan(
            f"the marginal gives no finite log density to {len(wrong):,} released records (the first is number "
            f"{wrong[0] + 1:,}): every record that was released has a density above 0"
        )
    return logs.astype(np.float64)


def log_gaussian(
    released: Table, fields: Sequence[str], card: NoiseCard, blocks: Ints | None = None
) -> Floats:
    """Return the log of an outsider's f(z) for each released record, from the release and the card alone.

    Records that are alike in statuses, in values at a limit, in categories and in what left in clear form a cell.
    f(z) is the cell's share of its block (`blocks` numbers them, one block without; shares of limits are those of the
    whole release) times a normal density of the amounts that lie between their limits, given that they do and that
    the others lie beyond: on the scale where noise is added, with the mean and covariance of the whole release,
    fitted to both (`censored_normal`). It is of the same measure as the laws: values at limits are probabilities,
    others densities, those on a coarse unit probabilities divided by the unit.

    The covariance is taken from the pairs of values that are open. Along its own axes it is never smaller than that of
    the noise. Directions in which neither varies are left out: the density is then that on the support, as the laws
    have it.
    """
    laws = laws_on(card, fields)
    amounts = Amounts.of(laws, released)
    rest = [name for name in fields if name not in amounts.names]
    if unknown := [name for name in rest if name not in released.schema]:
        raise BadInput([f"the release has no column {name!r}" for name in unknown])
    logs = _log_shares(released, rest, amounts, blocks)
    for law in laws:
        for j, name in enumerate(law.columns):
            if isinstance(law, Additive | SkewedBias) and name in rest and released.schema[name].is_number:
                logs += _silent_factor(law.outlets[j], released.floats(name))
    return logs + _log_inside_limits(amounts)


def _silent_factor(outlet: Outlet, z: Floats) -> Floats:
    """Return what the law of a column without noise adds to its log probability."""
    factor = _cell(outlet, z, np.zeros(len(z))).log_factor
    return np.where(np.isnan(z), 0.0, factor)


@dataclass(frozen=True, slots=True)
class Amounts:
    """The released amounts that have noise: how they left, their values, where they lie, the noise's covariance.

    `place` is 0 within the limits, 1 and 2 at the lower and the upper limit, 3 and more for closed values. `side` is
    the same but for values that a mask closed because they lay beyond a limit: these lie there too.
    """

    names: tuple[str, ...]
    outlets: tuple[Outlet, ...]
    values: Floats
    place: Ints
    side: Ints
    noise: Floats

    @classmethod
    def of(cls, laws: Sequence[Any], released: Table) -> Amounts:
        """Take the columns of numbers whose law has noise."""
        spoken = [law for law in laws if isinstance(law, Additive | SkewedBias)]
        names = [name for law in spoken for name in law.columns]
        outlets = [outlet for law in spoken for outlet in law.outlets]
        noise = _block_diagonal([_noise_covariance(law, released) for law in spoken])
        kept = [j for j, n in enumerate(names) if noise[j, j] > 0 and released.schema[n].is_number]
        chosen = tuple(names[j] for j in kept)
        ways_out, values = tuple(outlets[j] for j in kept), released.values(chosen)
        place, side = np.zeros(values.shape, np.int64), np.zeros(values.shape, np.int64)
        for j, (name, outlet) in enumerate(zip(chosen, ways_out, strict=True)):
            status = released.status(name)
            place[:, j] = _places(outlet, values[:, j], status)
            side[:, j] = np.minimum(place[:, j], UNSEEN)
            for beyond, code, limit in zip(
                (BELOW, ABOVE), (BOTTOM_CODED, TOP_CODED), outlet.codes, strict=True
            ):
                side[(status == code) & (limit is not None), j] = beyond
        return cls(chosen, ways_out, values, place, side, noise[np.ix_(kept, kept)])

    def moments(self) -> tuple[Floats, Floats]:
        """Return the mean and covariance on the scale where noise is added, as if there were no limits.

        Variances are those of largest likelihood times n / (n - 1), n the values known of a column: the distances
        (`nearest.distances`) take theirs from the same release without bias, and both intruders are to hold one law.
        """
        entered = np.empty(self.values.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            for j, outlet in enumerate(self.outlets):
                entered[:, j] = outlet.enter(self.values[:, j])
        side = np.where((self.side == SEEN) & ~np.isfinite(entered), UNSEEN, self.side)
        mean, covariance = Partly(entered, side, _edges(self.outlets)).moments()
        known = (side != UNSEEN).sum(axis=0)
        widened = np.sqrt(known / np.maximum(known - 1.0, 1.0))
        return mean, _at_least(covariance * np.outer(widened, widened), self.noise)


def _places(outlet: Outlet, values: Floats, status: Any) -> Ints:
    low = values <= (-np.inf if outlet.low is None else outlet.low)
    high = values >= (np.inf if outlet.high is None else outlet.high)
    place = np.where(low, BELOW, np.where(high, ABOVE, SEEN))
    return np.asarray(np.where(status == OPEN, place, CLOSED + status.astype(np.int64)))


def _noise_covariance(law: Any, released: Table) -> Floats:
    """Return the covariance of the noise on its own scale, its size averaged over released values."""
    factors = np.ones(len(law.columns))
    for j, name in enumerate(law.columns):
        z = released.floats(name)[released.is_open([name])[:, 0]]
        if isinstance(law, SkewedBias):
            factors[j] = _root_mean_square(np.hypot(law.sds[j], law.bias_sd * z))
        elif law.spreads and law.spreads[j] is not None:
            factors[j] = _root_mean_square(law.spreads[j].factor(z))
    inner = np.eye(len(factors)) if isinstance(law, SkewedBias) else law.noise.covariance
    return np.asarray(inner * np.outer(factors, factors))


def _root_mean_square(values: Floats) -> float:
    return float(np.sqrt(np.mean(values**2))) if len(values) else 0.0


def _block_diagonal(parts: Sequence[Floats]) -> Floats:
    out = np.zeros((sum(map(len, parts)),) * 2)
    begin = 0
    for part in parts:
        end = begin + len(part)
        out[begin:end, begin:end] = part
        begin = end
    return out


def _log_shares(released: Table, columns: Sequence[str], amounts: Amounts, blocks: Ints | None) -> Floats:
    """Return the log of the share that each record's cell has of its block.

    Which limits amounts are at, given which of them are closed, is counted in the whole release: it is part of the law
    of the amounts, and in a small block the target's own record would be most of what is counted.
    """
    count = len(released)
    block = np.zeros(count, np.int64) if blocks is None else joint_codes([_codes_and_count(blocks)], count)
    at_side = amounts.side != UNSEEN
    closed = [_codes_and_count(column) for column in np.where(at_side, 0, amounts.place).T]
    limits = [_codes_and_count(column) for column in np.where(at_side, amounts.place, 0).T]
    cells = [_codes_and_count(block_codes(released, released, columns)[0])] if columns else []
    shares = _log_share([_codes_and_count(block)], [*closed, *cells], count)
    return shares + _log_share(closed, limits, count)


def _log_share(within: Sequence[Codes], parts: Sequence[Codes], count: int) -> Floats:
    """Return how common each record's cell of `parts` is among those that are alike in `within`."""
    whole, cell = joint_codes(within, count), joint_codes([*within, *parts], count)
    return np.asarray(np.log(np.bincount(cell)[cell]) - np.log(np.bincount(whole)[whole]))


def _codes_and_count(codes: Ints) -> Codes:
    return codes, int(codes.max(initial=0)) + 1


def _log_inside_limits(amounts: Amounts) -> Floats:
    """Return the log normal density of each record's amounts within the limits, given which lie there."""
    out = np.zeros(len(amounts.side))
    if not (amounts.side == SEEN).any():
        return out
    mean, covariance = amounts.moments()
    limits, noise_sds = _edges(amounts.outlets), np.sqrt(np.diag(amounts.noise))
    lower, upper, factor, point = _ends(amounts, covariance, limits)
    for records, chosen, points in _alike(amounts.side, point):
        at, part = np.ix_(records, chosen), covariance[np.ix_(chosen, chosen)]
        ends = _on_support(lower[at] - mean[chosen], part, points), upper[at] - mean[chosen]
        out[records] = factor[at].sum(axis=1) + _log_box(part, *ends, points, noise_sds[chosen])
        region = _regions(amounts.side[records[0], chosen], limits[:, chosen])
        out[records] -= _log_mass(part, *(region - mean[chosen]))
    return out


def _ends(amounts: Amounts, covariance: Floats, limits: Floats) -> tuple[Floats, Floats, Floats, Bools]:
    """Return records x columns: between which noised values each lies, its log factor, and whether it is a point."""
    count, sds = len(amounts.side), conditional_sds(covariance) * (FINE_HERE / FINE)
    cells = [
        _cell(outlet, amounts.values[:, j], np.full(count, sds[j]))
        for j, outlet in enumerate(amounts.outlets)
    ]
    lower, upper, factor, point = (
        np.column_stack([getattr(cell, name) for cell in cells])
        for name in ("lower", "upper", "log_factor", "is_point")
    )
    for j, edges in enumerate(limits.T):
        for beyond, ends in ((BELOW, (-np.inf, edges[0])), (ABOVE, (edges[1], np.inf))):
            here = amounts.side[:, j] == beyond
            lower[here, j], upper[here, j] = ends
    seen = amounts.side == SEEN
    return lower, upper, np.where(seen, factor, 0.0), np.asarray(point & seen)


def _regions(side: Ints, limits: Floats) -> Floats:
    """Return 2 x columns: the region in which each amount is known to lie from its side alone."""
    region = limits.copy()
    region[:, side == BELOW] = np.stack([np.full_like(limits[0], -np.inf), limits[0]])[:, side == BELOW]
    region[:, side == ABOVE] = np.stack([limits[1], np.full_like(limits[1], np.inf)])[:, side == ABOVE]
    return region


def _at_least(covariance: Floats, noise: Floats) -> Floats:
    """Return a covariance that along each of its own axes is at least that of the noise."""
    scale = np.sqrt(np.diag(covariance) + np.diag(noise))
    both = np.outer(scale, scale)
    values, axes = np.linalg.eigh(covariance / both)
    least = np.maximum(((noise / both) @ axes * axes).sum(axis=0), 0.0)
    if (values >= least).all():
        return covariance
    return np.asarray((axes * np.maximum(values, least)) @ axes.T * both)


def _cell(outlet: Outlet, z: Floats, sd: Floats) -> ReleasedCell:
    """Return what leads to z whatever the true value: between two values, a run of codes is cut in the middle."""
    nobody, nothing = np.full(len(z), np.nan), np.zeros(len(z))
    cell = outlet.cell(z, nobody, sd)
    if outlet.unit is None or not outlet.avoid:
        return cell
    up, down = (outlet.cell(z, np.full(len(z), side), nothing) for side in (np.inf, -np.inf))
    beside = (up.lower != down.lower) | (up.upper != down.upper)
    return ReleasedCell(
        np.where(beside, up.lower / 2 + down.lower / 2, cell.lower),
        np.where(beside, up.upper / 2 + down.upper / 2, cell.upper),
        cell.is_point & ~beside,
        np.where(beside, up.log_factor, cell.log_factor),
    )


def _edges(outlets: Sequence[Outlet]) -> Floats:
    """Return 2 x columns: between which noised values a released one is within its limits."""
    edges = np.tile([[-np.inf], [np.inf]], len(outlets))
    for j, outlet in enumerate(outlets):
        if outlet.low is not None:
            edges[0, j] = _cell(outlet, np.array([outlet.low]), np.zeros(1)).upper[0]
        if outlet.high is not None:
            edges[1, j] = _cell(outlet, np.array([outlet.high]), np.zeros(1)).lower[0]
    return edges


def _alike(side: Ints, point: Bools) -> Iterator[tuple[Ints, Ints, tuple[bool, ...]]]:
    """Group records by the sides on which amounts lie and by those that are points, if any lies within limits."""
    kinds = [
        *((column, UNSEEN + 1) for column in side.T),
        *((column.astype(np.int64), 2) for column in point.T),
    ]
    codes = joint_codes(kinds, len(side))
    for records in members(codes, np.arange(len(codes))).values():
        chosen = np.flatnonzero(side[records[0]] != UNSEEN)
        if (side[records[0]] == SEEN).any():
            yield records, chosen, tuple(bool(point[records[0], j]) for j in chosen)


def _on_support(residual: Floats, covariance: Floats, points: tuple[bool, ...]) -> Floats:
    """Move points, in place, to where their covariance lets them vary: what is off it there is rounding."""
    at = np.flatnonzero(points)
    sds = np.sqrt(np.diag(covariance)[at])
    values, axes = np.linalg.eigh(covariance[np.ix_(at, at)] / np.outer(sds, sds))
    kept = axes[:, values > SINGULAR * max(len(at), 1)]
    if kept.shape[1] < len(at):
        residual[:, at] = (residual[:, at] / sds) @ kept @ kept.T * sds
    return residual


def _log_box(
    covariance: Floats, lower: Floats, upper: Floats, points: tuple[bool, ...], noise_sds: Floats
) -> Floats:
    """Return the log density of points times the probability of the box given them.

    It is computed in sds of the noise, as the laws do: where a law is singular they measure its support in these.
    """
    from ....kernels.normal_box import conditional_rectangle

    is_point = np.array(points)
    bounded = ~is_point & (np.isfinite(lower) | np.isfinite(upper)).any(axis=0)
    if bounded.sum() > MOST_BOUNDED:
        raise BadPlan(
            f"{bounded.sum()} columns have a unit that is coarse against their spread, or limits, and the gaussian "
            f"marginal can do {MOST_BOUNDED}: name fewer fields, or take marginal 'truth'"
        )
    ends = np.concatenate([lower / noise_sds, upper / noise_sds], axis=1)
    back: Any = slice(None)
    if not is_point.any():  # on coarse units many records are the same
        ends, back = np.unique(ends, axis=0, return_inverse=True)
        back = back.ravel()
    low, high = np.split(ends, 2, axis=1)
    scaled = covariance / np.outer(noise_sds, noise_sds)
    logs, _ = conditional_rectangle(low, low, high, scaled, is_point)
    return np.asarray(logs[back] - np.log(noise_sds[is_point]).sum())


def _log_mass(covariance: Floats, low: Floats, high: Floats) -> float:
    """Return the log probability that all amounts lie within their limits."""
    far = FAR_IN_SDS * np.sqrt(np.diag(covariance))
    low, high = np.where(low < -far, -np.inf, low), np.where(high > far, np.inf, high)
    bounded = np.flatnonzero(np.isfinite(low) | np.isfinite(high))
    if not len(bounded):
        return 0.0
    part = covariance[np.ix_(bounded, bounded)]
    ends, alone = (low[None, bounded], high[None, bounded]), np.sqrt(np.diag(part))
    return float(_log_box(part, *ends, (False,) * len(bounded), alone)[0])
