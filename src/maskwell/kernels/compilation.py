"""Compile every loop now, by tiny calls of each: part of setting up, so that no first use has to wait."""

from __future__ import annotations


def compile_all() -> None:
    """Compile every loop now, so that no first use has to wait."""
    import numpy as np

    from . import densities, em, normal_box_lattice, pairs, rank_exchange

    one, three = np.ones(1), np.ones(3) / 3
    densities.normal_logpdf(one, one)
    densities.normal_log_interval(one, one, one)
    densities.laplace_logpdf(one, one)
    densities.laplace_log_interval(one, one, one)
    densities.mixture_logpdf(one, three, three, three)
    densities.mixture_log_interval(one, one, three, three, three)
    densities.bias_lognormal_logpdf(one, one, 0.1, one)
    densities.bias_lognormal_log_interval(one, 2 * one, one, 0.1, one)
    rank_exchange.exchange_within(three, 1)
    bounds, found, where = np.ones((1, 2)), np.ones((2, 1)), np.zeros(1, np.int64)
    side, counts = (bounds, bounds, found), np.zeros(4, np.int64)
    pairs.count_patterns(*side, where, where + 1, counts, np.zeros((1, 1), np.uint64))
    pairs.best_links(*side, where, where + 1, counts, *(where.copy() for _ in range(5)))
    pairs.all_patterns(*side, 0, 1)
    em.climb(where, one, 0.8 * three, 0.1 * three, 0.5, 1, 0.0, 1e-12)
    wide = np.ones((1, 2))
    normal_box_lattice.box_chances(
        -wide, wide, 0.5 + 0.5 * np.eye(2), normal_box_lattice.lattice(2, 2, 2), np.empty((1, 2))
    )
    normal_box_lattice.shared_chances(wide, np.array([0, 1]), where, one, one, np.empty((1, 2)))
    _compile_planes()
    _compile_searches()
    _compile_bias()
    _compile_matchings()
    _compile_assignment()
    _compile_helping()
    _compile_gauss()
    _compile_randoms()
    _compile_marginal()
    _compile_class_pairs()
    _compile_twister()


def _compile_twister() -> None:
    """Compile the states of the Mersenne Twister."""
    import numpy as np

    from . import mersenne_twister

    mersenne_twister.init_by_word(
        *(np.zeros(size, np.uint32) for size in (mersenne_twister.LENGTH, 1, (mersenne_twister.LENGTH, 1)))
    )


def _compile_class_pairs() -> None:
    """Compile the counts of agreeing residues."""
    import numpy as np

    from . import class_pairs

    keys, where = np.zeros((1, 1), np.uint16), np.zeros((1, 1), np.int64)
    last = np.full(1, class_pairs.NONE, np.int32)
    class_pairs.agreements(keys, where, 2, keys, last, where[0].copy(), where[0].copy(), where.copy())


def _compile_planes() -> None:
    """Compile the boxes that bound one or two coordinates, the small ones of more, and those that are nearly right."""
    import numpy as np

    from . import normal_box_conditional, normal_box_planes, normal_box_small

    wide, boxes = np.ones((1, 2)), np.full((1, 2), normal_box_conditional.BOX, np.int8)
    normal_box_conditional.conditioned_logs(-wide, wide, boxes, np.eye(2), np.empty(1))
    normal_box_small.small_boxes(-wide, wide, np.eye(2), np.empty(1), np.empty(1))
    normal_box_small.one_wide(-wide, wide, np.eye(2), np.empty(1), np.empty(1))
    normal_box_planes.few_bounded(-wide, wide, 0.5 + 0.5 * np.eye(2), np.empty(1), np.empty(1))


def _compile_searches() -> None:
    """Compile the loops over trees and over matrix products."""
    import numpy as np

    from . import distance_sieve_search, kdtree, kdtree_search

    points, one, where = np.zeros((2, 2)), np.ones(1), np.zeros(1, np.int64)
    planted = kdtree.plant(points.copy(), np.arange(2), where, where + 2, 1, 2, 1.0)
    kdtree_search.locate(planted, points[:1], where)
    found = where.copy(), one.copy(), where.copy(), where.copy(), one.copy()
    kdtree_search.find_nearest(planted, points[:1], where, 2, 1.0, *found)
    kdtree_search.count_closer(planted, points[:1], where, one, 1, 2, where.copy())
    sides = (
        np.zeros((2, 4), np.float32),
        np.zeros((4, 2), np.float32),
        planted.lengths,
        points,
        points[:1],
        one,
    )
    distance_sieve_search.sift_nearest(*sides, 1.0, 1.0, 0.5, np.ones((1, 3)), np.zeros((1, 2), np.int64))
    distance_sieve_search.sift_closer(*sides, 1.0, one, where.copy())


