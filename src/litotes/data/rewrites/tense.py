"""Tense and modals: will and would, was and were, infinitives with and without to."""

from __future__ import annotations

import re

from litotes.data.rewrites.matching import chain, one_of, substitute
from litotes.data.rewrites.rewrite import Rewrite
from litotes.data.rewrites.verbs import BY_PARTICIPLE, VERBS
from litotes.data.rewrites.words import NOUNS

_BASE = one_of(VERBS)
_DOING = one_of(
    "add ask book bring build buy call change charge check clean close collect complain cook"
    " deliver draw drink drive eat explain finish fix fly follow give go help join leave listen"
    " make meet move offer open order park pay pick play prepare put read replace ride run say sell"
    " send serve share show sing sit sleep speak spend start stop take talk teach tell throw try"
    " turn visit walk wash watch write"
)
_SAID = "(said|thought|told me|told us|knew|realised|realized|found out|heard|noticed|saw)"
_WHO = rf"(?:I|you|he|she|it|we|they|this|that|everything|everyone|(?:the|my|our) {one_of(NOUNS)})"
_NOW = {"was": "is", "were": "are", "had": "has", "could": "can", "would": "will"}
_WISH = "(?:wish(?:ed|es)?|if only)"
_NO_PAST = one_of(
    base for base, verb in VERBS.items() if base not in (verb.past, verb.participle, "have")
)
_MADE = one_of(("make", "makes", "made", "making", "let", "lets"))
_CLOSE = {"can't": "mustn't", "cannot": "must not", "can not": "must not"}

_ASKED = (
    r"\b(?:ask\w*|wonder\w*|see|know|knew|check\w*|sure|tell|told|doubt|care|remember|idea"
    r"|question)(?: [\w']+){0,2} "
)
"""An if after these is whether."""
_REAL = rf"{_ASKED}|\b(?:even|as) "


def _would(found: re.Match[str]) -> str:
    """Would in the if-clause where the sentence has it in the other: nothing that happened."""
    before = re.split(r"[.!?\n]", found.string[: found.start()])[-1]
    after = re.split(r"[.!?\n]", found.string[found.end() :])[0]
    if not re.search(r"\b(?:would|could|might)|\w['’ ]d\b", f"{before} | {after}", re.IGNORECASE):
        return found[0]
    return f"if {found[1]} would {'have' if found[2].lower() == 'had' else 'be'}"


def _now(found: re.Match[str]) -> str:
    word = _NOW[found[4].lower()]
    subject = found[3].lower()
    if subject == "i":
        word = {"is": "am", "has": "have"}.get(word, word)
    elif subject in ("you", "we", "they"):
        word = {"has": "have"}.get(word, word)
    return f"{found[1]} {found[2] or ''}{found[3]} {word}"


