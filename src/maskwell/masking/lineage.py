"""What a masking remembers of the releases before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..card import NoiseCard
from ..keys import Words

Revisions = Mapping[
    str, Words
]  # column: for each record the tag its noise is drawn from (zeros: the record itself)
Cells = Mapping[
    str, Mapping[bytes, tuple[bytes, bytes]]
]  # column: {record's tag: (value's tag, noise's tag)}
Originals = Mapping[str, Mapping[bytes, bytes]]  # column: {record's tag: value's tag}


@dataclass(frozen=True)
class Past:
    """What a release must remember of those before it.

    `cells` are those that it does not have, `originals` the values that the first noise of revised cells belongs
    to; `card` has the last laws and sums of columns that it leaves out, `clear` all columns ever shown in clear.
    """

    cells: Cells = field(default_factory=dict)
    originals: Originals = field(default_factory=dict)
    card: NoiseCard = field(default_factory=NoiseCard)
    clear: tuple[str, ...] = ()
