"""Tiny invented files for every source: a new source is put into `MADE`, and the contract tests run
on it.
"""

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

Rows = Sequence[dict[str, str]] | Sequence[dict[int, str]]


@dataclass(frozen=True)
class Made:
    """What a source reads: files by name, the SOURCE that reads them, and a column it cannot do
    without.
    """

    files: dict[str, Rows]
    spec: str
    column: str = ""


def _besstie() -> Made:
    rows = [
        {
            "text": f"{text} {number}",
            "label": str(number % 2),
            "variety": variety,
            "source": source,
            "task": task,
            "extra": "x",
        }
        for number, text in enumerate(
            ("Top spot, will be back", "Cheers for the two-hour wait, legends", "Fine, I suppose")
        )
        for variety in ("en-AU", "en-UK")
        for source in ("Google", "Reddit")
        for task in ("Sentiment", "Sarcasm")
    ]
    return Made(
        {"besstie/train.csv": rows[:16], "besstie/valid.csv": rows[16:]},
        "besstie:{folder}/besstie",
        "task",
    )


def _twitter() -> Made:
    # every text occurs under two ids, so that a split by id alone would tear some of them apart
    rows = [
        {
            "id": str(1000 * copy + number),
            "entity": "Kettle",
            "sentiment": "Positive",
            "text": f"The kettle number {number} sings",
        }
        for number in range(80)
        for copy in (1, 2)
    ]
    rows += [{"id": "7", "entity": "Kettle", "sentiment": "Neutral", "text": "A kettle it is"}]
    return Made({"twitter_training.csv": rows}, "twitter:{folder}?min_words=3", "text")


def _bicodemix() -> Made:
    # every text comes in two spellings that count as the same text
    rows = [
        {
            "id": str(number),
            "comment/tweet": spelling(f"The road number {number} is closed"),
            "2nd level comment/ reply": "Yes" if number % 2 else "1.35E+18",
            "majority_sent": ("negative", "neutral", "positive", "")[number % 4],
            "majority_sarc": ("notsarc", "sarc")[number % 2],
            "lang_id": "en",
        }
        for number in range(80)
        for spelling in (str.upper, str.lower)
    ]
    return Made({"annotated_bicodemix_publicsa_v2.csv": rows}, "bicodemix:{folder}", "lang_id")


def _vader() -> Made:
    # sentences of one document, and one text that occurs in two of them
    tweets = [
        [str(number), ("2.1", "-1.4")[number % 2], f"The kettle number {number // 2 * 2} sings"]
        for number in range(80)
    ]
    reviews = [
        [
            f"{number // 2}_{number % 2}",
            "0.2" if number == 3 else "-0.9",
            f'A "kettle that {number} says',
        ]
        for number in range(80)
    ]
    files = {
        "vader/tweets_GroundTruth.txt": tweets,
        "vader/amazonReviewSnippets_GroundTruth.txt": reviews,
    }
    return Made(
        {name: [dict(enumerate(row)) for row in rows] for name, rows in files.items()},
        "vader:{folder}/vader",
    )


def _isarcasm() -> Made:
    train = [
        {
            "": str(number),
            "tweet": f"Lovely weather {number}",
            "sarcastic": str(number % 2),
            "rephrase": "It rains." if number % 2 else "",
        }
        for number in range(6)
    ]
    test = [{"text": "What a day", "sarcastic": "0"}, {"text": "Oh, do go on", "sarcastic": "1"}]
    return Made(
        {"isarcasm/train.En.csv": train, "isarcasm/task_A_En_test.csv": test},
        "isarcasm:{folder}/isarcasm",
        "sarcastic",
    )


def _glue(name: str, folder: str, row: dict[str, str], column: str) -> Made:
    rows = [
        {key: f"{value} {number}" if key != column else value for key, value in row.items()}
        for number in range(3)
    ]
    return Made(
        {f"{folder}/train.tsv": rows, f"{folder}/dev.tsv": rows[:1]},
        f"glue/{name}:{{folder}}",
        column,
    )


_PAIR = {"sentence1": 'He said "no', "sentence2": "He declined"}
_TABLE = [
    {"review": f"Plate {number} was cold", "stars": ("pos", "neg")[number % 2], "where": "en-AU"}
    for number in range(4)
]

MADE: dict[str, Made] = {
    "sampler": Made({}, "sampler"),
    "contrast": Made({}, "contrast"),
    "asides": Made({}, "asides"),
    "besstie": _besstie(),
    "twitter": _twitter(),
    "bicodemix": _bicodemix(),
    "vader": _vader(),
    "isarcasm": _isarcasm(),
    "irony": Made(
        {
            f"irony/{name}.csv": [
                {"text": f"{name} {number}", "label": str(number)} for number in (0, 1)
            ]
            for name in ("train", "val", "test")
        },
        "irony:{folder}/irony",
        "label",
    ),
    "glue/sst2": _glue("sst2", "SST-2", {"sentence": "a dry film", "label": "0"}, "label"),
    "glue/rte": _glue("rte", "RTE", {"index": "0", **_PAIR, "label": "entailment"}, "label"),
    "glue/qnli": _glue(
        "qnli",
        "QNLI",
        {"index": "0", "question": "Who?", "sentence": "Him.", "label": "not_entailment"},
        "label",
    ),
    "glue/mrpc": _glue(
        "mrpc",
        "MRPC",
        {"Quality": "1", "#1 ID": "1", "#2 ID": "2", "#1 String": "One", "#2 String": "Two"},
        "Quality",
    ),
    "glue/stsb": _glue("stsb", "STS-B", {"index": "0", **_PAIR, "score": "3.800"}, "score"),
    "table": Made(
        {"reviews.csv": _TABLE},
        "table:{folder}/reviews.csv?text=review&label.sentiment=stars&variety=where",
        "stars",
    ),
    "hub": Made(
        {"reviews/train.csv": _TABLE},
        "hub:{folder}/reviews?text=review&label.sentiment=stars",
        "stars",
    ),
}


def write_table(path: Path, rows: Rows) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif path.suffix == ".txt":  # no header
        path.write_text("".join("\t".join(row.values()) + "\n" for row in rows), encoding="utf-8")
    elif path.suffix == ".tsv":
        lines = [list(rows[0]), *(list(row.values()) for row in rows)]
        path.write_text("".join("\t".join(line) + "\n" for line in lines), encoding="utf-8")
    else:
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)
