from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.analysis.corrections import moment_correction
from maskwell.analysis.model import ModelRequest, build, read_formula
from maskwell.analysis.model_fit import FitOptions, family_of
from maskwell.analysis.noise.arrays import Arrays
from maskwell.analysis.samplers.chains import ChainSettings, run_gibbs
from maskwell.analysis.survey_weights import bootstrap as weighting
from maskwell.analysis.survey_weights import estimates as weighting_estimates
from maskwell.analysis.survey_weights.bootstrap import (
    effective_records,
    fit_weighted,
    naive_weighted,
    recentred_estimates,
    weights_of,
)
from maskwell.analysis.survey_weights.estimates import ShortChains
from maskwell.analysis.survey_weights.resamples import (
    BY_RECORD,
    ResampledUnits,
    drawn_counts,
    drawn_system,
    resampled_system,
    rounded_counts,
)
from maskwell.analysis.system import Factor
from maskwell.errors import BadPlan

NOISE = mw.IndependentNoise(("x",), variance_ratio=0.4)


@pytest.fixture
def quick(monkeypatch):
    """Fewer fits of the weighted sample itself: its estimate has a small error more, a test takes less time."""
    monkeypatch.setattr(weighting, "ROUNDINGS", 3)
    monkeypatch.setattr(weighting_estimates, "CENTRE_DRAWS", 600)
    monkeypatch.setattr(weighting_estimates, "PILOT", 250)


def surveyed(records: int, seed: int) -> dict[str, np.ndarray]:
    """y = 1 + x + z / 2 + e in the population; records with a large e are sampled more often, those far out less."""
    rng = np.random.default_rng(seed)
    count = 12 * records
    x, z, e = rng.normal(size=count), rng.normal(size=count), rng.normal(size=count)
    chance = np.exp(0.5 * e) / (1 + 0.3 * np.abs(x))
    chance = np.clip(chance / chance.mean() * records / count, 0.002, 0.9)
    taken = rng.random(count) < chance
    y = 1 + x + 0.5 * z + e
    return {"x": x[taken], "z": z[taken], "y": y[taken], "weight": 1 / chance[taken]}


