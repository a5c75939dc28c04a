"""The internal report, for those who decide: figures only, no record and no id, but not for release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .audit_section import audit_section
from .calibration_section import calibration_section
from .elements import document, tag
from .first_screen import first_screen
from .plan_section import advice_section, limits_section, plan_section
from .risk_section import card_section, people_section, risk_section
from .utility_section import utility_section
from .words import title_of

if TYPE_CHECKING:
    from ..pipeline import Outcome

LINKS = {
    "risk": "Risk by intruder",
    "people": "Who is at risk",
    "utility": "What can be learned",
    "audit": "Audit",
    "noise": "How much noise",
    "card": "The card",
    "plan": "The plan",
    "limits": "Limits",
}


def internal_report(outcome: Outcome) -> str:
    """Return the report for the board: a whole HTML page that needs nothing beside it.

    It holds figures about the truth and about risk, so it stays inside; it shows no record and no id. The same outcome
    gives the same bytes.
    """
    links = [tag("a", title, href=f"#{slug}") for slug, title in LINKS.items()]
    page = document(
        f"{title_of(outcome)}: internal report",
        "Internal report for the disclosure review board. It stays inside.",
        first_screen(outcome),
        tag("nav", *links, aria_label="Sections"),
        advice_section(outcome),
        risk_section(outcome),
        people_section(outcome),
        utility_section(outcome),
        audit_section(outcome),
        calibration_section(outcome),
        card_section(outcome),
        plan_section(outcome),
        limits_section(outcome),
        tag("footer", _made_by()),
    )
    return str(page)


def _made_by() -> str:
    from importlib.metadata import version

    about = "Figures are about this release; shares are of the targets, ties shared."
    return f"Made by maskwell {version('maskwell')}. {about}"
