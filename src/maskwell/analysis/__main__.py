"""`python -m maskwell.analysis` compiles the samplers' loops: part of setting up."""

from .compilation import compile_samplers

compile_samplers()
