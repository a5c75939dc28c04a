"""The checks that look at links and at the file as it leaves, with their limits, reasons and remedies."""

from __future__ import annotations

from .boundaries import signs_kept, spikes, zeros_kept
from .card_digits import card_digits
from .clear_records import fingerprint_floor, id_like_columns, uniques_unswapped
from .file_bytes import known_strings, labels_left
from .findings import Limits
from .links import informed_links, outer_links
from .protocol import Check
from .ratios import ratio_links

START = "a starting point, not calibrated"

CHECKS = (
    Check(
        "informed links",
        Limits(0.10, 0.15, reason="15% of correct links is what Moore took for acceptable"),
        "Give more noise (calibrate finds how much), or swap the records that are found.",
        informed_links,
    ),
    Check(
        "outer links",
        Limits(0.35, 0.5, reason=f"{START}; noise of 17% of the variance left 88% of outliers to be found"),
        "Give more noise to large values (on the log scale, or growing with the value), or top-code.",
        outer_links,
    ),
    Check(
        "fingerprint floor",
        Limits(0.001, 0.01, reason=f"{START}: one record in a thousand, one in a hundred"),
        "Recode blocks and categories more coarsely, impute what is missing, or swap: more noise does not help.",
        fingerprint_floor,
    ),
    Check(
        "spikes",
        Limits(0.002, 0.005, reason=f"{START}; a clamp just inside a code shows who was clamped"),
        "Add the noise first and code after it, so that what is cut off joins the coded.",
        spikes,
    ),
    Check(
        "zeros kept",
        Limits(0.1, 0.2, reason=f"{START}; multiplicative noise keeps all"),
        "Add noise that does not vanish at zero (a shift, an additive part), or make zero a category of its own.",
        zeros_kept,
    ),
    Check(
        "signs kept",
        Limits(0.1, 0.2, reason=f"{START}; multiplicative noise keeps all"),
        "Add noise that does not vanish at zero (a shift, an additive part).",
        signs_kept,
    ),
    Check(
        "ratios",
        Limits(0.02, 0.05, reason=f"{START}; one factor for a whole record leaves every ratio as it was"),
        "Draw a factor for each cell, not one for each record.",
        ratio_links,
    ),
    Check(
        "id-like columns",
        Limits(fail=0.0, reason="a column that tells every record apart is an id, whatever it is called"),
        "Drop the column, declare it the id (new random ones are drawn by the key), or mask it.",
        id_like_columns,
    ),
    Check(
        "labels",
        Limits(fail=0.0, reason="files of Stata and R, pickles and Arrow keep labels that no record has"),
        "Rebuild the columns from the values that are left.",
        labels_left,
    ),
    Check(
        "known strings",
        Limits(
            fail=0.0,
            reason="what is counted does not occur by chance: long strings, and short words beyond what chance gives",
        ),
        "Find how they came into the file, and write it anew without them.",
        known_strings,
    ),
    Check(
        "card digits",
        Limits(2, 3, reason="two digits leave a record hidden when a card is made again without it"),
        "Make the card without exact=True: it is for studies alone.",
        card_digits,
    ),
    Check(
        "uniques left unswapped",
        Limits(reason="for information: a random swap of 5% leaves 94.5% of the uniques as they were"),
        "Direct the swaps at the records that are found.",
        uniques_unswapped,
    ),
)
