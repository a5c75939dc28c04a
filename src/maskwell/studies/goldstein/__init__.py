"""Goldstein and Shlomo, A Probabilistic Procedure for Anonymisation and Analysis of Perturbed Datasets."""