def _compile_bias() -> None:
    """Compile the kernels of bias and noise."""
    import numpy as np

    from . import bias_density

    one = np.ones(1)
    bias_density.bias_log(one, one, 0.1, 1.0, bias_density.PAPER)
    bias_density.bias_log_mean(one, one, one, one, one, bias_density.PAPER)
    bias_density.panel_of(1.0, 1.0)
    bias_density.even_logs(one, 1.0, np.ones((2, 2)))
    bias_density.surface_logs(one, one, (1.0, 1.0), np.zeros(2, np.int64), np.ones((1, 2, 2, 2)))


def _compile_matchings() -> None:
    """Compile the loops over matchings, counted and sampled."""
    import numpy as np

    from . import belief_propagation, matching_enumeration, matching_mcmc, permanent, rao_blackwell

    logs, match = np.zeros((2, 2)), np.arange(2)
    permanent.pair_chances(logs, np.zeros(3))
    permanent.log_sizes(logs)
    rows, begins = matching_mcmc.rows_of(logs, -np.inf), matching_mcmc.rows_of(logs[:1], -np.inf)
    walk = matching_mcmc.MatchingWalk(
        rows, np.ones(3), begins, match, match.copy(), np.zeros((8, 2), np.int64)
    )
    rng = np.random.default_rng(0)
    rao_blackwell.smooth(logs, np.zeros((0, 2), np.int32), 0, (match, np.arange(3)), np.zeros((2, 3)))
    wishes = belief_propagation.Wishes(np.ones((2, 3)), np.ones(3), 0.0, 0.0)
    belief_propagation.pass_messages(wishes, np.ones((3, 3)), 1, 0.0, np.zeros((2, 3)))
    ends, one, true = np.array([0, 1]), np.zeros(1), np.ones(1, bool)
    jobs = matching_enumeration.Jobs(
        ends, ends, match[:1], true, match[:1], match[1:], one, match[:1], np.zeros(2)
    )
    view = matching_enumeration.NodeView(one, one, match[:1], one, one[:0], one, 0.0)
    room, tally = (
        matching_enumeration.room_for(jobs),
        matching_enumeration.Tally(one - np.inf, one.copy(), one.copy()),
    )
    matching_enumeration.weigh_node(jobs, view, room, 1, one.copy())
    matching_enumeration.add_node(jobs, view, room, tally, one.copy())
    matching_mcmc.probe(walk, 0, np.zeros(2, np.int64), rng)
    matching_mcmc.circulate(walk, 0, 1, 1, np.zeros((2, 3), np.int64), np.zeros((1, 2), np.int32), rng)


def _compile_assignment() -> None:
    """Compile the loops of one-to-one assignments."""
    import numpy as np

    from . import assignment, distances

    one, two, nobody = np.zeros((1, 1)), np.zeros(1, np.int64), np.full(1, -1)
    graph = assignment.Graph(np.array([0, 1]), two, one[0])
    searching, sought = (assignment.Prices(two.copy(), one[0].copy()) for _ in range(2))
    match = assignment.Match(nobody.copy(), nobody.copy())
    assignment.auction(graph, sought, match, 0.1, 1)
    assignment.assign(graph, searching, sought, match, 0.0)
    cost, found = np.full((1, 1), np.inf), np.full((1, 1), -1)
    assignment.keep_cheapest(one, two, two, one[0], cost, found)
    tiles = assignment.Tiles(one, one[0], one, one)
    assignment.cheaper(tiles, one, one[0], cost[0], cost.copy(), found)
    assignment.add_digests(one.view(np.uint64), one[0].view(np.uint64), np.zeros(1, np.uint64))
    distances.log_kernel(one, one, one[0], one.copy())


