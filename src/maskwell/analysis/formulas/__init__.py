"""Formulas: checked, read by formulae, and made into expressions that can be evaluated again."""
