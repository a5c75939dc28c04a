"""The nearest-record intruder: distances, exact searches, and the h-index (Goldstein and Shlomo)."""
