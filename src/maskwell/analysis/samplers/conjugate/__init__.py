"""Draws in closed form: one-level gaussian systems under plain normal noise have such a posterior."""

from .sampler import applies, draw, sample

__all__ = ["applies", "draw", "sample"]
