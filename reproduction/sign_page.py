"""The part of docs/results/translation.md about Sarcasm SIGN."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from litotes.core.text import markdown
from reproduction.paragraphs import paragraph
from reproduction.translation_numbers import NAMES

_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def sign_lines(numbers: Mapping[str, Any]) -> list[str]:
    if "sign" not in numbers:
        return []
    found = numbers["sign"]
    ways = [name for name in found if name not in ("people", "copy")]
    return [
        "## What was meant: Sarcasm SIGN",
        "",
        paragraph(
            "Sarcastic tweets and five people's interpretations of each (Peled and Reichart 2017),"
            f" divided by tweet; {found['people']['n']} test tweets, all references at once. The"
            " line to beat is saying the tweet again."
        ),
        "",
        *_verdicts(found, ways),
        "",
        *_table(found, ways),
        "",
        paragraph(
            "Means over seeds; the differences have 95 % over texts. The sentiment is that of"
            " `builtin@1`: how often an output turns the tweet's, and how often it has that of"
            " most interpretations, which turn it in"
            f" {100 * found['people']['flipped']:.0f} % of the tweets."
        ),
        "",
        *_other_ways(found),
        *_people(found["people"]),
        *_shown(numbers["shown"]),
    ]


def _verdicts(found: Mapping[str, Any], ways: Sequence[str]) -> list[str]:
    """Which ways beat the tweet itself, by each measure: with the whole interval, or not."""
    lines = []
    for title, measure in (("BLEU", "bleu"), ("chrF", "chrf"), ("people's sentiment", "agrees")):
        less = {name: found[name]["less_copy"][measure] for name in ways}
        better = [NAMES[name] for name in ways if less[name]["interval"][0] > 0]
        worse = [name for name in ways if less[name]["interval"][1] < 0]
        if len(better) == len(ways):
            said = f"all {_count(ways)} ways are better than the tweet itself"
        elif better:
            said = f"better than the tweet itself: {', '.join(better)}"
        elif len(worse) == len(ways):
            said = f"all {_count(ways)} ways are worse than the tweet itself: **missed**"
        else:
            said = "no way is better than the tweet itself: **missed**"
        lines.append(paragraph(f"By {title} {said}.", bullet=True))
    return lines


def _count(ways: Sequence[str]) -> str:
    return _NUMBERS[len(ways)] if len(ways) < len(_NUMBERS) else str(len(ways))


def _table(found: Mapping[str, Any], ways: Sequence[str]) -> list[str]:
    copied = found["copy"]
    lines = [
        "| | seeds | BLEU | less the tweet | chrF | less the tweet | changed, % |"
        " sentiment turned, % | sentiment as people's, % | less the tweet, points |",
        "|---|---|---|---|---|---|---|---|---|---|",
        f"| the tweet again | | {copied['bleu']['value']:.1f} | | {copied['chrf']['value']:.1f} |"
        f" | {_percent(copied, 'changed')} | {_percent(copied, 'flipped')} |"
        f" {_percent(copied, 'agrees')} | |",
    ]
    for name in ways:
        one, less = found[name], found[name]["less_copy"]
        lines.append(
            f"| {NAMES[name]} | {len(one['seeds'])} | {one['bleu']['mean']:.1f} |"
            f" {_moved(less['bleu'])} | {one['chrf']['mean']:.1f} | {_moved(less['chrf'])} |"
            f" {_percent(one, 'changed')} | {_percent(one, 'flipped')} |"
            f" {_percent(one, 'agrees')} | {_moved(less['agrees'], 100)} |"
        )
    return lines


def _percent(one: Mapping[str, Any], share: str) -> str:
    return f"{100 * one[share]:.0f}"


def _moved(less: Mapping[str, Any], scale: float = 1) -> str:
    value, low, high = (scale * one for one in (less["value"], *less["interval"]))
    digits = 0 if scale > 1 else 1
    return f"{value:+.{digits}f} ({low:+.{digits}f} to {high:+.{digits}f})"


def _other_ways(found: Mapping[str, Any]) -> list[str]:
    said = {
        "plain": "*plain texts too*: softmax, and it learns as well that a plain text stays as it"
        " is (`sign:PATH?plain=yes`). This way and the next were added after the weightings had"
        " been scored on the same test tweets."
    }
    if "minilm" in found:
        said["minilm"] = (
            "*`minilm`*: the same around the pretrained encoder `minilm`, with its vocabulary. Its"
            " word pieces come back with other blanks (`isn ' t`) and rare words as others; with"
            f" the tweets' blanks BLEU is {found['minilm']['respaced_bleu']:.1f}."
        )
    lines = [paragraph(text, bullet=True) for name, text in said.items() if name in found]
    return [*lines, ""] if lines else []


def _people(people: Mapping[str, Any]) -> list[str]:
    """Why the tweet is hard to beat."""
    against = people["against_others"]
    if not against:
        return []
    one, tweet = against["one_of_them"], against["tweet"]
    said = (
        "BLEU and chrF reward words that stay, and people keep most:"
        f" {100 * people['tweets_kept']:.0f} % of the tweets were left exactly as they are by at"
        f" least one person. A person's own interpretation, scored against the others, has"
        f" BLEU {one['bleu']:.1f} and chrF {one['chrf']:.1f}; the tweet, against the same,"
        f" {tweet['bleu']:.1f} and {tweet['chrf']:.1f}."
    )
    if all(tweet[name] > one[name] for name in one):
        said += " By these measures people do not beat the tweet either."
    return ["### Why the tweet is hard to beat", "", paragraph(said), ""]


def _shown(shown: Sequence[Mapping[str, str]]) -> list[str]:
    columns = [name for name in shown[0] if name not in ("text", "people")]
    lines = [
        f"### {len(shown)} outputs",
        "",
        "Drawn by chance, as they came (seed 0):",
        "",
        f"| tweet | a person | {' | '.join(NAMES[name] for name in columns)} |",
        "|---|---|" + "---|" * len(columns),
    ]
    for one in shown:
        cells = [markdown(one[name]) for name in ("text", "people", *columns)]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]
