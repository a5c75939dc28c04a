"""Residuals against the card: randomised quantile residuals of every masked cell, and exact tests of them."""
