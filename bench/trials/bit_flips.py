"""Flips single bits of model folders and asks the models: each must be refused with the name of a
file, or answer as it did.

    python bench/trials/bit_flips.py [N_TINY] [N_BUILTIN]

N_TINY flips (default 1,000) over folders of tiny random models, N_BUILTIN (default 100) over copies
of the built-in model: read by torch and by ONNX Runtime in float32 and int8, dense and pruned, one
model and a model per task. A file is drawn first and then a bit of it, so that small files are hit
as often as weights; of JSON every second flip hits a digit, which leaves it readable. Prints a
table, and exits with 1 if a model answered differently or not in a sentence.
"""

from __future__ import annotations

import random
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from litotes.core.errors import UserError
from litotes.core.values import Prediction, Task
from litotes.encoder.encoder import Encoder
from litotes.encoder.families import EncoderSpec
from litotes.encoder.pretrained import load_tokenizer
from litotes.exporting.export import export_models
from litotes.model.builtin import BUILTIN, resolve_model
from litotes.model.calibration import Calibration
from litotes.model.checkpoint import Model, save_model, save_parts
from litotes.model.classifier import Classifier
from litotes.prediction.predictor import Predictor

TEXTS = (
    "Lovely. Another delay.",
    "The queue was long, the tea was cold, and I would go again tomorrow.",
    "ok",
)
SIZES = {"width": 24, "n_layers": 2, "n_attention_heads": 4, "inner_width": 32, "n_positions": 64}
PRUNED = {"pruning": "learned", "pruning_options": {"shares": [0.6, 0.3], "restore": True}}
TASKS = (Task("sentiment", ("negative", "positive")), Task("sarcasm", ("literal", "sarcastic")))

REFUSED, SAME = "refused, with the file's name", "answered as before"
NAMELESS, OTHER, ERROR = "refused, without a name", "ANSWERED DIFFERENTLY", "TRACEBACK"
OUTCOMES = (REFUSED, SAME, NAMELESS, OTHER, ERROR)
GOOD = (REFUSED, SAME)


@dataclass(frozen=True)
class Subject:
    """A model folder that is asked by one runtime."""

    name: str
    folder: Path
    runtime: str

    def ask(self) -> list[Prediction]:
        return Predictor.load(self.folder, device="cpu", runtime=self.runtime).predict(TEXTS)

    def files(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob("*") if path.is_file())


def tiny_subjects(root: Path) -> Iterator[Subject]:
    """Random models of a few thousand weights besides the piece table."""
    for kind, choices in {"dense": {}, "pruned": PRUNED}.items():
        save_model(_tiny_model(*TASKS, **choices), root / kind, card="a card")
        yield Subject(f"tiny {kind}, torch", root / kind, "torch")
        for precision in ("float32", "int8"):
            folder = shutil.copytree(root / kind, root / f"{kind}-{precision}")
            yield _export(f"tiny {kind}, ONNX {precision}", folder, precision)
    for task in TASKS:
        save_model(_tiny_model(task), root / "parts" / task.name, card="a card")
    save_parts([task.name for task in TASKS], root / "parts")
    yield Subject("tiny, a model per task, torch", root / "parts", "torch")


def builtin_subjects(root: Path) -> Iterator[Subject]:
    folder = shutil.copytree(resolve_model(BUILTIN), root / "builtin")
    exported = shutil.copytree(folder, root / "builtin-int8")
    yield Subject("built-in, torch", folder, "torch")
    yield _export("built-in, ONNX int8", exported, "int8")


def _tiny_model(*tasks: Task, **choices: Any) -> Model:
    torch.manual_seed(0)
    tokenizer = load_tokenizer("minilm")
    tokenizer.max_pieces = SIZES["n_positions"]
    spec = EncoderSpec("bert", tokenizer.n_vocabulary, n_segments=2, **SIZES, **choices)
    classifier = Classifier(Encoder(spec), tasks, head="linear", dropout=0.0).eval()
    calibration = {task.name: Calibration(1.7, 0.45, 100) for task in tasks}
    return Model(classifier, tokenizer, "tiny", None, calibration)


def _export(name: str, folder: Path, precision: str) -> Subject:
    export_models(folder, precision=precision, source="sampler", allowed=1.0, n_texts=20)
    return Subject(name, folder, "onnx")


def flip_bits(
    subjects: Sequence[Subject], n: int, seed: int = 0
) -> tuple[Counter[tuple[str, str]], list[str]]:
    """How often each (subject, outcome) happened in n flips, and what went wrong."""
    generator = random.Random(seed)
    expected = {subject.name: subject.ask() for subject in subjects}
    counts: Counter[tuple[str, str]] = Counter()
    failures = []
    for number in range(n):
        subject = subjects[number % len(subjects)]
        file = generator.choice(subject.files())
        bit = _draw_bit(generator, file)
        outcome, words = _ask_with_flip(subject, file, bit, expected[subject.name])
        counts[subject.name, outcome] += 1
        if outcome not in GOOD:
            failures.append(f"{subject.name}, bit {bit} of {file.name}: {outcome} {words}")
    return counts, failures


def _draw_bit(generator: random.Random, file: Path) -> int:
    content = file.read_bytes()
    digits = []
    if file.suffix == ".json":
        digits = [place for place, byte in enumerate(content) if chr(byte).isdecimal()]
    if digits and generator.random() < 0.5:
        return 8 * generator.choice(digits) + generator.randrange(4)
    return generator.randrange(8 * len(content))


def _ask_with_flip(
    subject: Subject, file: Path, bit: int, expected: list[Prediction]
) -> tuple[str, str]:
    whole = file.read_bytes()
    damaged = bytearray(whole)
    damaged[bit // 8] ^= 1 << bit % 8
    file.write_bytes(damaged)
    try:
        return (SAME if subject.ask() == expected else OTHER), ""
    except UserError as error:
        is_named = any(one.name in str(error) for one in subject.files())
        return (REFUSED if is_named else NAMELESS), str(error)
    except Exception as error:  # whatever it is, it is what we look for
        return ERROR, repr(error)
    finally:
        file.write_bytes(whole)


def main(n_tiny: int = 1000, n_builtin: int = 100) -> int:
    torch.set_num_threads(1)
    counts: Counter[tuple[str, str]] = Counter()
    failures = []
    with TemporaryDirectory(prefix="litotes-flips-") as root:
        for subjects, n in ((tiny_subjects, n_tiny), (builtin_subjects, n_builtin)):
            if n:
                some, wrong = flip_bits(list(subjects(Path(root))), n)
                counts.update(some)
                failures += wrong
    print("| folder | flips |", " | ".join(OUTCOMES), "|")
    print("|---|---|" + "---|" * len(OUTCOMES))
    names = dict.fromkeys(name for name, _ in counts)
    for name in names:
        found = [counts[name, outcome] for outcome in OUTCOMES]
        print(f"| {name} | {sum(found)} |", " | ".join(map(str, found)), "|")
    total = [sum(counts[name, outcome] for name in names) for outcome in OUTCOMES]
    print(f"| all | {sum(total)} |", " | ".join(map(str, total)), "|")
    print(*failures, sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
