"""The kernels f(x|z) of bias and noise, and the density of a record that was not released."""
