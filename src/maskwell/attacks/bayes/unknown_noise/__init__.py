"""Parameters of the noise that the intruder was not told: priors, and what is left when they are integrated out."""
