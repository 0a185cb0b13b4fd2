"""Model folders from strangers: each is refused in one sentence, and nothing outside them is read
or written.

All folders are made first, each once with a manifest that was not kept in step and once with one
that was; then one process, whose every opened file is written down, is asked to load them one after
the other.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from litotes.core.values import Task
from litotes.encoder import pretrained
from litotes.model.checkpoint import Model, save_model
from litotes.model.classifier import Classifier
from litotes.model.folder import hash_folder

pytestmark = pytest.mark.slow

WEIGHTS, PIECES, ABOUT = "model.safetensors", "tokenizer.json", "litotes.json"
LIST = "manifest.json"
OUTSIDE = "OUTSIDE"

Refusals = list[tuple[str, list[str]]]


def about(folder: Path, **changes: Any) -> None:
    content = json.loads((folder / ABOUT).read_text())
    (folder / ABOUT).write_text(json.dumps(content | changes))


def inside(folder: Path, key: str, **changes: Any) -> None:
    about(folder, **{key: json.loads((folder / ABOUT).read_text())[key] | changes})


def put(folder: Path, name: str, content: bytes) -> None:
    """Another file, and its hash in the manifest, as somebody does who means it."""
    (folder / name).write_bytes(content)
    hash_folder(folder).write(folder)


def link(folder: Path, name: str, target: Path | str) -> None:
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(target)


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(Path(os.environ[OUTSIDE]) / "exploded"),)


def zipped(folder: Path) -> None:
    with zipfile.ZipFile(folder / WEIGHTS, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Bomb()))
    put(folder, WEIGHTS, (folder / WEIGHTS).read_bytes())


def headed(folder: Path, header: bytes, n_bytes: int | None = None) -> None:
    put(
        folder,
        WEIGHTS,
        (len(header) if n_bytes is None else n_bytes).to_bytes(8, "little") + header,
    )


def tokenizer(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    content = json.loads((folder / PIECES).read_text())
    change(content)
    put(folder, PIECES, json.dumps(content).encode())


def parts(folder: Path, *names: Any) -> None:
    (folder / ABOUT).write_text(json.dumps({"format": 1, "litotes": "0", "parts": list(names)}))


def as_folder(folder: Path, name: str) -> None:
    (folder / name).unlink()
    (folder / name).mkdir()


def as_pipe(folder: Path, name: str) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)


ENCODER: dict[str, dict[str, Any]] = {
    "a billion layers": {"n_layers": 10**9},
    "a wide encoder": {"width": 10**8},
    "an endless vocabulary": {"n_vocabulary": 10**13},
    "endless positions": {"n_positions": 10**13},
    "endless inner width": {"inner_width": 10**13},
    "no heads": {"n_attention_heads": 0},
    "heads in words": {"n_attention_heads": "four"},
    "a family of its own": {"family": "../../family"},
    "a weighting that is code": {"weighting": "os.system"},
    "a pruning that is code": {"pruning": "__import__"},
    "options nobody knows": {"weighting_options": {"path": "/etc/passwd"}},
    "a setting nobody knows": {"auto_map": {"AutoModel": "evil.Model"}},
    "heads that do not divide the width": {"n_attention_heads": 5},
    "a negative width": {"width": -32},
    "heads by truth": {"n_attention_heads": True},
    "more pieces than the weights have": {"n_vocabulary": 131},
    "fewer positions than the weights have": {"n_positions": 95},
    "positions that leave no room": {"first_position": 96},
    "a dropout of more than all": {"dropout": 1.5},
    "an epsilon that is no number": {"norm_epsilon": float("nan")},
    "an activation nobody knows": {"activation": "sigmoid?"},
    "heads of a block that is not there": {"heads_kept": [[0], [1], [2]]},
    "heads that are not there": {"heads_kept": [[0, 4], [1]]},
    "a head twice": {"heads_kept": [[0, 0], [1]]},
    "a block without heads": {"heads_kept": [[0], []]},
}
HUGE = {"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}
DAMAGE: dict[str, Callable[[Path], Any]] = {
    "an empty description": lambda f: (f / ABOUT).write_text(""),
    "a list": lambda f: (f / ABOUT).write_text("[]"),
    "a description in a description in …": lambda f: (f / ABOUT).write_text('{"a":' * 100_000),
    "no text": lambda f: (f / ABOUT).write_bytes(b"\xff\xfe\x00"),
    "a number as long as a book": (
        lambda f: (f / ABOUT).write_text('{"format": ' + "9" * 100_000 + "}")
    ),
    "a format to come": lambda f: about(f, format=99),
    "no encoder": lambda f: about(f, encoder=None),
    **{
        kind: lambda f, fields=fields: inside(f, "encoder", **fields)
        for kind, fields in ENCODER.items()
    },
    "no tasks": lambda f: about(f, tasks=None),
    "a key nobody knows": lambda f: about(f, threads=4),
    "the same label twice": lambda f: about(f, tasks={"sarcasm": ["literal", "literal"]}),
    "facts that are a list": lambda f: about(f, facts=[]),
    "a base with more to it": lambda f: inside(f, "base", url="https://example.org"),
    "a base that is omitted in words": lambda f: inside(f, "base", omitted="no"),
    "a label that turns the line": lambda f: about(
        f, tasks={"sarcasm": ["literal", "\u202esarcastic"]}
    ),
    "a label that clears the screen": lambda f: about(f, tasks={"sarcasm": ["literal", "\x1b[2J"]}),
    "a task that clears the screen": lambda f: about(
        f, tasks={"\x1b[2J": ["literal", "sarcastic"]}
    ),
    "a head nobody has": lambda f: about(f, head="../../head"),
    "a calibration in words": lambda f: about(f, calibration={"sarcasm": {"temperature": "hot"}}),
    "a temperature of nothing": lambda f: about(
        f, calibration={"sarcasm": {"temperature": 0.0, "threshold": None, "n": 1}}
    ),
    "texts of no length": lambda f: about(f, max_pieces=-1),
    "texts of any length": lambda f: about(f, max_pieces=10**12),
    "a dropout in words": lambda f: about(f, dropout="__import__('os')"),
    "files elsewhere": lambda f: about(f, files={"../secret": "0" * 64}),
    "a base elsewhere": lambda f: inside(f, "base", name="../secret", omitted=True),
    "a base at the root": lambda f: inside(f, "base", name="/etc", omitted=True),
    "a base on the Hub": lambda f: inside(f, "base", name="OWNER/NAME@main", omitted=True),
    "another base": lambda f: inside(f, "base", name="minilm", sha256="0" * 64, omitted=True),
    "parts above": lambda f: parts(f, "../secret"),
    "parts at the root": lambda f: parts(f, "/etc"),
    "parts of no name": lambda f: parts(f, ".."),
    "parts that are numbers": lambda f: parts(f, 1),
    "no parts": lambda f: parts(f),
    "a part that is a link": lambda f: (
        parts(f, "sarcasm"),
        link(f, "sarcasm", os.environ[OUTSIDE]),
    ),
    "weights that are a pickle": lambda f: put(f, WEIGHTS, pickle.dumps(Bomb())),
    "weights that are an archive": zipped,
    "a header without end": lambda f: headed(f, b"{}", 2**60),
    "a header larger than allowed": lambda f: headed(f, b" " * 100, 2**31),
    "a header that is no JSON": lambda f: headed(f, b"{" * 1000),
    "tensors that are not there": lambda f: headed(f, json.dumps(HUGE).encode()),
    "no tensors": lambda f: headed(f, b"{}"),
    "cut weights": lambda f: put(f, WEIGHTS, (f / WEIGHTS).read_bytes()[:5000]),
    "other weights": lambda f: (f / WEIGHTS).write_bytes(b"other"),
    "weights that are a folder": lambda f: as_folder(f, WEIGHTS),
    "weights that are a link": lambda f: link(f, WEIGHTS, Path(os.environ[OUTSIDE]) / "secret"),
    "pieces that are a link": lambda f: link(f, PIECES, "/etc/passwd"),
    "a description that is a link": lambda f: link(f, ABOUT, Path(os.environ[OUTSIDE]) / "secret"),
    "a link to itself": lambda f: link(f, PIECES, PIECES),
    "a link to nothing": lambda f: link(f, PIECES, "nowhere/at/all/../../../../secret"),
    "pieces that are a pipe": lambda f: as_pipe(f, PIECES),
    "a description that is a pipe": lambda f: as_pipe(f, ABOUT),
    "pieces that are no tokenizer": lambda f: put(f, PIECES, b"{}"),
    "pieces that are a pickle": lambda f: put(f, PIECES, pickle.dumps(Bomb())),
    "pieces without a model": lambda f: tokenizer(f, lambda content: content.pop("model")),
    "more pieces than weights": lambda f: tokenizer(
        f, lambda content: content["model"]["vocab"].update(ok=10_000)
    ),
    "no folder": lambda f: shutil.rmtree(f),
    "a file": lambda f: (shutil.rmtree(f), f.write_bytes(pickle.dumps(Bomb()))),
}

MANIFESTS: dict[str, Callable[[Path], Any]] = {
    "no manifest": lambda f: (f / LIST).unlink(),
    "an empty manifest": lambda f: (f / LIST).write_text(""),
    "a manifest that is a list": lambda f: (f / LIST).write_text("[]"),
    "a manifest in a manifest in …": lambda f: (f / LIST).write_text(
        '{"files": {"a": ' + "[" * 900 + "]" * 900 + '}, "sha256": ""}'
    ),
    "a manifest without hashes": lambda f: (f / LIST).write_text('{"files": {}}'),
}
CASES = [
    *((kind, manifest) for kind in DAMAGE for manifest in ("not in step", "in step")),
    *((kind, "not in step") for kind in MANIFESTS),
]

ASK = """
import json, sys
from pathlib import Path
root, outside, n = sys.argv[1:]
from litotes.prediction.predictor import Predictor
from litotes.core.errors import UserError
# whatever is imported has been imported after this
Predictor.load(root + "/whole", device="cpu", runtime="torch").predict(["ok"])
EVENTS = ("open", "os.mkdir", "os.rename", "os.remove", "subprocess.Popen", "socket.connect",
          "os.system")
