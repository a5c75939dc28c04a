"""The Bayesian intruder: every candidate weighed by how much likelier it makes what was released.

P(link i | x, z) is proportional to f(z_i | x) / f(z_i) with each record as likely beforehand (Trottini, Fienberg,
Makov and Meyer 2003, section 4.1; Fienberg, Makov and Sanil 1997, (1) and (2)). The plan chooses: `posterior` without
helpers, `matching_posterior.posterior` with them; `unknown_noise` with a prior, `own_error` with an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...errors import BadPlan, NoLaw, nearest, raise_all
from ...laws.chain import combined_of
from ...laws.unknowns import unknowns_of
from ...masking import Release
from ...notes import Note, has_code
from ..blocks import RecordSearch
from ..candidate_scores import option_problems
from ..joint_codes import block_codes
from ..pair_density import laws_on
from ..protocol import Guess, IntruderKnowledge, Ints, MarkedGuess, OrderOf
from ..risk import Risk
from .assumptions import AttackAssumptions
from .belief import Belief
from .card_check import check_card, far_targets
from .compared_fields import compared_fields, recode_as_truth
from .law_kernels import BACKWARD, KERNELS

if TYPE_CHECKING:
    from ...table import Floats, Table
    from .matching_posterior.ceiling_bound import Ceiling
    from .matching_posterior.matchings import Sampling
    from .own_error.error_law import OwnError
    from .unknown_noise.priors import Prior

EVERYBODY = "all"
MADE = {
    "prior": "such as Prior(mean_over_sd=20.0)",
    "error": "such as OwnError({'INCOME': 500.0})",
    "sampling": "such as Sampling(draws=4000)",
}
OWN = "a function of the user's own"  # what stands for one in plain data
# Such notes come first: what failed, and what makes an attack another than was asked for.
LOUD = (
    "attacks.error_plays_no_part",
    "attacks.not_settled",
    "attacks.matchings_not_converged",
    "attacks.chains_not_converged",
)


@dataclass(frozen=True, kw_only=True)
class BayesIntruder(RecordSearch):
    """Link by the noise card: the released z that has the largest posterior probability for a target x of its block.

    `kernel` is what a pair weighs:

    - "coherent": f(z|x) / f(z), the full Bayes answer. f(z|x) is the law over all fields together, statuses and
      categories included. `marginal` is its f(z): "truth", its average over the true records of the steward within
      the block, which no outsider knows (the rate is an upper bound on what he can do); "gaussian", a normal law
      fitted to the release; or a function that takes the released `Table` and returns log f(z) of each record;
    - "forward": f(z|x) alone, which cannot compare open values with values at a limit;
    - "paper": Trottini's f(x|z) of bias and noise, in closed form; "fms": that of Fienberg, Makov and Sanil.

    `prior` says that the parameters of the noise were not told: a `Prior` on what the laws leave unknown, integrated
    out by quadrature. Without one he holds the card. `error` says that his own values are off by an `OwnError`.
    `helpers` is L: so many other units he knows as well, not which records are theirs; with "all" (and the card) no
    intruder can do better, the ceiling. Their matchings are counted where blocks are small and sampled beyond, as
    `sampling` says. He stands by links of a probability above `threshold`.

    `fields` are all columns that have a law, and the key columns that left as they were: these must be the same.
    `direction="to_original"` takes for a released z the x that maximises f(z|x), where f(z) plays no part.
    `assignment="best"` links every record to its best candidate, "one-to-one" lets each be linked once, by the
    largest sum of scores in each block. On large blocks candidates are left unseen whose posterior mass is below
    `eps` together; the link itself is always that of all pairs.

    "No candidate" is a record from which (or to which) no law leads. In the table `score` is the log weight,
    `probability` his posterior that the link is right: over the released records of the block and its units that
    were not released (`not_released`); to_original, over its true records. It is that of one link by itself, also
    where links are one-to-one. `Risk.belief` has the curve of thresholds, ranks, and whether his probabilities hold.
    """

    needs_law: ClassVar[bool] = True

    fields: tuple[str, ...] | None = field(default=None, kw_only=False)
    assignment: str = "best"
    kernel: str = "coherent"
    marginal: str | Callable[[Table], Floats] = "truth"
    prior: Prior | None = None
    error: OwnError | None = None
    helpers: int | str = 0
    threshold: float = 0.0
    eps: float = 1e-6
    sampling: Sampling | None = None

    def __post_init__(self) -> None:
        problems = self.search_problems() + option_problems(self) + _kernel_problems(self)
        raise_all(problems + _knowledge_problems(self) + _figure_problems(self), BadPlan)

    def guess(self, known: IntruderKnowledge, release: Release, order_of: OrderOf) -> Guess:
        """Link the intruder's records with the released ones, without any link."""
        blocks = self.match_columns(release.table.schema)
        fields, notes = compared_fields(self.fields, blocks, known, release)
        _check_laws(fields, release)
        if not known.as_true:
            known = replace(known, targets=recode_as_truth(known.targets, known.population, fields))
        notes += self._on_knowledge(fields, known, release)
        if self.helpers:
            _check_helpers(self.helpers, known)
            from .matching_posterior.posterior import together as answer
        else:
            from .posterior import link_by_posterior as answer

        with np.errstate(over="ignore"):  # a log density below all numbers is that of what is impossible
            guess = answer(self, known, release, order_of, fields)
        if has_code(guess.notes, "attacks.nothing_to_learn"):
            notes = [note for note in notes if note.code != "attacks.taken_as_told"]
        notes = sorted([*guess.notes, *notes], key=lambda note: note.code not in LOUD)
        return replace(guess, notes=tuple(notes))

    def company(self, truth: Table, targets: Ints) -> Ints:
        """Return the targets with all who can help to find them: with the card only units of their blocks can.

        Who learns the noise learns from all, and from a released record the search is among all.
        """
        if self.prior is not None or not self.to_masked or len(targets) == len(truth):
            return np.arange(len(truth))
        blocks, _ = block_codes(truth, truth, self.match_columns(truth.schema))
        return np.flatnonzero(np.isin(blocks, blocks[targets]))

    @property
    def answers_by_block(self) -> bool:
        """Whether he answers by the card and the true records of the targets' blocks alone."""
        return self.to_masked and self.prior is None and self.error is None and self.marginal == "truth"

    def _on_knowledge(
        self, fields: tuple[str, ...], known: IntruderKnowledge, release: Release
    ) -> list[Note]:
        """Refuse priors and errors of what is not there, and say what a prior leaves out."""
        if self.error is not None:
            from .own_error.error_law import error_problems

            raise_all(error_problems(self.error, fields, known.targets.schema), BadPlan)
        if self.prior is None:
            return []
        from .unknown_noise.priors import prior_problems

        laws = laws_on(release.card, fields)
        raise_all(prior_problems(self.prior, laws), BadPlan)
        told = tuple(name for law in laws if not unknowns_of(law) for name in law.columns)
        return [Note("attacks.taken_as_told", {"columns": told})] if told else []

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data; a function of the user's own is only named."""
        out = RecordSearch.to_dict(self)
        return out | ({"marginal": OWN} if callable(self.marginal) else {})

    def assessed(self, risk: Risk, marked: MarkedGuess) -> Risk:
        """Add what he compared, and what he believes of the right records, to what was found.

        Only here, with the links in hand, can a card be told from that of another release.
        """
        with np.errstate(over="ignore"):
            said = check_card(marked.masking, risk.fields)
            far = 0 if self.error is not None or self.prior is not None else far_targets(marked, risk.fields)
            ceiling = self._bound(risk, marked)
        return replace(
            risk,
            ceiling=ceiling,
            belief=Belief.of_answer(marked, self.threshold),
            assumed=AttackAssumptions.of(self, risk.fields, marked),
            notes=(*risk.notes, *said, *([Note("attacks.contradicted", {"count": far})] if far else [])),
        )

    def _bound(self, risk: Risk, marked: MarkedGuess) -> Ceiling | None:
        """Return a bound on the ceiling where blocks were too large for it."""
        given = marked.guess.figures.get("bound")
        if given is None:
            return None
        from .matching_posterior.ceiling_bound import ceiling_of

        return ceiling_of(self, marked, risk.fields, given)


