"""Puts a run into the package as an edition of the built-in model, with a card.

    python -m reproduction.builtin.measure RUN DATA --edition 5

It is kept compact and tested on texts it has never seen; the card says where it fails.

RUN: a model that `python -m reproduction.builtin` or `litotes prune` has
made. DATA: a folder with besstie, tweeteval-irony, glue, vader and isarcasmeval2022 in it. Writes
src/litotes/model/builtin/edition_5 and docs/reference/builtin/edition-5.json. It becomes `builtin`
when its number ends `EDITIONS` in src/litotes/model/builtin/__init__.py.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from litotes.core.numbers import format_signed
from litotes.data.sources import load
from litotes.evaluation.evaluate import CellScores, evaluate
from litotes.model.builtin import edition_folder
from litotes.model.checkpoint import Model, load_model, save_model
from litotes.prediction.predictor import Predictor

RESULTS = "docs/reference/builtin/edition-{}.json"
OWN, BESSTIE = (
    "its own kind of texts: the test parts of VADER, iSarcasmEval and the sampler",
    "BESSTIE, validation split",
)
TESTS = {
    OWN: "vader:{0}/vader + isarcasm:{0}/isarcasmeval2022 + sampler",
    BESSTIE: "besstie:{0}/besstie",
    "TweetEval irony, test split": "irony:{0}/tweeteval-irony",
    "SST-2, development split": "glue/sst2:{0}/glue",
}
WRITTEN = {
    "Contrast, unseen topics": "contrast",
    "Contrast, plain sentences": "contrast?kind=plain",
    "Contrast, litotes and negation": "contrast?kind=litotes+negation",
    "Asides, unseen topics": "asides",
}
"""From the second edition on, which has learned from their other topics."""
HEAD = (
    "| task | texts of | n | macro-F1 | 95 % interval | majority line |",
    "|---|---|---|---|---|---|",
)


def put_into_package(run: Path, data: Path, edition: int) -> None:
    model, folder = load_model(run), edition_folder(edition)
    save_model(model, folder, card="", compact=True)
    predictor = Predictor(load_model(folder), device="cpu")  # what is tested is what is shipped
    rows = {}
    tests = TESTS if edition == 1 else TESTS | WRITTEN
    for name, source in tests.items():
        corpus = load(source.format(data))
        corpus = corpus.where(split=corpus.test_split())
        rows[name] = [
            row
            for row in evaluate(predictor, corpus, seed=0)
            if row.cell == "all" or name in (OWN, BESSTIE)
        ]
        print(
            name,
            {(row.scores.task, row.cell): round(row.scores.macro_f1, 3) for row in rows[name]},
            flush=True,
        )
    save_model(model, folder, card=card(model, rows, edition), compact=True)
    content = {name: [row.as_json() for row in some] for name, some in rows.items()}
    results = Path(RESULTS.format(edition))
    results.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def card(model: Model, rows: dict[str, Sequence[CellScores]], edition: int) -> str:
    tables = [
        line
        for name, some in rows.items()
        for line in (f"## {name[0].upper()}{name[1:]}", "", *HEAD, *map(_line, some), "")
    ]
    title = [f"# The built-in model, edition {edition}", "", *_about(model), ""]
    return "\n".join([*title, *tables, "## Where it fails", "", *_failures(rows), ""])


def _about(model: Model) -> list[str]:
    facts = model.facts
    calibrations = {task: model.calibration_of(task) for task in model.classifier.tasks}
    temperatures = ", ".join(f"{task} {one.temperature:.2f}" for task, one in calibrations.items())
    thresholds = ", ".join(f"{task} {one.threshold or 0.5:g}" for task, one in calibrations.items())
    written = ""
    if "contrast" in facts["data"]["name"]:
        written = ", the corpora `contrast` and `asides`, written for this project,"
    return [
        (
            "Sentiment (negative, positive) and sarcasm (literal, sarcastic) of English texts. It"
            " is there so that `litotes predict`,"
        ),
        (
            "`explain` and `serve` answer at once. For decisions about people, or for texts unlike"
            " those below, train your own."
        ),
        "",
        (
            f"- Encoder `{model.base}`: embeddings and first layer as they were; five layers and"
            f" the head `{model.classifier.head_name}` were"
        ),
        f"  trained on {facts['data']['n_train']:,} texts and are kept as a difference.",
        *_pruning(facts.get("pruned")),
        f"- Temperatures: {temperatures}. Thresholds: {thresholds}.",
        "- Learned from VADER's rated tweets, reviews and editorials (MIT), iSarcasmEval's",
        f"  English tweets (MIT){written} and the sampler that comes with litotes.",
        *(f"- {note}" for note in facts["notes"] if not _is_left_out(note)),
    ]


def _is_left_out(note: str) -> bool:
    """What is said above, or to who trains."""
    return note.startswith("Pruned") or "--set" in note or "another encoder" in note


def _pruning(pruned: Mapping[str, Any] | None) -> list[str]:
    if pruned is None:
        return ["- Not pruned: no setting that was tried saves time and stays within half a point."]
    low, high = pruned["loss"]["interval"]
    return [
        (
            f"- Pruned by `litotes prune`: the layers hand on {_shares(pruned['shares'])} of the"
            " pieces,"
        ),
        (
            f"  {pruned['flops_ratio']:.1f} times fewer operations; macro-F1"
            f" {format_signed(-pruned['loss']['points'], 1)} points"
        ),
        f"  ({format_signed(-high, 1)} to {format_signed(-low, 1)}) on texts kept apart for that.",
    ]


def _line(row: CellScores) -> str:
    scores, (low, high) = row.scores, row.scores.interval
    return (
        f"| {scores.task} | {row.cell} | {scores.n:,} | {scores.macro_f1:.3f} | {low:.3f} to"
        f" {high:.3f} | {scores.majority:.3f} |"
    )


def _shares(shares: Sequence[float]) -> str:
    return ", ".join(f"{share:.0%}" for share in shares)


def _failures(rows: dict[str, Sequence[CellScores]]) -> list[str]:
    """What the numbers say, in sentences; nothing that they do not say."""
    besstie = {(row.scores.task, row.cell): row.scores for row in rows[BESSTIE]}
    sarcasm = {cell: scores for (task, cell), scores in besstie.items() if task == "sarcasm"}
    useless = [
        f"{cell} ({scores.macro_f1:.2f})"
        for cell, scores in sarcasm.items()
        if scores.interval[0] <= scores.majority
    ]
    weak = min(
        (scores.macro_f1, cell) for (task, cell), scores in besstie.items() if task == "sentiment"
    )
    sarcastic = next(one for one in sarcasm["all"].classes if one.label == "sarcastic")
    return [
        (
            f"- **Sarcasm elsewhere than in tweets.** On BESSTIE it finds {sarcastic.recall:.0%} of"
            " the sarcastic texts, and of what it calls"
        ),
        (
            f"  sarcastic {sarcastic.precision:.0%} is. Not surely better than always saying the"
            " likelier label:"
        ),
        f"  {', '.join(useless) or 'nowhere'}.",
        f"- **Sentiment** is weakest on {weak[1]} ({weak[0]:.2f}).",
        (
            "- It knows no neutral sentiment: a text without any gets one of the two labels, with a"
            " probability that should be near one half."
        ),
        (
            "- Of varieties of English it has seen what the sampler has and what was written for"
            " this project, hardly what people of"
        ),
        "  Australia, India or Britain post.",
        (
            "- Sarcasm that needs the conversation, the speaker or the picture cannot be seen in"
            " the text alone."
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, metavar="RUN")
    parser.add_argument("data", type=Path, metavar="DATA")
    # without a default: the current edition is replaced only by who says so
    parser.add_argument("--edition", type=int, required=True, metavar="N")
    options = parser.parse_args()
    put_into_package(options.run, options.data, options.edition)


if __name__ == "__main__":
    main()
