"""Independent draws: one-level gaussian systems under plain normal noise have their posterior in closed form."""

from .sampling import applies, draw, sample

__all__ = ["applies", "draw", "sample"]