def _kernel_problems(plan: BayesIntruder) -> list[str]:
    if plan.kernel not in KERNELS:
        near = nearest(str(plan.kernel), KERNELS)
        return [f"kernel must be one of {', '.join(KERNELS)}, not {plan.kernel!r}{near}"]
    problems = []
    if not callable(plan.marginal) and plan.marginal not in ("truth", "gaussian"):
        problems.append(
            f"marginal must be 'truth' or 'gaussian' (in Python also a function), not {plan.marginal!r}"
        )
    if plan.kernel != "coherent" and plan.marginal != "truth":
        problems.append(f"marginal is the f(z) of kernel 'coherent': leave it out with {plan.kernel!r}")
    if plan.kernel in BACKWARD and plan.error is not None:
        problems.append(f"kernel {plan.kernel!r} takes the intruder's values for exact: leave error out")
    return problems


def _knowledge_problems(plan: BayesIntruder) -> list[str]:
    """Say what is wrong with prior, error, helpers and sampling."""
    problems = []
    for name, kind in (("prior", "Prior"), ("error", "OwnError"), ("sampling", "Sampling")):
        given = getattr(plan, name)
        if given is not None and type(given).__name__ != kind:
            problems.append(f"{name} takes {'an' if kind == 'OwnError' else 'a'} {kind}: {MADE[name]}")
    if plan.prior is not None and plan.error is not None:
        problems.append("give either a prior or an error: both at once are not supported")
    number = isinstance(plan.helpers, Integral) and not isinstance(plan.helpers, bool)
    if plan.helpers != EVERYBODY and not (number and int(plan.helpers) >= 0):
        problems.append(f"helpers is a whole number from 0 on or 'all', not {plan.helpers!r}")
    elif plan.helpers:
        problems += _helper_problems(plan)
    return problems


