"""Prints a reference of all rewrites: the table of rules with what readers judged of each.

python -m reproduction.rewrites_page > rewrites.md
"""

from __future__ import annotations

import json
from pathlib import Path

from litotes.core.text import markdown
from litotes.data.rewrites import REWRITES, TOPICS
from litotes.data.rewrites.rewrite import VARIETIES, Rewrite

ROOT = Path(__file__).parent.parent
JUDGED = ROOT / "docs" / "results" / "stress" / "judged.json"

_HEAD = """\
# Rewrites: features of varieties of English as rules

{n_rules} rules, {n_features} features of [eWAVE](https://ewave-atlas.org) among them, each common
(A or B) in at least one of Australian, Indian, Irish, Nigerian, Singapore or British English.
`litotes stress` measures what they do to a model's answers (docs/how-to/stress.md),
`data.rewrites` trains with them, and `litotes list rewrites` lists them.

What all of them keep: the same seed and text give the same rewrite; a text that a rule does not
apply to comes back unchanged and is not counted; URLs, @mentions, #hashtags and e-mail addresses
are never touched; a rule looks for words of closed lists and needs no tagger, so it leaves out many
places rather than rewrite a wrong one. `tests/data/test_rewrites.py` holds every rule to this and
runs the examples below.

**Values.** Twelve letters, one for each variety of eWAVE in this order: {varieties}. A: pervasive
or obligatory, B: neither pervasive nor extremely rare, C: rare, D: absent, X: not applicable, ?:
not known. They are facts of eWAVE (Kortmann, Lunkenheimer and Ehret, eds., CC BY 3.0), which a test
compares with its data. Spelling, words, particles and perturbations have no number there.

**Read and judged.** Two readers, each without knowing what the other said, read 636 outputs, five
of every rule where it applies to as many, on training texts of BESSTIE and SST-2, and asked of
each: is it that feature, as a speaker might write it, and are meaning and label kept? Both said yes
to 566; they agreed on 627 (Cohen's κ 0.92). The 50 rules with a refusal, or a twin of one, were
then made narrower and 247 other outputs of them read again: both said yes to 228 and agreed on 241
(κ 0.80). The column *good* has what both called good in the last reading of a rule,
{good} of {read} in all. The readers were language models; people would agree less. Texts of the
second reading come from the corpora that the rules were mended on, so new texts will be a little
worse.
"""


def page() -> str:
    """The whole page."""
    judged = json.loads(JUDGED.read_text("utf-8"))
    numbers = {rewrite.feature for rewrite in REWRITES.values()} - {None}
    head = _HEAD.format(
        n_rules=len(REWRITES),
        n_features=len(numbers),
        varieties=", ".join(VARIETIES),
        good=sum(good for good, _ in judged.values()),
        read=sum(read for _, read in judged.values()),
    )
    parts = [head]
    for topic, rules in TOPICS.items():
        lines = [f"## {topic[0].upper()}{topic[1:]}", ""]
        lines.append("| rule | eWAVE | values | what it does | left alone | examples | good |")
        lines.append("|---|---|---|---|---|---|---|")
        for name, rewrite in rules.items():
            lines.append(_row(name, rewrite, judged[name]))
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _row(name: str, rewrite: Rewrite, judged: list[int]) -> str:
    number = "" if rewrite.feature is None else f"{rewrite.feature} {markdown(rewrite.title)}"
    values = "".join(rewrite.values().values())
    examples = [f"{markdown(old)} → {markdown(new)}" for old, new in rewrite.examples]
    good, read = judged
    cells = [
        f"`{name}`",
        number,
        f"`{values}`" if values else "",
        markdown(rewrite.about),
        markdown(rewrite.skips),
        "<br>".join(examples),
        f"{good}/{read}",
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print(page())
