"""The checks of the noise itself: is it there, can it be guessed, filtered, averaged or summed away."""

from __future__ import annotations

from .clear_columns import predictable_from_clear
from .findings import Limits
from .guessed_seeds import predictable_noise
from .protocol import Check
from .reconstruction import best_estimate, earlier_release, group_sums
from .relations import identities, near_duplicates, order_of_columns, order_of_truth
from .residuals import affine_noise, cells_left_true, off_the_unit

CHECKS: tuple[Check, ...] = (
    Check(
        "predictable noise",
        Limits(
            0.75,
            0.85,
            reason="well above what chance gives among a million tries (0.6), well below the 1 of a guessed seed, "
            "which rounding and limits lower a little",
        ),
        "Mask again with a key from the operating system (no seed).",
        predictable_noise,
    ),
    Check(
        "cells left true",
        Limits(
            0.01,
            0.02,
            reason="noise on outliers alone leaves 99% of the cells true; one cell in a hundred beyond what the law "
            "explains is no accident",
        ),
        "Give noise to every cell of a column or to none; check that the mask reached every record.",
        cells_left_true,
    ),
    Check(
        "values off the unit",
        Limits(
            None,
            0.0,
            reason="a single further digit tells; such digits proved half of the true zeros of a code",
        ),
        "Round released values to the declared unit, after the noise.",
        off_the_unit,
    ),
    Check(
        "affine noise",
        Limits(
            0.15,
            0.05,
            below=True,
            reason="noise of 15% of the sd hides little, below 5% there is hardly any: some methods called noise only "
            "shift and stretch",
        ),
        "Do not release: use a mask that draws noise, and more of it.",
        affine_noise,
    ),
    Check(
        "order against the original",
        Limits(
            0.05,
            0.10,
            reason="a keyed shuffle has no correlation at all, so what goes beyond sampling error is a leftover of the "
            "original order",
        ),
        "Shuffle the released records by the key.",
        order_of_truth,
    ),
    Check(
        "order against columns",
        Limits(
            0.05,
            0.10,
            reason="in a file sorted by a true column a monotone fit leaves 5% of the noise; a shuffled one has no "
            "correlation beyond sampling error",
        ),
        "Shuffle the released records by the key, after everything else.",
        order_of_columns,
    ),
    Check(
        "identities",
        Limits(
            0.95,
            0.80,
            below=True,
            reason="a total noised beside its parts loses about half of its noise variance; totals computed anew "
            "lose none",
        ),
        "Mask the parts and compute the total anew from them (mask Recompute), or drop one of the columns.",
        identities,
    ),
    Check(
        "predictable from unmasked",
        Limits(
            0.70,
            0.90,
            reason="with 90% of the variance explained the clear columns know the value better than noise of a third "
            "of its sd lets the release know it",
        ),
        "Drop or mask the clear columns that predict it, or derive them anew from the masked values.",
        predictable_from_clear,
    ),
    Check(
        "best estimate",
        Limits(
            0.30,
            0.15,
            below=True,
            reason="independent noise on 20 correlated columns keeps 40% of itself, on 50 columns 31%: what counts is "
            "what is left after the best estimate",
        ),
        "Use correlated noise, with some noise in every direction, or more of it.",
        best_estimate,
    ),
    Check(
        "group sums",
        Limits(
            0.30,
            0.10,
            below=True,
            reason="independent noise gives 1; the figure is folded, so that a tenth and ten times the noise are the "
            "same 0.1",
        ),
        "Do not make noise sum to zero within groups; correct the bias of noise on the log scale.",
        group_sums,
    ),
    Check(
        "earlier release",
        Limits(
            0.95,
            0.80,
            below=True,
            reason="fresh noise of the same size in a second release leaves 71% of the error, nested noise all of it",
        ),
        "Nest the new release in the earlier one: apply(mask, table, earlier=masking).",
        earlier_release,
    ),
    Check(
        "near-duplicate columns",
        Limits(
            0.98,
            0.999,
            reason="the same quantity in 2, 3 or 12 columns leaves 70%, 58% or 29% of the noise; at a correlation of "
            "0.98 the columns are 14% of their sd apart",
        ),
        "Release such a quantity once, or give its columns one noise (CorrelatedNoise over all of them).",
        near_duplicates,
    ),
)
