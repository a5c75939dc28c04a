from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from maskwell.laws import (
    Additive,
    Classes,
    Laplace,
    Mixture,
    Multiplicative,
    Normal,
    Outlet,
    RankSwapped,
    SkewedBias,
    Transition,
)
from maskwell.laws.chain import ChainedLaw, combined_of, follow, stages_of, widen_law

from .conftest import PAIR, drawn, stream_of, whole

MIXTURE = Mixture((0.2, 0.5, 0.3), ((-1.2, 0.1, 1.5),), ((0.4, 0.2, 0.3),))


def noised(sd: float = 3.0, column: str = "a", **outlet) -> Additive:
    return Additive((column,), Normal((sd,)), (whole(1, **outlet),))


def codes(column: str = "a", unit: int = 1, **limits) -> Additive:
    coded = {f"{name}_coded": True for name in limits}
    return Additive((column,), Normal((0.0,)), (whole(unit, **limits, **coded),))


def test_two_normal_stages_show_one_normal_law():
    both = follow(noised(3.0), noised(4.0))
    assert both.combined == noised(5.0)
    assert [label for label, _ in both.stages] == ["0", "1"]
    thrice = follow(both, noised(12.0))
    assert thrice.combined == noised(13.0)
    assert [label for label, _ in thrice.stages] == ["0", "1", "2"]


def test_stages_share_no_words():
    both = follow(noised(1.0), Additive(("a",), Normal((1.0,)), (Outlet(),)))
    x, stream = np.zeros((10_000, 1)), stream_of(10_000, stage="")
    parts = [law.scaled_noise(x, stream.staged(label))[:, 0] for label, law in both.stages]
    assert np.allclose(both.draw(x, stream)[:, 0], parts[0] + parts[1])
    assert abs(np.corrcoef(*parts)[0, 1]) < 4 / 100


def test_the_first_stage_of_a_chain_draws_what_the_law_alone_draws():
    """So that a release can be nested in an earlier one."""
    alone = Additive(("a",), Normal((1.0,)), (Outlet(),))
    both = follow(alone, Additive(("a",), Normal((1e-12,)), (Outlet(),)))
    assert np.abs(drawn(both, (5.0,), 100) - drawn(alone, (5.0,), 100)).max() < 1e-10


def test_each_column_leaves_by_its_last_outlet():
    first = Additive(("a", "b"), Normal((1.0, 2.0), PAIR), (whole(2, low=0.0), whole(3, avoid=(9.0,))))
    later = Additive(("b", "c"), Normal((1.0, 1.0)), (whole(5, high=50.0), whole(7)))
    both = follow(first, later)
    assert both.columns == ("a", "b", "c")
    assert both.outlets == (whole(2, low=0.0), whole(5, high=50.0), whole(7))
    assert np.allclose(both.combined.noise.covariance, [[1, 1.6, 0], [1.6, 5, 0], [0, 0, 1]])


def test_a_mixture_of_some_columns_may_be_followed_on_one_of_them():
    first = Additive(
        ("a", "b"), Mixture((0.5, 0.5), ((-1.0, 1.0), (-2.0, 2.0)), ((0.3, 0.3),) * 2), (whole(1),) * 2
    )
    both = follow(first, noised(0.4, "b"))
    assert both.combined.noise.sds == ((0.3, 0.3), (0.5, 0.5))
    assert both.combined.noise.means == first.noise.means


def test_codes_after_noise_replace_the_clamp_beside_them():
    coded = follow(noised(low=1.0, high=98.0), codes(high=99.0))
    assert coded.outlets == (whole(1, low=1.0, high=99.0, high_coded=True),)
    lower = follow(noised(low=1.0, high=98.0), codes(high=80.0, low=10.0))
    assert lower.outlets[0].codes == (10.0, 80.0)
    skipped = follow(noised(high=97.0, avoid=(98.0,)), codes(high=99.0))
    assert skipped.outlets == (whole(1, high=99.0, high_coded=True, avoid=(98.0,)),)


def test_limits_of_the_plan_that_keep_values_from_a_code_remain():
    coded = follow(noised(low=1.0, high=50.0), codes(high=99.0))
    assert coded.outlets == (whole(1, low=1.0, high=50.0),)


