"""A tokenizer learned from texts is the same for the same texts."""

from __future__ import annotations

import json
import random
from pathlib import Path

from litotes.encoder.tokenizer import PieceTokenizer
from litotes.training.pretraining.texts import SPECIAL, train_wordpiece

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
