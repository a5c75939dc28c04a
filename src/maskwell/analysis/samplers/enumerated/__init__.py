"""Independence chains on the parameters alone, with the unknown categories summed over."""

from .sampling import applies, draw, sample

__all__ = ["applies", "draw", "sample"]
