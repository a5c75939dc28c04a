"""Independence chains on the parameters alone, with the unknown categories summed over."""

from .sampler import applies, draw, sample

__all__ = ["applies", "draw", "sample"]
