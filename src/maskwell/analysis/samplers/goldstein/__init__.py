"""Metropolis steps by proposals from the noise, as the paper's appendix has them (A3)."""
