"""Ways to draw from the posterior of a system of equations."""
