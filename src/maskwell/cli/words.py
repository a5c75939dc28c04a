"""What the library says, in the words of the command line: options for plans."""

from __future__ import annotations

import re

OPTIONS = (
    (r"\b(take|by|or) NearestRecord(\(\))?", r"\1 --intruder nearest"),
    (r"\bor Fingerprint for\b", "or --intruder fingerprint for"),
    (r"\buse assignment='best'", "leave --one-to-one out"),
    (r"\bassignment='one-to-one'|\bthe one-to-one assignment\b", "--one-to-one"),
    (r"\b(kernel|distance|direction|helpers|marginal)='?(\w[\w,]*\w|\w)'?", r"--\1 \2"),
    (r"(?<!-)\bmarginal must be 'truth', 'gaussian' or a function", "--marginal must be truth or gaussian"),
    (r"(?<!-)\b(kernel|distance|direction|marginal|threshold) (must be|is the f)", r"--\1 \2"),
    (r"\bleave (direction|kernel) out\b", r"leave --\1 out"),
    (r"\bmean_over_sd\b", "--mean-over-sd"),
    (r"\blargest_target_block\b", "--largest-target-block"),
    (r"\bgive one \(\{'[^']*': \.\.\.\}\), or leave\b", "leave"),
    (r"\b(out of|it in|law in|\d in) fields\b", r"\1 --fields"),
    (r"\bname fields\b", "name --fields"),
)


def in_options(text: str) -> str:
    """Write a message with the options that stand for what Python calls by other names."""
    for pattern, words in OPTIONS:
        text = re.sub(pattern, words, text)
    return text
