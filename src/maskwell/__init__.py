"""Release confidential microdata by noise, attack the release, and analyse it without bias."""

__version__ = "0.1.0.dev0"
