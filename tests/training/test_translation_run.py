"""Whole runs of a tiny model: it learns to turn words round, goes on as if never stopped, begins
from an encoder, and its folder is refused where it does not belong.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
import torch
from made_pairs import make_network, make_recipe, make_texts

from litotes.cli.main import main
from litotes.core.errors import Stopped, UserError
from litotes.data.parallel import Pair, ParallelTexts
from litotes.model.checkpoint import write_description
from litotes.model.folder import open_model
from litotes.training.checkpoints import RunState
from litotes.training.objective import RunContext
from litotes.training.recipe import TranslationRecipe
from litotes.training.run import train
from litotes.training.trainer import Trainer
from litotes.training.translation import Translator
from litotes.training.translation.course import Start, TranslationObjective
from litotes.training.translation.pairs import PairSet, make_pair_set, train_byte_pairs
from litotes.training.translation.translator import load_translation
from reproduction.attention_counts import KINDS, measure_attention

SHORT = {"epochs": 2, "batch_pieces": 512, "averaged": 2}


@pytest.fixture(scope="module")
def reversing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has learned its task, with learned α; nobody may write there."""
    training = {"epochs": 20, "batch_pieces": 384, "learning_rate": 6e-3, "warmup_steps": 40}
    model = {"weighting": "entmax", "weighting_options": {"alpha": 1.5}}
    recipe = make_recipe(training=training, model=model)
    folder = tmp_path_factory.mktemp("reversing") / "model"
    return train(recipe, folder, corpus=make_texts(900), device="cpu").folder


@pytest.mark.slow
def test_a_tiny_model_learns_to_turn_words_round(reversing: Path) -> None:
    lines = (reversing / "translations.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    n_right = sum(one["output"] == one["references"][0] for one in found)
    assert n_right >= 0.95 * len(found) == 38
    greedy = Translator.load(reversing, device="cpu").translate(["ab cd ef"], beams=1)
    assert greedy[0].output == "ef cd ab"
    scores = json.loads((reversing / "scores.json").read_text())
    assert scores["test"]["chrf"]["value"] > 95  # BLEU counts four words in a row: there are none
    assert scores["history"][-1]["valid_loss"] < 0.5 < scores["history"][0]["valid_loss"]


@pytest.mark.slow
def test_attention_is_counted_by_kind_and_layer(reversing: Path) -> None:
    translator = Translator.load(reversing, device="cpu")
    pairs = make_pair_set(make_texts(900).valid, translator.tokenizer)
    found = measure_attention(translator.network, pairs)
    for kind in KINDS:
        (density,) = found["density"][kind]  # of one layer
        assert len(density) == 2
        assert all(0 < one <= 1 for one in density)
        assert 0 <= found["diversity"][kind][0] <= 1  # two heads differ by a bit at most
        assert found["alpha"][kind] == [[1.5, 1.5]]
    assert min(found["density"]["across"][0]) < 0.9  # a sparse weighting leaves some out


def folder_bytes(folder: Path) -> dict[str, bytes]:
    names = ("model.safetensors", "tokenizer.json", "translations.jsonl", "litotes.json")
    return {name: (folder / name).read_bytes() for name in names}


def test_a_stopped_run_goes_on_as_if_never_stopped(tmp_path: Path) -> None:
    recipe, texts = make_recipe(training=SHORT), make_texts(200, n_others=6)
    whole = train(recipe, tmp_path / "whole", corpus=texts, device="cpu")
    assert whole.scores["steps"] == 8

    def stop(what: str, done: int, total: int, note: str) -> None:
        if done == 6:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Stopped, match="step 6 of 8"):
        train(recipe, tmp_path / "parts", corpus=texts, device="cpu", watch=stop)
    with pytest.raises(UserError, match="--resume"):
        train(recipe, tmp_path / "parts", corpus=texts, device="cpu")
    train(recipe, tmp_path / "parts", corpus=texts, device="cpu", resume=True)
    assert folder_bytes(tmp_path / "whole") == folder_bytes(tmp_path / "parts")
    again = train(recipe, tmp_path / "parts", corpus=texts, device="cpu", resume=True)
    assert again.scores["key"] == whole.scores["key"]
    other = make_recipe(training=SHORT, seed=1)
    with pytest.raises(UserError, match="another recipe"):
        train(other, tmp_path / "parts", corpus=texts, device="cpu", resume=True)


