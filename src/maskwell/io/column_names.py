"""What the name or the label of a column says it is: an id, a group, a survey weight, a code, an amount.

Names are read by their words (`ori_hid`, `Ketchup.hid` and `schoolNR` have the words hid, hid, school and nr), never by
letters inside a word: humid, paid, medicaid and child name no id. What a name says is a hint, to be asked about.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

_PERSONS = (
    "p|pers|person|ind|indiv|individual|resp|respondent|participant|subj|subject|pat|patient|case|rec|record|row|obs|"
    "int|interview|member|client|cust|customer|user|worker|emp|employee|stud|student|pupil|child|kid|teacher|tch|mom|"
    "mother|woman|donor|player|rater|judge|prof|doctor|physician|taxpayer|loan|acct|account|policy|claim|unit|sample|u"
)
_GROUPS = (
    "h|hh|hhd|hhold|household|haushalt|hog|hogar|menage|fam|family|familie|sch|school|schule|class|klasse|cl|cluster|"
    "psu|ssu|ea|seg|segment|hosp|hospital|provider|prov|clinic|ward|firm|comp|company|est|estab|establishment|plant|"
    "employer|betrieb|enterprise|ent|business|utility|util|bank|store|shop|branch|farm|vill|village|town|comm|commune|"
    "community|muni|municipality|dist|district|county|state|country|site|center|centre|inst|institution|house|building|"
    "dwelling|litter|brood|team|couple|org|tract"
)
_ID_WORD = "id|ids|idnum|idno|idnr|ident|identifier|uuid|guid"
_NUMBER_WORD = "nr|no|nbr|num|number|nummer|key|seq|serial"
_ID = re.compile(
    rf"({_ID_WORD}|idcode|identification|seqn|seqno|obsno|caseno|ssn|cusip|intnum|pnr|persnr|hnr)"
    rf"|({_PERSONS}|{_GROUPS})({_ID_WORD}|{_NUMBER_WORD}|idk|idkn)[a-z]?"
    r"|id(hh|hhold|household|hog|hogar|pers|person|ind|indiv|fam|menage|sch|school|firm|est|case|obs|resp|child|user|code|num)"
)
_ENDS_IN_ID = re.compile("[a-z]{3,}id")  # studyid, batchid
_NO_ID = re.compile(  # English words, and party identification
    "[a-z]*(oid|aid|quid|druid|fluid)|(in)?valid|[a-z]*acid|placid|lucid|solid|eyelid|euclid|humid|timid|amid|pyramid|tumid|"
    "grid|hybrid|florid|lurid|arid|torrid|horrid|madrid|rapid|tepid|lipid|[a-z]*lipid|stupid|cupid|rabid|morbid|turbid|"
    "orchid|covid|vivid|livid|avid|rigid|frigid|turgid|algid|candid|splendid|sordid|rancid|[a-z]*kid|[a-z]*wid|bid|[a-z]{2,}bid|mid|lid|"
    "[a-z]*carotid|parotid|fetid|putrid|invalid|partyid|rid"
)
_NOUN = re.compile(
    "person|individual|respondent|participant|subject|student|pupil|patient|worker|employee|hh|household|haushalt|"
    "family|school|schule|class|teacher|prof|professor|firm|company|employer|plant|establishment|betrieb|hospital|"
    "provider|village|cluster|psu|segment|litter|brood|tree|rat|pig|cow|dog|mom|couple|store|farm"
)
_UNIT = re.compile(
    "person|individual|respondent|participant|subject|patient|worker|employee|hh|household|haushalt|firm|company|"
    "employer|plant|establishment|betrieb|enterprise|rat|pig|cow|dog|tree"
)
_SERIAL = re.compile(_NUMBER_WORD)  # at the end of a name whose every record has its own value: an id
_RECORD = re.compile(
    "person|case|record|row|rows|rowname|rownames|rownum|rownumber|rownumbers|rowno|rowid|rowindex|recno|recnum|unnamed|"
    "obs|observation|index|line|child|kid|woman|mother|member|client|worker|district|county|town"
)
_PERSONAL = re.compile(
    "firstname|lastname|surname|forename|fullname|nachname|vorname|address|street|email|phone|telephone"
)

_FIRST_NAME = re.compile("firstname|forename|vorname")

_SURVEY = (
    "p|f|a|i|d|s|w|h|hh|per|pers|person|persons|ind|final|fin|fnl|samp|sample|sampling|design|base|survey|post|asec|earn|"
    "exp|stud|cal|rake|raked|norm|strat|psp|an|pop|popul|household|hhold|analysis|main|tot|cross|long|xsec|replicate|rep"
)
_WEIGHT = re.compile(
    rf"({_SURVEY})?(wt|wts|weight|weights|wgt|wgts|wght|wghts)"
    r"|(?!lw|[a-z]*(b|birth|body|low|over|under|dry|wet|net|gross|light|heavy)w)[a-z]{2,6}(weights?|wgh?ts?)"
    r"|[hp]?wt(?!loss|lost|gain|kg|lb|chg|diff)[a-z]{2,7}|[hp]?wgtp|w(cal|final|fin|base|post|norm|samp|sample|pers|hh|rake)"
    r"|(expansion|grossing)factor|factorexpansion|gewicht\w*|gew|[a-z]{0,3}hrf|hochrechnung\w*"
    r"|pond(er\w*)?|poids|peso|facexp|fexp|expfactor|fpc|inclprob|selprob|fpw"
)
_BODY = re.compile(
    "birth|body|oz|gm|g|kg|lb|lbs|grams|pounds|gain|gained|loss|lost|change|reported|dry|wet|fresh|low|over|under|price|"
    "feat|cost|height|mother|father|baby|infant|car|curb|egg|brain|heart|organ|watchers|limit|class|category|cat"
)
_BODY_LABEL = re.compile(r"\b(birth|body|kg|lbs?|pounds?|grams?|kilograms?|ounces?|gain(ed)?|loss|lost)\b")
_SIZE = re.compile("height|hgt|ht|stature|bmi|waist")

_CODE = re.compile(
    "occ|occp|occup|occupation|occupations|isco|soc|beruf|profession|job|jobcode|industry|nace|naics|sic|isic|noga|scian|"
    "sector|branch|fip|fips|statefips?|countyfips|zip|zipcode|postcode|postal|plz|nuts|lau|ags|gemeinde|kreis|bundesland|"
    "county|state|stateabb|statename|abbr|province|region|district|distr|commune|municipality|town|city|puma|msa|smsa|metro|cbsa|csa|tract|"
    "country|nation|nationality|citizenship|birthplace|bpl|language|religion|ethnicity|race|icd|drg|stratum|strata|"
    "precinct|borough|inst|instit|institution|site|center|centre|major|cip|commodity|neighborhood|neighbourhood|"
    "department|diagnosis|[a-z]*code|[a-z]*cod|ccode|product|brand|species"
)
_CODE_REST = re.compile(
    "code|codes|cod|cd|nr|no|num|number|of|birth|residence|work|origin|group|grp|cat|class|name|main|last|[a-z]"
)

_AMOUNT = re.compile(
    "[a-z]{0,2}age|agec|bwt|bwght|lwt|year|years|yr|yrs|income|inc|wage|wages|salary|pay|earn|earnings|price|cost|costs|value|amount|tax|taxes|"
    "rate|ratio|pct|percent|perc|share|size|hours|hrs|weeks?|days?|months?|time|date|exp|exper|experience|tenure|score|"
    "test|math|height|ht|pop|population|sales|revenue|profits?|count|total|sum|mean|avg|average|density|temp|"
    "temperature|distance|area|rooms|quantity|volume|debt|balance|rent|expend|expenditure|savings|births|deaths|period|"
    "wave|round|quarter|visit|trend|t|day|week|hour|minute|level|dose|grade|gpa|lat|lon|long|latitude|longitude|index|"
    "prestige|growth|change|hhsize|educ|education|schooling|number|attain|limit|sqft"
)

_YEARS = re.compile(  # what is counted in years of a life, however few values it has
    "([a-z]{0,2}age|age[a-z]?|[a-z]{0,4}educ|education|schooling|sch|yrssch|[a-z]{0,3}exper|experience|tenure)(sq)?"
)


_CALENDAR = (  # parts of a date or a time of day, in words, with the whole numbers that they take
    (re.compile("month(?!s|ly)[a-z]{0,5}|[a-z]{0,6}month|mo?nth[a-z]{0,5}|monat|mois|mes"), "months", 1, 12),
    (re.compile("quarter|qtr|qrtr|quartal|trimestre"), "quarters", 1, 4),
    (re.compile("weekday|wday|dow|dayofweek|dayweek|wochentag"), "days of the week", 0, 7),
    (re.compile("day|dom|mday|dayofmonth|daymonth|tag"), "days of a month", 1, 31),
    (re.compile("hour|hourofday|hod|stunde|heure|hora"), "hours of a day", 0, 24),
    (re.compile("minute|minuteofhour"), "minutes of an hour", 0, 59),
    (re.compile("weekofyear|woy|isoweek|kw"), "weeks of a year", 1, 53),
)


def words_of(name: str) -> tuple[str, ...]:
    """Return the words of a name in lower case: camel case, digits and signs part them."""
    name = re.sub(r"(?<![A-Za-z])ID(?=[a-z])", "ID ", name)
    apart = re.sub(r"(?<=[^\W\d_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})", " ", name)
    return tuple(re.findall(r"[^\W\d_]+", apart.lower()))


def says_id(name: str, label: str = "") -> bool:
    """Whether a name or a label speaks of the id of a record or of a group: id, ori_hid, persnr, schoolNR, idcode."""
    words = words_of(name)
    pairs = ["".join(pair) for pair in pairwise(words)]
    ended = any(_ENDS_IN_ID.fullmatch(word) and not _NO_ID.fullmatch(word) for word in words)
    named = ended or words == ("nr",) or any(_ID.fullmatch(word) for word in (*words, *pairs))
    return named or _labelled_id(label)


def _labelled_id(label: str) -> bool:
    said = label.casefold()
    if re.search(r"\bnumber of\b|\bparty\b", said):
        return False
    nouns = (
        "person|household|family|case|respondent|interview|employer|firm|school|pupil|student|patient|serial"
    )
    pattern = rf"\b(id|identifier|identification)\b|\b({nouns})(?:'s)? (number|no|nr|code)\b"
    return re.search(pattern, said) is not None


def says_group(name: str) -> bool:
    """Whether a name is that of something that has several records: school, firm, household, student."""
    words = words_of(name)
    return len(words) == 1 and _NOUN.fullmatch(words[0]) is not None


def says_unit(name: str) -> bool:
    """Whether a name is that of a unit of observation, of which even a few values tell who it is: firm, subject."""
    words = words_of(name)
    return len(words) == 1 and _UNIT.fullmatch(words[0]) is not None


def says_record(name: str) -> bool:
    """Whether a name is that of an id where every record has its own value: case, record, telno, seq."""
    words = words_of(name)
    alone = 1 <= len(words) <= 2 and _RECORD.fullmatch("".join(words)) is not None
    return alone or says_id(name) or (bool(words) and _SERIAL.fullmatch(words[-1]) is not None)


def says_personal(name: str) -> bool:
    """Whether a name is that of what identifies a person by itself: a surname, an address, a telephone number."""
    words = words_of(name)
    pairs = ["".join(pair) for pair in pairwise(words)]
    return words == ("name",) or any(_PERSONAL.fullmatch(word) for word in (*words, *pairs))


def says_first_name(name: str) -> bool:
    """Whether a name is that of a first name, which persons who have it have in common by chance."""
    words = words_of(name)
    return any(_FIRST_NAME.fullmatch(word) for word in (*words, *map("".join, pairwise(words))))


def says_weight(name: str, label: str = "") -> bool:
    """Whether a name or a label speaks of a survey weight, and not of the weight of a body or a thing."""
    words, said = words_of(name), label.casefold()
    if any(_BODY.fullmatch(word) for word in words) or _BODY_LABEL.search(said):
        return False
    labelled = re.search(r"\b(weight(s|ing)?|expansion factor|grossing)\b", said) is not None
    alone = name.casefold() in ("w", "prob")  # w1, w2, ... are any variables
    joined = ["".join(pair) for pair in pairwise(words)]
    return labelled or alone or any(_WEIGHT.fullmatch(word) for word in (*words, *joined))


def is_bare_weight(name: str) -> bool:
    """Whether a name says that something is a weight, and not of what: wt, weight, wt.1."""
    return words_of(name) in (("wt",), ("weight",), ("wgt",), ("wght",))


def says_size(name: str) -> bool:
    """Whether a name is that of a measure of the body beside which a weight is a body's: height, bmi."""
    return any(_SIZE.fullmatch(word) for word in words_of(name))