TENSE = {
    "sequence-of-tenses": Rewrite(
        about="the present after a past verb of saying: I thought it is good",
        skips="no said, thought, knew, told me … with a pronoun or noun and was, had, could",
        change=substitute(rf"{_SAID} (that )?({_WHO}) ({one_of(_NOW)})", _now),
        examples=(
            ("I thought it was good.", "I thought it is good."),
            ("They said they were full", "They said they are full"),
            ("He told me that the kitchen was closed.", "He told me that the kitchen is closed."),
        ),
        feature=113,
    ),
    "coming-to": Rewrite(
        about="come to for the near future: I am coming to cook",
        skips="no I, we, they, he or she with going to, gonna or about to and a verb of doing",
        change=substitute(
            rf"(I am|we are|they are|he is|she is|I'm|we're|they're|he's|she's) "
            rf"(?:going to|gonna|about to)(?= {_DOING}\b)",
            r"\1 coming to",
            after=".",
            unless_before=r"\b(?:if|sure|whether) ",
        ),
        examples=(
            ("I am going to cook tonight.", "I am coming to cook tonight."),
            ("They're about to close", "They're coming to close"),
            ("We're gonna go there.", "We're coming to go there."),
        ),
        feature=116,
    ),
    "present-future": Rewrite(
        about="the present for the future: tomorrow I go again",
        skips="no I, we or they with will (or ’ll) and a listed verb other than be",
        change=substitute(
            rf"(I|we|they)(?: will|'ll) ((?:definitely |certainly |never |always |probably )?"
            rf"(?!be\b){_BASE})",
            r"\1 \2",
        ),
        examples=(
            ("We will come back next week.", "We come back next week."),
            ("I'll never go there again", "I never go there again"),
            ("They will call you.", "They call you."),
        ),
        feature=117,
    ),
    "would-will": Rewrite(
        about="would for will: I would come again tomorrow",
        skips="no “will”, “won’t” or ’ll; will as a noun or a name",
        change=chain(
            substitute(
                r"(?<!the )(?<!free )(?<!good )(?<!my )(?<!ill )(?-i:will)", "would", unless=" of"
            ),
            substitute(
                r"Will(?= (?:definitely|never|not|be|come|go|return|try) )", "would", after="."
            ),
            substitute("won't", "wouldn't"),
            substitute(r"(I|you|he|she|it|we|they)'ll", r"\1'd"),
        ),
        examples=(
            ("I will come again tomorrow.", "I would come again tomorrow."),
            ("It won't rain", "It wouldn't rain"),
            ("We'll be back!", "We'd be back!"),
        ),
        feature=119,
    ),
    "if-would": Rewrite(
        about="would in an if-clause: if I would be you",
        skips="no “if”, a pronoun and was, were or had, or no would or could in the sentence",
        change=substitute(
            r"if (I|you|he|she|it|we|they) ((?:was|were)(?! (?:to|gonna|going)\b)|had)",
            _would,
            unless=" ?n't",
            unless_before=_REAL,
        ),
        examples=(
            ("If I were you, I'd leave.", "If I would be you, I'd leave."),
            (
                "If they had better staff, we could eat",
                "If they would have better staff, we could eat",
            ),
            ("It would be great if it was cheaper.", "It would be great if it would be cheaper."),
        ),
        feature=120,
    ),
    "mustnt": Rewrite(
        about="mustn’t for can’t in a conclusion: this mustn’t be true",
        skips="no “can’t be” after it, this, that, he, she or they; “can’t be beaten”",
        change=substitute(
            rf"(it|this|that|he|she|they) ({one_of(_CLOSE)}) be",
            lambda found: f"{found[1]} {_CLOSE[found[2].lower().replace('’', chr(39))]} be",
            unless=" [a-z]+(?:ed|en|topped|faulted)\\b",
        ),
        examples=(
            ("This can't be true.", "This mustn't be true."),
            ("That cannot be right", "That must not be right"),
            ("They can't be serious!", "They mustn't be serious!"),
        ),
        feature=122,
    ),
    "wish-will": Rewrite(
        about="will and can after wish: I wish they will come",
        skips="no “wish” with a subject and would or could; “would have”",
        change=chain(
            substitute(
                rf"({_WISH} (?:that )?(?!is|was)[\w']+(?: [\w']+){{0,2}}?) (would|could)",
                lambda found: f"{found[1]} {_NOW[found[2].lower()]}",
                unless=r"(?: (?:not|just|only|also))? (?:have|'ve|of)\b|'ve| ?n't",
            ),
            substitute(
                rf"({_WISH} (?:I|you|he|she|it|we|they))'d(?= {_NO_PAST}\b)",
                r"\1 will",
                after=".",
            ),
        ),
        examples=(
            ("I wish they would open earlier.", "I wish they will open earlier."),
            ("Wish I could go back", "Wish I can go back"),
            ("We wish everyone would smile.", "We wish everyone will smile."),
        ),
        feature=123,
    ),
    "needs-washed": Rewrite(
        about="need with a participle: the car needs washed",
        skips="no need or want with “to be” and a listed participle",
        change=substitute(
            rf"(need|needs|needed|want|wants|wanted) to be "
            rf"({one_of({*BY_PARTICIPLE, 'updated', 'renovated', 'banned', 'sacked', 'fired'})})",
            r"\1 \2",
        ),
        examples=(
            ("The car needs to be washed.", "The car needs washed."),
            ("Tables need to be cleaned", "Tables need cleaned"),
            ("He wants to be told.", "He wants told."),
        ),
        feature=124,
    ),
    "if-was": Rewrite(
        about="was for conditional were: if I was you",
        skips="no if, wish or as though with a singular subject and “were”; if for whether",
        change=substitute(
            r"((?:if|wish|though) (?:I|he|she|it|this|that|only I)) were",
            r"\1 was",
            unless_before=_ASKED,
        ),
        examples=(
            ("If I were you, I'd go.", "If I was you, I'd go."),
            ("I wish it were true", "I wish it was true"),
            ("As though he were the boss.", "As though he was the boss."),
        ),
        feature=147,
    ),
    "bare-infinitive": Rewrite(
        about="to left out before an infinitive: allow him go",
        skips="no want, allow, need … with “to” and a listed verb; “what they need to find …”",
        change=substitute(
            rf"((?:want|wants|wanted|allow|allows|allowed|like|love|need|needs|needed|try|able"
            rf"|asked"
            rf"|told|help|helped|forced|decided)(?: me| you| him| her| us| them)?) to ({_BASE})",
            r"\1 \2",
            unless_before=r"\b(?:what|whatever|all|everything|things?|which|that)(?: [\w']+){0,5} ",
        ),
        examples=(
            ("They allowed him to go.", "They allowed him go."),
            ("I want to come back", "I want come back"),
            ("We were able to sit.", "We were able sit."),
        ),
        feature=208,
    ),
    "made-to": Rewrite(
        about="to added before an infinitive: they made me to wait",
        skips="no make or let with a pronoun and a listed verb",
        change=substitute(
            rf"({_MADE} (?:me|you|him|her|us|them|it)) (?=(?:{_BASE})\b)(?!like\b)",
            r"\1 to ",
            after="[a-z]",
        ),
        examples=(
            ("They made me wait.", "They made me to wait."),
            ("Let us know", "Let us to know"),
            ("It makes you think.", "It makes you to think."),
        ),
        feature=209,
    ),
    "for-to": Rewrite(
        about="for to for a purpose: we went for to eat",
        skips="no “in order to”, and no went, came, stopped, place, time … with “to” and a verb",
        change=chain(
            substitute("in order to|so as to", "for to"),
            substitute(
                rf"(went|go|going back|came|come|stopped|stop|back|place|places|time|waited|here"
                rf"|there) to (?={_BASE}\b)",
                r"\1 for to ",
                after="[a-z]",
            ),
        ),
        examples=(
            ("We went to eat.", "We went for to eat."),
            ("A great place to sit", "A great place for to sit"),
            ("I left early in order to avoid it.", "I left early for to avoid it."),
        ),
        feature=202,
    ),
}
