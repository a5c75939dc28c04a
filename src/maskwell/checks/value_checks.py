"""The checks of what is read without a link: largest values, means of groups, figures on the card."""

from __future__ import annotations

from .findings import Limits
from .group_means import averages
from .last_record import last_record
from .narrow_classes import FEW, MANY, narrow_classes
from .protocol import Check
from .top_values import top_values

CHECKS = (
    Check(
        "top values",
        Limits(
            0.25,
            0.5,
            reason="from a half on the error is below 10% more often than not; noise on the log scale gives a half at "
            "an sd of 0.15 and a quarter at 0.31",
        ),
        "Give noise on the log scale (transform = 'log', with a shift where there are zeros), with an sd of 0.3 or "
        "so, or a top code below the largest values (mask Coding).",
        top_values,
    ),
    Check(
        "averaging",
        Limits(
            0.95,
            0.80,
            below=True,
            reason="as for a second release with fresh noise: two members leave 71% of the error, 50 leave 14%",
        ),
        "Drop the column, or the columns that put the members together; or release the value once for a group, in a "
        "file of groups.",
        averages,
    ),
    Check(
        "narrow classes",
        Limits(
            FEW,
            MANY,
            reason="a value that its class tells is as open as one whose record was found: 15% of these are tolerated "
            "(Moore), and of one in a hundred a board should know",
        ),
        "Drop the clear column or put it in coarser classes (mask Grouping), fill or drop the column whose gaps make "
        "the class, release such records in a file of their own, or drop the number.",
        narrow_classes,
    ),
    Check(
        "last record",
        Limits(
            1.0,
            0.2,
            below=True,
            reason="a record's own released value tells it to 1 sd of its noise; two digits of 20 records tell the "
            "most exposed one to 0.15",
        ),
        "Give the size of the noise absolutely in the plan (variance, sd): it then tells nothing of the records.",
        last_record,
    ),
)