def test_the_weights_are_the_mean_of_the_last_epochs(tmp_path: Path) -> None:
    recipe, texts = make_recipe(training=SHORT | {"epochs": 3}), make_texts(100, n_others=4)
    start = Start(recipe)
    tokenizer = start.choose_tokenizer(texts.train)
    network = start.make_model(tokenizer)
    sets = [make_pair_set(part, tokenizer) for part in (texts.train, texts.valid)]
    after: list[torch.Tensor] = []

    class Watched(TranslationObjective):
        def judge(self, state: RunState) -> dict[str, float]:
            after.append(network.bias.detach().clone())
            return super().judge(state)

    context = RunContext(torch.device("cpu"), tmp_path)
    Trainer(Watched(network, *sets, recipe, context), context).run()
    torch.testing.assert_close(network.bias.detach(), (after[1] + after[2]) / 2)
    assert not torch.allclose(after[1], after[2])


def test_a_run_begins_from_an_encoder(tiny_folder: Path, tmp_path: Path) -> None:
    recipe = TranslationRecipe.of(
        {
            "data": {"source": "tsv:none"},
            "model": {"encoder": str(tiny_folder), "n_layers": 1, "max_pieces": 32},
            "training": {"epochs": 1, "batch_pieces": 256},
        },
        "test",
    )
    texts = make_texts(20, n_others=2)
    before = Start(recipe).make_model(Start(recipe).choose_tokenizer(texts.train))
    wanted = Start(recipe).loaded
    assert wanted is not None
    found, given = before.encoder.embeddings.piece.weight, wanted.encoder.embeddings.piece.weight
    torch.testing.assert_close(found, given, atol=0, rtol=0)
    run = train(recipe, tmp_path / "out", corpus=texts, device="cpu")
    assert load_translation(run.folder).network.encoder.spec.n_vocabulary == len(given)


def test_rates_rise_and_fall_as_in_the_paper() -> None:
    recipe, pairs = (
        make_recipe(training={"warmup_steps": 100}),
        PairSet([np.arange(3)], [np.arange(3)], 0),
    )
    context = RunContext(torch.device("cpu"), Path())
    objective = TranslationObjective(make_network(), pairs, pairs, recipe, context)
    rates = [objective.rate(step) for step in (0, 99, 399)]
    assert rates == pytest.approx([0.01, 1.0, 0.5])


def test_batches_hold_every_pair_once_and_keep_their_budget() -> None:
    texts = make_texts(150)
    recipe = make_recipe()
    pairs = make_pair_set(texts.train, Start(recipe).choose_tokenizer(texts.train))
    seen = [pairs.batches(100, seed=seed) for seed in (1, 2)]
    assert seen[0] != seen[1]
    assert len(seen[0]) == len(seen[1]) == len(pairs.batches(100))
    for batches in seen:
        assert sorted(place for batch in batches for place in batch) == list(range(150))
        assert all(pairs.lengths[batch].sum() <= 100 for batch in batches)


def test_a_vocabulary_is_the_same_every_time_and_loses_nothing() -> None:
    texts = ["Zwei Männer im Park.", "Two men – in the 'park'?", "Ein Hund läuft.", "日本 🐕"] * 3
    first = train_byte_pairs(texts, n_vocabulary=300, lower_case=False)
    assert first == train_byte_pairs(texts, n_vocabulary=300, lower_case=False)
    from litotes.encoder.tokenizer import PieceTokenizer

    tokenizer = PieceTokenizer(Path("x"), max_pieces=64, content=first.encode())
    for text, pieces in zip(texts, tokenizer.encode(texts), strict=True):
        assert tokenizer.decode(pieces.ids) == text


