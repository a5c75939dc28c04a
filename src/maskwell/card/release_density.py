"""The density of released records given true ones: in any pairs, and in a whole block where records were exchanged.

    p(z | x_1 .. x_N) = (1 - share) p(z | x_own) + share (1/N) sum over the block of p(z | x_m)

After noise, some records exchange their values with another of their block. Whose values a record then carries is not
known, so its density is that of the noise mixed with the mean density over all true records of the block (own
derivation, for exchanges at random). Read by attacks and analyses in place of the laws where the card speaks of swaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..engines.local import Local
from ..errors import NoLaw
from ..kernels.log_sums import log_sum
from ..laws import Additive, Normal, SkewedBias
from ..laws.additive import logpdf_nearly
from ..laws.chain import combined_of
from ..schema import BOTTOM_CODED, OPEN, TOP_CODED
from ..table import Floats, Statuses, Table, coded_values

Ints = npt.NDArray[np.int64]

PAIRS_AT_ONCE = 250_000  # pairs held in one go
FAR_IN_SDS = 9.0  # a normal density there is exp(-40) of its peak
FAR_BELOW_PEAK = 15.0  # what is exp(-25) of this adds nothing, even a thousand million times


@dataclass(frozen=True, slots=True)
class RecordPair:
    """One law on two tables: values and statuses of its columns, taken once, for any pairs of records."""

    law: Any
    released: Floats
    true: Floats
    status_z: Statuses
    status_x: Statuses

    @classmethod
    def of(cls, law: Any, z: Table, x: Table) -> RecordPair:
        """Take what the law speaks of; coded values are opened where it speaks of them too."""
        if not law.has_density:
            names = ", ".join(map(repr, law.columns))
            raise NoLaw(f"{law.form} of {names} has no law p(z | x): nothing can be computed from one")
        true, status_x = x.values(law.columns), _statuses(x, law.columns)
        if law.opens_codes:
            for j, name in enumerate(law.columns):
                _open_codes(x, name, true[:, j], status_x[:, j])
        return cls(law, z.values(law.columns), true, _statuses(z, law.columns), status_x)

    def logpdf(self, z_records: Ints, x_records: Ints) -> tuple[Floats, Floats]:
        """Return the log density of each pair and the absolute error of the rectangle probability inside it.

        Pairs whose statuses the law cannot have produced get minus infinity.
        """
        released, here = self._possible(z_records, x_records)
        logs, error = np.full(len(released), -np.inf), np.zeros(len(released))
        if len(here):
            logs[here], error[here] = self.law.logpdf_with_error(released[here], self.true[x_records[here]])
        return logs, error

    def logpdf_nearly(self, z_records: Ints, x_records: Ints) -> Floats:
        """Return the log density of each pair, rectangles of correlated noise to a hundredth or so."""
        released, here = self._possible(z_records, x_records)
        logs = np.full(len(released), -np.inf)
        if len(here):
            logs[here] = logpdf_nearly(self.law, released[here], self.true[x_records[here]])
        return logs

    def _possible(self, z_records: Ints, x_records: Ints) -> tuple[Floats, Ints]:
        """Return released values, codes of the mask at their limits, and the pairs whose statuses can be."""
        released, status_z = self.released[z_records], self.status_z[z_records]
        status_x = self.status_x[x_records]
        for j in range(len(self.law.columns)):
            _at_codes(combined_of(self.law), j, released[:, j], status_z[:, j], status_x[:, j])
        return released, np.flatnonzero((status_x == status_z).all(axis=1))

    def patterns(self) -> tuple[Ints, Ints]:
        """Number the statuses of whole records alike in both tables; pairs of different numbers are impossible.

        Where the mask itself gives codes, statuses may differ, and all numbers are the same.
        """
        count, outlets = len(self.status_z), combined_of(self.law).outlets
        if any(code is not None for outlet in outlets for code in outlet.codes):
            return np.zeros(count, np.int64), np.zeros(len(self.status_x), np.int64)
        both = np.vstack([self.status_z, self.status_x])
        numbers = np.unique(both, axis=0, return_inverse=True)[1].ravel()
        return numbers[:count], numbers[count:]

    def distances(self) -> list[tuple[Floats, Floats, float]]:
        """Return, for columns with normal noise of one size, z, where x puts it, and how far apart is too far."""
        law = combined_of(self.law)
        if not isinstance(law, Additive) or not isinstance(law.noise, Normal) or any(law.spreads):
            return []
        centres = law.place(self.true, np.zeros(self.true.shape, order="F"))
        out = []
        for j, outlet in enumerate(law.outlets):
            sd, unit = law.noise.sds[j], float(outlet.unit or 0)
            if sd > 0 and outlet.log_shift is None and not outlet.avoid:
                at_limit = np.isin(
                    self.released[:, j], [end for end in (outlet.low, outlet.high) if end is not None]
                )
                z = np.where(at_limit, np.nan, self.released[:, j])
                out.append((z, centres[:, j], FAR_IN_SDS * sd + unit))
        return out

    def peaks(self, records: Ints) -> Floats:
        """Return about the largest log density that released records can have: that without any noise in them."""
        z = self.released[records]
        return np.asarray(self.law.logpdf_with_error(z, z)[0])


def pair_logpdf(laws: Sequence[Any], z: Table, x: Table, z_records: Ints, x_records: Ints) -> Floats:
    """Return log p(z | x) under some laws for pairs of records: number `z_records[i]` of z with `x_records[i]` of x.

    For many calls on the same tables make the `RecordPair` of each law once.
    """
    return _sum_log_densities([RecordPair.of(law, z, x) for law in laws], z_records, x_records)[0]


def _sum_log_densities(
    sides: Sequence[RecordPair], z_records: Ints, x_records: Ints
) -> tuple[Floats, Floats]:
    """Add the log densities of several laws; what one of them excludes, the next need not look at."""
    total, error = np.zeros(len(z_records)), np.zeros(len(z_records))
    for side in sides:
        here = np.flatnonzero(total > -np.inf)
        logs, this = side.logpdf(z_records[here], x_records[here])
        total[here] += logs
        error[here] = np.maximum(error[here], this)
    return total, error


def log_background(
    laws: Sequence[Any], clear: Sequence[str], z: Table, x: Table, blocks: Sequence[str]
) -> tuple[Floats, Floats]:
    """Return the log density of each z given that its values came from some true record of its block, and its error.

    Every record of the block is as likely, the record itself included. Blocks are by the columns `blocks` of z, one
    block of all records without them; the `clear` columns carry no noise, so they must be the same.
    """
    sides = [RecordPair.of(law, z, x) for law in laws]
    pairing = _PairDensity(
        sides,
        [*(joint_codes(name, z, x) for name in clear), *(side.patterns() for side in sides)],
        [column for side in sides for column in side.distances()],
    )

    def over_block(records: Ints) -> Floats:
        out = np.empty((len(records), 2), order="F")
        step = max(1, PAIRS_AT_ONCE // len(records))
        for start in range(0, len(records), step):
            here = slice(start, start + step)
            out[here] = pairing.mean_density(records[here], records)
        return out

    both = Local().per_block(over_block, block_numbers(z, blocks), 2)
    return both[:, 0], both[:, 1]


@dataclass(frozen=True, slots=True)
class _PairDensity:
    """Laws on two tables, `codes` that must be the same in a pair, and columns in which pairs can be too far apart."""

    sides: Sequence[RecordPair]
    codes: Sequence[tuple[Ints, Ints]]
    distances: Sequence[tuple[Floats, Floats, float]]

    def mean_density(self, here: Ints, block: Ints) -> Floats:
        """Return, for some records of a block, the log of the mean density over its true records, and the error.

        Pairs that are far apart are left out unless a record has nothing near.
        """
        out = self._mean(here, block, near=True)
        if self.distances:
            peak = sum((side.peaks(here) for side in self.sides), np.zeros(len(here)))
            lost = np.flatnonzero(~(out[:, 0] + np.log(len(block)) >= peak - FAR_BELOW_PEAK))
            if len(lost):
                out[lost] = self._mean(here[lost], block, near=False)
        return out

    def _mean(self, here: Ints, block: Ints, *, near: bool) -> Floats:
        wanted = np.ones((len(here), len(block)), bool)
        for released, true in self.codes:
            wanted &= released[here][:, None] == true[block][None, :]
        for z, centre, far in self.distances if near else ():
            wanted &= ~(np.abs(z[here][:, None] - centre[block][None, :]) > far)
        row, column = np.nonzero(wanted)
        logs, error = np.full(wanted.shape, -np.inf), np.zeros(wanted.shape)
        logs[row, column], error[row, column] = _sum_log_densities(self.sides, here[row], block[column])
        return np.column_stack([log_sum(logs, axis=1) - np.log(len(block)), error.max(axis=1)])


def own_masses(clear: Sequence[str], z: Table, x: Table) -> Floats:
    """Return 0 for records that are the same in columns without noise, minus infinity for the others."""
    same = np.ones(len(z), bool)
    for name in clear:
        released, true = joint_codes(name, z, x)
        same &= released == true
    return np.where(same, 0.0, -np.inf)


def joint_codes(name: str, z: Table, x: Table) -> tuple[Ints, Ints]:
    """Number the values of a column alike in two tables; every status that is not open is a value of its own."""
    import pyarrow as pa

    kind: Any = pa.float64() if z.schema[name].is_number and x.schema[name].is_number else pa.string()
    values = pa.concat_arrays([table.array(name).cast(kind) for table in (z, x)])
    indices = values.dictionary_encode().indices.fill_null(-1)
    status = np.concatenate([table.status(name) for table in (z, x)]).astype(np.int64)
    codes = np.where(status == OPEN, indices.to_numpy(zero_copy_only=False).astype(np.int64), -1 - status)
    return codes[: len(z)], codes[len(z) :]


def block_numbers(table: Table, columns: Sequence[str]) -> Ints:
    """Number the blocks of records that are the same in some columns, from 0 on; a closed value is a value."""
    numbers = np.zeros(len(table), np.int64)
    for name in columns:
        codes = np.unique(joint_codes(name, table, table)[0], return_inverse=True)[1]
        numbers = np.unique(numbers * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1]
    return numbers


def _statuses(table: Table, columns: Sequence[str]) -> Statuses:
    """Return records x columns of statuses, in memory of their own."""
    out = np.empty((len(table), len(columns)), np.uint8, order="F")
    for j, name in enumerate(columns):
        out[:, j] = table.status(name)
    return out


def _open_codes(table: Table, name: str, values: Floats, status: Statuses) -> None:
    """Give coded values, in place, their code as value."""
    for code, literal in coded_values(table.schema[name]).items():
        if code in (TOP_CODED, BOTTOM_CODED):
            values[status == code] = float(literal)
            status[status == code] = OPEN


def _at_codes(law: Any, j: int, released: Floats, status_z: Statuses, status_x: Statuses) -> None:
    """A value coded by the mask itself stands at its limit."""
    bottom, top = law.outlets[j].codes if isinstance(law, Additive | SkewedBias) else (None, None)
    for code, limit in ((TOP_CODED, top), (BOTTOM_CODED, bottom)):
        if limit is not None:
            here = (status_z == code) & (status_x == OPEN)
            released[here] = limit
            status_z[here] = OPEN
