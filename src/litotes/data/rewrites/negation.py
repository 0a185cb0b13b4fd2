"""Negation: concord, ain’t, never, and forms that do not change."""

from __future__ import annotations

import re

from litotes.data.rewrites.matching import chain, compiled, keep_case, one_of, substitute
from litotes.data.rewrites.rewrite import Change, Rewrite
from litotes.data.rewrites.verbs import VERBS

_NO = {
    "any": "no",
    "anything": "nothing",
    "anyone": "no one",
    "anybody": "nobody",
    "anywhere": "nowhere",
}
_NOT = (
    "(?:don't|doesn't|didn't|won't|wouldn't|can't|cannot|couldn't|isn't|aren't|wasn't|weren't"
    "|haven't|hasn't|hadn't|not|never)"
)
_UNREAL = r"\b(?:wish\w*|if|though|only|unless)\b[^.!?\n]*"
_PAST = {verb.base: verb.past for verb in VERBS.values() if verb.base not in ("be", "do", "have")}


def _concord() -> Change:
    search = compiled(rf"{_NOT}((?: [\w']+){{0,4}}? )({one_of(_NO)})", unless=" more")

    def replace(found: re.Match[str]) -> str:
        head = found[0][: -len(found[2])]
        return head + keep_case(found[2], _NO[found[2].lower()])

    return lambda text, random: search.sub(replace, text)


NEGATION = {
    "negative-concord": Rewrite(
        about="negation said twice: we didn’t get nothing",
        skips="no negation with any, anything, anyone, anywhere … within five words after it",
        change=_concord(),
        examples=(
            ("We didn't get anything.", "We didn't get nothing."),
            ("There isn't any reason to go", "There isn't no reason to go"),
            ("They never told anyone.", "They never told no one."),
        ),
        feature=154,
    ),
    "aint-be": Rewrite(
        about="ain’t for be: it ain’t good",
        skips="no isn’t, aren’t, is not, are not or am not",
        change=chain(
            substitute("isn't|aren't|is not|are not|am not", "ain't"),
            substitute(r"(I|you|he|she|it|we|they|that)'(?:m|re|s) not", r"\1 ain't"),
        ),
        examples=(
            ("It isn't good.", "It ain't good."),
            ("They are not friendly", "They ain't friendly"),
            ("I'm not going back.", "I ain't going back."),
        ),
        feature=155,
    ),
    "aint-have": Rewrite(
        about="ain’t for have: I ain’t seen it",
        skips="no haven’t, hasn’t, have not or has not",
        change=substitute("haven't|hasn't|have not|has not", "ain't"),
        examples=(
            ("I haven't seen it.", "I ain't seen it."),
            ("It has not changed", "It ain't changed"),
            ("They haven't replied.", "They ain't replied."),
        ),
        feature=156,
    ),
    "dont-all": Rewrite(
        about="don’t for every person: he don’t care",
        skips="no doesn’t or does not; after a plural, where don’t is standard",
        change=substitute(
            "doesn't|does not",
            "don't",
            unless_before=r"\b(?:women|men|people|children|they|we|i|you|police|[\w']*[^i\W]s) ",
        ),
        examples=(
            ("He doesn't care.", "He don't care."),
            ("It does not matter", "It don't matter"),
            ("Doesn't taste good.", "Don't taste good."),
        ),
        feature=158,
    ),
    "never-past": Rewrite(
        about="never for didn’t: they never came yesterday",
        skips="no didn’t or did not straight before a listed verb",
        change=substitute(
            rf"(?:didn't|did not) ((?:even |really )?)({one_of(_PAST)})",
            lambda found: f"never {found[1]}{_PAST[found[2].lower()]}",
        ),
        examples=(
            ("They didn't come.", "They never came."),
            ("I did not like it", "I never liked it"),
            ("He didn't even try.", "He never even tried."),
        ),
        feature=159,
    ),
    "werent-split": Rewrite(
        about="weren’t for wasn’t: it weren’t bad",
        skips="no wasn’t or was not; after wish and if, where weren’t is standard",
        change=chain(
            substitute("wasn't", "weren't", unless_before=_UNREAL),
            substitute("was not", "were not", unless_before=_UNREAL),
        ),
        examples=(
            ("It wasn't bad.", "It weren't bad."),
            ("The soup was not hot", "The soup were not hot"),
            ("Wasn't worth it.", "Weren't worth it."),
        ),
        feature=163,
    ),
}
