"""Translation: pairs and batches, courses, the command, what it looked at, its scores."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from made_pairs import make_recipe, make_texts

from litotes.cli.main import main
from litotes.core.errors import UserError
from litotes.data.corpus import SARCASM, SENTIMENT
from litotes.data.parallel import Pair, ParallelTexts
from litotes.encoder import pretrained
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.model.checkpoint import write_description
from litotes.training.checkpoints import RunState
from litotes.training.objective import RunContext
from litotes.training.run import train
from litotes.training.trainer import Trainer
from litotes.training.translation import Translation, Translator
from litotes.training.translation.attention import draw_source_attention, explain_translation
from litotes.training.translation.course import Start, TranslationObjective
from litotes.training.translation.pairs import PairSet, make_pair_set
from litotes.training.translation.scores import draw_samples, resample_scores, score_translations
from litotes.training.translation.translator import interpret, load_translation
from litotes.training.vocabularies import train_byte_pairs
from reproduction.attention_counts import KINDS, measure_attention

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def reversing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has learned its task; nobody may write there."""
    training = {"epochs": 12, "batch_pieces": 256, "learning_rate": 8e-3, "warmup_steps": 40}
    model = {"weighting": "entmax", "weighting_options": {"alpha": 1.5}}
    recipe = make_recipe(training=training, model=model)
    folder = tmp_path_factory.mktemp("reversing") / "model"
    return train(recipe, folder, corpus=make_texts(900), device="cpu").folder


