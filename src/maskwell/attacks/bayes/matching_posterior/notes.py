"""What is said of matchings: counted or drawn, how long, whether chains agree, and which links they leave open."""

from __future__ import annotations

from collections.abc import Sequence

from .matchings import Marginals
from .unknown_noise import GroupPosterior


def on_matchings(found: Sequence[Marginals]) -> list[str]:
    """Say how the matchings of some blocks were counted, with the parameters told."""
    sampled = [one for one in found if not one.exact]
    if not sampled:
        return ["all matchings were counted"]
    of = f"in {len(sampled):,} of {len(found):,} blocks matchings were sampled"
    most = max(one.draws for one in sampled)
    rhat, ess = max(one.rhat for one in sampled), min(one.ess for one in sampled)
    said = f"{of} (up to {most:,} draws a chain): R-hat up to {rhat:.3f}, ESS from {ess:,.0f}, errors of probabilities "
    said += f"up to {max(one.error for one in sampled):.3f}"
    failed = sum(not one.converged for one in sampled)
    return [said, *([f"NOT CONVERGED in {failed:,} blocks: give more draws in Sampling"] if failed else [])]


def on_chains(said: Sequence[GroupPosterior]) -> list[str]:
    """Say how matchings and parameters were added up or drawn, what was learned, and what had not converged."""
    how = _enumeration_notes(said) if all(one.ess == float("inf") for one in said) else _sampling_notes(said)
    learned = said[0].psi if len(said) == 1 else ()
    names = [f"{one.name} of {', '.join(one.columns)} {one.mean:.3g} +- {one.sd:.2g}" for one in learned]
    return [*how, *([f"what he learned of the noise: {'; '.join(names)}"] if names else [])]


def _enumeration_notes(said: Sequence[GroupPosterior]) -> list[str]:
    apart = max(block.marginals.error for one in said for block in one.blocks)
    notes = [
        f"all matchings were counted, at {said[0].draws:,} values of the parameters: no probability is off by more "
        f"than about {max(apart, 1e-6):.0e}"
    ]
    return [*notes, *dict.fromkeys(note for one in said for note in one.notes)]


def _sampling_notes(said: Sequence[GroupPosterior]) -> list[str]:
    rhat, ess = max(one.rhat for one in said), min(one.ess for one in said)
    draws = max(one.draws for one in said)
    notes = [
        f"matchings and parameters were sampled (up to {draws:,} draws a chain): R-hat up to {rhat:.3f}, ESS from "
        f"{ess:,.0f}"
    ]
    notes += dict.fromkeys(note for one in said for note in one.notes)
    failed = [one for one in said if not one.converged]
    if failed:
        of = f"{len(failed):,} of {len(said):,} groups" if len(said) > 1 else "the chains"
        worst = max(one.rhat for one in failed)
        notes.append(f"NOT CONVERGED: {of} (R-hat up to {worst:.2f}): give more draws in Sampling")
    return notes


def on_links(decided: Sequence[bool]) -> list[str]:
    """Say how many links the draws leave open."""
    open_ones = len(decided) - sum(decided)
    if not open_ones:
        return []
    return [
        f"{open_ones:,} of {len(decided):,} links are not decided by these draws (first and second within 2 standard "
        "errors): there an approximation chooses; the probability of the truth is the figure to read"
    ]
