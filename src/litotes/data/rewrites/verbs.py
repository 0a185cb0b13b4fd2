"""The forms of the verbs that rules may touch: what is not listed is left alone."""

from __future__ import annotations

from dataclasses import dataclass

_IRREGULAR = """
be was been; become became become; begin began begun; bite bit bitten; blow blew blown;
break broke broken; bring brought brought; build built built; buy bought bought;
catch caught caught; choose chose chosen; come came come; cost cost cost; cut cut cut; do did done;
draw drew drawn; drink drank drunk; drive drove driven; eat ate eaten; fall fell fallen;
feel felt felt; fight fought fought; find found found; fly flew flown; forget forgot forgotten;
get got got; give gave given; go went gone; grow grew grown; have had had; hear heard heard;
hide hid hidden; hit hit hit; hold held held; keep kept kept; know knew known; leave left left;
lose lost lost; make made made; meet met met; pay paid paid; put put put; read read read;
ride rode ridden; ring rang rung; run ran run; say said said; see saw seen; sell sold sold;
send sent sent; shake shook shaken; show showed shown; sing sang sung; sit sat sat;
sleep slept slept; speak spoke spoken; spend spent spent; stand stood stood; steal stole stolen;
take took taken; teach taught taught; tell told told; think thought thought; throw threw thrown;
wake woke woken; wear wore worn; win won won; write wrote written
"""
_REGULAR = """
add agree allow annoy apologise appear appreciate arrive ask attend avoid believe book bother
call care change charge check clean close collect compare complain consider contact cook cover
cry decide deliver deserve enjoy expect explain fail finish fix follow happen hate help hope
ignore improve join laugh learn like listen live look love manage mention miss move need notice
offer open order park pick plan play prefer prepare promise pull push realise receive recommend
refuse remember remind replace reply request return save seem serve share shop smell sound
start stay stop support suggest talk taste thank treat try turn understand use vary visit wait
walk want warn wash waste watch wish wonder work worry
"""
_DOUBLED = ("stop", "shop", "plan", "prefer")


@dataclass(frozen=True)
class Verb:
    """go, goes, went, gone, going"""

    base: str
    third: str
    past: str
    participle: str
    ing: str


def _third(base: str) -> str:
    special = {"be": "is", "have": "has", "do": "does", "go": "goes"}
    if base in special:
        return special[base]
    if base.endswith(("s", "sh", "ch", "x", "z")):
        return f"{base}es"
    if base.endswith("y") and base[-2] not in "aeiou":
        return f"{base[:-1]}ies"
    return f"{base}s"


def _ed(base: str) -> str:
    if base.endswith("e"):
        return f"{base}d"
    if base.endswith("y") and base[-2] not in "aeiou":
        return f"{base[:-1]}ied"
    return f"{base}{base[-1]}ed" if base in _DOUBLED else f"{base}ed"


def _ing(base: str) -> str:
    doubled = (*_DOUBLED, "begin", "cut", "forget", "get", "hit", "put", "run", "sit", "win")
    if base.endswith("e") and base not in ("be", "see"):
        return f"{base[:-1]}ing"
    return f"{base}{base[-1]}ing" if base in doubled else f"{base}ing"


def _all_verbs() -> dict[str, Verb]:
    found = {}
    for line in _IRREGULAR.split(";"):
        base, past, participle = line.split()
        found[base] = Verb(base, _third(base), past, participle, _ing(base))
    for base in _REGULAR.split():
        past = "understood" if base == "understand" else _ed(base)
        found[base] = Verb(base, _third(base), past, past, _ing(base))
    return found


VERBS = _all_verbs()
"""By base form."""

BY_THIRD = {verb.third: verb for verb in VERBS.values()}
BY_PAST = {verb.past: verb for verb in VERBS.values() if verb.past != verb.base}
BY_PARTICIPLE = {verb.participle: verb for verb in VERBS.values()}
BY_ING = {verb.ing: verb for verb in VERBS.values()}
REGULAR_PAST = {verb.past: verb for verb in VERBS.values() if verb.past.endswith("ed")}
