"""Hawala, Simulation Study of the Effectiveness of Masking Microdata with Mixtures of Multivariate Normals."""
