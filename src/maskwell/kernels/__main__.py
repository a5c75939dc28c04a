"""`python -m maskwell.kernels` compiles every loop: part of setting up, which says so by itself."""

from .code_cache import silence
from .compilation import compile_all

silence()
compile_all()
