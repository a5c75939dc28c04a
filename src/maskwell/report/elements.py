"""The parts of a page: text is escaped by whoever puts it in, so that no caller can forget to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
_NUMBER = re.compile(r"[-−+]?(\d[\d,]*(\.\d+)?(e[-+]\d+)?|\.\d+)%?$|^[-–]$")
_EMPTY = frozenset({"meta", "hr", "br", "col"})


class Html(str):
    """Text that is HTML already; everything else is escaped when it is put into a page."""

    __slots__ = ()


Child = str | Html | None


def escape_text(text: str) -> Html:
    """Return text as it may stand in a page: no markup, no control or direction signs."""
    return Html(escape(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", text), quote=True))


def join_children(*children: Child) -> Html:
    """Put children after each other."""
    done = [one if isinstance(one, Html) else escape_text(one) for one in children if one]
    return Html("".join(done))


def tag(name: str, *children: Child, **attributes: str | None) -> Html:
    """Return an element; `class_` and `aria_label` stand for class and aria-label, nothing for no attribute."""
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
    said = "".join(f' {key}="{escape_text(value)}"' for key, value in given.items() if value is not None)
    if name in _EMPTY:
        return Html(f"<{name}{said}>")
    return Html(f"<{name}{said}>{join_children(*children)}</{name}>")


def paragraph(*children: Child, kind: str | None = None) -> Html:
    """Return a paragraph."""
    return tag("p", *children, class_=kind)


def html_list(items: Iterable[Child], *, ordered: bool = False) -> Html:
    """Return a list, nothing where there are no items."""
    rows = [tag("li", item) for item in items]
    return tag("ol" if ordered else "ul", *rows) if rows else Html("")


def section(slug: str, title: str, *children: Child) -> Html:
    """Return a section with its heading."""
    head = tag("h2", title, id=f"{slug}-title")
    return tag("section", head, *children, id=slug, aria_labelledby=f"{slug}-title")


def part(title: str, *children: Child) -> Html:
    """Return a part of a section, under a smaller heading."""
    return tag("div", tag("h3", title), *children, class_="part")


def data_table(
    caption: str, heads: Sequence[Child], rows: Iterable[Sequence[Child]], *, kind: str | None = None
) -> Html:
    """Return a table whose first column names its rows; columns that hold numbers are aligned right."""
    body = [list(row) for row in rows]
    numeric = [
        bool(body) and j > 0 and all(_NUMBER.match(str(row[j] or "-")) for row in body)
        for j in range(len(heads))
    ]
    top = [
        tag("th", head, scope="col", class_="number" if number else None)
        for head, number in zip(heads, numeric, strict=True)
    ]
    lines = [
        tag(
            "tr",
            tag("th", row[0], scope="row"),
            *(tag("td", row[j], class_="number" if numeric[j] else None) for j in range(1, len(heads))),
        )
        for row in body
    ]
    inner = join_children(tag("caption", caption), tag("thead", tag("tr", *top)), tag("tbody", *lines))
    wide = tag("table", inner, class_=kind)
    return tag("div", wide, class_="scroll", role="region", tabindex="0", aria_label=caption)


def folded_details(summary: str, *children: Child, is_open: bool = False) -> Html:
    """Return what is shown when it is asked for, or folded away; what is open is printed."""
    return tag("details", tag("summary", summary), *children, open="" if is_open else None)


def badge(word: str, kind: str) -> Html:
    """Return a verdict: a sign and a word, so that it does not rest on colour."""
    signs = {"good": "✓", "fair": "!", "bad": "✕", "none": "–"}
    return tag("span", tag("span", signs[kind], aria_hidden="true"), " ", word, class_=f"badge {kind}")


def document(title: str, banner: str, *children: Child, language: str = "en") -> Html:
    """Return a whole page that needs nothing beside it: no script, no font, no picture from elsewhere."""
    style = files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="color-scheme", content="light dark"),
        tag("meta", name_="referrer", content="no-referrer"),
        tag("title", title),
        Html(f"<style>\n{style}</style>"),
    )
    body = tag("body", tag("div", banner, class_="banner"), tag("main", *children))
    return Html(f"<!DOCTYPE html>\n{tag('html', head, body, lang=language)}\n")
