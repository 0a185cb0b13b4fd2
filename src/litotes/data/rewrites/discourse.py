"""Tags, particles and focus: what is added around a clause."""

from __future__ import annotations

import re
from random import Random

from litotes.data.rewrites.matching import one_of, substitute
from litotes.data.rewrites.rewrite import Change, Rewrite
from litotes.data.rewrites.verbs import VERBS
from litotes.data.rewrites.words import ADJECTIVES

_PLAIN_END = re.compile(r"([\w)’'\"])(\s*)(\.?)(\s*)$")
_QUESTION = re.compile(
    r"(?:^|[.!?]\s+)(?:who|what|where|why|how|when|which|do|does|did|is|are|can|please|thanks?|so"
    r"|was|were|will|would|should|have)\b[^.!?]*$",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"\b(?:am|is|are|was|were|be|been|has|have|had|do|does|did|will|would|can|could|should|\w+ed"
    r"|[a-z]+n['’]t|love|like|hate|want|need|go|went|got|get|came|made|think|know"
    r"|\w+['’](?:s|re|m|ve))\b",
    re.IGNORECASE,
)
_N_WORDS = 3
_OTHER_THAN_IT = re.compile(
    r"(?!.*\b(?:it|this|that|which|there)(?: ?['’]s| is)\b)"
    r"(?:(?:and|but|also|then|overall|so),? )?"
    r"(?:(?:I|we|they|you|he|she)\b"
    r"|(?:the|my|our|his|her|their|these|those|most|some|many) (?:[\w-]+ ){1,4}"
    r"(?:are|was|were|has|have|had|will|would|can|could|should|did|do|does|\w+ed)\b)",
    re.IGNORECASE,
)
"""A clause after which “isn’t it” does not agree: its subject is no it, its verb no is."""


def last_sentence(text: str) -> str:
    """What stands after the last full stop that has words after it."""
    parts = re.split(r"(?<=[.!?])\s+", text.strip())
    return parts[-1] if parts else ""


def _at_end(ending: str, *, mark: str, host: re.Pattern[str] = re.compile("")) -> Change:
    """Adds words at the end of the last sentence where that is a statement with a verb.

    host: how such a sentence must begin.
    """

    def change(text: str, random: Random) -> str:
        last = last_sentence(text)
        is_statement = (
            _VERB.search(last) and host.match(last) is not None and len(last.split()) >= _N_WORDS
        )
        if not is_statement or _QUESTION.search(text) or ending.strip(", ") in last[-20:]:
            return text
        return _PLAIN_END.sub(
            lambda found: f"{found[1]}{ending}{mark or found[3]}{found[4]}", text, count=1
        )

    return change


def _like_focus(text: str, random: Random) -> str:
    """Before one of the places where it may stand."""
    places = [found.start(1) for found in _BEFORE.finditer(text)]
    if not places:
        return text
    place = random.choice(places)
    return f"{text[:place]}like {text[place:]}"


_DEGREE = "(?:so|really|very|too|super|totally|absolutely|pretty|completely)"
_BEFORE = re.compile(
    rf"\b(?:was|is|are|were|'s|’s|'m|’m|am|got|be) ((?<!like ){_DEGREE} {one_of(ADJECTIVES)}\b)",
    re.IGNORECASE,
)
_FELT = {"be", "enjoy", "feel", "get", "hate", "have", "know", "like", "love", "say", "think"}
_DONE = one_of(
    {
        form
        for base, verb in VERBS.items()
        if base not in _FELT
        for form in (base, verb.third, verb.past, verb.participle, verb.ing)
    }
)
"""Something is done here or there."""
_WHEN = (
    "(?<!up )(?<!out )(?<!over )(?<!back )(?<!from )(?<!right )"
    rf"((?:(?:{_DONE}) (?:(?:it|them|us|me|lunch|dinner|breakfast) )?)(?:here|there)"
    "|today|tomorrow|yesterday|(?:it|them|us|me|him|her) now|last night|last week|this morning)"
)
_DENIED = (
    r"\b(?:at|by|for|of|since|till|until|(?:an?|the) (?:[\w-]+ )?) ?"
    r"|(?:n't|\b(?:not|no|never|even|only|anymore|if|would))\b[^.!?;\n]*"
)
_SKIPS_END = "the text ends in a question, an exclamation, a short phrase or no statement"

