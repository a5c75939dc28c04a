"""All known units matched at once: exact and sampled, calibrated, and honest about what does not converge."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from maskwell.attacks.bayes.matching_posterior import components, mcmc
from maskwell.attacks.bayes.matching_posterior.ceiling_bound import _luck
from maskwell.attacks.bayes.matching_posterior.matchings import (
    Sampling,
    marginals,
    rhat_and_ess,
    sampling_from_dict,
)
from maskwell.attacks.targets import Sample
from maskwell.errors import BadInput, BadPlan

PLAIN = Sampling()
DENSE = [(5, 5, 5), (3, 5, 5), (5, 3, 5), (4, 4, 6), (3, 5, 7), (6, 4, 7), (1, 1, 1), (2, 1, 4)]


def listed(logs, units):
    """Probabilities of all pairs, last of none, by filling all N places with all N units in every way."""
    known, released = logs.shape
    out = np.zeros((known, released + 1))

    def place(unit, free, log_weight, match):
        if unit == known:
            spare = units - known - free.sum()
            if spare >= 0:
                others = np.prod(np.arange(spare + 1.0, units - known + 1.0))
                out[np.arange(known), match] += np.exp(log_weight) * others
            return
        place(unit + 1, free, log_weight, [*match, released])
        for record in np.flatnonzero(free & (logs[unit] > -inf)):
            free[record] = False
            place(unit + 1, free, log_weight + logs[unit, record], [*match, record])
            free[record] = True

    place(0, np.ones(released, bool), 0.0, [])
    return out / out[0].sum()


def joined(found):
    return np.column_stack([found.probability, found.unreleased])


def drawn(seed, known, released, *, impossible=0.0):
    rng = np.random.default_rng(seed)
    logs = rng.normal(0, 2, (known, released))
    logs[rng.random(logs.shape) < impossible] = -inf
    return logs


def line(count, ratio, seed=5):
    """A block on one key with normal noise: log f(z|x) - log f(z)."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=count)
    z = x + np.sqrt(ratio) * rng.normal(size=count)
    logs = norm.logpdf(z, x[:, None], np.sqrt(ratio))
    return logs - logsumexp(logs, axis=0) + np.log(count)


@pytest.fixture
def sampled_only(monkeypatch):
    monkeypatch.setattr(components, "MOST_STATES", 0)


# Counted.


@pytest.mark.parametrize("shape", DENSE)
def test_small_blocks_are_exact(shape):
    known, released, units = shape
    logs = drawn(3, known, released)
    found = marginals(logs, units, np.random.default_rng(1), PLAIN)
    assert found.exact
    assert found.converged
    assert joined(found) == pytest.approx(listed(logs, units), abs=1e-12)


@pytest.mark.parametrize("shape", [(6, 6, 6), (4, 6, 6), (6, 4, 6), (5, 5, 7), (6, 5, 9)])
def test_pieces_together_are_exact(shape):
    known, released, units = shape
    several = 0
    for seed in range(40):
        logs = drawn(seed, known, released, impossible=0.65)
        try:
            found = marginals(logs, units, np.random.default_rng(1), PLAIN)
        except BadInput:
            assert np.isnan(listed_or_nan(logs, units)).all()
            continue
        several += len(components.pieces_of(logs, units)) > 1
        assert joined(found) == pytest.approx(listed(logs, units), abs=1e-12)
    assert several > 3


def listed_or_nan(logs, units):
    with np.errstate(invalid="ignore"):
        return listed(logs, units)


def test_pairs_that_no_whole_matching_has_cut_the_block():
    logs = np.zeros((3, 3))
    logs[0, 1:] = -inf
    found = marginals(logs, 3, np.random.default_rng(1), PLAIN)
    assert [len(piece.known) for piece in components.pieces_of(logs, 3)] == [1, 2]
    assert found.probability == pytest.approx(np.array([[1, 0, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]]))


def test_many_pieces_of_a_large_block_are_exact():
    logs = np.full((300, 200), -inf)
    for place in range(100):
        logs[3 * place : 3 * place + 3, 2 * place : 2 * place + 2] = drawn(1, 3, 2)
    found = marginals(logs, 400, np.random.default_rng(1), PLAIN)
    first, last = joined(found)[:3, [0, 1, -1]], joined(found)[297:, 198:]
    assert found.exact
    assert joined(found).sum(axis=1) == pytest.approx(np.ones(300))
    assert first == pytest.approx(last, abs=1e-12)


def test_one_known_unit_is_one_posterior():
    r = np.exp(drawn(1, 1, 6))
    found = marginals(np.log(r), 9, np.random.default_rng(1), PLAIN)
    assert found.probability == pytest.approx(r / (r.sum() + 3))
    assert found.unreleased == pytest.approx(3 / (r.sum() + 3))


def test_what_is_known_of_f_cancels_where_all_units_are_known():
    logs, shift = drawn(2, 7, 7), np.random.default_rng(1).normal(0, 5, 7)
    given, moved = (marginals(one, 7, np.random.default_rng(1), PLAIN) for one in (logs, logs + shift))
    assert moved.probability == pytest.approx(given.probability, abs=1e-12)


