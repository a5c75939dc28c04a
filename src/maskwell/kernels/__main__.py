"""`python -m maskwell.kernels` compiles every loop: part of setting up."""

from . import compile_all

compile_all()
