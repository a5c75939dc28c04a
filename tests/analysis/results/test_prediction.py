"""Prediction from new covariates, with a predictor made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from maskwell.analysis.results import prediction as module
from maskwell.analysis.results.draws import Draws
from maskwell.analysis.results.posterior import Posterior
from maskwell.analysis.results.prediction import roots
from maskwell.errors import BadPlan

CHAINS, DRAWS, SCHOOLS = 4, 500, ("a", "b", "c")


@dataclass(frozen=True)
class Plain:
    """A model of one number x, with an intercept and, if asked, effects of schools on it and on the slope."""

    family: str = "gaussian"
    slopes: int = 0
    categories: tuple[str, ...] = ()
    shift: float | None = None
    known: Any = None
    hidden: Mapping[str, float] = field(default_factory=dict)
    unanswered: Any = ()
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"x": ()})

    @property
    def groups(self) -> tuple[str, ...]:
        return ("school",) if self.slopes else ()

    def columns(self, values: Any) -> Any:
        return np.column_stack([np.ones(len(values["x"])), values["x"]])

    def offset(self, values: Any) -> Any:
        return None if self.shift is None else np.full(len(values["x"]), self.shift)

    def effects(self, values: Any, groups: Any) -> Any:
        if not self.slopes:
            return []
        codes = [SCHOOLS.index(label) if label in SCHOOLS else -1 for label in groups["school"]]
        return [(np.array(codes), self.columns(values)[:, : self.slopes])]

    def fitted(self) -> Any:
        return self.known


def fitted(predictor: Plain, extra: dict[str, Any] | None = None, seed: int = 5) -> Posterior:
    """Draws of an intercept around 1 and a slope around 0.5, and further parameters held at a value."""
    rng = np.random.default_rng(seed)
    base = np.array([1.0, 0.5]) + 0.1 * rng.standard_normal((CHAINS, DRAWS, 2))
    held = extra or {}
    more = [np.full((CHAINS, DRAWS, 1), value) for value in held.values()]
    effects = rng.standard_normal((CHAINS, DRAWS, len(SCHOOLS), predictor.slopes)).astype(np.float32)
    values = np.concatenate([base, *more], axis=2)
    draws = Draws(("Intercept", "x", *held), values, effects=(effects,) if predictor.slopes else ())
    return Posterior(draws, formula="y ~ x", records=3, predictor=predictor)


LINKS = {
    "gaussian": lambda eta: eta,
    "probit": norm.cdf,
    "logit": lambda eta: 1 / (1 + np.exp(-eta)),
    "poisson": np.exp,
    "negative binomial": np.exp,
}


@pytest.mark.parametrize("family", LINKS)
def test_expected_responses_are_those_of_the_draws(family: str) -> None:
    posterior = fitted(Plain(family))
    found = posterior.predict({"x": [-1.0, 0.0, 2.0]}, level=0.9)
    eta = posterior["Intercept"].ravel()[:, None] + np.outer(posterior["x"].ravel(), [-1.0, 0.0, 2.0])
    expected = LINKS[family](eta)
    np.testing.assert_allclose(found.mean, expected.mean(axis=0))
    np.testing.assert_allclose(found.sd, expected.std(axis=0))
    np.testing.assert_allclose([found.low, found.high], np.quantile(expected, (0.05, 0.95), axis=0))
    assert (len(found), found.table.num_rows, found.kind) == (3, 3, "mean")


def test_an_offset_is_added() -> None:
    with_offset, without = (fitted(Plain(shift=shift)).predict({"x": [1.0]}).mean for shift in (3.0, None))
    np.testing.assert_allclose(with_offset, without + 3.0)


MOMENTS = {  # further parameters, and the variance of a new response by its mean
    "gaussian": ({"sigma": 2.0}, lambda mean: 4.0),
    "probit": ({}, lambda mean: mean * (1 - mean)),
    "logit": ({}, lambda mean: mean * (1 - mean)),
    "poisson": ({}, lambda mean: mean),
    "negative binomial": ({"shape": 3.0}, lambda mean: mean + mean**2 / 3),
}


def assert_within(figures: Any, expected: float) -> None:
    """Records are alike and their responses independent: their spread gives the standard error of their mean."""
    assert abs(figures.mean() - expected) < 4 * figures.std(ddof=1) / np.sqrt(len(figures))


@pytest.mark.parametrize("family", MOMENTS)
def test_new_responses_have_the_variance_of_the_family(family: str) -> None:
    extra, variance = MOMENTS[family]
    posterior, new = fitted(Plain(family), extra), {"x": np.full(50, -1.0)}
    found = posterior.predict(new, kind="response", seed=3)
    means = LINKS[family](posterior["Intercept"] - posterior["x"])
    assert_within(found.mean, means.mean())
    assert_within(found.sd**2, np.mean(variance(means)) + means.var())


def test_the_same_seed_gives_the_same_responses() -> None:
    posterior = fitted(Plain(), {"sigma": 1.0})
    one, two, three = (posterior.predict({"x": [1.0]}, kind="response", seed=s).mean for s in (1, 1, 2))
    assert one == two != three


def test_a_known_group_has_its_own_effects() -> None:
    posterior = fitted(Plain(slopes=2), {"sd(Intercept|school)": 1.0, "sd(x|school)": 1.0})
    found = posterior.predict({"x": 2.0, "school": ["b"]})
    own = posterior.draws.effects[0].reshape(-1, 3, 2)[:, 1].astype(np.float64)
    eta = posterior["Intercept"].ravel() + own[:, 0] + 2 * (posterior["x"].ravel() + own[:, 1])
    np.testing.assert_allclose(found.mean, eta.mean())
    np.testing.assert_allclose(found.sd, eta.std())


def test_effects_of_an_unknown_group_are_drawn_from_their_law() -> None:
    spreads = {"sd(Intercept|school)": 2.0, "sd(x|school)": 0.7, "cor(Intercept,x|school)": -0.6}
    posterior = fitted(Plain(slopes=2), spreads)
    found = posterior.predict({"x": np.full(40, 1.5), "school": "elsewhere"}, seed=1)
    variance = 4.0 + 1.5**2 * 0.49 + 2 * 1.5 * 2.0 * 0.7 * -0.6
    assert_within(found.sd**2, variance + np.var(posterior["Intercept"] + 1.5 * posterior["x"]))


def test_roots_are_those_of_the_covariance() -> None:
    names = ("x", "sd(Intercept|s)", "sd(x|s)", "cor(Intercept,x|s)", "sd(z|t)")
    draws = Draws(names, np.broadcast_to([0.5, 2.0, 0.7, -0.6, 3.0], (1, 2, 5)).copy())
    first, second = roots(draws, 0, 2), roots(draws, 2, 1)
    covariance = [[4.0, -0.84], [-0.84, 0.49]]
    np.testing.assert_allclose(first @ first.transpose(0, 2, 1), [covariance, covariance], atol=1e-8)
    assert second.ravel().tolist() == [3.0, 3.0]
    with pytest.raises(BadPlan, match="the spread of the groups was not kept"):
        roots(draws, 3, 1)


def test_correlations_of_one_have_roots_too() -> None:
    draws = Draws(("sd(a|s)", "sd(b|s)", "cor(a,b|s)"), np.ones((1, 1, 3)))
    root = roots(draws, 0, 2)[0]
    np.testing.assert_allclose(root @ root.T, np.ones((2, 2)), atol=1e-8)


def test_effects_that_were_not_kept_are_refused_for_known_groups() -> None:
    posterior = fitted(Plain(slopes=1), {"sd(Intercept|school)": 1.0})
    bare = Posterior(Draws(posterior.names, posterior.draws.values), predictor=posterior.predictor)
    assert len(bare.predict({"x": 1.0, "school": "elsewhere"})) == 1
    with pytest.raises(BadPlan, match="effects of the groups were not kept"):
        bare.predict({"x": 1.0, "school": "a"})


def test_an_ordered_response_has_probabilities() -> None:
    predictor = Plain("ordered", categories=("low", "middle", "high"))
    posterior = fitted(predictor, {"cut[2]": 1.0})
    found = posterior.predict({"x": [0.0, 1.0]})
    eta = posterior["Intercept"].ravel()[:, None] + np.outer(posterior["x"].ravel(), [0.0, 1.0])
    below = norm.cdf(0 - eta).mean(axis=0), norm.cdf(1 - eta).mean(axis=0)
    np.testing.assert_allclose(found.mean, np.column_stack([below[0], below[1] - below[0], 1 - below[1]]))
    assert found.table.column_names[:4] == ["low mean", "low sd", "low low", "low high"]
    assert found.to_dict()["categories"] == ["low", "middle", "high"]
    with pytest.raises(BadPlan, match="predicted by its probabilities"):
        posterior.predict({"x": [0.0]}, kind="response")


def test_blocks_of_records_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    posterior, new = fitted(Plain()), {"x": np.linspace(-1, 1, 11)}
    whole = posterior.predict(new)
    monkeypatch.setattr(module, "BLOCK", 3 * CHAINS * DRAWS)
    np.testing.assert_allclose(posterior.predict(new).low, whole.low)


def test_the_fitted_records_are_predicted_where_they_are_kept() -> None:
    known = {"x": np.array([0.0, 1.0])}, {}
    posterior = fitted(Plain(known=known))
    np.testing.assert_allclose(posterior.predict().mean, posterior.predict(known[0]).mean)
    with pytest.raises(BadPlan, match="name the records to predict"):
        fitted(Plain()).predict()


def with_truths(posterior: Posterior, truths: Any, **more: Any) -> Posterior:
    kept = np.asarray(truths, np.float32)[..., None]
    return replace(posterior, draws=replace(posterior.draws, truths=kept, truth_names=("x",), **more))


def test_true_values_go_with_the_parameters_of_the_same_draws() -> None:
    """A truth of 1 / slope: the product is 1 in every draw, and would spread by any other match."""
    predictor = Plain(known=({}, {}), hidden={"x": 0.0})
    posterior = fitted(predictor)
    at = slice(0, DRAWS, 5)
    truths = (1 / posterior["x"][:, at])[..., None] * [1.0, 2.0]
    found = with_truths(posterior, truths).predict()
    eta = posterior["Intercept"][:, at].ravel()[:, None] + [1.0, 2.0]
    np.testing.assert_allclose([found.mean, found.sd], [eta.mean(axis=0), eta.std(axis=0)], rtol=1e-5)


def test_true_values_have_the_effects_of_their_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {}, {"school": np.array(["b", "c", "a"], dtype=object)}
    posterior = fitted(Plain(slopes=2, known=known, hidden={"x": 0.0}, shift=0.5))
    truths = np.random.default_rng(8).standard_normal((CHAINS, 100, 3))
    at, places = slice(0, DRAWS, 5), [1, 2, 0]
    own = posterior.draws.effects[0][:, at][:, :, places].astype(np.float64)
    drawn = truths.astype(np.float32).astype(np.float64)
    level, slope = posterior["Intercept"][:, at, None], posterior["x"][:, at, None]
    eta = (level + 0.5 + own[..., 0] + drawn * (slope + own[..., 1])).reshape(-1, 3)
    expected = np.quantile(eta, (0.025, 0.975), axis=0)
    held = with_truths(posterior, truths)
    found = held.predict()
    np.testing.assert_allclose([found.low, found.high], expected)
    monkeypatch.setattr(module, "BLOCK", 1)  # a record at a time
    np.testing.assert_allclose(held.predict().low, expected[0])


def test_codes_of_whole_numbers_are_counted_from_their_base() -> None:
    posterior = fitted(Plain(known=({}, {}), hidden={"x": 3.0}))
    found = with_truths(posterior, np.ones((CHAINS, DRAWS, 2))).predict()
    np.testing.assert_allclose(found.mean, posterior.predict({"x": [4.0, 4.0]}).mean)


def test_true_values_that_were_not_kept_are_asked_for() -> None:
    posterior = fitted(Plain(hidden={"x": 0.0}))
    with pytest.raises(BadPlan, match=r"values of x in the .* not kept: fit with keep_truths=True, or give"):
        posterior.predict()
    weighted = replace(posterior, draws=replace(posterior.draws, info={"resamples": 2000}))
    with pytest.raises(BadPlan, match="were not kept: give the records to predict"):
        weighted.predict()
    assert len(posterior.predict({"x": [1.0]})) == 1


def test_repr_has_no_figure_of_a_record() -> None:
    said = repr(fitted(Plain()).predict({"x": [1.0, 2.0]}))
    assert said == "<Prediction of 2 expected responses: mean, sd and 95% interval of each>"


def test_what_is_no_kind_is_refused() -> None:
    with pytest.raises(BadPlan, match="'mean' or 'response', not 'median'"):
        fitted(Plain()).predict({"x": [1.0]}, kind="median")
