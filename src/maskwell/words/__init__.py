"""The table of words: for each room a module with `WORDS`, the sentence of every code that its results may carry.

An entry is `Wording(text, severity, meaning)`. A text names the figures that it needs, `{count:,} records ...`; where a
sentence depends on them, the text is a function. Every code stands in docs/notes.md with its meaning.
"""
