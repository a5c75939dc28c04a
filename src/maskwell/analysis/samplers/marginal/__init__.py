"""Independence chains on the parameters alone, with the unknown values integrated out."""

from .sampler import applies, draw, named_draws, sample

__all__ = ["applies", "draw", "named_draws", "sample"]
