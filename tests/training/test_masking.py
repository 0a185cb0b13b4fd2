"""What is hidden, and how often: 15 % of the pieces, of these 80 / 10 / 10."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from litotes.core.errors import UserError
from litotes.core.values import MISSING
from litotes.encoder.pretrained import Pretrained
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.training.pretraining.masking import Masker, pack_masked
from litotes.training.pretraining.texts import MASK, FramedText, frame_text, train_wordpiece
from litotes.training.recipe import ObjectiveSettings

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
