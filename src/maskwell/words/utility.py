"""What comparisons of a release with the truth say beside their figures."""

from __future__ import annotations

from collections.abc import Sequence

from ..notes import Wording


def _small_levels(*, levels: int, columns: Sequence[str], least: int) -> str:
    return f"{levels:,} levels of {', '.join(columns)} with fewer than {least} open records are not compared"


def _closed_values(*, columns: Sequence[str]) -> str:
    return (
        f"{', '.join(columns)}: values that the truth has open are coded or missing in the release; figures are of "
        "open values, before and after"
    )


def _refusal(lead: str) -> Wording:
    """Return the words of a fit that was refused, with all reasons."""
    return Wording(lambda *, reasons: f"{lead}: {'; '.join(reasons)}", "caution", f"{lead}; the reasons")


WORDS: dict[str, Wording] = {
    # The comparison itself
    "utility.no_il1s": Wording(
        "IL1s is not defined: no masked column has values before and after to compare",
        "info",
        "no masked column leaves with values",
    ),
    "utility.subsample": Wording(
        "only a subsample is released: it is compared with all records, so chance is in every figure",
        "info",
        "a subsample is released",
    ),
    "utility.exchanged_values": Wording(
        "{share:.2%} of the records had values exchanged: columns keep their own figures, correlations "
        "with columns that were not exchanged are weakened and cannot be corrected",
        "caution",
        "values were exchanged between records",
    ),
    "utility.closed_values": Wording(
        _closed_values, "info", "the release codes or leaves out values that the truth has open"
    ),
    "utility.weights": Wording(
        "columns, correlations and sub-domains are weighted; the propensity score and the models are not",
        "info",
        "the schema has a column of weights",
    ),
    "utility.small_levels": Wording(
        _small_levels, "info", "levels of grouping columns have too few records for a mean"
    ),
    "utility.listed_means": Wording(
        "of {count:,} sub-domain means the {listed:,} with the least overlap are listed",
        "info",
        "there are more sub-domain means than are listed",
    ),
    # Columns and correlations
    "utility.values_at_limit": Wording(
        "{name}: {share:.1%} of the released values stand at a limit, which does not tell what they were; "
        "the corrected mean, sd and correlations lean on them and can be far off, above all where true values lie "
        "beyond the limit",
        "caution",
        "more than 5% of a column's released values stand at a limit",
    ),
    "utility.no_counterpart": Wording(
        "the true categories have no counterpart in all released ones",
        "info",
        "a category leaves with other categories",
    ),
    "utility.number_in_classes": Wording(
        "a number released in classes: shares of the classes are compared",
        "info",
        "a number leaves in classes",
    ),
    "utility.uncorrected_column": Wording(
        "{name}: {reason}", "caution", "correlations of a column are not corrected; the reason"
    ),
    "utility.unsettled_noise": Wording(
        "{first} and {second}: their noise depends too much on the values for its covariance to be told from released "
        "ones",
        "caution",
        "the correlation of two columns is not corrected",
    ),
    "utility.noise_on_logs": Wording(
        "{first} and {second}: their noise is on the log scale and depends on the value: its covariance cannot be told",
        "caution",
        "the correlation of two columns is not corrected",
    ),
    "utility.noise_without_mean": Wording(
        "{first} and {second}: their noise on the log scale has no mean",
        "caution",
        "the correlation of two columns is not corrected",
    ),
    "utility.noise_of_part": Wording(
        "{first} and {second}: the noise of a part cannot be told",
        "caution",
        "the correlation of a total is not corrected",
    ),
    # Models
    "utility.no_true_fit": _refusal("the truth itself cannot be fitted"),
    "utility.no_naive_fit": _refusal("the released values as they are cannot be fitted"),
    "utility.no_adjusted_fit": _refusal("no adjusted fit"),
    "utility.calibration_instead": Wording(
        "fit(...) was refused: {reason}", "caution", "a model is adjusted by regression calibration instead"
    ),
    "utility.unequal_scatter": Wording(
        "records scatter unequally about this model: an interval of {name} that allows for it is {times:.1f} "
        "times as wide in the original as one that does not. Those of fit(...) do not, and are compared with the "
        "latter: by so much they are too narrow, with noise or without",
        "caution",
        "robust standard errors of the original fit are 1.25 times the others or more",
    ),
    "utility.sampled_fit": Wording(
        "fitted to {count:,} of {records:,} complete records, all three fits: more would take long here",
        "info",
        "a model is fitted to a sample of the records",
    ),
    "utility.few_draws": Wording(
        "the draws of the adjusted fit are few: its last digits are uncertain",
        "caution",
        "an adjusted fit by draws has not converged, but its chains agree",
    ),
    "utility.limits_ignored": Wording(
        "up to {share:.1%} of the values of a column stand at a limit and are taken as they are",
        "info",
        "limits cut off so little noise that moments correct a model as if they did not",
    ),
}