def released(columns: dict[str, np.ndarray], mask=NOISE, seed: int = 5):
    """Release columns, also groups, which a proposed schema drops."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)  # of the groups
        table = mw.Table.from_frame(pa.table(columns))
    kept = {column.name: replace(column, drop=False) for column in table.schema.columns}
    return mw.apply(mask, replace(table, schema=table.schema.changed(kept)), seed=seed).release


def seen(release, *names: str) -> list[np.ndarray]:
    """Columns as released, in the order of the release."""
    return [np.array(release.table.floats(name)) for name in names]


def system_of(formula: str, release, family: str = "gaussian"):
    parsed, seen = read_formula(formula, release)
    return build(ModelRequest(parsed, family_of(family, None)), release, seen)


def fitted(release, resamples: int, formula: str = "y ~ x + z", seed: int = 1, **more):
    options = FitOptions(chains=2, draws=resamples // 2, cores=1, **more)
    return fit_weighted(system_of(formula, release), release, "weight", options, np.random.SeedSequence(seed))


def moments(draws):
    flat = draws.values.reshape(-1, len(draws.names))
    return flat.mean(axis=0), flat.std(axis=0)


@pytest.mark.parametrize("mean", [0.3, 0.5, 0.7, 1.0, 1.6, 4.0])
def test_counts_have_their_mean_and_an_sd_as_large(mean):
    """But for means below 1/2, where 0 or 1 is the least spread that whole numbers have."""
    counts = drawn_counts(np.full(100_000, mean), np.random.default_rng(2))
    wanted = mean**2 if mean >= 0.5 else mean * (1 - mean)
    squares = (counts - mean) ** 2
    assert abs(counts.mean() - mean) < 4 * np.sqrt(wanted / len(counts))
    assert abs(squares.mean() - wanted) < 4 * squares.std() / np.sqrt(len(counts)) + 1e-12


def test_rounded_counts_are_next_to_their_means_and_right_on_average():
    rng = np.random.default_rng(3)
    means = rng.gamma(2.0, 0.7, 50)
    counts = np.stack([rounded_counts(means, rng) for _ in range(4000)])
    assert (np.abs(counts - means) < 1).all()
    part = means - np.floor(means)
    assert (np.abs(counts.mean(axis=0) - means) < 4.5 * np.sqrt(part * (1 - part) / 4000) + 1e-12).all()
    assert np.ptp(counts.sum(axis=1)) <= 1
    assert (rounded_counts(np.array([2.0, 1.0, 3.0]), rng) == [2, 1, 3]).all()


def test_a_resample_takes_everything_of_its_records():
    columns = surveyed(60, 4)
    columns["sex"] = np.where(np.arange(len(columns["x"])) % 3 == 0, "m", "f")
    columns["y"] = np.where(np.arange(len(columns["x"])) % 7 == 0, np.nan, columns["y"])
    system = system_of("y ~ x + sex", released(columns))
    system = replace(
        system,
        lower=np.arange(system.state.size, dtype=float).reshape(system.state.shape),
        tables={0: np.arange(2.0 * len(system)).reshape(-1, 2)},
        factors=(Factor("g", np.arange(len(system)) % 4, ("a", "b", "c", "d")),),
    )
    records = np.array([5, 5, 0, 17])
    found = resampled_system(system, records)
    assert len(found) == 4
    for name in ("state", "unknown", "lower", "counted"):
        assert (getattr(found, name) == getattr(system, name)[records]).all()
    assert (found.tables[0] == system.tables[0][records]).all()
    assert (found.factors[0].codes == records % 4).all()
    for name in BY_RECORD:
        assert (getattr(found.noise.arrays, name) == getattr(system.noise.arrays, name)[records]).all()
    assert len(found.noise.arrays.far.group) == 4


def test_nothing_in_the_noise_arrays_that_belongs_to_records_is_forgotten():
    system = system_of("y ~ x + z", released(surveyed(60, 4)))
    count, arrays = len(system), system.noise.arrays
    for name in Arrays._fields:
        value = getattr(arrays, name)
        if isinstance(value, np.ndarray):
            assert (value.shape[0] == count) == (name in BY_RECORD), name
            continue
        own = [field for field in value._fields if np.shape(getattr(value, field))[:1] == (count,)]
        assert own == (["group"] if name == "far" else []), name


def test_groups_come_whole_and_copies_are_groups_of_their_own():
    rng = np.random.default_rng(5)
    columns = surveyed(120, 5)
    count = len(columns["x"])
    school = np.arange(count) % 9
    columns |= {"school": school, "room": 10 * school + np.arange(count) % 2, "weight": 1.0 + school}
    release = released(columns)
    system = system_of("y ~ x + z + (1|school) + (1|room)", release)
    school, room, weight = seen(release, "school", "room", "weight")
    units = ResampledUnits.of(system, weight)
    records, codes = units.draw(rng)
    drawn = drawn_system(system, (records, codes))
    place = [factor.name for factor in system.factors].index("school")
    for copy in np.unique(codes[place]):
        here = records[codes[place] == copy]
        assert (np.sort(here) == np.flatnonzero(school == school[here[0]])).all()
        rooms = codes[1 - place][codes[place] == copy]
        assert len(np.unique(rooms)) == len(np.unique(room[here]))
    assert len(drawn.factors[place].labels) == codes[place].max() + 1
    assert len(np.unique(codes[1 - place])) == codes[1 - place].max() + 1
    certain = ResampledUnits.of(system, np.full(count, 7.0))
    assert certain.is_certain
    assert (np.sort(certain.rounded(rng)[0]) == np.arange(count)).all()


def test_weights_within_groups_become_counts_of_their_records():
    rng = np.random.default_rng(6)
    columns = surveyed(120, 6)
    columns["school"] = np.arange(len(columns["x"])) % 9
    release = released(columns)
    school, weight = seen(release, "school", "weight")
    school = school.astype(np.int64)
    units = ResampledUnits.of(system_of("y ~ x + z + (1|school)", release), weight)
    sizes = np.bincount(school)
    counts = np.zeros((2000, len(school)))
    for row in counts:
        records, (codes,) = units.draw(rng)
        np.add.at(row, records, 1)
        first = np.unique(codes, return_index=True)[1]
        assert (np.bincount(codes) == sizes[school[records[first]]]).all()
    own = np.bincount(school, weight) / sizes
    assert np.allclose(units.means / units.means[0], own / own[0])
    wanted = units.means[0] / own[0] * weight
    assert (np.abs(counts.mean(axis=0) - wanted) < 5 * counts.std(axis=0) / np.sqrt(len(counts))).all()


def test_crossed_groups_are_refused():
    columns = surveyed(120, 7)
    count = np.arange(len(columns["x"]))
    columns |= {"school": count % 5, "area": count // 5 % 4}
    release = released(columns)
    system = system_of("y ~ x + z + (1|school) + (1|area)", release)
    with pytest.raises(BadPlan, match="do not lie within"):
        ResampledUnits.of(system, seen(release, "weight")[0])


def test_the_weighted_fit_finds_the_population_and_its_spread_is_the_sandwich():
    """Against the moment correction with weights, whose standard errors are a formula."""
    release = released(surveyed(800, 8))
    draws = fitted(release, 400)
    mean, sd = moments(draws)
    wanted = moment_correction("y ~ x + z", release, weights="weight")
    plain = moment_correction("y ~ x + z", release)
    errors = np.array(wanted.standard_errors)
    assert draws.names == wanted.names
    assert (np.abs(mean - wanted.estimates) < (4 * sd / np.sqrt(400)) + 0.1 * errors).all()
    assert (np.abs(sd / errors - 1) < 4 / np.sqrt(2 * 400) + 0.05).all()
    truth = np.array([1.0, 1.0, 0.5])
    assert (np.abs(mean - [*truth, 1.0]) < 4 * sd).all()
    assert abs(plain["Intercept"] - 1.0) > 8 * sd[0]  # without weights another answer
    assert "Goldstein, Carpenter and Kenward (2018)" in draws.sampler
    assert "400 resamples of records" in draws.sampler
    assert draws.values.shape == (2, 200, 4)
    assert draws.nuisance_names[-1] == "x ~ sigma"


def test_equal_weights_give_the_ordinary_fit():
    columns = surveyed(600, 9) | {"weight": np.full(len(surveyed(600, 9)["x"]), 3.7)}
    release = released(columns)
    draws = fitted(release, 400)
    mean, sd = moments(draws)
    system = system_of("y ~ x + z", release)
    from maskwell.analysis.priors import Priors
    from maskwell.analysis.samplers.conjugate import sampler as closed

    wanted, spread = moments(closed.sample(system, Priors(), 2, 4000, np.random.default_rng(1)))
    assert (np.abs(mean - wanted) < 4 * spread * (1 / np.sqrt(4000) + 1 / np.sqrt(4000 * 0.7))).all()
    assert (np.abs(sd / spread - 1) < 4 / np.sqrt(2 * 400) + 0.06).all()


def test_errors_over_samples_are_as_large_as_the_fit_says(quick):
    """Of 30 surveys of one population; the sandwich itself is up to a tenth too small in samples of this size."""
    scores = []
    for seed in range(30):
        mean, sd = moments(fitted(released(surveyed(500, 100 + seed), seed=seed), 20, seed=seed))
        scores.append((mean[:3] - [1.0, 1.0, 0.5]) / sd[:3])
    squares = np.array(scores) ** 2
    usual, spread = 19 / 17, np.sqrt(2 * (19 / 17) ** 2 * 18 / 15)  # t with 19 degrees of freedom
    assert (squares.mean(axis=0) < 1.2 * (usual + 3.5 * spread / np.sqrt(30))).all()
    assert (squares.mean(axis=0) > 0.35).all()  # less in 1 of 1,000 where the sds are right
    assert (np.abs(np.array(scores).mean(axis=0)) < 3.5 * np.sqrt(1.2 * usual / 30)).all()


def test_short_chains_agree_with_the_closed_form(quick):
    release = released(surveyed(150, 10))
    exact, sd = moments(fitted(release, 200))
    progress = []
    draws = fitted(release, 40, sampler="gibbs", warmup=100, progress=lambda *at: progress.append(at))
    mean, spread = moments(draws)
    assert (np.abs(mean - exact) < 4 * sd * np.sqrt(1 / 200 + 1 / 40)).all()
    assert (np.abs(np.log(spread / sd)) < 4 * np.sqrt(1 / 80 + 1 / 400)).all()
    assert "Gibbs draws" in draws.sampler
    assert progress[-1] == (43, 43)


def test_modes_of_a_logit_model_agree_with_the_population(quick):
    columns = surveyed(600, 11)
    rng = np.random.default_rng(11)
    columns["hit"] = (columns["y"] + rng.logistic(size=len(columns["y"])) > 1).astype(float)
    release = released(columns)
    system = system_of("hit ~ x + z", release, "logit")
    options = FitOptions(chains=2, draws=10, cores=1)
    draws = fit_weighted(system, release, "weight", options, np.random.SeedSequence(1))
    mean, sd = moments(draws)
    assert "mode of the marginal posterior" in draws.sampler
    unweighted = fit_weighted(
        system, replaced(release, "weight"), "weight", options, np.random.SeedSequence(1)
    )
    assert moments(unweighted)[0][0] - mean[0] > 3 * sd[0]  # large e are too many in the sample
    population = population_logit()
    assert (np.abs(mean - population) < 4.5 * sd).all()


def population_logit() -> np.ndarray:
    """The logit of hit on x and z in the population, from many of its records."""
    rng = np.random.default_rng(12)
    x, z, e = (rng.normal(size=200_000) for _ in range(3))
    hit = x + 0.5 * z + e + rng.logistic(size=200_000) > 0
    design, beta = np.column_stack([np.ones(len(x)), x, z]), np.zeros(3)
    for _ in range(8):
        chance = 1 / (1 + np.exp(-design @ beta))
        gram = design.T @ (design * (chance * (1 - chance))[:, None])
        beta += np.linalg.solve(gram, design.T @ (hit - chance))
    return beta


def replaced(release, column: str):
    """The release with equal weights."""
    table = release.table.to_arrow()
    place = table.column_names.index(column)
    table = table.set_column(place, column, pa.array(np.ones(len(table))))
    return replace(release, table=mw.Table.from_frame(table, release.table.schema))


def test_the_naive_fit_is_weighted_too(quick):
    columns = surveyed(300, 13)
    columns["y"] = np.where(np.arange(len(columns["y"])) < 40, np.nan, columns["y"])
    release = released(columns)
    options = FitOptions(chains=2, cores=1)
    draws = naive_weighted(
        system_of("y ~ x + z", release), release, "weight", options, np.random.SeedSequence(2)
    )
    x, z, y, weight = seen(release, "x", "z", "y", "weight")
    here = np.isfinite(y)
    assert here.sum() == len(y) - 40
    design, weight = np.column_stack([np.ones(len(y)), x, z])[here], weight[here]
    wanted = np.linalg.solve(design.T @ (design * weight[:, None]), design.T @ (weight * y[here]))
    mean, sd = moments(draws)
    assert draws.values.shape[:2] == (2, 100)
    assert (np.abs(mean[:3] - wanted) < 0.5 * sd[:3]).all()


def test_groups_are_the_units_of_the_variance(quick):
    """A mean of groups: its sd is that of the groups' means, weighted."""
    rng = np.random.default_rng(14)
    school = np.repeat(np.arange(30), 4)
    level = rng.normal(size=30)
    own = 1.0 + (level > 0)  # groups of a high level are sampled half as often
    columns = {"y": level[school] + 0.3 * rng.normal(size=120), "x": rng.normal(size=120)}
    columns |= {"school": school, "weight": own[school]}
    release = released(columns)
    options = FitOptions(chains=2, draws=50, warmup=100, cores=1)
    system = system_of("y ~ 1 + (1|school)", release)
    draws = fit_weighted(system, release, "weight", options, np.random.SeedSequence(3))
    mean, sd = moments(draws)
    means = np.bincount(school, columns["y"]) / 4
    middle = np.average(means, weights=own)
    spread = np.sqrt((own**2 * (means - middle) ** 2).sum()) / own.sum()
    assert abs(mean[0] - middle) < 0.3 * spread
    assert abs(np.log(sd[0] / spread)) < 4 / np.sqrt(200) + 0.05
    assert "100 resamples of the groups of school" in draws.sampler
    between = np.sqrt(np.average((means - middle) ** 2, weights=own) - 0.09 / 4)
    assert abs(mean[list(draws.names).index("sd(Intercept|school)")] - between) < 0.3 * between


