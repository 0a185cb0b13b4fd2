"""What eWAVE says about the features that rules write.

Facts from the Electronic World Atlas of Varieties of English (Kortmann, Lunkenheimer and Ehret,
eds., CC BY 3.0): how common a feature is in a variety. A: pervasive or obligatory, B: neither
pervasive nor extremely rare, C: rare, D: absent, X: not applicable, ?: not known.
"""

from __future__ import annotations

from typing import NamedTuple

VARIETIES = {
    "Australian English": "en-AU",
    "Australian Vernacular English": "en-AU",
    "Indian English": "en-IN",
    "Irish English": "en-IE",
    "Nigerian English": "en-NG",
    "Colloquial Singapore English (Singlish)": "en-SG",
    "East Anglian English": "en-UK",
    "English dialects in the North of England": "en-UK",
    "English dialects in the Southeast of England": "en-UK",
    "English dialects in the Southwest of England": "en-UK",
    "Scottish English": "en-UK",
    "Welsh English": "en-UK",
}
"""The varieties of eWAVE that stand for our tags, in the order of a feature's values."""

COMMON = "AB"
"""The values of a feature that is common."""


class Feature(NamedTuple):
    """A feature of grammar. values: a letter for each of `VARIETIES`."""

    name: str
    values: str


FEATURES = {
    7: Feature("Me instead of I in coordinate subjects", "BACBABAAABAA"),
    8: Feature("Myself/meself instead of I in coordinate subjects", "CCCAADCCCCBB"),
    9: Feature("Benefactive “personal dative” construction", "CCDBDDDCD?DD"),
    11: Feature("Regularized reflexives paradigm", "?CDBCDAABBBC"),
    12: Feature(
        ("Object pronoun forms serving as base for first and/or second person reflexives"),
        "BADADDAABADB",
    ),
    14: Feature("No number distinction in reflexives", "BDBCCADDBBDC"),
    16: Feature("Emphatic reflexives with own", "?XDBCBDDDX?D"),
    26: Feature(
        ("Object pronoun forms as (modifying) possessive pronouns: first person singular"),
        "BADADDAAAADA",
    ),
    29: Feature("Use of us in object function with singular referent", "BBDBDDAAB?DA"),
    34: Feature(
        "Forms or phrases for the second person plural pronoun other than you",
        "BABABBBADCBC",
    ),
    35: Feature(
        "Forms or phrases for the second person singular pronoun other than you",
        "?XDADDDBDBCC",
    ),
    42: Feature("Object pronoun drop", "XXADDADD??DD"),
    43: Feature("Subject pronoun drop: referential pronouns", "DXABDADC??BD"),
    44: Feature("Subject pronoun drop: dummy pronouns", "?BACDADD??DD"),
    46: Feature("Deletion of it in referential it is-constructions", "XXBDCBDDD?DD"),
    48: Feature(
        ("Regularization of plural formation: extension of -s to StE irregular plurals"),
        "?XADBBDCD?DC",
    ),
    49: Feature("Regularization of plural formation: phonological regularization", "?XADBADBD?AB"),
    55: Feature(
        ("Different count/mass noun distinctions resulting in use of plural for StE singular"),
        "CXADABDDD?DD",
    ),
    56: Feature("Absence of plural marking only after quantifiers", "CXBB?DABBBDB"),
    57: Feature(
        "Plural marking generally optional : for nouns with human referents",
        "XXCDDADDDDDD",
    ),
    58: Feature(
        "Plural marking generally optional: for nouns with non-human referents",
        "DXCDDADDDDDD",
    ),
    59: Feature("Double determiners", "DXADADDDC?DD"),
    60: Feature("Use of definite article where StE has indefinite article", "?XAADDDADBBB"),
    62: Feature("Use of zero article where StE has definite article", "?XADAADBDCDC"),
    63: Feature("Use of zero article where StE has indefinite article", "XXADDADBDCDC"),
    64: Feature("Use of definite article where StE favours zero", "?XAADDDBDCDD"),
    66: Feature("Indefinite article one/wan", "XXBCDBDDDXDD"),
    67: Feature("Demonstratives for definite articles", "XXBDDCDDDXDD"),
    68: Feature("Them instead of demonstrative those", "BADADDAAABBA"),
    70: Feature("Proximal and distal demonstratives with ʼhereʼ and ʼthereʼ", "B?DBDDBCCCDB"),
    71: Feature("No number distinction in demonstratives", "?XBDBDDDD?BD"),
    78: Feature("Double comparatives and superlatives", "C?BBCBABBCBB"),
    79: Feature(
        "Regularized comparison strategies: extension of synthetic marking",
        "CCBCDDBCB?DB",
    ),
    80: Feature("Regularized comparison strategies: extension of analytic marking", "BCBBDBBCB?DB"),
    81: Feature("Much as comparative marker", "CXBDC?DDD?DD"),
    88: Feature(
        ("Wider range of uses of progressive be + V-ing than in StE: extension to stative verbs"),
        "BBABBCDBD?AB",
    ),
    89: Feature(
        (
            "Wider range of uses of progressive be + V-ing than in StE: extension to "
            "habitual contexts"
        ),
        "BXABBCDDD?DB",
    ),
    90: Feature("Invariant be as habitual marker", "XXDBDDDDDCDD"),
    93: Feature("Other non-standard habitual markers: analytic", "XXDBDDDDDDDD"),
    95: Feature("Be sat/stood with progressive meaning", "XXDCDDCBDCCB"),
    97: Feature("Medial object perfect", "XBDBDDDDDCDD"),
    98: Feature("After-perfect", "XXDADDDDDDDD"),
    99: Feature(
        (
            "Levelling of the difference between present perfect and simple past: simple "
            "past for StE present perfect"
        ),
        "BBDACBCC?BDB",
    ),
    100: Feature(
        (
            "Levelling of the difference between present perfect and simple past: "
            "present perfect for StE simple past"
        ),
        "B?ADDBCCD?DC",
    ),
    101: Feature("Simple present for continuative or experiential perfect", "XXBABBDDDCDD"),
    102: Feature("Be as perfect auxiliary", "CBDBDDDCDCBD"),
    109: Feature("Perfect marker already", "?XCBBADDD?DD"),
    113: Feature("Loosening of sequence of tenses rule", "BBABDACD??BD"),
    116: Feature("Come-based future/ingressive markers", "XXDDADDDDXDD"),
    117: Feature("Present tense forms for neutral future reference", "XXCDDBDDD?DD"),
    119: Feature(
        "Would for (distant) future in contrast to will (immediate future)",
        "DXAD?BDDD?DD",
    ),
    120: Feature("Would in if-clauses", "D?CBDDDDCBDD"),
    122: Feature("Epistemic mustn’t", "BCDBDDDAB?BD"),
    123: Feature(
        "Present tense forms of modals used where StE has past tense forms",
        "D?CBDBDDD?DD",
    ),
    124: Feature("Want/need + past participle", "XXDBDDDAD?AD"),
    128: Feature(
        (
            "Levelling of past tense/past participle verb forms: regularization of "
            "irregular verb paradigms"
        ),
        "?BCDBBABCBBB",
    ),
    129: Feature(
        "Levelling of past tense/past participle verb forms: unmarked forms",
        "BACBDBABB?BB",
    ),
    130: Feature(
        (
            "Levelling of past tense/past participle verb forms: past tense replacing "
            "the past participle"
        ),
        "BBCBBDABCBBB",
    ),
    131: Feature(
        (
            "Levelling of past tense/past participle verb forms: past participle "
            "replacing the past tense form"
        ),
        "ABCDDDABBBBB",
    ),
    132: Feature("Zero past tense forms of regular verbs", "XXCDDADDD?DC"),
    134: Feature("A-prefixing on ing-forms", "?XDDDDADCCDC"),
    145: Feature("Use of gotten instead of got", "BXDDADDXCDDC"),
    147: Feature("Was for conditional were", "AAAA?BAAAABA"),
    154: Feature("Multiple negation / negative concord", "BACB?DABBABB"),
    155: Feature("Ain’t as the negated form of be", "CCDDDDACBBCC"),
    156: Feature("Ainʼt as the negated form of have", "CCDDDDACBCDC"),
    158: Feature("Invariant don’t for all persons in the present tense", "BBCBCBABBCDB"),
    159: Feature("Never as preverbal past tense negator", "BBDADBABBBBB"),
    163: Feature("Was – weren’t split", "CXDCDDABBB?D"),
    165: Feature("Invariant non-concord tags", "DXADDADCBBCA"),
    170: Feature(
        ("Invariant present tense forms due to zero marking for the third person singular"),
        "CXCDCBADDCDC",
    ),
    171: Feature(
        ("Invariant present tense forms due to generalization of 3rd person –s to all persons"),
        "CXDBDDDDBCDB",
    ),
    172: Feature(
        ("Existential / presentational there’s/there is/there was with plural subjects"),
        "AABADDACAAAB",
    ),
    174: Feature("Deletion of auxiliary be: before progressive", "CXBBAADDD?DD"),
    175: Feature("Deletion of auxiliary be: before gonna", "BXBBCBDDBC?D"),
    176: Feature("Deletion of copula be: before NPs", "DXCDDADDDDDD"),
    177: Feature("Deletion of copula be: before AdjPs", "DXDDDADDDDDD"),
    178: Feature("Deletion of copula be: before locatives", "DXCDDADDDDDD"),
    179: Feature("Deletion of auxiliary have", "DXCDDADDDB?B"),
    180: Feature("Was/were generalization", "CADBDDABBCBB"),
    183: Feature("Northern Subject Rule", "DXDDDDDBDDBD"),
    185: Feature("Relativizer that or what in non-restrictive contexts", "BBDBB?AB??DD"),
    187: Feature("Relativizer as", "DXDDDDDBBCDB"),
    190: Feature("Relativizer what or a form derived from what", "?XDDDDABBCDB"),
    193: Feature("Gapping/zero-relativization in subject position", "BBCBDDCCBACC"),
    202: Feature("Unsplit for to in infinitival purpose clauses", "XXDADDDBBCCB"),
    204: Feature("As what / than what in comparative clauses", "BBCAADABBBBB"),
    205: Feature("Existentials with forms of get", "XXDDDADDDXDD"),
    208: Feature("Deletion of to before infinitives", "DXDBABDDD?DD"),
    209: Feature("Addition of to where StE has bare infinitive", "DXBDADDDD?DD"),
    211: Feature("Clause-final but = ʼthoughʼ", "BBDDDDDBDCBD"),
    214: Feature("Conjunction doubling: clause + conj. + conj. + clause", "XXBDBDDDD?DD"),
    215: Feature("Conjunction doubling: correlative conj.s", "DXBDCBDDDXDD"),
    216: Feature("Omission of StE prepositions", "BXCDBADBDBDB"),
    220: Feature("Degree modifier adverbs have the same form as adjectives", "BACA?CDBBBBB"),
    221: Feature("Other adverbs have the same form as adjectives", "AACAACABAABA"),
    222: Feature("Too; too much; very much ‘very’ as qualifier", "?BABADDDDXDD"),
    224: Feature("Other possibilities for fronting than StE", "D?ABDDDDDCDA"),
    227: Feature("Inverted word order in indirect questions", "?CAABADB?BDB"),
    228: Feature("No inversion/no auxiliaries in wh-questions", "?XABDADDDBDB"),
    229: Feature("No inversion/no auxiliaries in main clause yes/no questions", "BBAA?AAD?BBB"),
    232: Feature(
        ("Either order of objects in double object constructions (if both objects are pronominal)"),
        "XCCBDDCBCADB",
    ),
    233: Feature("Presence of subject in imperatives", "D?DBDAADD?CC"),
    234: Feature("Like as a focussing device", "ABAADBBBBAAA"),
    235: Feature("Like as a quotative particle", "CBAACBBBBDAA"),
}
"""By number in eWAVE."""