def _helper_problems(plan: BayesIntruder) -> list[str]:
    problems = []
    if plan.assignment == "one-to-one":
        problems.append(
            "helpers already have each record belong to one unit: leave the one-to-one assignment out"
        )
    if plan.direction == "to_original":
        problems.append("helpers look for masked records: leave direction out")
    if plan.error is not None:
        problems.append("helpers are known without error: leave error out")
    if callable(plan.marginal):
        problems.append("with helpers the marginal is 'truth': leave the function out")
    return problems


def _check_laws(fields: Sequence[str], release: Release) -> None:
    """Refuse fields none of which has a law: to name others would not help where all else left in clear."""
    laws = [law for law in map(combined_of, release.card.laws) if not set(law.columns).isdisjoint(fields)]
    if not laws or any(law.has_density for law in laws):
        return
    names = ", ".join(repr(name) for law in laws for name in law.columns if name in fields)
    if any(law.has_density for law in map(combined_of, release.card.laws)):
        remedy = "name fields that have one, or take the nearest-record intruder"
    else:
        remedy = (
            "no other column has one either, so take the nearest-record intruder, or the fingerprint for what left in "
            "clear"
        )
    raise NoLaw(f"{laws[0].form} of {names} has no law p(z | x), by which this intruder works: {remedy}")


def _check_helpers(helpers: int | str, known: IntruderKnowledge) -> None:
    """Refuse more helpers than there are other units."""
    if helpers == EVERYBODY:
        return
    held = len(known.population) if known.as_true else min(len(known.targets), len(known.population))
    if int(helpers) >= held:
        who = "units in the truth" if known.as_true else "records in the target file"
        raise BadPlan(
            f"{int(helpers):,} helpers are more than there are others: give at most {held - 1:,} (of {held:,} {who}), "
            "or all"
        )


def _figure_problems(plan: BayesIntruder) -> list[str]:
    problems = []
    for name, low, high in (("threshold", 0.0, 1.0), ("eps", 0.0, 0.5)):
        value = getattr(plan, name)
        if not isinstance(value, Real) or isinstance(value, bool) or not low <= float(value) < high:
            problems.append(f"{name} must be a number from {low:g} to below {high:g}, not {value!r}")
    return problems