@pytest.mark.slow
def test_a_tiny_model_learns_to_turn_words_round(reversing: Path) -> None:
    lines = (reversing / "translations.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    n_right = sum(one["output"] == one["references"][0] for one in found)
    assert n_right >= 0.9 * len(found) == 36
    translator = Translator.load(reversing, device="cpu")
    assert translator.translate(["ab cd ef"], beams=1)[0].output == "ef cd ab"
    scores = json.loads((reversing / "scores.json").read_text())
    assert scores["test"]["chrf"]["value"] > 90  # BLEU counts four words in a row: there are none
    assert scores["history"][-1]["valid_loss"] < 0.6 < scores["history"][0]["valid_loss"]
    pairs = make_pair_set(make_texts(900).valid, translator.tokenizer)
    counted = measure_attention(translator.network, pairs)
    for kind in KINDS:
        (density,) = counted["density"][kind]  # of one layer
        assert len(density) == 2
        assert all(0 < one <= 1 for one in density)
        assert 0 <= counted["diversity"][kind][0] <= 1  # two heads differ by a bit at most
        assert counted["alpha"][kind] == [[1.5, 1.5]]
    assert min(counted["density"]["across"][0]) < 0.9  # a sparse weighting leaves some out


def objective_of(folder: Path, kind: type[TranslationObjective], **training: Any) -> Any:
    recipe, texts = make_recipe(training=training), make_texts(100, n_others=4)
    start = Start(recipe)
    tokenizer = start.choose_tokenizer(texts.train)
    sets = [make_pair_set(part, tokenizer) for part in (texts.train, texts.valid)]
    return kind(start.make_model(tokenizer), *sets, recipe, RunContext(CPU, folder))


def test_the_weights_are_the_mean_of_the_last_epochs(tmp_path: Path) -> None:
    after: list[torch.Tensor] = []

    class Watched(TranslationObjective):
        def judge(self, state: RunState) -> dict[str, float]:
            after.append(self.translation.bias.detach().clone())
            return super().judge(state)

    objective = objective_of(tmp_path, Watched, epochs=3, batch_pieces=512, averaged=2)
    Trainer(objective, RunContext(CPU, tmp_path)).run()
    torch.testing.assert_close(objective.translation.bias.detach(), (after[1] + after[2]) / 2)
    assert not torch.allclose(after[1], after[2])


def test_losses_and_rates_are_those_of_the_paper(tmp_path: Path) -> None:
    training = {"warmup_steps": 100, "label_smoothing": 0.2}
    objective = objective_of(tmp_path, TranslationObjective, **training)
    assert [objective.rate(step) for step in (0, 99, 399)] == pytest.approx([0.01, 1.0, 0.5])
    settings = objective.tensors.optimizer.defaults
    assert (settings["betas"], settings["eps"]) == ((0.9, 0.98), 1e-9)
    ((loss,),) = objective.losses([0, 1, 2], 0)
    batch = objective.train.pack([0, 1, 2], CPU)
    logits = objective.translation(batch.sources, batch.pieces, batch.layout).log_softmax(-1)
    hit = logits.gather(1, batch.next_pieces[:, None])[:, 0]
    torch.testing.assert_close(loss, -(0.8 * hit + 0.2 * logits.mean(1)).mean())
    batch = objective.valid.pack(range(4), CPU)
    logits = objective.translation.eval()(batch.sources, batch.pieces, batch.layout)
    wanted = torch.nn.functional.cross_entropy(logits, batch.next_pieces)
    assert objective.measure() == pytest.approx(wanted.detach().item(), rel=1e-5)


def test_a_run_begins_from_an_encoder(tiny_folder: Path, tmp_path: Path) -> None:
    model = {"encoder": str(tiny_folder), "width": None, "max_pieces": 32}
    recipe = make_recipe(model=model, training={"epochs": 1, "batch_pieces": 256})
    texts, given = make_texts(20, n_others=2), pretrained.load(str(tiny_folder))
    before = Start(recipe).make_model(Start(recipe).choose_tokenizer(texts.train))
    table = given.encoder.embeddings.piece.weight
    torch.testing.assert_close(before.encoder.embeddings.piece.weight, table, atol=0, rtol=0)
    run = train(recipe, tmp_path / "out", corpus=texts, device="cpu")
    assert load_translation(run.folder).network.encoder.spec.n_vocabulary == len(table)


def test_batches_hold_every_pair_once_and_keep_their_budget() -> None:
    texts = make_texts(150)
    pairs = make_pair_set(texts.train, Start(make_recipe()).choose_tokenizer(texts.train))
    seen = [pairs.batches(100, seed=seed) for seed in (1, 2)]
    assert seen[0] != seen[1]
    assert len(seen[0]) == len(seen[1]) == len(pairs.batches(100))
    for batches in seen:
        assert sorted(place for batch in batches for place in batch) == list(range(150))
        assert all(pairs.lengths[batch].sum() <= 100 for batch in batches)
    made = PairSet([np.arange(3)] * 2, [np.arange(4), np.arange(2)], 0)
    assert (made.lengths.tolist(), made.n_guessed([0, 1])) == ([6, 4], 4)
    batch = made.pack([0, 1], CPU)
    assert (batch.pieces.tolist(), batch.next_pieces.tolist()) == ([0, 1, 2, 0], [1, 2, 3, 1])


def test_a_vocabulary_is_the_same_every_time_and_loses_nothing() -> None:
    texts = ["Zwei Männer im Park.", "Two men – in the 'park'?", "Ein Hund läuft.", "日本 🐕"] * 3
    first = train_byte_pairs(texts, n_vocabulary=300, lower_case=False)
    assert first == train_byte_pairs(texts, n_vocabulary=300, lower_case=False)
    tokenizer = PieceTokenizer(Path("x"), max_pieces=64, content=first.encode())
    for text, pieces in zip(texts, tokenizer.encode(texts), strict=True):
        assert tokenizer.decode(pieces.ids) == text


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hardly trained; nobody may write there."""
    recipe = make_recipe(training={"epochs": 1, "batch_pieces": 256})
    folder = tmp_path_factory.mktemp("quick") / "model"
    return train(recipe, folder, corpus=make_texts(60, n_others=3), device="cpu").folder


@pytest.fixture(scope="module")
def translator(model: Path) -> Translator:
    return Translator.load(model, device="cpu")


def test_what_is_no_translation_model_or_damaged_is_refused(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("predict a", "explain a", "export", "evaluate --data sampler"):
        assert main([*command.split(), "--model", str(model)]) == 2
        assert "translation model" in capsys.readouterr().err
    changed = tmp_path / "changed"
    copytree(model, changed)
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
        ("decoder", {"n_vocabulary": 2**24, "tied": "none"}, "damaged"),
        ("decoder", {"n_vocabulary": 2**24}, "cannot be one"),
        ("decoder", {"inner_width": 2**24}, "damaged"),
        ("decoder", {"n_positions": 8}, "damaged"),
        ("decoder", [], "damaged"),
        ("encoder", [], "damaged"),
        ("search", {"beams": 10**6}, "beams"),
        ("facts", [], "facts"),
        ("max_pieces", -1, "max_pieces"),
        ("kind", "tagging", "not a translation model"),
    ],
)
def test_a_description_that_makes_no_model_is_refused(
    table: str, changes: Any, words: str, model: Path, tmp_path: Path
) -> None:
    """Its hashes are right: the folder was made like this."""
    folder = tmp_path / "made"
    copytree(model, folder)
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
        ({"model": {"widht": 30}}, "'width'"),
        ({"model": {"weighting": "softmix"}}, "'softmax'"),
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
    recipe = make_recipe(training={"epochs": 1})
    untested = train(
        recipe, tmp_path / "1", corpus=ParallelTexts("", long * 4, (), ()), device="cpu"
    )
    assert any("4 training texts had more than 24 pieces" in note for note in untested.notes)
    assert any("not tested" in note for note in untested.notes)
    texts = ParallelTexts("", long[1:] * 4, (), long)
    (note,) = train(recipe, tmp_path / "2", corpus=texts, device="cpu").notes
    assert "1 test text had" in note
    (answer,) = Translator.load(untested.folder, device="cpu").translate(["ab " * 40])
    assert answer.truncated


RECIPE = """
kind = "translation"
[data]
source = "tsv:pairs.tsv?test=0.1"
[model]
n_layers = 1
width = 16
n_attention_heads = 2
n_vocabulary = 270
max_pieces = 16
[training]
epochs = 1
batch_pieces = 512
"""


def test_a_recipe_becomes_a_model_that_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("recipe.toml").write_text(RECIPE)
    pairs = [f"{pair.source}\t{pair.targets[0]}\n" for pair in make_texts(60).train]
    Path("pairs.tsv").write_text("".join(pairs))
    assert main(["train", "recipe.toml", "--out", "run", "--json", "--device", "cpu"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["model"], printed["test"]["n"]) == ("run", 5)
    assert main(["translate", "ab cd", "--model", "run", "--json", "--beams", "2"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)["translations"]
    assert (answer["text"], answer["truncated"]) == ("ab cd", False)
    assert main(["train", "recipe.toml", "--out", "run"]) == 2
    assert "already holds a trained model" in capsys.readouterr().err


def test_lines_are_translated_as_they_come(
    model: Path,
    translator: Translator,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given, out = tmp_path / "given.txt", tmp_path / "out.txt"
    given.write_text("ab cd\nef gh ij\nkl\n")
    line = ["translate", "--model", str(model)]
    assert main([*line, "--file", str(given)]) == 0
    by_file = capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", StringIO(given.read_text()))
    assert main(line) == 0
    assert capsys.readouterr().out == by_file
    assert len(by_file.splitlines()) == 3
    texts = given.read_text().splitlines()
    for at_once in (1, 2, 10):
        found = list(translator.stream(texts, at_once=at_once))
        assert "".join(f"{one.output}\n" for one in found) == by_file
    scored = [*line, "--file", str(given), "--references", str(given), "--out", str(out)]
    assert main(scored) == 0
    assert "BLEU" in capsys.readouterr().out
    assert out.read_text() == by_file
    monkeypatch.setattr("sys.stdin", StringIO("ab\n\ncd\n"))
    assert main(line) == 2
    assert "line 2 is empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ab", "--file", "x"], "not both"),
        (["ab", "--explain", "x.pdf"], ".svg, .png or .json"),
        (["ab", "--explain", "x.svg", "--out", "x.txt"], "--explain and --out"),
        (["ab", "--explain", "x.svg", "--references", "REFERENCES"], "--explain and --ref"),
        ([" "], "Text 1 is empty"),
        (["ab", "--references", "REFERENCES"], "2 lines for 1 texts"),
    ],
)
def test_what_cannot_be_is_said(
    words: list[str], said: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "two.txt").write_text("a\nb\n")
    given = [str(tmp_path / "two.txt") if word == "REFERENCES" else word for word in words]
    assert main(["translate", *given, "--model", str(model)]) == 2
    assert said in capsys.readouterr().err


def test_many_beams_are_searched_for_few_texts_at_a_time(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memory of a search grows with its hypotheses, not with its texts."""
    sizes: list[int] = []
    read = translator.network.read

    def watched(batch: Any) -> Any:
        sizes.append(batch.layout.n_texts)
        return read(batch)

    monkeypatch.setattr(translator.network, "read", watched)
    for beams, n_texts, most in ((1, 65, 64), (8, 65, 64), (200, 3, 2), (512, 2, 1)):
        sizes.clear()
        translator.translate(["ab"] * n_texts, beams=beams)
        assert (sum(sizes), max(sizes)) == (n_texts, most)
    for name, wrong in (("beams", 0), ("beams", 1001), ("length_penalty", -1.0)):
        with pytest.raises(UserError, match=name):
            translator.translate(["ab"], **{name: wrong})


def test_the_attention_of_a_translation_adds_up(translator: Translator) -> None:
    translation = Translation("ab cd", "kl ij gh", 0.0, False)
    found = explain_translation(translator, translation)
    assert found.source == ("[CLS]", "ab", "cd", "[SEP]")
    assert found.target == ("kl", "ij", "gh", "[SEP]")
    standard = found.maps["standard"]
    assert standard.shape == found.maps["effective"].shape == (1, 2, 4, 4)
    torch.testing.assert_close(standard.sum(-1), torch.ones(1, 2, 4))
    assert draw_source_attention(found).axes


def test_explanations_are_written(model: Path, translator: Translator, tmp_path: Path) -> None:
    # more source pieces than an attention head is wide: some of the weights cannot matter
    text = "abcdefghijklmnopqrstuv"
    found = explain_translation(translator, Translation(text, "ab", 0.0, False))
    assert not torch.allclose(found.maps["standard"], found.maps["effective"], atol=1e-4)
    for name in ("why.json", "why.svg"):
        line = ["translate", "ab cd", "--model", str(model), "--explain", str(tmp_path / name)]
        assert main(line) == 0
    content = json.loads((tmp_path / "why.json").read_text())
    assert len(content["mean"]["effective"]) == len(content["target"])
    assert (tmp_path / "why.svg").read_text().startswith("<?xml")


def test_a_text_means_what_it_says_unless_both_say_otherwise() -> None:
    """The judge takes texts with an `a` for sarcastic; the model changes texts of four letters."""

    def judge(texts: list[str]) -> list[Any]:
        shares = {"literal": 0.2, "sarcastic": 0.8}
        labels = ["sarcastic" if "a" in one else "literal" for one in texts]
        answers = [SimpleNamespace(label=label, probabilities=shares) for label in labels]
        return [SimpleNamespace(answers={"sarcasm": answer}) for answer in answers]

    def translate(texts: list[str], beams: int | None) -> list[Translation]:
        said = ["no" if len(one) > 3 else one.upper() for one in texts]
        return [Translation(one, other, 0.0, False) for one, other in zip(texts, said, strict=True)]

    model: Any = SimpleNamespace(translate=translate)
    sarcasm: Any = SimpleNamespace(predict=judge, tasks={"sarcasm": SARCASM})
    found = interpret(["what a day", "the end", "ah"], model, sarcasm)
    assert [one.meaning for one in found] == ["no", None, None]
    assert [bool(one.why_same) for one in found] == [False, True, True]
    assert found[1].why_same != found[2].why_same
    assert found[0].sarcasm == 0.8
    assert found[1].as_json()["same_as_said"] is True
    assert interpret(["the end"], model, None)[0].meaning == "no"
    with pytest.raises(UserError, match="--judge none"):
        interpret(["the end"], model, SimpleNamespace(tasks={"sentiment": SENTIMENT}))  # type: ignore[arg-type]


def test_interpret_asks_the_built_in_model(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = ["Lovely. Another delay. Just what I needed.", "The tea is fine."]
    assert main(["interpret", *texts, "--model", str(model), "--json", "--device", "cpu"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert first["sarcasm"] > 0.5 > second["sarcasm"]
    assert second["meaning"] == "same as said"
    assert main(["interpret", texts[1], "--model", str(model), "--judge", "none"]) == 0
    assert texts[1] in capsys.readouterr().out


sacrebleu = pytest.importorskip("sacrebleu", reason="BLEU needs sacrebleu")

SAID = ["the cat sat on the mat", "a dog runs in the park", "two men talk", "it rains again today"]
MEANT = [
    ("the cat sat on a mat", "a cat was on the mat"),
    ("a dog runs through the park",),
    ("two men are talking", "two men talk"),
    ("it is raining again",),
]


def test_scores_are_sacrebleus() -> None:
    one, both = (score_translations(SAID, meant) for meant in ([m[:1] for m in MEANT], MEANT))
    first = [[meant[0] for meant in MEANT]]
    assert one.bleu.value == pytest.approx(sacrebleu.corpus_bleu(SAID, first).score)
    assert one.chrf.value == pytest.approx(sacrebleu.corpus_chrf(SAID, first).score)
    assert "tok:13a" in one.bleu.signature
    low, high = one.bleu.interval
    assert 0 <= low <= one.bleu.value <= high <= 100.001
    assert both.bleu.value > one.bleu.value  # several references help
    assert both.n == 4
    # a sample of all texts is the score
    everything = resample_scores(SAID, MEANT, np.arange(4)[None])
    assert everything["bleu"][0] == pytest.approx(both.bleu.value)
    assert everything["chrf"][0] == pytest.approx(both.chrf.value)
    assert draw_samples(4).shape == (1000, 4)
    with pytest.raises(UserError, match="3 translations and 4 references"):
        score_translations(SAID[:3], MEANT)
    with pytest.raises(UserError, match="no translation"):
        score_translations([], [])
