"""Results of fitting."""
