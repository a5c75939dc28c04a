"""What leaves in clear: ids in disguise, records alone with what no noise touches, uniques that no swap reached.

Figures are shares of records: alone with their fingerprint (`attacks.fingerprint`), of columns whose values are nearly
all different, of uniques with their own values (own derivation). Called by `file_checks`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrow_buffers import take_texts
from ..attacks import Fingerprint, Risk, attack
from ..card import block_numbers
from ..errors import MaskwellError
from ..schema import Column
from ..table import Table
from .computed_ids import computed_columns
from .evidence import Evidence
from .id_values import followed_values
from .protocol import CheckFigure

NEARLY = 0.9  # of the values that are there: a column with more different ones is an id in disguise
LEAST = 20  # records from which on that can be told
SAME_IDS = 0.01  # of the records: fewer have their own number again by chance


def fingerprint_floor(evidence: Evidence) -> CheckFigure:
    """Measure the share of records that are alone with what leaves without noise."""
    risk, why = _fingerprints(evidence)
    if risk is None:
        return CheckFigure(float("nan"), f"the floor cannot be told: {why}")
    floor = risk.sure_floor
    by = [", ".join(floor.values)] if floor.values else []
    by += [f"what is missing or coded in {', '.join(floor.patterns)}"] if floor.patterns else []
    by += [f"values without noise in {', '.join(floor.spared)}"] if floor.spared else []
    alone = ": no noise of any size hides them from whoever knows that" if floor.unique else ""
    said = (
        f"{risk.expected_correct:,.0f} of {risk.targets:,} records ({risk.rate:.2%}) are alone with {' and '.join(by)}"
        f"{alone}"
        if by
        else "nothing that leaves without noise tells records apart"
    )
    first = floor.without.to_pylist()[:1] if floor.unique else []
    where = str(first[0]["column"]) if first else ""
    figures = {
        f"without {one['column']}": one["remaining"] / floor.targets for one in floor.without.to_pylist()
    }
    sampled = risk.targets if risk.targets < evidence.records else None
    return CheckFigure(risk.rate, said, where, figures, sampled)


def _fingerprints(evidence: Evidence) -> tuple[Risk | None, str]:
    """Return what is found by fingerprints alone: as attacked already, or now."""
    for risk in (evidence.risks or {}).values():
        if isinstance(risk.attack, Fingerprint) and risk.attack.columns is None and risk.floor is not None:
            return risk, ""
    try:
        found: Risk = attack(Fingerprint().told(evidence.masking), evidence.masking)
    except MaskwellError as error:
        return None, str(error)
    return found, ""


def id_like_columns(evidence: Evidence) -> CheckFigure:
    """Count the columns in clear that are ids in disguise, and released ids that are the old ones or follow the truth.

    That is, computed from old ids or places, or going with true values.
    """
    table, masking = evidence.masking.release.table, evidence.masking
    shares = {
        column.name: share
        for column in table.schema.columns
        if column.name not in evidence.masked_columns and (share := _distinct_share(column, table)) > NEARLY
    }
    if (same := _same_ids(evidence)) > SAME_IDS:
        shares[str(masking.truth.schema.id_column)] = same
    computed = {name: one for name, one in computed_columns(evidence).items() if name not in shares}
    followed = {
        name: one for name, one in followed_values(evidence).items() if name not in {*shares, *computed}
    }
    listed = ", ".join(shares)
    said = []
    if shares:
        tells = "tells" if len(shares) == 1 else "tell"
        said.append(
            f"{listed} left unmasked and {tells} nearly every record from all others, as an id does: one join undoes "
            "the masking"
        )
    said += [
        f"{name} is computed: {one.how} ({one.share:.1%}), so that who has the true file has the links"
        for name, one in computed.items()
    ]
    said += [f"{name} tells a value: {one}" for name, one in followed.items()]
    shares |= {name: one.share for name, one in computed.items()}
    shares |= {name: one.size for name, one in followed.items()}
    none = (
        "no column in clear has a value of its own for nearly every record, no old id is left, and of the relations "
        "that were tried none leads from old ids, places or true values to new ones"
    )
    return CheckFigure(float(len(shares)), "; ".join(said) or none, ", ".join(shares), shares)


def _distinct_share(column: Column, table: Table) -> float:
    """Return how many of the values of a column that can be an id are different ones, as a share."""
    import pyarrow.compute as pc

    if column.kind == "continuous" or column.roles & {"id", "group"}:
        return 0.0
    array = table.array(column.name)
    count = len(array) - array.null_count
    return 0.0 if count < max(LEAST, len(array) / 2) else len(pc.unique(array.drop_null())) / count


def _same_ids(evidence: Evidence) -> float:
    """Return the share of the released records that have their own old id, in the id column or another."""
    import pyarrow as pa
    import pyarrow.compute as pc

    masking = evidence.masking
    if masking.truth.ids is None or len(masking.order) < LEAST:
        return 0.0
    table = masking.release.table
    old: Any = take_texts(masking.truth.ids, masking.order)
    shares = [0.0]
    for column in table.schema.columns:
        if column.kind != "continuous" and column.name not in evidence.masked_columns:
            same: Any = pc.equal(table.array(column.name).cast(pa.string()), old)
            shares.append(float(pc.sum(same).as_py() or 0) / len(old))
    return max(shares)


def uniques_unswapped(evidence: Evidence) -> CheckFigure:
    """Measure the share of records alone with what leaves without noise that were not exchanged with another."""
    masking = evidence.masking
    swapping = masking.swapping
    if swapping is None or not swapping.swaps:
        return CheckFigure(float("nan"), "no records were exchanged: swapping is not the protection here")
    truth, rows = masking.truth, evidence.rows
    noised = set(masking.card.masked)
    clear = [
        name for name in (*evidence.clear, *swapping.columns) if name in truth.schema and name not in noised
    ]
    names = list(dict.fromkeys(clear))
    codes = block_numbers(truth.take(rows), names)
    for name in noised & set(truth.schema.names):
        codes = np.unique(codes * 256 + truth.status(name)[rows], return_inverse=True)[1]
    alone = np.bincount(codes)[codes] == 1
    exchanged = np.isin(rows, swapping.pairs)
    if not alone.any():
        return CheckFigure(0.0, "no record is alone with what leaves without noise")
    share = float((alone & ~exchanged).sum() / alone.sum())
    said = (
        f"of {int(alone.sum()):,} records that are alone with what leaves without noise {share:.1%} were not exchanged "
        f"({swapping.records:,} records were, for the {swapping.at_risk:,} whom the intruder had found)"
    )
    return CheckFigure(
        share, said, "", {"at risk and left": max(0.0, 1 - swapping.swaps / max(swapping.at_risk, 1))}
    )