DISCOURSE = {
    "isnt-it": Rewrite(
        about="isn’t it as a tag after any clause: they were late, isn’t it?",
        skips="the text ends in a question, an exclamation or a phrase; after “it is”",
        change=_at_end(", isn't it", mark="?", host=_OTHER_THAN_IT),
        examples=(
            ("They were late.", "They were late, isn't it?"),
            ("I love this place", "I love this place, isn't it?"),
            ("Bad food. We will not go again.", "Bad food. We will not go again, isn't it?"),
        ),
        feature=165,
    ),
    "innit": Rewrite(
        about="innit as a tag after any clause: they were late, innit",
        skips=_SKIPS_END,
        change=_at_end(", innit", mark=""),
        examples=(
            ("They were late.", "They were late, innit."),
            ("I love this place", "I love this place, innit"),
            ("Bad food. We will not go again.", "Bad food. We will not go again, innit."),
        ),
        feature=165,
    ),
    "like-focus": Rewrite(
        about="like before what is stressed: it was like really good",
        skips="no form of be with so, very, really, too … and a listed adjective",
        change=_like_focus,
        examples=(
            ("It was really good.", "It was like really good."),
            ("The staff are so rude", "The staff are like so rude"),
            ("I'm very happy.", "I'm like very happy."),
        ),
        feature=234,
    ),
    "like-final": Rewrite(
        about="like after a clause: it was grand, like",
        skips=_SKIPS_END,
        change=_at_end(", like", mark=""),
        examples=(
            ("They were late.", "They were late, like."),
            ("I love this place", "I love this place, like"),
            ("Bad food. We will not go again.", "Bad food. We will not go again, like."),
        ),
        feature=234,
    ),
    "was-like": Rewrite(
        about="be like before what someone said: she was like “no”",
        skips="no pronoun with said, says, asked or replied straight before a quotation mark",
        change=substitute(
            r"(I|he|she|we|they|it|you) (?:said|says|asked|replied|goes),?:?(?=\s?[\"“])",
            lambda found: (
                f"{found[1]} {'were' if found[1].lower() in ('we', 'they', 'you') else 'was'} like"
            ),
            after=".",
        ),
        examples=(
            ('She said "no".', 'She was like "no".'),
            ("They replied, “we are full”", "They were like “we are full”"),
            ('And he asked: "Why?"', 'And he was like "Why?"'),
        ),
        feature=235,
    ),
    "only-focus": Rewrite(
        about="only after what is stressed: they told us yesterday only",
        skips="no today, yesterday, or a verb and here, at the end of a clause; “bad today”; not",
        change=substitute(
            rf"(?!\w+ now){_WHEN}",
            r"\1 only",
            after=r"\s*(?:[.,!;]|$)",
            unless_before=rf"{_DENIED}|\b{one_of(ADJECTIVES)} ",
        ),
        examples=(
            ("We went there yesterday.", "We went there yesterday only."),
            ("It is made here, I think", "It is made here only, I think"),
            ("They told us today!", "They told us today only!"),
        ),
    ),
    "itself-focus": Rewrite(
        about="itself after a time or place: we left yesterday itself",
        skips="no today, yesterday, now, or a verb and here, at the end of a clause; after not",
        change=substitute(_WHEN, r"\1 itself", after=r"\s*(?:[.,!;]|$)", unless_before=_DENIED),
        examples=(
            ("We left yesterday.", "We left yesterday itself."),
            ("They fixed it there", "They fixed it there itself"),
            ("Call them now, please.", "Call them now itself, please."),
        ),
    ),
    "lah": Rewrite(
        about="the particle lah after a clause: the food is good lah",
        skips=_SKIPS_END,
        change=_at_end(" lah", mark=""),
        examples=(
            ("They were late.", "They were late lah."),
            ("I love this place", "I love this place lah"),
            ("Bad food. We will not go again.", "Bad food. We will not go again lah."),
        ),
    ),
}
