"""The tables of docs/results/performance.md about texts to labels: every line, the limit they are
measured by, and CTranslate2 and OpenVINO where docs/results/performance/rivals.json is there (see
performance_doc.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from readme_table import ROOT, lines_of, markdown

from litotes.bench.lines import BenchResult, Line
from litotes.bench.rivals import RIVALS

RIVALS_FILE = ROOT / "docs" / "results" / "performance" / "rivals.json"
Content = Mapping[str, Any]
AIM = 1.15
"""Times as fast as each of them, dense against dense in the same precision."""
ABOUT_RIVALS = """\
## Beside CTranslate2 and OpenVINO

`pip install litotes[rivals]`, then `litotes bench classify` measures them too. CTranslate2 runs the
encoder converted by its own converter, with the head outside; OpenVINO reads the ONNX file of the
`transformers` model, for int8 with steps from ONNX Runtime's `quantize_static`. They get the same
pieces and the batches that suit them: sorted by length, several sizes tried, texts of equal length
together among them, one batch on all cores or one on each. A line is refused if its probabilities
in float32 are more than 0.001 away from the model's, or if its int8 keeps less than 90 % of the
labels.
"""


def read_rivals() -> Content | None:
    """The run in which they took part, if there was one."""
    if not RIVALS_FILE.exists():
        return None
    content: Content = json.loads(RIVALS_FILE.read_text("utf-8"))
    return content


def shares(content: Content, group: str) -> dict[str, float]:
    """What each line reaches of the limit."""
    result = _result(content, group)
    found = {line.name: result.share_of_limit(line) for line in result.lines}
    return {name: share for name, share in found.items() if share is not None}


def classify(content: Content) -> str:
    head = [
        "line",
        "texts/s",
        "ms a text (quartiles)",
        "GFLOP a text",
        "of the limit",
        "same labels",
        "times as fast as",
    ]
    n, of_limit = content["n_texts"], shares(content, "classify")
    rows = [
        [
            f"`{name}`",
            f"{line['per_second']:.1f}",
            f"{line['ms'] / n:.2f} ({line['ms_low'] / n:.2f}–{line['ms_high'] / n:.2f})",
            f"{line['flops'] / n / 1e9:.2f}",
            percent(of_limit.get(name)),
            percent(line.get("agreement")),
            ", ".join(
                f"{ratio['middle']:.2f} `{other}`" for other, ratio in line["ratios"].items()
            ),
        ]
        for name, line in lines_of(content, "classify").items()
        if not name.startswith("limit")
    ]
    return markdown(head, rows)


def limit(content: Content) -> str:
    """The most that was seen in any round, and what showed it."""
    rows = []
    threads = {"classify": f"{content['machine']['n_cores']} threads", "profile": "1 thread"}
    for group, cores in threads.items():
        lines = _result(content, group).lines
        for name in [line.name for line in lines if line.name.startswith("limit")]:
            measured = [line for line in lines if name in (line.name, line.limit)]
            best = max(measured, key=lambda line: line.best_rate)
            shown_by = best.shown_by or "one large product"
            if best.name != name:
                shown_by = f"`{best.name}`"
            rate = f"{best.best_rate / 1e6:.0f}"
            rows.append([name.removeprefix("limit-"), cores, rate, shown_by])
    return markdown(["precision", "on", "GFLOP/s", "shown by"], rows)


def rivals(content: Content | None) -> str:
    """The section about them; nothing where they were not measured."""
    if content is None:
        return ""
    lines = lines_of(content, "classify")
    rows = []
    for name in ("litotes-dense", "litotes-dense-int8"):
        for rival, ratio in lines.get(name, {}).get("ratios", {}).items():
            if rival in RIVALS:
                told = "met" if ratio["middle"] >= AIM else "**missed**"
                rows.append([f"`{name}` against `{rival}`", f"{AIM:g}", spread(ratio), told])
    group, machine = content["groups"]["classify"], content["machine"]
    versions = ", ".join(
        f"{library} {machine[library]}"
        for library in ("ctranslate2", "openvino", "onnxruntime")
        if library in machine
    )
    refused = [f"`{name}` was refused: {why}." for name, why in group.get("refused", {}).items()]
    about = (
        f"{content['n_texts']} texts of {content['data']}, {machine['model']}"
        f" ({machine.get('features', 'features unknown')}), {machine['n_cores']} cores; {versions}."
        f" {' '.join([*group['notes'], *refused])}"
    )
    aims = markdown(["times as fast", "aim", "measured (quartiles)", ""], rows)
    return f"{ABOUT_RIVALS}\n{about.rstrip()}\n\n{aims}\n\n{classify(content)}"


def spread(ratio: Mapping[str, float]) -> str:
    return f"{ratio['middle']:.2f} ({ratio['low']:.2f}–{ratio['high']:.2f})"


def percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"


def _result(content: Content, group: str) -> BenchResult:
    lines = [Line.from_json(line) for line in content["lines"] if line["group"] == group]
    return BenchResult("", tuple(lines), {})
