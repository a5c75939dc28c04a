"""`python -m maskwell.analysis` compiles the samplers' loops: part of setting up, which says so by itself."""

from ..kernels.code_cache import silence
from .compilation import compile_samplers

silence()
compile_samplers()
