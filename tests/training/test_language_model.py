"""The language model, what is hidden from it, and the blocks that it reads."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
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
    LanguageModel,
    architecture_of,
    draw_weights,
    family_tensors,
    load_heads,
)
from litotes.training.pretraining.masking import MaskedBatch, MaskedText, Masker, pack_masked
from litotes.training.pretraining.texts import (
    FOLLOWS,
    MASK,
    RANDOM,
    SPECIAL,
    FramedText,
    Line,
    PieceStore,
    Reader,
    frame_text,
    make_blocks,
    open_store,
    train_wordpiece,
    write_store,
)
from litotes.training.recipe import ObjectiveSettings

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


def test_every_family_with_an_output_layer_is_tested() -> None:
    assert set(CONFIGS) == set(OUTPUT_NAMES)


def random_weights(model: Any) -> Any:
    for name, parameter in model.named_parameters():
        is_scale = "norm" in name.lower() and name.endswith("weight")
        torch.nn.init.normal_(parameter, mean=1.0 if is_scale else 0.0, std=0.2)
    return model.eval()


@pytest.fixture(params=sorted(CONFIGS))
def reference(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(3)
    config = AutoConfig.for_model(request.param, **COMMON | CONFIGS[request.param])
    return random_weights(AutoModelForMaskedLM.from_config(config))


def ours(reference: Any, *, next_sentence: bool = False) -> LanguageModel:
    encoder = Encoder(spec_from_config(reference.config.to_dict(), "config.json"))
    load_family_tensors(encoder, reference.state_dict(), "test")
    model = LanguageModel(encoder, next_sentence=next_sentence)
    assert load_heads(model, reference.state_dict(), "test") == []
    return model.eval()


def masked_batch(*, pairs: bool = False) -> MaskedBatch:
    generator = torch.Generator().manual_seed(5)
    texts = []
    for length in (7, 40, 3):
        ids = torch.randint(5, 99, (length,), generator=generator)
        segments = (torch.arange(length) > length // 2).long() * pairs
        places = torch.arange(0, length, 3)
        texts.append(MaskedText(ids, segments, places, ids[places], MISSING))
    return pack_masked(texts, torch.device("cpu"))


def theirs(reference: Any, masked: MaskedBatch) -> list[Any]:
    """Text by text, without padding."""
    lengths = masked.batch.layout.lengths
    rows = zip(
        masked.batch.pieces.split(lengths), masked.batch.segments.split(lengths), strict=True
    )
    outputs = []
    for ids, segments in rows:
        more = {"token_type_ids": segments[None]} if segments.any() else {}
        outputs.append(reference(input_ids=ids[None], **more))
    return outputs


@torch.no_grad()
def test_logits_equal_transformers(reference: Any) -> None:
    masked = masked_batch()
    expected = torch.cat([output.logits[0] for output in theirs(reference, masked)])
    found = ours(reference)(masked).pieces
    assert found.shape == (len(masked.places), 99)
    assert (found - expected[masked.places]).abs().max() < 1e-5


@torch.no_grad()
def test_next_sentences_equal_transformers() -> None:
    torch.manual_seed(4)
    config = AutoConfig.for_model("bert", **COMMON | CONFIGS["bert"])
    reference = random_weights(BertForPreTraining(config))
    masked = masked_batch(pairs=True)
    outputs = theirs(reference, masked)
    guesses = ours(reference, next_sentence=True)(masked)
    expected = torch.cat([output.prediction_logits[0] for output in outputs])
    assert (guesses.pieces - expected[masked.places]).abs().max() < 1e-5
    assert guesses.follows is not None
    follows = torch.cat([output.seq_relationship_logits for output in outputs])
    assert (guesses.follows - follows).abs().max() < 1e-5


@torch.no_grad()
def test_transformers_loads_what_is_saved(reference: Any, tmp_path: Path) -> None:
    torch.manual_seed(6)
    model = LanguageModel(Encoder(ours(reference).encoder.spec), next_sentence=False).eval()
    draw_weights(model)
    spec = model.encoder.spec
    architecture = architecture_of(spec.family, next_sentence=False)
    assert architecture == type(reference).__name__
    write_json(tmp_path / "config.json", config_from_spec(spec) | {"architectures": [architecture]})
    save_file(family_tensors(model), tmp_path / "model.safetensors", metadata={"format": "pt"})
    loaded, info = AutoModelForMaskedLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    masked = masked_batch()
    expected = torch.cat([output.logits[0] for output in theirs(loaded.eval(), masked)])
    assert (model(masked).pieces - expected[masked.places]).abs().max() < 1e-5


def test_an_encoder_without_an_output_layer_is_given_one(reference: Any) -> None:
    model = ours(reference)
    prefix = reference.base_model_prefix
    bare = {k: v for k, v in reference.state_dict().items() if k.startswith(f"{prefix}.")}
    (note,) = load_heads(model, bare, "test")
    assert "no weights of its output layer" in note


def test_half_an_output_layer_is_refused(reference: Any) -> None:
    state = dict(reference.state_dict())
    names = OUTPUT_NAMES[reference.config.model_type]
    del state[f"{names.dense}.bias"]
    with pytest.raises(UserError, match=r"dense\.bias.*missing|transform\.bias.*missing"):
        load_heads(ours(reference), state, "test")


def test_an_untied_output_layer_is_told(reference: Any) -> None:
    names = OUTPUT_NAMES[reference.config.model_type]
    state = dict(reference.state_dict())
    state[f"{names.decoder}.weight"] = state[f"{names.decoder}.weight"] + 1
    (note,) = load_heads(ours(reference), state, "test")
    assert "not tied" in note


@pytest.mark.parametrize("training", [False, True])
def test_the_output_layer_teaches_the_embeddings(training: bool) -> None:
    spec = spec_from_config({"model_type": "bert", **COMMON, **SIZES}, "test")
    model = LanguageModel(Encoder(spec), next_sentence=True).train(training)
    masked = masked_batch()
    unseen = 98 - masked.batch.pieces.flip(0)  # some piece that is no input
    number = next(int(n) for n in unseen if n not in masked.batch.pieces)
    model(masked).pieces[:, number].sum().backward()
    gradient = model.encoder.embeddings.piece.weight.grad
    assert gradient is not None
    assert gradient[number].abs().sum() > 0
    assert "heads.output.bias" in dict(model.named_parameters())


def test_other_families_know_no_next_sentence() -> None:
    config = {"model_type": "roberta", **COMMON, **SIZES}
    with pytest.raises(UserError, match=r"next_sentence = false"):
        LanguageModel(Encoder(spec_from_config(config, "test")), next_sentence=True)


PROSE = [
    "The gloomy channel into which my young mind had been forced was overhung by a growth.",
    "Enough of this: the story I have to tell is strange, and short as my own its preamble.",
    "Unquestionably, the housekeeper was starched beyond measure, yet not too stiff to smile.",
]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> PieceTokenizer:
    content = train_wordpiece(PROSE, n_vocabulary=120, lower_case=True)
    file = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    file.write_text(content)
    return PieceTokenizer(file, max_pieces=64)


def framed_texts(tokenizer: PieceTokenizer, n_pieces: int) -> list[FramedText]:
    """The prose again and again, until there are so many pieces besides the special ones."""
    prose = [" ".join(PROSE * min(n_pieces // 1000, 20))]
    frame = tokenizer.frame(pair=False)
    texts, n_found = [], 0
    for text in tokenizer.encode_whole(prose):
        texts.append(frame_text(frame, (np.array(text.ids), np.array(text.continues))))
        n_found += len(text.ids)
    return texts * (n_pieces // n_found + 1)


@pytest.mark.parametrize("whole_words", [False, True])
def test_shares_over_a_million_pieces(tokenizer: PieceTokenizer, whole_words: bool) -> None:
    masker = Masker(tokenizer, ObjectiveSettings(whole_words=whole_words))
    texts = framed_texts(tokenizer, 1_000_000)
    masked = masker.mask_texts(texts, torch.Generator().manual_seed(0))
    n_ordinary = sum(int((~masker.is_special[text.ids]).sum()) for text in texts)
    assert n_ordinary >= 1_000_000
    targets = torch.cat([text.targets for text in masked])
    shown = torch.cat([text.ids[text.places] for text in masked])
    is_mask, stays = shown == masker.mask, shown == targets
    shares = {
        "chosen": len(targets) / n_ordinary,
        "masked": is_mask.float().mean().item(),
        "random": (~is_mask & ~stays).float().mean().item(),
        "stays": stays.float().mean().item(),
    }
    # any piece is now and then the one that was there
    by_chance = 0.1 / len(masker.ordinary)
    wanted = {"chosen": 0.15, "masked": 0.8, "random": 0.1 - by_chance, "stays": 0.1 + by_chance}
    assert shares == pytest.approx(wanted, abs=0.005)


def test_only_what_is_chosen_changes_and_special_pieces_never(tokenizer: PieceTokenizer) -> None:
    masker = Masker(tokenizer, ObjectiveSettings())
    texts = framed_texts(tokenizer, 5_000)
    for text, hidden in zip(
        texts, masker.mask_texts(texts, torch.Generator().manual_seed(1)), strict=True
    ):
        restored = hidden.ids.clone()
        restored[hidden.places] = hidden.targets
        assert restored.tolist() == text.ids.tolist()
        assert not masker.is_special[hidden.targets.numpy()].any()
        replaced = hidden.ids[hidden.places]
        assert not masker.is_special[replaced[replaced != masker.mask].numpy()].any()


def test_whole_words_are_chosen_or_left(tokenizer: PieceTokenizer) -> None:
    masker = Masker(tokenizer, ObjectiveSettings(whole_words=True, share=0.5))
    n_together = 0
    texts = framed_texts(tokenizer, 5_000)
    for text, hidden in zip(
        texts, masker.mask_texts(texts, torch.Generator().manual_seed(2)), strict=True
    ):
        chosen = np.isin(np.arange(len(text.ids)), hidden.places.numpy())
        continued = np.flatnonzero(text.continues)
        assert (chosen[continued] == chosen[continued - 1]).all()
        n_together += int(chosen[continued].sum())
    assert n_together > 100


def test_what_is_drawn_depends_on_the_seed_alone(tokenizer: PieceTokenizer) -> None:
    masker = Masker(tokenizer, ObjectiveSettings())
    texts = framed_texts(tokenizer, 2_000)
    first, again, other = (
        torch.cat([text.ids for text in masker.mask_texts(texts, generator)])
        for generator in (torch.Generator().manual_seed(seed) for seed in (3, 3, 4))
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_packed_batch_knows_where_each_chosen_piece_is(tokenizer: PieceTokenizer) -> None:
    masker = Masker(tokenizer, ObjectiveSettings(share=0.4, masked=1.0, random=0.0))
    masked = masker.mask_texts(framed_texts(tokenizer, 1_000), torch.Generator().manual_seed(5))
    packed = pack_masked(masked, torch.device("cpu"))
    assert (packed.batch.pieces[packed.places] == masker.mask).all()
    assert int((packed.batch.pieces == masker.mask).sum()) == len(packed.places)
    assert torch.equal(packed.batch.layout.texts[packed.places], packed.texts)
    assert torch.equal(packed.targets, torch.cat([text.targets for text in masked]))
    assert packed.follows.tolist() == [MISSING] * len(masked)


def test_a_tokenizer_without_a_mask_is_refused(tiny: Pretrained) -> None:
    with pytest.raises(UserError, match=r"no mask \(\[MASK\] or <mask>\)"):
        Masker(tiny.tokenizer, ObjectiveSettings())


def test_the_trained_tokenizer_has_a_mask(tokenizer: PieceTokenizer) -> None:
    assert tokenizer.find_piece(MASK) is not None
    assert tokenizer.encode(["the story"])[0].ids[0] == tokenizer.find_piece("[CLS]")


GENERATOR = torch.Generator()


class MadeTexts(list[Line]):
    """Lines in place of those of a file."""

    notes = ("made up",)


def store_of(lines: MadeTexts, tokenizer: PieceTokenizer, folder: Path) -> PieceStore:
    write_store(folder / "texts", lines, tokenizer, watch=ignore_progress)
    return open_store(folder / "texts")


def lines_of(*documents: list[str]) -> MadeTexts:
    return MadeTexts(
        Line(text, number, text) for number, document in enumerate(documents) for text in document
    )


@pytest.fixture
def store(tiny: Pretrained, tmp_path: Path) -> PieceStore:
    documents = [["the tea is great"] * 3, ["a", "\u200b", "love " * 30], ["bad queue"] * 5]
    return store_of(lines_of(*documents), tiny.tokenizer, tmp_path)


def test_a_store_holds_every_piece_and_where_words_begin(tiny: Pretrained, tmp_path: Path) -> None:
    texts = ["the queues", "tea tea!", "it is " * 100]
    store = store_of(lines_of(texts), tiny.tokenizer, tmp_path)
    whole = tiny.tokenizer.encode_whole(texts)
    ends = store.lines[:, 0].tolist()
    for start, end, text in zip([0, *ends], ends, whole, strict=False):
        ids, continues = store.read(start, end)
        assert ids.tolist() == text.ids
        assert continues.tolist() == text.continues
    assert whole[0].continues[:2] == [False, False]
    assert any(whole[0].continues)
    assert len(whole[2].ids) > tiny.tokenizer.max_pieces
    assert store.notes == ("made up",)


@pytest.mark.parametrize("join_lines", [False, True])
@pytest.mark.parametrize("room", [4, 9, 500])
def test_blocks_hold_every_piece_once(store: PieceStore, room: int, join_lines: bool) -> None:
    blocks = make_blocks(store, room, join_lines=join_lines)
    starts, ends = blocks.rows[:, 0], blocks.rows[:, 1]
    assert blocks.lengths.min() > 0
    assert blocks.lengths.max() <= room
    assert (starts[0], ends[-1]) == (0, len(store.pieces))
    assert (starts[1:] == ends[:-1]).all()
    borders = store.lines[np.flatnonzero(np.diff(store.lines[:, 1])), 0]
    assert set(borders) <= set(ends), "a block spans two documents"
    if room == 500:
        assert len(blocks) == (3 if join_lines else 10)  # a line without a piece is none


@pytest.mark.parametrize("share", [0.11, 0.2, 0.24])  # some end within equal texts
def test_equal_texts_are_on_the_same_side(tiny: Pretrained, tmp_path: Path, share: float) -> None:
    texts = [f"tea {number % 40}" for number in range(200)]
    blocks = make_blocks(store_of(lines_of(texts), tiny.tokenizer, tmp_path), 9, join_lines=False)
    learned, held = blocks.hold_out(share)
    assert len(learned) + len(held) == 200
    assert share - 0.05 < len(held) / 200 < share + 0.1
    assert not set(learned.rows[:, 3]) & set(held.rows[:, 3])
    again, _ = blocks.hold_out(share)
    assert (again.rows == learned.rows).all()


def test_one_text_cannot_be_divided(tiny: Pretrained, tmp_path: Path) -> None:
    store = store_of(lines_of(["tea"] * 9), tiny.tokenizer, tmp_path)
    with pytest.raises(UserError, match="too few different texts"):
        make_blocks(store, 9, join_lines=False).hold_out(0.1)


def test_counts_are_those_of_the_pieces(store: PieceStore) -> None:
    blocks = make_blocks(store, 9, join_lines=True)
    expected = np.bincount(store.read(0, len(store.pieces))[0], minlength=200)
    assert (blocks.count_pieces(200) == expected).all()


def test_a_text_stands_in_its_frame(tiny: Pretrained, store: PieceStore) -> None:
    reader = Reader(make_blocks(store, 90, join_lines=False), tiny.tokenizer.frame(pair=False))
    (expected,) = tiny.tokenizer.encode(["the tea is great"])
    found = reader.read(0, GENERATOR)
    assert (found.ids.tolist(), found.segments.tolist()) == (expected.ids, expected.segments)
    assert found.follows == MISSING


def test_half_of_the_pairs_follow(tiny: Pretrained, tmp_path: Path) -> None:
    names = ("tea", "queue", "love", "hate")
    store = store_of(lines_of(*([name] * 8 for name in names)), tiny.tokenizer, tmp_path)
    tokenizer = tiny.tokenizer
    blocks = make_blocks(store, 5, join_lines=True)
    pair, single = tokenizer.frame(pair=True), tokenizer.frame(pair=False)
    reader = Reader(blocks, single, pair, room=5)
    generator = torch.Generator().manual_seed(0)
    found = [reader.read(place % len(blocks), generator) for place in range(2000)]
    for text in found:
        assert len(text.ids) <= 5 + len(pair)
        first = set(text.ids[text.segments == 0].tolist()) - tokenizer.meaningless
        second = set(text.ids[text.segments == 1].tolist()) - tokenizer.meaningless
        assert (first == second) is (text.follows == FOLLOWS)
        assert min(len(first), len(second)) > 0
    assert np.mean([text.follows == RANDOM for text in found]) == pytest.approx(0.5, abs=0.04)
    expected = tokenizer.encode(["tea tea"], ["tea tea tea"])[0]
    layouts = [(text.ids.tolist(), text.segments.tolist()) for text in found]
    assert (expected.ids, expected.segments) in layouts


def test_a_line_alone_is_read_as_one_text(tiny: Pretrained, tmp_path: Path) -> None:
    store = store_of(lines_of(["tea"], ["queue"]), tiny.tokenizer, tmp_path)
    blocks = make_blocks(store, 9, join_lines=True)
    pair, single = tiny.tokenizer.frame(pair=True), tiny.tokenizer.frame(pair=False)
    text = Reader(blocks, single, pair, room=9).read(0, GENERATOR)
    assert text.ids.tolist() == tiny.tokenizer.encode(["tea"])[0].ids
    assert text.follows == MISSING


def test_one_document_has_no_other(tiny: Pretrained, tmp_path: Path) -> None:
    store = store_of(lines_of(["tea"] * 20), tiny.tokenizer, tmp_path)
    frame = tiny.tokenizer.frame(pair=True)
    with pytest.raises(UserError, match="at least two documents"):
        Reader(make_blocks(store, 4, join_lines=True), frame, frame, room=4)


CHANCE = random.Random(0)
TEXTS = [
    " ".join("".join(CHANCE.choices("abcdefghijkl", k=CHANCE.randint(2, 7))) for _ in range(40))
    for _ in range(60)
]


def test_the_same_texts_give_the_same_bytes() -> None:
    found = {train_wordpiece(TEXTS, n_vocabulary=300, lower_case=True) for _ in range(4)}
    assert len(found) == 1


def test_it_reads_pairs_as_bert_does(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text(train_wordpiece(TEXTS, n_vocabulary=300, lower_case=True))
    tokenizer = PieceTokenizer(file, max_pieces=64)
    assert tokenizer.n_vocabulary == 300
    numbers = {piece: tokenizer.find_piece(piece) for piece in SPECIAL}
    assert list(numbers.values()) == [0, 1, 2, 3, 4]
    frame = tokenizer.frame(pair=True)
    assert (frame.before, frame.between, frame.after, frame.second_segment) == ((2,), (3,), (3,), 1)
    (pieces,) = tokenizer.encode(["ab cd"], ["ef"])
    assert (pieces.ids[0], pieces.ids[-1], pieces.segments[-1]) == (2, 3, 1)
    assert 1 not in pieces.ids
    assert tokenizer.encode(["ß"])[0].ids == [2, 1, 3]  # never seen


def test_case_is_kept_on_request() -> None:
    kept = train_wordpiece(["Bath bath BATH"], n_vocabulary=64, lower_case=False)
    ignored = train_wordpiece(["Bath bath BATH"], n_vocabulary=64, lower_case=True)
    assert "B" in json.loads(kept)["model"]["vocab"]
    assert "B" not in json.loads(ignored)["model"]["vocab"]
