"""The inner loops: scalar densities, normal rectangles, order-independent sums; plain arrays in and out.

Importing `maskwell.kernels` loads no compiler. Modules with loops import numba, so they are imported inside
functions; their machine code is kept beside them and made once (`code_cache`).
"""

from __future__ import annotations

from .code_cache import announce

__all__ = ["announce"]
