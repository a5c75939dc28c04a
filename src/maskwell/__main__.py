"""`python -m maskwell` is the command line."""

from .cli import main

main()
