"""Survey weights: fits to resampled units, so that intervals hold for the population."""