def test_exclusivity_tells_more_than_each_target_alone():
    logs = line(12, 0.1)
    together = marginals(logs, 12, np.random.default_rng(1), PLAIN).probability
    alone = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    assert together.sum(axis=0) == pytest.approx(np.ones(12))
    assert np.diag(together).mean() > np.diag(alone).mean()


def test_order_of_units_and_records_changes_nothing():
    logs, rows, columns = drawn(5, 6, 5), np.random.default_rng(1).permutation(6), [4, 2, 0, 1, 3]
    given = marginals(logs, 8, np.random.default_rng(1), PLAIN)
    moved = marginals(logs[np.ix_(rows, columns)], 8, np.random.default_rng(1), PLAIN)
    assert moved.probability == pytest.approx(given.probability[np.ix_(rows, columns)], abs=1e-12)


def test_probabilities_match_frequencies_over_releases():
    """Some units known, some released: what he says of pairs and of "not released" is right as often as he says."""
    rng, gaps = np.random.default_rng(11), []
    for _ in range(400):
        x = rng.normal(size=7)
        released = rng.permutation(7)[:5]
        z = x[released] + 0.7 * rng.normal(size=5)
        logs = norm.logpdf(z, x[:4, None], 0.7) - norm.logpdf(z, 0, np.sqrt(1.49))
        said = joined(marginals(logs, 7, rng, PLAIN))
        true = np.column_stack([released == np.arange(4)[:, None], ~np.isin(np.arange(4), released)])
        best = said == said.max(axis=1, keepdims=True)
        gaps.append([(true - said)[best].sum(), ((true - said) * said).sum(), (true - said)[:, -1].sum()])
    error = np.std(gaps, axis=0, ddof=1) / np.sqrt(len(gaps))
    assert (np.abs(np.mean(gaps, axis=0)) <= 4 * error).all()


# Sampled.


@pytest.mark.parametrize(
    ("shape", "draws"), [((7, 7, 7), 70_000), ((4, 6, 7), 110_000), ((6, 4, 6), 100_000)]
)
def test_sampled_probabilities_are_within_five_thousandths(shape, draws, sampled_only):
    known, released, units = shape
    logs = drawn(8, known, released)
    found = marginals(logs, units, np.random.default_rng(1), Sampling(draws=draws, most=draws, ess=1e5))
    assert not found.exact
    assert found.converged
    assert found.ess >= 1e5
    assert joined(found) == pytest.approx(listed(logs, units), abs=0.005)


@pytest.mark.parametrize("ratio", [0.01, 1.0])
def test_sampled_and_counted_agree_within_the_stated_error(ratio, monkeypatch):
    logs = line(14, ratio)
    counted = marginals(logs, 14, np.random.default_rng(1), PLAIN)
    monkeypatch.setattr(components, "MOST_STATES", 0)
    found = marginals(logs, 14, np.random.default_rng(1), PLAIN)
    assert counted.exact
    assert found.converged
    assert 0 < found.error < 0.03
    assert found.probability == pytest.approx(counted.probability, abs=4 * found.error)