def test_codes_keep_what_the_noise_brought():
    first = Additive(
        ("a",), Normal((0.3,)), (Outlet(Fraction(5), log_shift=2.0, avoid=(45.0,)),), mean_corrected=True
    )
    coded = follow(first, codes(high=60.0))
    assert coded.outlets == (Outlet(Fraction(5), None, 60.0, high_coded=True, log_shift=2.0, avoid=(45.0,)),)
    assert coded.mean_corrected
    skewed = follow(SkewedBias(("a",), 0.2, (1.0,), (whole(1),)), codes(high=60.0))
    assert isinstance(skewed, SkewedBias)
    assert skewed.outlets[0].codes == (None, 60.0)
    chained = follow(follow(noised(3.0), noised(4.0)), codes(high=60.0))
    assert isinstance(chained, ChainedLaw)
    assert chained.outlets[0].codes == (None, 60.0)


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (Additive(("a",), Laplace((1.0,)), (whole(1),)), noised()),
        (Additive(("a",), Normal((1.0,)), (whole(1, log_shift=0.0),)), noised()),
        (noised(), Additive(("a",), Normal((1.0,)), (whole(1, log_shift=0.0),))),
        (Additive(("a",), Normal((1.0,)), (whole(1, log_shift=0.0),), mean_corrected=True),) * 2,
        (Additive(("a",), Normal((1.0,)), (whole(1),), spreads=(Multiplicative(0.1, 1.0),)), noised()),
        (Additive(("a",), Normal((1.0,)), (whole(1),), slope=0.9, offsets=(1.0,)), noised()),
        (codes(high=9.0), noised()),
        (Additive(("a",), Normal((1.0,)), (whole(1, low=0.0, high=2.0),), categories=(("x", "y", "z"),)),)
        * 2,
        (SkewedBias(("a",), 0.2, (1.0,), (whole(1),)), noised()),
        (Classes(("a",), (0.0,), ("low", "high")), noised()),
        (noised(), Classes(("a",), (0.0,), ("low", "high"))),
        (RankSwapped(("a",), 0.1), noised()),
        (RankSwapped(("a",), 0.1), codes(high=9.0)),
        (Transition(("a",), ("x", "y"), ("x", "y"), ((1.0, 0.0), (0.0, 1.0))), noised()),
        (noised(), codes("b", high=9.0)),
    ],
)
def test_what_has_no_closed_form_is_refused(first, later):
    assert follow(first, later) is None


def test_noise_on_the_same_log_scale_adds():
    first = Additive(("a",), Normal((0.3,)), (whole(1, log_shift=1.0),))
    both = follow(first, Additive(("a",), Normal((0.4,)), (whole(1, log_shift=1.0),)))
    assert both.combined.noise == Normal((0.5,))


def test_offsets_add():
    first = Additive(("a",), Normal((3.0,)), (whole(1),), offsets=(2.0,))
    assert follow(first, noised(4.0)).combined.offsets == (2.0,)


def test_columns_take_another_order_among_further_ones():
    law = Additive(("a", "b"), Normal((1.0, 2.0), PAIR), (whole(1), whole(2)), offsets=(5.0, 6.0))
    wide = widen_law(law, ("b", "c", "a"))
    assert wide.columns == ("b", "c", "a")
    assert wide.outlets == (whole(2), Outlet(), whole(1))
    assert wide.offsets == (6.0, 0.0, 5.0)
    assert np.allclose(wide.noise.covariance, [[4, 0, 1.6], [0, 0, 0], [1.6, 0, 1]])
    stream = stream_of(100)
    narrow = law.noise.draw(stream, law.columns)
    assert np.allclose(wide.noise.draw(stream, wide.columns)[:, [2, 0]], narrow, atol=1e-13)
    assert widen_law(law, ("a", "b")) is law


def test_readers_see_the_law_of_the_sum():
    both = follow(noised(3.0), noised(4.0))
    assert combined_of(both) == noised(5.0)
    assert combined_of(noised(5.0)) == noised(5.0)
    assert stages_of(noised(5.0)) == (("0", noised(5.0)),)
    x = np.full((10, 1), 4.0)
    z = drawn(both, (4.0,), 10)
    assert np.array_equal(both.logpdf(z, x), noised(5.0).logpdf(z, x))


def test_a_mixture_followed_by_normal_noise_is_wider_in_every_component():
    both = follow(
        Additive(("a",), MIXTURE, (whole("0.01"),)), Additive(("a",), Normal((0.3,)), (whole("0.01"),))
    )
    assert both.combined.noise.sds[0] == pytest.approx((0.5, np.sqrt(0.13), np.sqrt(0.18)), rel=1e-15)
