"""Texts that people see as the same, put together by hand: a third opinion beside the code of the
kernels and that of the audit."""

#: What people see -> ways to write it.
SAME: dict[str, list[str]] = {
    "hiv": [
        "HIV",
        " hiv\t",
        "HIV\u200b",  # zero-width space
        "\ufeffHIV",  # byte order mark
        "H\u00adIV",  # soft hyphen
        "H\u200dI\u2060V",  # joiners
        "H\x00I\x1bV",  # control characters
        "HI\ufe0fV",  # variation selector
        "H\U000e0001IV",  # language tag
        "H\u2065I\ufff0V\ufff8",  # kept free for characters without a picture
        "\uff28\uff29\uff36",  # full width
        "\u210cIV",  # black-letter H
    ],
    "caf\u00e9 cr\u00e8me": [
        "cafe\u0301 cre\u0300me",  # decomposed
        "CAF\u00c9 CR\u00c8ME",
        "caf\u00e9\u00a0cr\u00e8me",  # no-break space
        "caf\u00e9  \u3000cr\u00e8me",  # blanks of several kinds
        "caf\u00e9\ncr\u00e8me",
        "caf\u00e9\u2800cr\u00e8me",  # Braille blank
        "cafe\u200d\u0301 cr\u00e8me",  # a joiner between a letter and its accent
    ],
    "strasse": ["Stra\u00dfe", "STRASSE", "stra\u1e9ee"],
    "fi 1/2 x2": ["\ufb01 1/2 x2", "FI 1/2 x\u00b2"],
    "covid-19": [
        "covid\u201019",  # hyphen
        "covid\u201119",  # one that breaks no line
        "covid\u201219",  # dash of figures
        "covid\u201319",  # short dash
        "COVID\u221219",  # minus
        "covid\uff0d19",  # full width
        "covid\u207b19",  # raised minus
    ],
    "crohn's": ["Crohn\u2019s", "crohn\u2018s", "crohn\u201bs", "crohn\u02bcs", "crohn\uff07s"],
    'type "a"': ["type \u201cA\u201d"],
    "\u03c3\u03bf\u03c3": ["\u03a3\u039f\u03a3", "\u03c3\u03bf\u03c2"],  # final sigma
    "istanbul": ["\u0131stanbul", "ISTANBUL"],
    "\uac01": ["\u1100\u1161\u11a8"],  # Hangul letters and their syllable
    "": ["", "  ", "\u200b", "\u3164", "\u2800\t", "\u115f\u1160", "\xad\ufeff", "\0", "\u202e"],
}  # fmt: skip
#: Texts that look alike to nobody who looks well: each is a value of its own.
DIFFERENT = [
    *("hiv", "hi v", "h1v", "hiv+", "cafe", "caf\u00e9", "\u0430", "a", "\u00e4", "ae", "0"),
    *("a-b", "ab", "a\u2014b", "a_b", "a'b", 'a"b', "a`b", "7", "07", "7.0"),
]
