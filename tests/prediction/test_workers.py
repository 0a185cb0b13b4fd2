from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_exports import encoder_of, model_of, session_of, text_of

from litotes.core.errors import UserError
from litotes.encoder.tokenizer import Pieces
from litotes.model.exits import Outputs
from litotes.prediction.onnx_runtime import MOST_PIECES, MOST_TEXTS, Workers, group_by_length


@given(st.lists(st.integers(1, 700), max_size=60))
def test_groups_hold_every_text_once_equal_in_length_and_the_longest_first(
    lengths: list[int],
) -> None:
    groups = list(group_by_length(lengths))
    assert sorted(place for places in groups for place in places) == list(range(len(lengths)))
    heads = []
    for places in groups:
        (length,) = {lengths[place] for place in places}
        assert len(places) == 1 or (
            len(places) * length <= MOST_PIECES and len(places) <= MOST_TEXTS
        )
        heads.append(length)
    assert heads == sorted(heads, reverse=True)


class Session:
    """Answers with the first piece and the number of pieces."""

    n_outputs = {"sarcasm": 2}  # noqa: RUF012
    has_exits = False

    def compute(self, group: Sequence[Pieces]) -> Outputs:
        if any(text.ids[0] == 13 for text in group):
            raise UserError("thirteen")
        first_and_length = [[text.ids[0], len(text.ids)] for text in group]
        return Outputs({"sarcasm": np.array(first_and_length, dtype=np.float32)})


def pieces(first: int, n: int) -> Pieces:
    return Pieces([first] + [0] * (n - 1), [0] * n, False)


@given(
    st.lists(st.tuples(st.integers(20, 10_000), st.integers(1, 9)), max_size=80), st.integers(1, 5)
)
def test_answers_come_in_the_order_of_the_texts(
    texts: list[tuple[int, int]], n_workers: int
) -> None:
    logits = (
        Workers(Session(), n_workers).compute([pieces(*text) for text in texts]).logits["sarcasm"]
    )  # type: ignore[arg-type]
    assert logits.shape == (len(texts), 2)
    assert logits.tolist() == [list(text) for text in texts]


@pytest.mark.parametrize("n", [1, 40])
def test_an_error_in_a_worker_is_heard(n: int) -> None:
    with pytest.raises(UserError, match="thirteen"):
        Workers(Session(), 2).compute([pieces(13, length) for length in range(1, n + 1)])  # type: ignore[arg-type]


def test_a_real_session_is_shared(tmp_path: Path) -> None:
    session = session_of(model_of(encoder_of()), tmp_path)
    texts = [text_of(n) for n in (5, 9, 5, 12, 9, 5)] * 8
    together = Workers(session, 3).compute(texts).logits["sarcasm"]
    alone = np.concatenate([session.logits([text])["sarcasm"] for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-5)
