"""Sweeps that draw unknown values, augmentations and parameters in turn: valid for every system."""
