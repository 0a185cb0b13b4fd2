"""What all tests share: a tiny random encoder with its tokenizer, made on the spot; no test needs a
network.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

# for the processes that tests start: the tensors are tiny, and threads that wait for work only
# get in each other's way
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch
from hypothesis import HealthCheck, settings
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from litotes.core.storage import write_bytes
from litotes.encoder import pretrained
from litotes.encoder.encoder import Encoder
from litotes.encoder.families import spec_from_config
from litotes.encoder.pretrained import to_family_tensors
from litotes.model.builtin import LIGHT_VARIABLE
from litotes.training.recipe import Recipe
from litotes.training.run import train

if TYPE_CHECKING:
    from playwright.sync_api import Browser

torch.set_num_threads(1)  # and for this one
# the same built-in model whether `make light` was run in this checkout or not
os.environ[LIGHT_VARIABLE] = "/nonexistent"
# what tests fork from has these; optimizers need the last
PRELOADED = "litotes.cli.serve litotes.exporting litotes.service litotes.training.run torch._dynamo"
multiprocessing.set_forkserver_preload(PRELOADED.split())
# started in the background: the tests of Ctrl-C need to hear it
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# a busy machine is no error
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

ROOT = Path(__file__).parent.parent
SHARED = ROOT.parent / "shared"

TINY_CONFIG = {
    "model_type": "bert",
    "vocab_size": 0,  # filled in below
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 96,
    "type_vocab_size": 2,
    "pad_token_id": 0,
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with the most slow tests run first, so that no process is left alone with one."""
    n_slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -n_slow[item.path])
    for item in items:
        if item.get_closest_marker("timed"):
            # the bound stays as it is: what the code itself needs, some try shows
            item.add_marker(pytest.mark.flaky(reruns=4, reruns_delay=2))


def pytest_collection_finish() -> None:
    """What was imported stays: the garbage collector need not look through it again and again."""
    gc.collect()
    gc.freeze()


def pytest_runtest_teardown() -> None:
    """Where a processor has no bfloat16 products, torch leaves oneDNN for good after the first, in
    float32 as well: sums of later tests would be added up otherwise than in other processes.
    """
    torch.backends.mkldnn.enabled = True


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture
def forked_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers begin with torch imported. How they are started for users, and what they do at
    Ctrl-C, is tested where workers are, in tests/core.
    """
    forks = multiprocessing.get_context("forkserver")
    monkeypatch.setattr("litotes.core.jobs._SPAWN", forks)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    if not (SHARED / "data").is_dir():
        pytest.skip("the shared data sets are not on this machine")
    return SHARED / "data"


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random BERT of 2 layers whose pieces are letters and a few words."""
    from safetensors.torch import save

    folder = tmp_path_factory.mktemp("tiny-bert")
    tokenizer = _letter_tokenizer()
    tokenizer.enable_truncation(16)  # as many files have it: it must not be obeyed
    tokenizer.enable_padding(length=16)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = TINY_CONFIG | {"vocab_size": tokenizer.get_vocab_size()}
    (folder / "config.json").write_text(json.dumps(config))
    torch.manual_seed(0)
    write_bytes(
        folder / "model.safetensors",
        save(to_family_tensors(Encoder(spec_from_config(config, "test")))),
    )
    return folder


@pytest.fixture
def tiny(tiny_folder: Path) -> pretrained.Pretrained:
    return pretrained.load(str(tiny_folder))


@pytest.fixture(scope="session")
def shared_tiny(tiny_folder: Path) -> pretrained.Pretrained:
    """Loaded once, for tests that change nothing in it."""
    return pretrained.load(str(tiny_folder))


@pytest.fixture(scope="session")
def tiny_recipe(tiny_folder: Path) -> Recipe:
    """Trains in half a second: the tiny encoder on a cell of the built-in corpus, in five steps an
    epoch.
    """
    return Recipe().changed(
        data__where={"variety": "en-AU", "source": "review"},
        model__encoder=str(tiny_folder),
        # nothing is learnt from letters; a third as many take a sixth of the time
        model__max_pieces=32,
        training__epochs=2,
        training__batch_texts=16,
        training__learning_rate=1e-3,
        training__held_out=0.2,
    )


@pytest.fixture(scope="session")
def trained_folder(tiny_recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder of that recipe, trained once for all tests that only ask it; nobody may write
    there.
    """
    return train(
        tiny_recipe.changed(training__epochs=1), tmp_path_factory.mktemp("trained") / "tiny"
    ).folder


def _letter_tokenizer() -> Tokenizer:
    letters = "abcdefghijklmnopqrstuvwxyz0123456789.,!?'\"-:;()$%&/"
    words = ["the", "a", "and", "is", "it", "not", "great", "bad", "love", "hate", "queue", "tea"]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    pieces = dict.fromkeys([*special, *letters, *(f"##{letter}" for letter in letters), *words])
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(piece, tokenizer.token_to_id(piece)) for piece in special[2:]],
    )
    return tokenizer


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One for all pages: a process cannot hold two of Playwright's loops."""
    names = ("chromium", "chromium-browser", "google-chrome")
    chromium = next(filter(None, map(shutil.which, names)), None)
    if chromium is None:
        pytest.skip("no chromium on this machine: pages are not tried")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=20_000)  # a busy machine is not an error
    without = ("background-networking", "component-update", "gpu", "sync")
    quiet = ["--no-sandbox", *(f"--disable-{part}" for part in without)]
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=quiet)
        yield opened
        opened.close()
