"""The language model, what is hidden from it, the blocks it reads and how it is measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch.nn import functional
from transformers import AutoConfig, AutoModelForMaskedLM, BertForPreTraining

from litotes.core.errors import UserError
from litotes.core.progress import ignore_progress
from litotes.core.storage import write_json
from litotes.core.values import MISSING
from litotes.encoder.encoder import Encoder
from litotes.encoder.families import config_from_spec, spec_from_config
from litotes.encoder.pretrained import Pretrained, load_family_tensors
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.training.pretraining.language_model import (
    OUTPUT_NAMES,
    HeldOut,
    LanguageModel,
    draw_weights,
    family_tensors,
    load_heads,
)
from litotes.training.pretraining.masking import FOLLOWS, RANDOM, MaskedTexts, Reader
from litotes.training.pretraining.texts import (
    Line,
    PieceStore,
    make_blocks,
    open_store,
    write_store,
)
from litotes.training.recipe import ObjectiveSettings
from litotes.training.vocabularies import SPECIAL, train_wordpiece

CPU = torch.device("cpu")
SIZES = {
    "hidden_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
COMMON = {"vocab_size": 99, "max_position_embeddings": 64}
CONFIGS: dict[str, dict[str, Any]] = {
    "bert": SIZES | {"hidden_act": "relu"},  # the output layer has it too
    "roberta": SIZES | {"type_vocab_size": 1},
    "xlm-roberta": SIZES | {"type_vocab_size": 1},
    "distilbert": {"dim": 48, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
    "electra": SIZES | {"embedding_size": 24},
    "albert": SIZES | {"embedding_size": 24},
    "mpnet": SIZES,
}


def reference_of(family: str, kind: Any = AutoModelForMaskedLM) -> Any:
    torch.manual_seed(3)
    config = AutoConfig.for_model(family, **COMMON | CONFIGS[family])
    model = kind(config) if kind is BertForPreTraining else kind.from_config(config)
    for name, parameter in model.named_parameters():
        is_scale = "norm" in name.lower() and name.endswith("weight")
        torch.nn.init.normal_(parameter, mean=1.0 if is_scale else 0.0, std=0.2)
    return model.eval()


def ours(reference: Any, *, next_sentence: bool = False) -> LanguageModel:
    encoder = Encoder(spec_from_config(reference.config.to_dict(), "config.json"))
    load_family_tensors(encoder, reference.state_dict(), "test")
    model = LanguageModel(encoder, next_sentence=next_sentence)
    assert load_heads(model, reference.state_dict(), "test") == []
    return model.eval()


def masked_texts(*, pairs: bool = False) -> MaskedTexts:
    """Every third piece is to be guessed, and shown as it is."""
    generator, lengths = torch.Generator().manual_seed(5), (7, 40, 3)
    ids = [torch.randint(5, 99, (length,), generator=generator) for length in lengths]
    segments = [(torch.arange(length) > length // 2).long() * pairs for length in lengths]
    chosen = torch.cat([torch.arange(length) % 3 == 0 for length in lengths])
    every = torch.cat(ids)
    columns = torch.stack([every, every, torch.cat(segments), chosen])
    follows = [FOLLOWS, RANDOM, FOLLOWS] if pairs else [MISSING] * 3
    return MaskedTexts(columns, lengths, torch.tensor(follows))


def theirs(reference: Any, texts: MaskedTexts) -> list[Any]:
    """Text by text, without padding."""
    outputs = []
    for ids, _, segments, _ in texts.by_text:
        more = {"token_type_ids": segments[None]} if segments.any() else {}
        outputs.append(reference(input_ids=ids[None], **more))
    return outputs


@torch.no_grad()
@pytest.mark.parametrize("family", sorted(OUTPUT_NAMES))
def test_logits_equal_transformers_before_and_after_saving(family: str, tmp_path: Path) -> None:
    reference, texts = reference_of(family), masked_texts()
    masked = texts.pack(range(3), CPU)
    model = ours(reference)
    expected = torch.cat([output.logits[0] for output in theirs(reference, texts)])
    assert (model(masked)[0] - expected[masked.places]).abs().max() < 1e-5

    draw_weights(model)
    spec = model.encoder.spec
    architecture = model.architecture
    assert architecture == type(reference).__name__
    write_json(tmp_path / "config.json", config_from_spec(spec) | {"architectures": [architecture]})
    save_file(family_tensors(model), tmp_path / "model.safetensors", metadata={"format": "pt"})
    loaded, info = AutoModelForMaskedLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    again = torch.cat([output.logits[0] for output in theirs(loaded.eval(), texts)])
    assert (model(masked)[0] - again[masked.places]).abs().max() < 1e-5
    # one text of the batch alone
    (first,) = (output.logits[0] for output in theirs(loaded, texts)[1:2])
    assert (model(texts.pack([1], CPU))[0] - first[::3]).abs().max() < 1e-5


@pytest.mark.parametrize("family", ["bert", "distilbert"])
def test_output_layers_that_are_not_there_or_not_whole(family: str) -> None:
    reference, names = reference_of(family), OUTPUT_NAMES[family]
    model, state = ours(reference), dict(reference.state_dict())
    prefix = f"{reference.base_model_prefix}."
    (note,) = load_heads(model, {k: v for k, v in state.items() if k.startswith(prefix)}, "test")
    assert "no weights of its output layer" in note
    untied = state | {f"{names.decoder}.weight": state[f"{names.decoder}.weight"] + 1}
    (note,) = load_heads(model, untied, "test")
    assert "not tied" in note
    dense = f"{names.dense}.bias"
    with pytest.raises(UserError, match=dense.replace(".", r"\.")):
        load_heads(model, {k: v for k, v in state.items() if k != dense}, "test")
    with pytest.raises(UserError, match="test: "):
        load_heads(model, state | {dense: state[dense][1:]}, "test")


@torch.no_grad()
def test_measurements_follow_from_the_logits_of_transformers() -> None:
    reference, texts = reference_of("bert", BertForPreTraining), masked_texts(pairs=True)
    outputs = theirs(reference, texts)
    logits = torch.cat([output.prediction_logits[0][::3] for output in outputs])
    counts = np.arange(99)
    held_out = HeldOut(texts, counts)
    scores = held_out.score(ours(reference, next_sentence=True))
    losses = functional.cross_entropy(logits, texts.targets, reduction="none")
    assert scores["perplexity"] == pytest.approx(float(losses.mean().exp()), rel=1e-4)
    assert scores["accuracy"] == float((logits.argmax(-1) == texts.targets).float().mean())
    follows = torch.cat([output.seq_relationship_logits for output in outputs]).argmax(-1)
    right = (follows == torch.tensor([0, 1, 0])).double().mean()
    assert scores["next_sentence"] == pytest.approx(float(right))
    shares = (counts[texts.targets] + 1) / (counts.sum() + 99)
    assert scores["unigram"] == pytest.approx(np.exp(-np.log(shares).mean()))
    assert (scores["n_texts"], scores["n_pieces"]) == (3, 3 + 14 + 1)
    _, by_text = held_out.measure(ours(reference, next_sentence=True))
    np.testing.assert_allclose(by_text, [part.sum() for part in losses.split([3, 14, 1])], 1e-4)
    # a resample of one text thrice is worth that text
    low, high = scores["interval"]
    alone = np.exp(by_text / [3, 14, 1])
    assert alone.min() <= low < scores["perplexity"] < high <= alone.max()
    nothing = MaskedTexts(texts.columns * 0, texts.lengths, texts.follows)
    with pytest.raises(UserError, match=r"raise data\.held_out"):
        HeldOut(nothing, counts)


def test_the_output_layer_teaches_the_embeddings() -> None:
    model = ours(reference_of("bert", BertForPreTraining), next_sentence=True).train()
    masked = masked_texts().pack(range(3), CPU)
    number = next(n for n in range(99) if n not in masked.batch.pieces)
    model(masked)[0][:, number].sum().backward()
    gradient = model.encoder.embeddings.piece.weight.grad
    assert gradient is not None
    assert gradient[number].abs().sum() > 0
    config = {"model_type": "roberta", **COMMON, **SIZES}
    with pytest.raises(UserError, match=r"next_sentence = false"):
        LanguageModel(Encoder(spec_from_config(config, "test")), next_sentence=True)


class MadeTexts(list[Line]):
    """Lines in place of those of a file."""

    notes = ("made up",)


def store_of(folder: Path, tokenizer: PieceTokenizer, *documents: list[str]) -> PieceStore:
    numbered = enumerate(documents)
    lines = MadeTexts(Line(text, n, text) for n, document in numbered for text in document)
    write_store(folder / "texts", lines, tokenizer, watch=ignore_progress)  # type: ignore[arg-type]
    return open_store(folder / "texts")


PROSE = [
    "The gloomy channel into which my young mind had been forced was overhung by a growth.",
    "Enough of this: the story I have to tell is strange, and short as my own its preamble.",
    "Unquestionably, the housekeeper was starched beyond measure, yet not too stiff to smile.",
]


@pytest.fixture(scope="module")
def prose_store(tmp_path_factory: pytest.TempPathFactory) -> tuple[PieceStore, PieceTokenizer]:
    """Forty thousand pieces of prose, with a vocabulary learned from it."""
    content = train_wordpiece(lambda: PROSE, n_vocabulary=120, lower_case=True)
    tokenizer = PieceTokenizer(Path("x"), max_pieces=64, content=content.encode())
    return store_of(tmp_path_factory.mktemp("prose"), tokenizer, PROSE * 250), tokenizer


@pytest.mark.parametrize("whole_words", [False, True])
def test_shares_of_what_is_hidden(
    prose_store: tuple[PieceStore, PieceTokenizer], whole_words: bool
) -> None:
    store, tokenizer = prose_store
    blocks = make_blocks(store, 60, join_lines=False)
    reader = Reader(blocks, tokenizer, ObjectiveSettings(whole_words=whole_words))
    texts = reader.read(range(len(blocks)), seed=0)
    ids, shown, _, chosen = texts.columns
    is_chosen, is_special = chosen > 0, reader.is_special[ids]
    assert (shown[~is_chosen] == ids[~is_chosen]).all()
    assert not is_special[is_chosen].any()
    replaced = shown[is_chosen & (shown != reader.mask)]
    assert not reader.is_special[replaced].any()
    is_mask, stays = shown[is_chosen] == reader.mask, shown[is_chosen] == ids[is_chosen]
    shares = {
        "chosen": len(texts.targets) / int((~is_special).sum()),
        "masked": is_mask.float().mean().item(),
        "random": (~is_mask & ~stays).float().mean().item(),
        "stays": stays.float().mean().item(),
    }
    # any piece is now and then the one that was there
    by_chance = 0.1 / int((~reader.is_special).sum())
    wanted = {"chosen": 0.15, "masked": 0.8, "random": 0.1 - by_chance, "stays": 0.1 + by_chance}
    assert shares == pytest.approx(wanted, abs=0.02)
    continues = (
        torch.cat(
            [torch.tensor([0, *store.read(*blocks.span(n))[1], 0]) for n in range(len(blocks))]
        )
        > 0
    )
    together = is_chosen[1:] == is_chosen[:-1]
    assert bool(together[continues[1:]].all()) is whole_words
    again, other = (reader.read(range(len(blocks)), seed=seed).columns for seed in (0, 1))
    assert torch.equal(texts.columns, again)
    assert not torch.equal(shown, other[1])


def test_a_packed_batch_knows_where_each_chosen_piece_is(
    prose_store: tuple[PieceStore, PieceTokenizer],
) -> None:
    store, tokenizer = prose_store
    settings = ObjectiveSettings(share=0.4, masked=1.0, random=0.0)
    reader = Reader(make_blocks(store, 60, join_lines=False), tokenizer, settings)
    texts = reader.read(range(9), seed=5)
    packed = texts.pack(range(9), CPU)
    assert (packed.batch.pieces[packed.places] == reader.mask).all()
    assert int((packed.batch.pieces == reader.mask).sum()) == len(packed.places)
    assert torch.equal(packed.targets, texts.targets)
    assert packed.follows.tolist() == [MISSING] * 9


def test_a_store_holds_every_piece_and_where_words_begin(tiny: Pretrained, tmp_path: Path) -> None:
    texts = ["the queues", "tea tea!", "it is " * 100]
    store = store_of(tmp_path, tiny.tokenizer, texts)
    whole = tiny.tokenizer.encode_whole(texts)
    ends = store.lines[:, 0].tolist()
    for start, end, text in zip([0, *ends], ends, whole, strict=False):
        ids, continues = store.read(start, end)
        assert ids.tolist() == text.ids
        assert (continues > 0).tolist() == text.continues
    assert any(whole[0].continues)
    assert store.read(2, 4)[1][0] == 0  # what is cut off is a beginning
    assert store.notes == ("made up",)


@pytest.mark.parametrize("join_lines", [False, True])
@pytest.mark.parametrize(("room", "n_blocks"), [(4, (17, 15)), (9, (13, 9)), (500, (10, 3))])
def test_blocks_hold_every_piece_once(
    tiny: Pretrained, tmp_path: Path, room: int, n_blocks: tuple[int, int], join_lines: bool
) -> None:
    documents = [["the tea is great"] * 3, ["a", "\u200b", "love " * 30], ["bad queue"] * 5]
    store = store_of(tmp_path, tiny.tokenizer, *documents)
    blocks = make_blocks(store, room, join_lines=join_lines)
    starts, ends = blocks.rows[:, 0], blocks.rows[:, 1]
    assert 0 < blocks.lengths.min() <= blocks.lengths.max() <= room
    assert (starts[0], ends[-1]) == (0, len(store.pieces))
    assert (starts[1:] == ends[:-1]).all()
    borders = store.lines[np.flatnonzero(np.diff(store.lines[:, 1])), 0]
    assert set(borders) <= set(ends), "a block spans two documents"
    assert len(blocks) == n_blocks[join_lines]
    expected = np.bincount(store.read(0, len(store.pieces))[0], minlength=200)
    assert (blocks.count_pieces(200) == expected).all()


@pytest.mark.parametrize("share", [0.11, 0.2, 0.24])  # some end within equal texts
def test_equal_texts_are_on_the_same_side(tiny: Pretrained, tmp_path: Path, share: float) -> None:
    store = store_of(tmp_path, tiny.tokenizer, [f"tea {number % 40}" for number in range(200)])
    blocks = make_blocks(store, 9, join_lines=False)
    learned, held = blocks.hold_out(share)
    assert len(learned) + len(held) == 200
    assert share <= held.n_pieces / blocks.n_pieces < share + 0.04
    assert not set(learned.rows[:, 3]) & set(held.rows[:, 3])
    with pytest.raises(UserError, match="too few different texts"):
        make_blocks(
            store_of(tmp_path / "one", tiny.tokenizer, ["tea"] * 9), 9, join_lines=False
        ).hold_out(0.1)


PAIRS = ObjectiveSettings(next_sentence=True, share=1e-9)


@pytest.fixture
def with_mask(tiny: Pretrained, monkeypatch: pytest.MonkeyPatch) -> PieceTokenizer:
    """The tiny tokenizer, and one of its letters for a mask."""
    with pytest.raises(UserError, match=r"no mask \(\[MASK\] or <mask>\)"):
        Reader(None, tiny.tokenizer, PAIRS)  # type: ignore[arg-type]
    monkeypatch.setattr("litotes.training.pretraining.masking.MASKS", ("z",))
    return tiny.tokenizer


def test_half_of_the_pairs_follow(with_mask: PieceTokenizer, tmp_path: Path) -> None:
    tokenizer = with_mask
    tokenizer.max_pieces = 8  # five and what stands around a pair
    documents = [[name] * 8 for name in ("tea", "queue", "love", "hate")]
    blocks = make_blocks(store_of(tmp_path, tokenizer, *documents), 5, join_lines=True)
    texts = Reader(blocks, tokenizer, PAIRS).read([n % len(blocks) for n in range(1000)], seed=0)
    layouts = []
    for (ids, _, segments, _), follows in zip(texts.by_text, texts.follows.tolist(), strict=True):
        assert len(ids) <= 8
        first, second = (set(ids[segments == n].tolist()) - tokenizer.meaningless for n in (0, 1))
        assert (first == second) is (follows == FOLLOWS)
        assert min(len(first), len(second)) > 0
        layouts.append((ids.tolist(), segments.tolist()))
    assert float((texts.follows == RANDOM).float().mean()) == pytest.approx(0.5, abs=0.05)
    expected = tokenizer.encode(["tea tea"], ["tea tea tea"])[0]
    assert (expected.ids, expected.segments) in layouts


def test_a_line_alone_is_read_as_one_text(with_mask: PieceTokenizer, tmp_path: Path) -> None:
    store = store_of(tmp_path, with_mask, ["the tea is great"], ["queue"])
    texts = Reader(make_blocks(store, 90, join_lines=True), with_mask, PAIRS).read([0], seed=0)
    (expected,) = with_mask.encode(["the tea is great"])
    assert texts.columns[0].tolist() == expected.ids
    assert texts.columns[2].tolist() == expected.segments
    assert texts.follows.tolist() == [MISSING]
    alone = store_of(tmp_path / "one", with_mask, ["tea"] * 20)
    with pytest.raises(UserError, match="at least two documents"):
        Reader(make_blocks(alone, 4, join_lines=True), with_mask, PAIRS)


def test_a_vocabulary_is_the_same_every_time_and_reads_pairs_as_bert_does() -> None:
    texts = [*PROSE, *(f"word{number} {'abc'[number % 3] * (number % 7)}" for number in range(60))]
    first, again = (
        train_wordpiece(lambda: texts, n_vocabulary=200, lower_case=True) for _ in range(2)
    )
    assert first == again
    tokenizer = PieceTokenizer(Path("x"), max_pieces=64, content=first.encode())
    assert tokenizer.n_vocabulary == 200
    assert [tokenizer.find_piece(piece) for piece in SPECIAL] == [0, 1, 2, 3, 4]
    frame = tokenizer.frame(pair=True)
    assert (frame.before, frame.between, frame.after, frame.second_segment) == ((2,), (3,), (3,), 1)
    assert tokenizer.encode(["ß"])[0].ids == [2, 1, 3]  # never seen
    for lower_case in (False, True):
        content = train_wordpiece(lambda: ["Bath bath"], n_vocabulary=64, lower_case=lower_case)
        assert ("B" in json.loads(content)["model"]["vocab"]) is not lower_case
