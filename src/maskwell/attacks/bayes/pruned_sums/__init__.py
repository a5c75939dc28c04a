"""Large files: the answers of all pairs without looking at every pair."""