def test_draws_are_centred_and_freed_of_their_own_error():
    rng = np.random.default_rng(15)
    true = np.array([5.0, 0.0, 0.0]) + rng.normal(size=(4000, 3))
    halves = true[:, None, :] + rng.normal(size=(4000, 2, 3))  # means of halves with an error of sd 1
    halves[:, :, 1] = np.exp(0.1 * halves[:, :, 1])
    halves[:, :, 2] = np.tanh(0.1 * halves[:, :, 2])
    found = recentred_estimates(("x", "x ~ sigma", "cor(a,b|g)"), np.array([2.0, 3.0, 0.5]), halves)
    plain = found[:, 0], np.log(found[:, 1]), np.arctanh(found[:, 2])
    for values, middle, size in zip(plain, (2.0, np.log(3.0), np.arctanh(0.5)), (1.0, 0.1, 0.1), strict=True):
        assert values.mean() == pytest.approx(middle, abs=1e-9)
        assert values.std() == pytest.approx(size, rel=0.06)


def test_a_chain_starts_where_the_pilot_was():
    release = released(surveyed(60, 16))
    system = system_of("y ~ x + z", release)
    chains = ShortChains(system, FitOptions().priors, 20)
    chains.prepare(np.random.default_rng(1))
    assert chains.burn >= 10
    assert chains.draws >= 40
    ordinary = run_gibbs(system, FitOptions().priors, ChainSettings(1, 4, 0), np.random.SeedSequence(1))
    assert chains.names == ordinary.names
    assert chains.nuisance_names == ordinary.nuisance_names