COMMANDS: list[list[str]] = [
    ["predict", "a", "--model", "MODEL"],
    ["explain", "a", "--model", "MODEL"],
    ["export", "--model", "MODEL"],
    ["evaluate", "--model", "MODEL", "--data", "sampler"],
]


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("quick") / "model"
    texts = make_texts(60, n_others=3)
    return train(make_recipe(training={"epochs": 1}), folder, corpus=texts, device="cpu").folder


@pytest.mark.parametrize("line", COMMANDS, ids=lambda line: line[0])
def test_commands_of_classifiers_refuse_it(
    line: list[str], quick: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(quick) if word == "MODEL" else word for word in line]) == 2
    assert "holds a translation model" in capsys.readouterr().err


def test_a_damaged_folder_is_refused(quick: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="translation model"):
        open_model(quick)
    changed = tmp_path / "changed"
    copytree(quick, changed)
    weights = bytearray((changed / "model.safetensors").read_bytes())
    weights[-3] ^= 1
    (changed / "model.safetensors").write_bytes(weights)
    with pytest.raises(UserError, match="not the file that was saved"):
        load_translation(changed)
    with pytest.raises(UserError, match="not a model folder"):
        load_translation(tmp_path)


@pytest.mark.parametrize(
    ("table", "changes", "words"),
    [
        # without a check the memory would be taken first: 16 million rows of a table
        ("decoder", {"n_positions": 2**24}, "damaged"),
        ("decoder", {"n_vocabulary": 2**24, "tied": "target"}, "damaged"),
        ("decoder", {"n_vocabulary": 2**24, "tied": "none"}, "damaged"),
        ("decoder", {"n_vocabulary": 2**24}, "damaged"),
        ("decoder", {"source_width": 16}, "damaged"),
        ("decoder", {"inner_width": 2**24}, "damaged"),
        ("decoder", {"n_positions": 8}, "damaged"),
        ("decoder", [], "damaged"),
        ("encoder", [], "damaged"),
        ("search", {"beams": 10**6}, "beams"),
        ("search", {"ratio": "wide"}, "ratio"),
        ("search", [], "search"),
        ("facts", [], "facts"),
        ("max_pieces", -1, "max_pieces"),
        ("max_pieces", "many", "damaged"),
    ],
)
def test_a_description_that_makes_no_model_is_refused(
    table: str, changes: Any, words: str, quick: Path, tmp_path: Path
) -> None:
    """Its hashes are right: the folder was made like this."""
    folder = tmp_path / "made"
    copytree(quick, folder)
    description = json.loads((folder / "litotes.json").read_text())
    is_part = isinstance(changes, dict)
    description[table] = description[table] | changes if is_part else changes
    write_description(folder, description)
    with pytest.raises(UserError, match=words):
        load_translation(folder)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": {"width": 30, "n_attention_heads": 4}}, "not a multiple"),
        ({"model": {"widht": 30}}, "Did you mean 'width'"),
        ({"model": {"weighting": "softmix"}}, "Did you mean 'softmax'"),
        ({"model": {"weighting": "block_top_k"}}, "would see what comes after"),
        ({"training": {"averaged": 0}}, "averaged"),
        ({"search": {"beams": 0}}, "beams"),
    ],
)
def test_recipes_are_checked(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        Start(make_recipe(**changes))


def test_texts_that_are_cut_are_counted(tmp_path: Path) -> None:
    long = (Pair("ab " * 40, ("cd",)), Pair("ef gh", ("gh ef",)))
    texts = ParallelTexts("long", long * 4, (), ())
    recipe = make_recipe(training={"epochs": 1})
    run = train(recipe, tmp_path / "out", corpus=texts, device="cpu")
    assert any("more than 24 pieces" in note for note in run.notes)
    assert any("not tested" in note for note in run.notes)
    tested = ParallelTexts("long", long[1:] * 4, (), long)
    other = train(recipe, tmp_path / "tested", corpus=tested, device="cpu")
    assert [note for note in other.notes if "more than 24" in note] == [
        "1 test text had more than 24 pieces and lost the rest. Set model.max_pieces."
    ]
    (answer,) = Translator.load(run.folder, device="cpu").translate(["ab " * 40])
    assert answer.truncated
