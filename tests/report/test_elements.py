"""The parts of a page."""

from __future__ import annotations

import pytest

from maskwell.report.elements import (
    Html,
    data_table,
    document,
    escape_text,
    folded_details,
    html_list,
    section,
    tag,
)

HOSTILE = "<script>alert('x')</script> & \"quotes\" \x00\x1b\u202e"


def test_text_is_escaped_wherever_it_goes() -> None:
    for made in (
        tag("p", HOSTILE),
        tag("p", title=HOSTILE),
        html_list([HOSTILE]),
        data_table(HOSTILE, (HOSTILE, "b"), [(HOSTILE, HOSTILE)]),
        section("s", HOSTILE, HOSTILE),
        folded_details(HOSTILE, HOSTILE),
        document(HOSTILE, HOSTILE, HOSTILE),
    ):
        assert "<script" not in made
        assert "alert(&#x27;x&#x27;)" in made
        assert not set(made) & set("\x00\x1b\u202e")


def test_html_is_not_escaped_again() -> None:
    assert tag("p", tag("b", "a < b"), Html("<i>c</i>")) == "<p><b>a &lt; b</b><i>c</i></p>"
    assert escape_text("é ✓ 数") == "é ✓ 数"


def test_attributes_have_their_names_and_nothing_is_left_out() -> None:
    assert tag("td", "1", class_="number", aria_label=None, open="") == '<td class="number" open="">1</td>'
    assert tag("meta", charset="utf-8") == '<meta charset="utf-8">'


@pytest.mark.parametrize(
    ("cells", "is_number"),
    [
        (("1,234", "-0.5"), True),
        (("12.5%", "–"), True),
        (("1.2e-05", "−3"), True),
        (("12", "warns above 3"), False),
    ],
)
def test_columns_of_numbers_are_aligned_right(cells: tuple[str, str], is_number: bool) -> None:
    made = data_table("t", ("name", "value"), [("a", cells[0]), ("b", cells[1])])
    assert ('<td class="number">' in made) is is_number
    assert made.count('scope="row"') == 2
    assert made.count('scope="col"') == 2
