"""What is said of matchings: counted or drawn, how long, whether chains agree, and which links they leave open."""

from __future__ import annotations

from collections.abc import Sequence

from ....notes import Note
from .matchings import Marginals
from .unknown_noise import GroupPosterior


def on_matchings(found: Sequence[Marginals]) -> list[Note]:
    """Say how the matchings of some blocks were counted, with the parameters told."""
    sampled = [one for one in found if not one.exact]
    if not sampled:
        return [Note("attacks.matchings_counted")]
    figures = {
        "sampled": len(sampled),
        "blocks": len(found),
        "draws": max(one.draws for one in sampled),
        "rhat": max(one.rhat for one in sampled),
        "ess": min(one.ess for one in sampled),
        "error": max(one.error for one in sampled),
    }
    failed = sum(not one.converged for one in sampled)
    doubts = [Note("attacks.matchings_not_converged", {"blocks": failed})] if failed else []
    return [Note("attacks.matchings_sampled", figures), *doubts]


def on_chains(said: Sequence[GroupPosterior]) -> list[Note]:
    """Say how matchings and parameters were added up or drawn, what was learned, and what had not converged."""
    how = _enumeration_notes(said) if all(one.ess == float("inf") for one in said) else _sampling_notes(said)
    learned = said[0].psi if len(said) == 1 else ()
    figures = tuple(
        {"name": one.name, "columns": one.columns, "mean": one.mean, "sd": one.sd} for one in learned
    )
    return [*how, *([Note("attacks.learned_parameters", {"parameters": figures})] if figures else [])]


def _enumeration_notes(said: Sequence[GroupPosterior]) -> list[Note]:
    apart = max(block.marginals.error for one in said for block in one.blocks)
    figures = {"values": said[0].draws, "error": max(apart, 1e-6)}
    own = dict.fromkeys(note for one in said for note in one.notes)
    return [Note("attacks.matchings_counted_at", figures), *own]


def _sampling_notes(said: Sequence[GroupPosterior]) -> list[Note]:
    rhat, ess = max(one.rhat for one in said), min(one.ess for one in said)
    draws = max(one.draws for one in said)
    notes = [Note("attacks.chains_sampled", {"draws": draws, "rhat": rhat, "ess": ess})]
    notes += dict.fromkeys(note for one in said for note in one.notes)
    failed = [one for one in said if not one.converged]
    if failed:
        figures = {"failed": len(failed), "groups": len(said), "rhat": max(one.rhat for one in failed)}
        notes.append(Note("attacks.chains_not_converged", figures))
    return notes


def on_links(decided: Sequence[bool]) -> list[Note]:
    """Say how many links the draws leave open."""
    undecided = len(decided) - sum(decided)
    if not undecided:
        return []
    return [Note("attacks.undecided_links", {"undecided": undecided, "links": len(decided)})]
