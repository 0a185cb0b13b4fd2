"""The good files that mutations begin with: a tiny model, its recipe, and work that was stopped."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from mutators import Rows, write_delimited
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from litotes.core.errors import Stopped
from litotes.core.progress import Watch
from litotes.core.storage import MANIFEST, write_bytes, write_json
from litotes.encoder.encoder import Encoder
from litotes.encoder.families import spec_from_config
from litotes.encoder.pretrained import to_family_tensors
from litotes.prediction import table_jobs
from litotes.prediction.predictor import BatchPredictor, Predictor
from litotes.prediction.table_jobs import local_runner, predict_to_folder
from litotes.prediction.tables import TableRequest
from litotes.study.plan import read_study
from litotes.study.runs import execute
from litotes.training.recipe import Recipe
from litotes.training.run import train

WORDS = ["great", "bad", "tea", "queue", "love", "hate", "not", "is", "it", "the", "a", "weather"]


@dataclass(frozen=True)
class World:
    """Good files, none of which is changed: a mutation damages a copy."""

    folder: Path
    rows: Rows
    gold: bytes
    table: Path
    source: str
    recipe_toml: Path
    recipe_json: Path
    model: Path
    stopped_run: Path
    stopped_file: Path
    stopped_folder: Path
    study_toml: Path
    study: Path


def make_world(folder: Path) -> World:
    torch.set_num_threads(1)
    rows = _rows()
    table = folder / "table.csv"
    table.write_bytes(write_delimited(rows, ","))
    source = (
        f"table:{table}?label.sentiment=sentiment&label.sarcasm=sarcasm&variety=variety"
        "&source=source&split=split"
    )
    recipe_toml = folder / "recipe.toml"
    encoder = _write_encoder(folder / "encoder")
    recipe_toml.write_text(_recipe(encoder, source), "utf-8")
    recipe = Recipe.read(recipe_toml)
    model = train(recipe, folder / "model", device="cpu").folder
    stopped_run = folder / "stopped"
    _stop(lambda watch: train(recipe, stopped_run, device="cpu", watch=watch), after=3)
    return World(
        folder,
        rows,
        _gold(rows),
        table,
        source,
        recipe_toml,
        model / "recipe.json",
        model,
        stopped_run,
        _stopped_file(table, model, folder / "file"),
        _stopped_folder(table, model, folder / "parts"),
        *_study(folder, encoder, source),
    )


def _rows() -> Rows:
    rows = []
    for number in range(24):
        text = " ".join(WORDS[(number * step) % len(WORDS)] for step in range(1, 6))
        rows.append(
            {
                "id": str(number),
                "source": ("google", "reddit")[number % 2],
                "variety": ("en-AU", "en-UK")[number // 2 % 2],
                "text": f"{text} {number}",
                "sentiment": str(number // 4 % 2),
                "sarcasm": str(number // 3 % 2),
                "split": ("train", "train", "train", "test")[number // 6],
            }
        )
    return rows


def _gold(rows: Rows) -> bytes:
    """The same rows in the form of the shared task."""
    columns = ["source", "variety", "text", "sentiment", "sarcasm"]
    written = io.StringIO()
    csv.writer(written).writerows([columns, *([row[name] for name in columns] for row in rows)])
    return written.getvalue().encode()


def _recipe(encoder: Path, source: str) -> str:
    return f"""seed = 1
[data]
source = "{source}"
tasks = ["sentiment", "sarcasm"]
leaks = "keep"
[model]
encoder = "{encoder}"
head = "mean"
max_pieces = 24
dropout = 0.1
weighting_options = {{}}
[training]
epochs = 2
batch_texts = 4
learning_rate = 1e-3
held_out = 0.2
checkpoint_seconds = 0
freeze_below = 0
"""


def _write_encoder(folder: Path) -> Path:
    from safetensors.torch import save

    letters = "abcdefghijklmnopqrstuvwxyz0123456789.,!?"
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *(f"##{letter}" for letter in letters)]
    vocabulary = {piece: number for number, piece in enumerate([*pieces, *WORDS[:-2]])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    folder.mkdir()
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "model_type": "bert",
        "vocab_size": len(vocabulary),
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": 64,
        "type_vocab_size": 2,
        "pad_token_id": 0,
    }
    write_json(folder / "config.json", config)
    torch.manual_seed(0)
    encoder = Encoder(spec_from_config(config, "the tiny encoder"))
    write_bytes(folder / "model.safetensors", save(to_family_tensors(encoder)))
    return folder


def _stop(work: Callable[[Watch], object], *, after: int) -> None:
    """Interrupts the work when it has reported so much progress."""
    n_seen = 0

    def watch(what: str, done: int, total: int, note: str) -> None:
        nonlocal n_seen
        n_seen += 1
        if n_seen > after:
            raise KeyboardInterrupt

    try:
        work(watch)
    except (Stopped, KeyboardInterrupt):
        return
    raise AssertionError("the work was over before it could be stopped")


def _stopped_file(table: Path, model: Path, folder: Path) -> Path:
    folder.mkdir()
    predictor = Predictor.load(model, device="cpu", runtime="torch")
    between, table_jobs._ROWS_OF_A_FILE = table_jobs._ROWS_OF_A_FILE, 4
    try:
        out = folder / "out.csv"
        ask = TableRequest(table)
        _stop(lambda watch: table_jobs.predict_to_file(ask, predictor, out, watch=watch), after=4)
    finally:
        table_jobs._ROWS_OF_A_FILE = between
    return out


def _stopped_folder(table: Path, model: Path, out: Path) -> Path:
    asked = BatchPredictor(str(model), device="cpu")
    request = TableRequest(table, format="csv", n_rows=5)
    predict_to_folder(request, asked, out, runner=local_runner(1))
    (out / MANIFEST).unlink()
    max(out.glob("part-*")).unlink()
    return out


def _study(folder: Path, encoder: Path, source: str) -> tuple[Path, Path]:
    """The file of a study, and the folder of its results."""
    file, out = folder / "study.toml", folder / "study"
    file.write_text(
        f"""name = "Two varieties"
[recipe.data]
source = "{source}"
leaks = "keep"
[recipe.model]
encoder = "{encoder}"
max_pieces = 24
[recipe.training]
epochs = 1
freeze_below = 0
[[experiment]]
name = "Across varieties"
grid = {{ "data.where.variety" = ["en-AU", "en-UK"] }}
""",
        "utf-8",
    )
    runs = execute(read_study(file), out, device="cpu")
    if runs.failures:
        raise AssertionError(runs.failures_by_name())
    return file, out
