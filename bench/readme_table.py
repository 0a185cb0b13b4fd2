"""Writes the table of speeds in README.md from docs/results/bench.json, between its two marks
(docs/results/performance.md says how).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results" / "bench.json"

IN_WORDS = {
    "hf-padded-32": "Hugging Face `transformers`, sdpa, batches of 32, padded",
    "hf-sorted-32": "the same, texts sorted by length first",
    "hf-1": "the same, one text at a time",
    "ort-fp32-1": "ONNX Runtime, float32, one text at a time",
    "ort-int8-1": "ONNX Runtime, int8 (`quantize_dynamic`), one text at a time",
    "litotes-packed": "litotes in torch, packed, float32",
    "litotes-dense": "litotes exported, float32",
    "litotes-dense-int8": "litotes exported, int8",
    "litotes-pruned": "litotes pruned and exported, float32",
    "litotes-pruned-int8": "litotes pruned and exported, int8",
}
PADDED = "hf-padded-32"


def read() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(RESULTS.read_text("utf-8"))
    return content


def lines_of(content: Mapping[str, Any], group: str) -> dict[str, dict[str, Any]]:
    """A group's lines by name."""
    return {line["name"]: line for line in content["lines"] if line["group"] == group}


def replaced(page: str, name: str, content: str) -> str:
    """The page with new content between `<!-- bench: NAME -->` and `<!-- end of NAME -->`."""
    marks = re.compile(rf"(<!-- bench: {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
    if len(marks.findall(page)) != 1:
        raise SystemExit(
            f"The page needs one <!-- bench: {name} --> and one <!-- end of {name} --> after it."
        )
    between = f"{content.rstrip()}\n" if content.strip() else ""
    return marks.sub(lambda found: f"{found[1]}{between}{found[2]}", page)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))


def readme_table(content: Mapping[str, Any]) -> str:
    """Texts a second of every line, against padding and against the nearest baseline, and where
    the numbers come from.
    """
    lines = lines_of(content, "classify")
    machine = content["machine"]
    head = [
        (
            f"{content['n_texts']} texts of {content['data']} in random order to labels,"
            f" {machine['n_cores']} {machine['processor']} cores"
        ),
        "texts/s",
        "× padded",
        "× ONNX Runtime, same precision and scheduling",
    ]
    rows = [_row(lines, name) for name in IN_WORDS if name in lines]
    return f"{markdown(head, rows)}\n\n<sup>{_about(content, lines)}</sup>"


def _row(lines: Mapping[str, Mapping[str, Any]], name: str) -> list[str]:
    line = lines[name]
    padded = 1.0 if name == PADDED else line["ratios"].get(PADDED, {}).get("middle")
    rival = next(
        (ratio for other, ratio in line["ratios"].items() if other.endswith("-workers")), None
    )
    cells = [
        f"{line['per_second']:.1f}",
        "" if padded is None else f"{padded:.1f}",
        "" if rival is None else f"{rival['middle']:.2f}",
    ]
    ours = name.startswith("litotes")
    return [f"**{cell}**" if ours and cell else cell for cell in (IN_WORDS[name], *cells)]


def _about(content: Mapping[str, Any], lines: Mapping[str, Mapping[str, Any]]) -> str:
    machine, subject = content["machine"], content["subject"]
    n_rounds = len(next(iter(lines.values()))["ms_all_rounds"])
    versions = ", ".join(
        f"{library} {machine[library]}"
        for library in ("torch", "onnxruntime", "transformers")
        if library in machine
    )
    notes = "".join(f" {note}" for note in content["groups"]["classify"]["notes"])
    rounds = "one round" if n_rounds == 1 else f"medians of {n_rounds} rounds"
    return (
        f"`litotes bench`: the same weights ({subject['encoder']}, head {subject['head']}) and the"
        f" same tokenizer, whose work is included; all lines take turns in one run, {rounds}."
        f" {machine['model']}, {versions}.{notes} More, with spreads:"
        " [docs/results/performance.md](docs/results/performance.md)."
    )


def main() -> None:
    page = ROOT / "README.md"
    page.write_text(replaced(page.read_text("utf-8"), "readme", readme_table(read())), "utf-8")


if __name__ == "__main__":
    main()