def _compile_helping() -> None:
    """Compile the chains over matchings and parameters together."""
    import numpy as np

    from . import matching_noise_mcmc, matching_noise_steps

    one, wide, where, opened = np.ones(1), np.ones((1, 1)), np.zeros(1, np.int64), np.ones((1, 1), bool)
    scene = matching_noise_mcmc.Scene(
        0, wide, wide, opened, opened, wide, wide, where, where - 1, one[:0], where, one
    )
    place = matching_noise_mcmc.BlockPlace(where, where, where + 1, where, where + 1)
    ways = matching_noise_mcmc.Ways(0.5, 0.1, 0.2, where[:0], where, where, one)
    unit, unknown, record = np.zeros(1, np.int64), np.zeros(1), np.zeros(1)
    numbers = (unknown, wide.copy(), one.copy(), record, one.copy(), one, np.zeros((2, 2), np.int64))
    state = matching_noise_mcmc.State(unit, where.copy(), where.copy(), *numbers)
    grid = np.zeros((1, 9))
    steps = matching_noise_steps.PriorsAndSteps(
        grid, one - 5, one, np.ones((1, 1, 1)), np.ones((1, 1), np.int64)
    )
    table, shape = np.zeros((9, 1)), np.array([9, 1])
    surface = matching_noise_steps.PosteriorSurface(
        1, scene, place, np.full(2, -5.0), 1.0, shape, table, np.zeros(9, bool)
    )
    book = matching_noise_steps.Book(
        np.zeros((1, 1), np.int32), np.zeros((1, 2)), one.copy(), one.copy(), one.copy()
    )
    matching_noise_steps.run(
        (scene, place, ways, surface, steps), state, state, np.random.default_rng(0), (1, 1, 1, 1), book
    )
    matching_noise_mcmc.all_pairs(scene, place, one)


def _compile_gauss() -> None:
    """Compile the loops over sums of normal densities."""
    import numpy as np

    from . import gaussian_leaves, gaussian_ranks, gaussian_sums, gaussian_trees

    points, where, one = np.zeros((2, 2)), np.zeros(1, np.int64), np.zeros(1)
    grove = gaussian_trees.grow(points.copy(), np.arange(2), where, where + 2, np.zeros(2))
    gaussian_trees.locate(grove, points[:1], where)
    rules, pair = gaussian_leaves.Rules(1e-3, True, False, True, 0.0), np.zeros((1, 2), np.int64)
    out = np.zeros((1, 3)), pair.copy(), one.copy(), one.copy()
    gaussian_sums.weigh(grove, points[:1], where, where, where, rules, *out)
    marks = np.zeros(2, bool)
    gaussian_ranks.sweep(grove, points[:1], where, one, one, 1, pair, pair.copy(), np.zeros((1, 2)), marks)
    gaussian_ranks.renew(grove, np.zeros(2))


def _compile_randoms() -> None:
    """Compile single draws."""
    import numpy as np

    from . import densities, polya_gamma, random

    rng, three, eye = np.random.default_rng(0), np.ones(3), np.eye(2)
    random.truncated_normal(rng, 0.0, 1.0, 0.0, 1.0)
    densities.log_normal_cdf(0.0)
    random.exponential(rng, 1.0)
    random.gamma_draw(rng, 1.0)
    random.inverse_gamma(rng, 1.0, 1.0)
    random.inverse_gaussian(rng, 1.0, 1.0)
    random.wishart_root(rng, 3.0, eye)
    random.inverse_wishart(rng, 3.0, eye)
    random.categorical_from_logs(rng, three)
    polya_gamma.polya_gamma(rng, 1.0, 0.0)


def _compile_marginal() -> None:
    """Compile the likelihoods with unknown numbers integrated out."""
    import numpy as np

    from . import marginal_likelihood

    one, pair = np.ones(1), (np.ones(1), np.ones(1))
    marginal_likelihood.logit_total(one, one, one, one, one)
    marginal_likelihood.logit_slopes(one, pair, pair, (one.copy(), one.copy()))
    marginal_likelihood.probit_total(one, one, one)
    marginal_likelihood.probit_slopes(one, pair, (one.copy(), one.copy()))
    marginal_likelihood.count_total(one, 0.0, pair, pair)
    marginal_likelihood.count_slopes(one, 0.0, pair, pair, (one.copy(), one.copy()))