def test_one_stranger_far_from_most_records_does_not_hold_chains_up(monkeypatch):
    """f(z) over one unknown unit is e^-100 at most records: weights must be seen relative to all units."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=14)
    z = x + 0.1 * rng.normal(size=14)
    logs = norm.logpdf(z, x[:-1, None], 0.1) - norm.logpdf(z, x[-1], 0.1)
    counted = marginals(logs, 14, np.random.default_rng(1), PLAIN)
    monkeypatch.setattr(components, "MOST_STATES", 0)
    found = marginals(logs, 14, np.random.default_rng(1), PLAIN)
    assert np.ptp(logs) > 200
    assert found.converged
    assert found.probability == pytest.approx(counted.probability, abs=4 * found.error)


@pytest.mark.parametrize("ratio", [0.001, 0.1, 1.0])
def test_chains_mix_on_one_key(ratio):
    found = marginals(line(150, ratio), 150, np.random.default_rng(1), PLAIN)
    assert found.converged
    assert not found.exact
    assert found.rhat <= PLAIN.rhat
    assert found.ess >= PLAIN.ess
    assert joined(found).sum(axis=1) == pytest.approx(np.ones(150))
    within = 4 * found.error * np.sqrt(150)  # each unit is smoothed by itself
    assert found.probability.sum(axis=0) == pytest.approx(np.ones(150), abs=within)


def test_units_that_are_all_alike_have_even_chances():
    found = marginals(np.zeros((25, 30)), 40, np.random.default_rng(1), PLAIN)
    each = np.sqrt(found.ess) / 4
    assert found.converged
    assert np.abs(found.unreleased - 0.25).max() <= np.sqrt(0.25 * 0.75) / each
    assert np.abs(found.probability - 0.025).max() <= np.sqrt(0.025 * 0.975) / each


def test_the_same_seed_gives_the_same_probabilities():
    logs = line(40, 0.1)
    one, two, other = (marginals(logs, 40, np.random.default_rng(seed), PLAIN) for seed in (1, 1, 2))
    assert np.array_equal(one.probability, two.probability)
    assert not np.array_equal(one.probability, other.probability)


# What does not converge is said.


def two_valleys():
    """A row of units, each with the record on its left or on its right: all left or all right, with a wall between."""
    logs = np.full((20, 21), -inf)
    at = np.arange(20)
    logs[at, at] = 0.0
    logs[at, at + 1] = np.where(at < 10, 30.0, -30.0)
    return logs


def test_chains_in_two_valleys_are_not_converged():
    found = marginals(two_valleys(), 21, np.random.default_rng(1), Sampling(draws=200, most=400))
    assert not found.converged
    assert not found.exact
    assert found.draws == 400
    assert found.rhat > 1.5
    assert found.error > 0.2


def test_a_unit_that_no_chain_ever_moved_is_not_trusted():
    piece = components.Piece(*2 * (np.arange(2),), np.zeros((2, 2)), 2, np.array([-inf, -inf, 0.0]))
    counts, kept = np.array([[800, 0, 0], [0, 800, 0]]), np.tile(np.arange(2, dtype=np.int32), (4, 200, 1))
    there, elsewhere = np.tile(np.arange(2), (4, 1)), np.array([[0, 1], [1, 0], [0, 1], [1, 0]])
    assert mcmc.ChainDiagnostics.of(piece, counts, kept, there).unmoved == 2
    assert not mcmc.ChainDiagnostics.of(piece, counts, kept, there).meets(1.01, 400)
    assert mcmc.ChainDiagnostics.of(piece, counts, kept, elsewhere).meets(1.01, 400)


def test_starts_are_possible_and_far_apart():
    logs = line(30, 0.01)
    starts = mcmc.dispersed_starts(logs, 30, np.random.default_rng(1), 4)
    assert all(sorted(start) == list(range(30)) for start in starts)
    assert all((starts[a] != starts[b]).all() for a in range(4) for b in range(a))


def test_chains_that_stay_apart_have_a_vast_r_hat():
    rng = np.random.default_rng(1)
    still = np.repeat(np.arange(4.0)[:, None], 100, axis=1)
    rhat, ess = rhat_and_ess(np.stack([still, rng.normal(size=(4, 100))], axis=2))
    assert rhat[0] > 1e6
    assert ess[0] < 10
    assert rhat[1] < 1.1
    assert ess[1] > 200


# Bad input.


@pytest.mark.parametrize(
    ("logs", "units", "says"),
    [
        (np.array([[0.0, np.nan]]), 2, "finite or zero"),
        (np.array([[0.0, inf]]), 2, "finite or zero"),
        (np.zeros((3, 2)), 2, "same population"),
        (np.full((1, 1), -inf), 1, "is possible"),
        (np.array([[0.0, -inf], [0.0, -inf]]), 2, "is possible"),
    ],
)
def test_what_cannot_be_matched_is_refused(logs, units, says):
    with pytest.raises(BadInput, match=says):
        marginals(logs, units, np.random.default_rng(1), PLAIN)


def test_a_block_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr("maskwell.attacks.bayes.matching_posterior.matchings.MOST_CELLS", 3)
    with pytest.raises(BadPlan, match="too many to match at once"):
        marginals(np.zeros((2, 2)), 2, np.random.default_rng(1), PLAIN)


def test_a_unit_that_fits_no_record_was_not_released():
    found = marginals(np.array([[-inf, -inf], [0.0, 0.0]]), 4, np.random.default_rng(1), PLAIN)
    assert found.unreleased[0] == 1
    assert found.probability[0].tolist() == [0, 0]


def test_a_block_without_records_has_none_released():
    assert marginals(np.zeros((3, 0)), 3, np.random.default_rng(1), PLAIN).unreleased.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "options",
    [{"chains": 1}, {"draws": 10}, {"draws": 2.5}, {"most": 500}, {"rhat": 1.0}, {"ess": 0}, {"ess": inf}],
)
def test_impossible_sampling_is_refused(options):
    with pytest.raises(BadPlan, match="Sampling"):
        Sampling(**options)


def test_sampling_is_written_and_read_back():
    plan = Sampling(chains=6, ess=1000.0)
    assert plan.to_dict() == {"chains": 6, "ess": 1000.0}
    assert sampling_from_dict(plan.to_dict()) == plan
    with pytest.raises(BadPlan, match="draws"):
        sampling_from_dict({"draw": 5})


def test_a_unit_that_can_have_no_record_was_not_released():
    found = marginals(np.full((1, 3), -np.inf), 6, np.random.default_rng(1), PLAIN)
    assert found.unreleased.tolist() == [1.0]
    assert not found.probability.any()


def test_a_few_hundred_targets_may_have_missed_the_few_who_stand_out() -> None:
    nobody, blocks = np.zeros(200), np.arange(200)
    below, above = _luck(Sample(200), nobody, blocks)
    assert below == 0.0
    assert 0.97 < 1 - (1 - above) ** 200 < 0.995  # a share of `above` would hardly have been missed
    assert _luck(None, nobody, blocks) == (0.0, 0.0)
