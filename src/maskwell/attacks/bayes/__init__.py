"""The Bayesian intruder: what he believes about each record, by the law and by what he knows of it."""

from .plan import BayesIntruder

__all__ = ["BayesIntruder"]
