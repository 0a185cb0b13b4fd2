"""Model folders from strangers: each is refused in one sentence, and nothing outside them is read
or written.

What a description may not say is a table (bad_descriptions.toml). Of what may lie in a folder all
folders are made first, each once with a manifest that was not kept in step and once with one
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
import tomllib
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest
from made_exits import with_exits
from tiny_models import model_of

from litotes.core.errors import UserError
from litotes.core.values import Task
from litotes.encoder import pretrained
from litotes.encoder.pretrained import Pretrained
from litotes.model.calibration import Bound, Calibration, LabelSets
from litotes.model.checkpoint import Model, load_model, save_model
from litotes.model.classifier import Classifier
from litotes.model.folder import hash_folder, open_model, write_label_sets
from litotes.prediction.predictor import Predictor

DESCRIPTIONS = tomllib.loads((Path(__file__).parent / "bad_descriptions.toml").read_text())
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
    n_bytes = len(header) if n_bytes is None else n_bytes
    put(folder, WEIGHTS, n_bytes.to_bytes(8, "little") + header)


def tokenizer(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    content = json.loads((folder / PIECES).read_text())
    change(content)
    put(folder, PIECES, json.dumps(content).encode())


def parts(folder: Path, *names: Any) -> None:
    (folder / ABOUT).write_text(json.dumps({"format": 2, "litotes": "0", "parts": list(names)}))


def as_folder(folder: Path, name: str) -> None:
    (folder / name).unlink()
    (folder / name).mkdir()


def as_pipe(folder: Path, name: str) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)


HUGE = {"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}
DAMAGE: dict[str, Callable[[Path], Any]] = {
    "an empty description": lambda f: (f / ABOUT).write_text(""),
    "a list": lambda f: (f / ABOUT).write_text("[]"),
    "a description in a description in …": lambda f: (f / ABOUT).write_text('{"a":' * 100_000),
    "no text": lambda f: (f / ABOUT).write_bytes(b"\xff\xfe\x00"),
    "a number as long as a book": (
        lambda f: (f / ABOUT).write_text('{"format": ' + "9" * 100_000 + "}")
    ),
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


# What a description says


@pytest.fixture(scope="module")
def described(shared_tiny: Pretrained, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose description has everything that one can have."""
    task = Task("sarcasm", ("literal", "sarcastic"))
    model = with_exits(model_of(shared_tiny, task), (1,), threshold=0.6)
    facts = {"key": "a", "recipe": {}, "data": {}, "notes": ["a note"]}
    calibration = {"sarcasm": Calibration(1.2, 0.4, 10)}
    folder = tmp_path_factory.mktemp("described") / "model"
    save_model(replace(model, facts=facts, calibration=calibration), folder, card="")
    write_label_sets(open_model(folder), {"sarcasm": LabelSets(0.9, Bound(0.4, 30))})
    assert load_model(folder).label_sets
    return folder


@pytest.mark.parametrize("kind", DESCRIPTIONS)
def test_a_description_that_no_model_can_have_is_refused_in_a_sentence(
    kind: str, described: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(described, tmp_path / "model")
    content = json.loads((folder / ABOUT).read_text())
    place, *instead = DESCRIPTIONS[kind]
    *path, last = place.split(".")
    inner = reduce(getitem, path, content)
    if instead:
        inner[last] = json.loads(instead[0])
    else:
        del inner[last]
    put(folder, ABOUT, json.dumps(content).encode())
    with pytest.raises(UserError) as refusal:
        Predictor(load_model(folder), device="cpu").predict(["ok"])
    assert_is_a_sentence(str(refusal.value))
    assert str(refusal.value).startswith(str(folder)) or "\x1b" not in str(refusal.value)


def assert_is_a_sentence(text: str) -> None:
    assert "\n" not in text
    assert text.rstrip().endswith("."), text
    assert 0 < len(text) < 600


# What lies in a folder


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


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=", ".join)
def test_a_strange_folder_is_refused_in_a_sentence(
    case: tuple[str, str], refusals: Refusals
) -> None:
    sentence, touched = refusals[CASES.index(case)]
    assert_is_a_sentence(sentence)
    assert touched == []