def says_code(name: str, label: str = "") -> bool:
    """Whether whole numbers of this name are codes: of occupations, industries, places, diagnoses."""
    words = words_of(name)
    if not words or says_amount(name):
        return False
    last, first = _CODE.fullmatch(words[-1]), _CODE.fullmatch(words[0])
    named = last is not None or (first is not None and _are_all(_CODE_REST, words[1:]))
    labelled = re.search(
        r"\b(occupation|industry|isco|nace|naics|fips|zip|postal|county|region)\b.*\bcodes?\b",
        label.casefold(),
    )
    return named or labelled is not None


def _are_all(pattern: re.Pattern[str], words: Sequence[str]) -> bool:
    return all(pattern.fullmatch(word) for word in words)


def says_amount(name: str) -> bool:
    """Whether a name is that of an amount or a time, which is no id even where it comes in runs: age, year, wage."""
    return any(_AMOUNT.fullmatch(word) for word in words_of(name))


def says_years(name: str) -> bool:
    """Whether a name is that of years of a life, or their square: an age, years of schooling, of experience."""
    words = words_of(name)
    return len(words) == 1 and _YEARS.fullmatch(words[0]) is not None


def calendar_part(name: str, least: float, most: float) -> str:
    """Say which part of a date or a time of day whole numbers are, by their name and range; nothing where none."""
    words = words_of(name)
    forms = {"".join(words), *words[-1:], *words[:1]}
    if "days" in words or "months" in words or "hours" in words:
        return ""  # how many, not which
    for pattern, said, low, high in _CALENDAR:
        if any(pattern.fullmatch(word) for word in forms) and low <= least < most <= high:
            return said
    return ""