opened = []
def hook(event, arguments):
    if event in EVENTS:
        opened.append(f"{event} {arguments[0]}")
def is_outside(one):
    return outside in one or "/etc/" in one or not one.startswith("open ")
sys.addaudithook(hook)
refusals = []
for number in range(int(n)):
    opened.clear()
    sentence = ""
    try:
        Predictor.load(f"{root}/{number:03}", device="cpu", runtime="torch").predict(["ok"])
    except UserError as error:
        sentence = str(error)
    except Exception as error:
        sentence = f"a stack: {error!r}\\n"
    refusals.append([sentence, list(filter(is_outside, opened))])
print(json.dumps(refusals))
"""


@pytest.fixture(scope="module")
def refusals(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Refusals:
    if not hasattr(os, "mkfifo"):
        pytest.skip("there are no named pipes on this system")
    root, outside = tmp_path_factory.mktemp("strangers"), tmp_path_factory.mktemp("outside")
    (outside / "secret").write_text("nobody shall read this")
    tiny = pretrained.load(str(tiny_folder))
    classifier = Classifier(
        tiny.encoder, [Task("sarcasm", ("literal", "sarcastic"))], head="mean", dropout=0.0
    )
    save_model(Model(classifier.eval(), tiny.tokenizer, "tiny", None), root / "whole", card="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(OUTSIDE, str(outside))
        for number, (kind, manifest) in enumerate(CASES):
            folder = shutil.copytree(root / "whole", root / f"{number:03}")
            (DAMAGE | MANIFESTS)[kind](folder)
            if manifest == "in step" and folder.is_dir():
                hash_folder(folder).write(folder)
    command = [sys.executable, "-c", ASK, str(root), str(outside), str(len(CASES))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    assert [path.name for path in outside.iterdir()] == ["secret"]
    return [tuple(refusal) for refusal in json.loads(done.stdout)]


@pytest.mark.parametrize("case", CASES, ids=", ".join)
def test_a_strange_folder_is_refused_in_a_sentence(
    case: tuple[str, str], refusals: Refusals
) -> None:
    sentence, touched = refusals[CASES.index(case)]
    assert sentence, "it was loaded"
    assert "\n" not in sentence
    assert sentence.rstrip().endswith("."), sentence
    assert len(sentence) < 600
    assert touched == []
