"""What the results of attacks say beside their figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..notes import Note, Wording
from .phrases import comma_list, count_phrase, text_of_names

SIDES = {"known": "intruder's records", "released": "release"}
PARAMETERS = {
    "sd": "the sd of the noise of",
    "bias_sd": "the sd of the bias of",
    "scale": "one factor (scale) on the sds of",
}
NEEDED = "without them nobody can analyse the release correctly"


def brief(note: Note) -> str:
    """Return the sentence of a note as lists of several intruders show it, which is shorter for some."""
    return BRIEF[note.code](**note.figures) if note.code in BRIEF else str(note)


def other_units(column: str, ratio: float) -> str:
    """Ask about a column whose typical size in the target file is far from that in the truth."""
    factor = f"{ratio:,.4g} times" if ratio > 1 else f"1/{1 / ratio:,.4g} of"
    return f"the typical {column} of the target file is {factor} that of the truth: is it in other units?"


def no_open_value(column: str, sides: Sequence[str]) -> str:
    """Name a field without any open value, and the files in which it has none."""
    return f"{column} has no open value in the {' and the '.join(SIDES[side] for side in sides)}"


def em_unlike_matches(
    pairs: float | None, matches: int, against: Sequence[str], off_truth: Sequence[str]
) -> str:
    """Say what speaks against the class that EM found: its size, fields that count against it, an m that is off."""
    doubts = [] if pairs is None else [f"it holds {pairs:,.0f} pairs where {matches:,} are matches"]
    doubts += [f"agreement on {comma_list(against)} counts against it"] if against else []
    doubts += (
        [f"its m is more than 0.1 off the true agreement on {comma_list(off_truth)}"] if off_truth else []
    )
    return f"the class that EM found does not look like matches: {'; '.join(doubts)}"


def masked_as_planned(columns: Sequence[str]) -> str:
    """Say what is taken as masked in a file to which no noise was added."""
    who = (
        f"{comma_list(columns)} (the key columns that are numbers)"
        if columns
        else "nothing (no key is a number)"
    )
    return f"no noise yet: taken as masked are {who}; masked=... says otherwise"


def masked_without_card(columns: Sequence[str]) -> str:
    """Say what is taken as masked in a release without a card."""
    return f"the release has no card: taken as masked are {comma_list(columns) or 'no columns'}"


def spared_values(columns: Mapping[str, float], strays: float, counted: bool) -> str:
    """Say how many values of which columns leave without noise, and whether they count."""
    which = comma_list(f"{name} {share:.1%}" for name, share in columns.items())
    often = f"at most {strays:.2%}" if counted else f"{strays:.0%} and more"
    end = f"{'' if counted else 'not '}counted; of the others {often} come to lie among them"
    return f"values that leave as they are, without noise ({which}): {end}"


def unchanged_values(columns: Mapping[str, float]) -> str:
    """Name the columns many of whose values left as they would without noise."""
    which = comma_list(f"{name} {share:.0%}" for name, share in columns.items())
    return f"left as they would without noise, by rounding and limits: {which}"


def relies_on_exchanged(columns: Sequence[str], share: float) -> str:
    """Say that exchanged columns count, and how many records exchanged them."""
    return f"{comma_list(columns)} were exchanged for {100 * share:.3g}% of the records: he relies on them all the same"


def shared_groups(columns: Sequence[str]) -> str:
    """Say that groups show, and are not counted."""
    return f"that records share a {' or '.join(columns)} shows in a release too, and is not counted"


def expected_over_samples(share: float, in_release: bool) -> str:
    """Say over which samples, and of which targets, links are expected."""
    whom = "among the targets in the release" if in_release else "among all targets"
    return f"each record is released with probability {share:g}: the correct links are those expected {whom}"


def without_noise(columns: Sequence[str], directions: int, least: float) -> str:
    """Say where the data have spread and the card has no noise."""
    many = "one combination" if directions == 1 else f"{directions} combinations"
    where = (
        f"{comma_list(columns)} left without noise"
        if columns
        else f"the card has no noise on {many} of the fields"
    )
    return f"{where}: there he takes the rounding to the unit and {least:g} of the variance for it"


def error_plays_no_part(hardly: bool, exact_columns: bool) -> str:
    """Say that hardly more than one true record fits what the intruder knows, and by what."""
    part = "HARDLY ANY PART" if hardly else "NO PART"
    which = "his other columns single" if exact_columns else "values so nearly right single"
    return (
        f"THE ERROR PLAYS {part}: {which} out the record in the steward's own file, from which the true value is then "
        "known; for an outsider take marginal 'gaussian', or a marginal of your own with a population in the error"
    )


def chains_not_converged(failed: int, groups: int, rhat: float) -> str:
    """Say which chains do not agree."""
    of = f"{failed:,} of {groups:,} groups" if groups > 1 else "the chains"
    return f"NOT CONVERGED: {of} (R-hat up to {rhat:.2f}): give more draws in Sampling"


def learned_parameters(parameters: Sequence[Mapping[str, Any]]) -> str:
    """Write what was learned of each parameter of the noise."""
    names = (
        f"{one['name']} of {comma_list(one['columns'])} {one['mean']:.3g} +- {one['sd']:.2g}"
        for one in parameters
    )
    return f"what he learned of the noise: {'; '.join(names)}"


def ceiling_in_expectation(names: Sequence[str], above: Sequence[str]) -> str:
    """Say in which sense the ceiling is one, and who is above it here."""
    end = f" (here: {comma_list(above)})" if above else ""
    return f"{comma_list(names)}: holds in expectation over the noise; in a single draw another may find more{end}"


def prior_held(family: str, mean_over_sd: float, own: Sequence[str], shared: Sequence[str]) -> str:
    """Say by which prior the parameters are guessed."""
    said = f"not told the parameters: prior {family}, mean over sd {mean_over_sd:g}"
    said += f", own ones of {comma_list(own)}" if own else ""
    return said + (f", shared {comma_list(shared)}" if shared else "")


def unknown_parameters(**columns: Sequence[str]) -> str:
    """Say which parameters of the noise are not known, of which columns."""
    parts = [f"{PARAMETERS[name]} {comma_list(names)}" for name, names in columns.items()]
    end = " (all else, correlations and sd ratios, is taken from the card)" if "scale" in columns else ""
    return f"unknown: {' and '.join(parts)}{end}"


def singled_out_in_clear(columns: Sequence[str], alone: int, targets: int) -> str:
    """Say by what most targets are alone, whatever the noise."""
    return (
        f"the noise protects nobody here: {comma_list(columns)}, left in clear, alone single out {alone:,} of "
        f"{targets:,} targets"
    )


def keep_parameters(points: float, error: float | None, unsettled: bool) -> str:
    """Advise on parameters without which less is found."""
    return (
        f"keeping the parameters {change_of_rate(points, error)}, against intruders with this prior, which nobody can "
        "check; more noise, told, protects against every intruder and leaves the release open to analysis"
        f"{_reservation(unsettled)}"
    )


def too_few_targets(targets: int, points: float, error: float | None, unsettled: bool) -> str:
    """Advise where there are too few targets for advice."""
    few = "1 target is" if targets == 1 else f"{targets:,} targets are"
    return (
        f"{few} too few to say: keeping the parameters {change_of_rate(points, error)}; {NEEDED}"
        f"{_reservation(unsettled)}"
    )


def tell_parameters(points: float, error: float | None, little: bool, unsettled: bool) -> str:
    """Advise where keeping the parameters hinders nobody but the analyst."""
    nothing = ", nothing to speak of" if little else ""
    return (
        f"tell the parameters: keeping them {change_of_rate(points, error)}{nothing}, and {NEEDED}"
        f"{_reservation(unsettled)}"
    )


def _reservation(unsettled: bool) -> str:
    return "; what did not settle (above) may change this" if unsettled else ""


def change_of_rate(points: float, error: float | None) -> str:
    """Say what keeping the parameters does to the rate, in points of per cent; a standard error of 0 is none."""
    shown = "" if error is None else f"{error:.1f}"
    if f"{abs(points):.1f}" == "0.0":
        return "leaves the rate as it is" + (f" (s.e. {shown} points)" if shown else "")
    verb = "lowers" if points > 0 else "raises"
    return f"{verb} the rate by {abs(points):.1f} points" + (f" (s.e. {shown})" if shown else "")


ANSWERS = {
    "attacks.masked_blocks": Wording(
        text_of_names("not among the blocks, because masked: {columns}"),
        "info",
        "the schema calls masked columns blocks, on which nobody can rely",
    ),
    "attacks.targets_not_released": Wording(
        "{released:,} of {targets:,} targets are in the release ({in_truth:,} in the truth), and he does not know who: "
        "the rate is over all of them",
        "info",
        "the intruder holds a file of his own, or does not know whose records were released",
    ),
    "attacks.among_released": Wording(
        "{share:.1%} of the targets are in the release, and he knows that his target is: the rate is among these; of "
        "all targets, released or not, he finds {rate_of_all:.1%}",
        "info",
        "not all records were released",
    ),
    "attacks.other_units": Wording(
        other_units,
        "caution",
        "the typical sizes of a column in target file and truth differ by a factor of 8",
    ),
    "attacks.not_used": Wording(
        text_of_names(
            "left in clear and NOT USED: {columns} (who knows them finds more: add them to match_blocks, or call them "
            "sensitive in the schema where nobody outside knows them)"
        ),
        "caution",
        "columns in clear were neither blocks nor compared",
    ),
    "attacks.released_as_groups": Wording(
        "{column} was released as groups and is not compared", "info", "a key column was grouped"
    ),
    "attacks.bounded_by_other": Wording(
        "not tried himself: nobody who knows the law expects to find more than {by} does, whose bound stands for him",
        "caution",
        "an intruder would take too long, and the bound on the ceiling is taken for him",
    ),
    "attacks.ceiling_in_expectation": Wording(
        ceiling_in_expectation,
        "info",
        "an intruder who holds the card and knows everybody else is among several",
    ),
    "attacks.ceiling_after_exchanges": Wording(
        text_of_names(
            "{names}: takes exchanges for such at random, and is no ceiling after directed ones: who knows by which "
            "rule records were exchanged may find more"
        ),
        "caution",
        "the same, on a release with exchanged records",
    ),
}

LINKAGE = {
    "attacks.no_candidate": Wording(
        "{count:,} searching records have no candidate in their block",
        "info",
        "blocks of searching records have no other side",
    ),
    "attacks.single_candidate": Wording(
        "{count:,} searching records have a single candidate in their block: it is linked whatever it holds",
        "info",
        "blocks have one record on the other side",
    ),
    "attacks.agrees_always": Wording(
        "{column} agrees in every pair, so it tells nobody apart (is it constant?)",
        "caution",
        "a field of a linkage agrees in all pairs",
    ),
    "attacks.agrees_never": Wording(
        "{column} agrees in no pair at all: is it coded alike on both sides?",
        "caution",
        "a field of a linkage agrees in no pair",
    ),
    "attacks.no_open_value": Wording(
        no_open_value, "caution", "a field of a linkage has nothing but missing and coded values in a file"
    ),
    "attacks.no_blocks": Wording(
        "no matching blocks: every record was compared with every other ({pairs:,} pairs)",
        "info",
        "a linkage has no blocks",
    ),
    "attacks.most_telling": Wording(
        text_of_names("of {fields} fields the {compared} that tell most are compared, not {left_out}"),
        "info",
        "a linkage was given more fields than it can compare",
    ),
    "attacks.one_to_one_score": Wording(
        "one-to-one: no assignment within blocks has a total score larger by more than {gap:.0e}",
        "info",
        "links are one-to-one, by scores",
    ),
    "attacks.one_to_one_distance": Wording(
        "one-to-one: no assignment within blocks has a smaller sum of squares by more than {gap:.0e}",
        "info",
        "links are one-to-one, by distances",
    ),
    "attacks.em_stopped": Wording(
        "EM had not converged after {steps:,} steps: m, u and p are where it stopped",
        "caution",
        "EM reached its number of steps before it converged",
    ),
    "attacks.em_other_optima": Wording(
        "{others} of {starts} starts of EM ended in another, worse optimum", "info", "starts of EM disagree"
    ),
    "attacks.em_not_identified": Wording(
        "fewer than three fields tell records apart, so the classes are not identified: m, u and p are where EM "
        "happened to start",
        "caution",
        "EM has fewer than three fields that tell records apart",
    ),
    "attacks.em_unlike_matches": Wording(
        em_unlike_matches, "caution", "the class that EM found has not the size or agreement of the matches"
    ),
    "attacks.em_like_matches": Wording(
        "the class that EM found looks like matches: {pairs:,.0f} pairs where {matches:,} are",
        "info",
        "the class that EM found has the size and agreement of the matches",
    ),
}

FINGERPRINT = {
    "attacks.masked_as_planned": Wording(
        masked_as_planned, "info", "a fingerprint is taken of a table to which no noise was added"
    ),
    "attacks.masked_without_card": Wording(
        masked_without_card, "info", "a fingerprint is taken of a release without a card"
    ),
    "attacks.coded_by_noise": Wording(
        text_of_names("which values of {columns} are coded depends on the noise: that does not count"),
        "info",
        "the noise moves values over the limits from which on they are coded",
    ),
    "attacks.relies_on_exchanged": Wording(
        relies_on_exchanged,
        "info",
        "the fingerprint has columns that some records exchanged",
    ),
    "attacks.shared_groups": Wording(shared_groups, "info", "records belong to groups"),
    "attacks.spared_values": Wording(
        spared_values, "info", "the noise of a column spares some of its values"
    ),
    "attacks.unchanged_values": Wording(
        unchanged_values, "caution", "a tenth of the values of a column with noise or more left as without it"
    ),
    "attacks.expected_over_samples": Wording(
        expected_over_samples, "info", "the floor is that of a mask which releases a sample"
    ),
    "attacks.mean_of_draws": Wording(
        "the correct links are the mean of {draws} draws of the noise",
        "info",
        "the floor rests on values that the noise spares",
    ),
}

NEAREST = {
    "attacks.varying_noise": Wording(
        text_of_names(
            "the noise of {columns} depends on the value, and this distance takes its mean square over the release: "
            "who knows the law can do far better, so look at BayesIntruder"
        ),
        "caution",
        "a distance by the card meets noise whose size depends on the value",
    ),
    "attacks.without_noise": Wording(
        without_noise, "info", "a distance by the card meets fields, or sums of fields, without noise"
    ),
    "attacks.no_distance_on_groups": Wording(
        text_of_names("no distance is taken on {columns}: released as groups"),
        "info",
        "key columns were grouped",
    ),
    "attacks.no_distance_on_names": Wording(
        text_of_names("no distance is taken on {columns}: not numbers in the release"),
        "info",
        "key columns are no numbers",
    ),
}

BAYES = {
    "attacks.upper_bound": Wording(
        "f(z) comes from the steward's own true records: an upper bound on what an outsider can do",
        "caution",
        "the marginal is that of the true records",
    ),
    "attacks.too_sure": Wording(
        "records at risk were exchanged far more often than the card's share says: his probabilities are too sure",
        "caution",
        "the card says that records exchanged values",
    ),
    "attacks.given_release": Wording(
        "the forward kernel has no weight for units that were not released: probabilities are given release",
        "caution",
        "the forward kernel meets a release of a part of the records",
    ),
    "attacks.rough_boxes": Wording(
        "many values of a record lie at limits or near their units: the probabilities of such boxes are right to a "
        "hundredth or so",
        "caution",
        "probabilities of boxes have many dimensions",
    ),
    "attacks.settled": Wording(
        "up to {nodes} nodes for an unknown; with up to {fewer} no probability differs by more than {change:.0e}",
        "info",
        "an integral over unknown parameters has settled",
    ),
    "attacks.not_settled": Wording(
        "NOT SETTLED: with {nodes} nodes for an unknown, probabilities still change by {change:.0e}",
        "failure",
        "an integral over unknown parameters has not settled",
    ),
    "attacks.prior_plays_no_part": Wording(
        "these laws leave nothing unknown: the prior plays no part",
        "info",
        "the prior speaks of nothing that the laws leave open",
    ),
    "attacks.unseen_candidates": Wording(
        "candidates left unseen: no probability is off by more than a share of {share:.1e}",
        "info",
        "candidates far from a record are not weighed",
    ),
    "attacks.units_as_noise": Wording(
        "units taken for noise: densities are right to {error:.1%} within 2 sds",
        "info",
        "rounding is taken for noise",
    ),
    "attacks.units_as_noise_in_parts": Wording(
        "units taken for noise in {parts} parts: densities are right to {error:.1%} within 2 sds",
        "info",
        "the same, where units are coarse",
    ),
    "attacks.taken_as_told": Wording(
        text_of_names("taken as told, because their laws leave nothing unknown: {columns}"),
        "info",
        "the prior speaks of nothing of some columns",
    ),
    "attacks.contradicted": Wording(
        "further from their likeliest record than any released record is from its own true one: {count:,} of the "
        "targets; the card contradicts their links, however probable these are among the candidates",
        "caution",
        "targets lie far from all candidates",
    ),
    "attacks.wrong_links": Wording(
        text_of_names(
            "the links are not those of this release: linked records are no nearer in {columns} than any others"
        ),
        "failure",
        "the noise between linked records is not that of the card",
    ),
    "attacks.error_plays_no_part": Wording(
        error_plays_no_part,
        "caution",
        "what an intruder knows with error leaves one true record all the same",
    ),
    "attacks.weighed_by_truth": Wording(
        "his values are off: what is behind them is weighed by the steward's own true records, of which about "
        "{records:.3g} (median of targets) come into question",
        "info",
        "an intruder's own values are off, and the true ones behind them are sought among the true records",
    ),
    "attacks.unknown_to_truth": Wording(
        "{count:,} of his records agree with no true record in what they are said to know exactly: any true value is "
        "as likely to them",
        "caution",
        "records with error fit no true record",
    ),
    "attacks.true_values_flat": Wording(
        "his values are off: his probabilities are rough, because any true value is as likely to him as any other",
        "caution",
        "an intruder's own values are off, and no law of true values is held",
    ),
    "attacks.true_values_given": Wording(
        "his values are off: the true ones behind them follow the population of his own",
        "info",
        "an intruder's own values are off, and he has a population",
    ),
    "attacks.true_values_normal": Wording(
        "his values are off: the true ones behind them follow a normal law, the release's with the noise taken out",
        "info",
        "an intruder's own values are off, and the marginal is gaussian",
    ),
    "attacks.no_normal_law": Wording(
        text_of_names(
            "no normal law can be fitted to what left without noise or as classes: any true value of {columns} is as "
            "likely"
        ),
        "caution",
        "the same, of columns without a normal law",
    ),
    "attacks.too_few_nodes": Wording(
        "ROUGH: his errors are so large against the noise that there are too few nodes: probabilities may be off",
        "caution",
        "errors of an intruder's values are far larger than the noise",
    ),
}

MATCHINGS = {
    "attacks.ceiling_bounded": Wording(
        "blocks are too large for all matchings: the links are those of one who knows his target alone, and what "
        "anybody can expect to find is bounded, by neighbourhoods whose records are told (the ceiling)",
        "info",
        "the ceiling is sought on blocks too large to be matched",
    ),
    "attacks.ceiling": Wording(
        "every unit is known to him: no intruder who holds this card can expect to do better (the ceiling)",
        "info",
        "the intruder holds the card and knows everybody else",
    ),
    "attacks.no_ceiling": Wording(
        "every unit is known to him, but exchanges count as made at random in the card's share: who knows by which "
        "rule records were exchanged may find more (no ceiling)",
        "caution",
        "the same, on a release with exchanged records",
    ),
    "attacks.all_others": Wording(
        "he knows {others:,} other units, all that can help: more helpers than these he cannot have",
        "info",
        "a plan has more helpers than can help",
    ),
    "attacks.target_groups": Wording(
        "{count:,} groups of a target and its helpers, each member of which is a target",
        "info",
        "targets are matched in groups",
    ),
    "attacks.matchings_counted": Wording(
        "all matchings were counted", "info", "matchings were counted with the parameters told"
    ),
    "attacks.matchings_counted_at": Wording(
        "all matchings were counted, at {values:,} values of the parameters: no probability is off by more than about "
        "{error:.0e}",
        "info",
        "matchings were counted with the parameters not told",
    ),
    "attacks.matchings_sampled": Wording(
        "in {sampled:,} of {blocks:,} blocks matchings were sampled (up to {draws:,} draws a chain): R-hat up to "
        "{rhat:.3f}, ESS from {ess:,.0f}, errors of probabilities up to {error:.3f}",
        "info",
        "matchings were drawn with the parameters told",
    ),
    "attacks.matchings_not_converged": Wording(
        "NOT CONVERGED in {blocks:,} blocks: give more draws in Sampling",
        "failure",
        "chains of matchings disagree, with the parameters told",
    ),
    "attacks.chains_sampled": Wording(
        "matchings and parameters were sampled (up to {draws:,} draws a chain): R-hat up to {rhat:.3f}, ESS from "
        "{ess:,.0f}",
        "info",
        "matchings were drawn with the parameters not told",
    ),
    "attacks.chains_not_converged": Wording(
        chains_not_converged, "failure", "chains of matchings and parameters disagree"
    ),
    "attacks.matchings_at_values": Wording(
        "matchings were drawn at {values} values of the parameters, where slopes put their posterior",
        "info",
        "matchings were drawn at a few values of the parameters",
    ),
    "attacks.learned_parameters": Wording(
        learned_parameters, "info", "an intruder without the parameters has learned them from the release"
    ),
    "attacks.nothing_to_learn": Wording(
        text_of_names("{columns}: nothing to learn there, the card was believed"),
        "info",
        "laws of some columns leave nothing unknown",
    ),
    "attacks.units_without_record": Wording(
        "not every known unit of some blocks can have a record of its own: some may have none",
        "info",
        "blocks have fewer units than are known of them",
    ),
    "attacks.undecided_links": Wording(
        "{undecided:,} of {links:,} links are not decided by these draws (first and second within 2 standard errors): "
        "there an approximation chooses; the probability of the truth is the figure to read",
        "caution",
        "draws of matchings leave open which record is likeliest",
    ),
}

KNOWLEDGE = {
    "attacks.holds_card": Wording("holds the card", "info", "a Bayesian intruder has no prior"),
    "attacks.holds_prior": Wording(prior_held, "info", "a Bayesian intruder has a prior"),
    "attacks.kernel": Wording("kernel {kernel}", "info", "of every Bayesian intruder"),
    "attacks.marginal_truth": Wording(
        "f(z) by the true records (no outsider has these: an upper bound)",
        "caution",
        "card_value says what those who were not told hold",
    ),
    "attacks.marginal_gaussian": Wording(
        "f(z) a normal law fitted to the release", "info", "the marginal is gaussian"
    ),
    "attacks.marginal_own": Wording("f(z) a function of your own", "info", "the marginal is a function"),
    "attacks.own_values_off": Wording(
        text_of_names("his own values of {columns} are off"), "info", "the intruder has an error"
    ),
    "attacks.knows_all_others": Wording("knows all others", "info", "all others help"),
    "attacks.knows_all_in_file": Wording("knows all in his file", "info", "all in a target file help"),
    "attacks.helpers": Wording(
        lambda helpers: count_phrase(helpers, "helper"), "info", "so many other units help"
    ),
    "attacks.no_helpers": Wording("no helpers", "info", "nobody helps"),
    "attacks.one_to_one_links": Wording("links one-to-one", "info", "links are one-to-one"),
    "attacks.searches_truth": Wording(
        "searches true records for each released one", "info", "the direction is to_original"
    ),
    "attacks.claims_above": Wording("claims links above {threshold:g}", "info", "there is a threshold"),
    "attacks.claims_every_link": Wording("claims every best link", "info", "there is no threshold"),
    "attacks.unknown_parameters": Wording(
        unknown_parameters, "info", "card_value says what those who were not told do not know"
    ),
}

CARD_VALUE = {
    "attacks.no_noise_compared": Wording(
        "the noise protects nobody here, and there is nothing to tell: no column that is compared has any",
        "info",
        "card_value compares no column with noise",
    ),
    "attacks.nothing_to_tell": Wording(
        text_of_names(
            "there is nothing to tell: the laws of {columns} leave nothing unknown, told and not told are the same"
        ),
        "info",
        "card_value compares laws without parameters",
    ),
    "attacks.singled_out_in_clear": Wording(
        singled_out_in_clear, "caution", "nearly all targets are alone by columns in clear"
    ),
    "attacks.keep_parameters": Wording(
        keep_parameters, "info", "less is found without the parameters, beyond the luck of these targets"
    ),
    "attacks.too_few_targets": Wording(
        too_few_targets,
        "caution",
        "the targets are too few to compare what is found with and without parameters",
    ),
    "attacks.tell_parameters": Wording(
        tell_parameters, "info", "no less to speak of is found without the parameters"
    ),
    "attacks.above_ceiling": Wording(
        "the ceiling is the largest in expectation only: on one release another may find more by luck",
        "info",
        "another intruder of card_value is right for more than the ceiling",
    ),
}

WORDS: dict[str, Wording] = (
    ANSWERS | LINKAGE | FINGERPRINT | NEAREST | BAYES | MATCHINGS | KNOWLEDGE | CARD_VALUE
)

# What `brief` says instead of the whole sentence.
BRIEF = {
    "attacks.not_used": text_of_names("left in clear and NOT USED: {columns}"),
    "attacks.undecided_links": text_of_names(
        "{undecided:,} of {links:,} links are not decided by these draws"
    ),
}
