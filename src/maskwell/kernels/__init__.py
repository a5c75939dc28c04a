"""The inner loops: scalar densities, normal rectangles, order-independent sums; plain arrays in and out.

Importing `maskwell.kernels` loads no compiler. `densities` imports numba, so it is imported inside functions.
"""