def test_weights_say_of_how_many_records_they_leave_the_information():
    assert effective_records(np.full(7, 3.0)) == pytest.approx(7)
    assert effective_records(np.array([1.0, 0.001, 0.001])) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("wieght", "did you mean 'weight'"),
        ("x", "carry noise"),
        ("label", "is not a number"),
        ("hole", "are missing"),
        ("none", "are not above 0"),
    ],
)
def test_what_are_no_weights_is_refused(column, message):
    columns = surveyed(50, 17)
    count = len(columns["x"])
    columns |= {"label": np.array(["a", "b"])[np.arange(count) % 2], "none": np.arange(count).astype(float)}
    columns["hole"] = np.where(np.arange(count) == 3, np.nan, 1.0)
    with pytest.raises(BadPlan, match=message):
        weights_of(released(columns), column)


def test_true_values_are_not_kept_with_weights():
    release = released(surveyed(50, 18))
    options = FitOptions(keep_truths=True)
    with pytest.raises(BadPlan, match="true values are not kept"):
        fit_weighted(system_of("y ~ x", release), release, "weight", options, np.random.SeedSequence(1))


def test_the_same_seed_gives_the_same_draws():
    release = released(surveyed(80, 19))
    first, second = (fitted(release, 12, seed=4).values for _ in range(2))
    assert (first == second).all()
    assert (first != fitted(release, 12, seed=5).values).any()
