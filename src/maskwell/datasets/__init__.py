"""The built-in survey: synthetic housing records matched to the published figures of a real file.

Tables 1 and 3 of Moore describe five amounts on 64,998 records of a housing survey: how many values
are open, their means and sds, and for each pair how many records hold both and how they correlate. `housing`
draws records with these figures; `docs/survey.md` says how closely, and what is invented.
"""

from __future__ import annotations

from .survey import housing_arrays
from .tables import housing

__all__ = ["housing", "housing_arrays"]
