"""Observing changes nothing, and the traces show what was computed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from test_prunings import LENGTHS, SETTINGS, batch_of, encoder_of

from litotes.encoder.attention import WEIGHTINGS
from litotes.encoder.torch_operations import Rows
from litotes.encoder.walk import LayerTrace, TextAttention


def traces_of(
    firsts_only: bool = False, **choices: Any
) -> tuple[list[LayerTrace], torch.Tensor, torch.Tensor]:
    """The traces of a walk, what it gave, and what an unobserved walk gives."""
    encoder, batch = encoder_of(**choices), batch_of()
    traces: list[LayerTrace] = []
    with torch.no_grad():
        watched = encoder(batch, firsts_only=firsts_only, observer=traces.append)
        return traces, watched.hidden, encoder(batch, firsts_only=firsts_only).hidden


@pytest.mark.parametrize("firsts_only", [False, True])
@pytest.mark.parametrize("setting", sorted(SETTINGS))
def test_observing_changes_nothing(setting: str, firsts_only: bool) -> None:
    traces, watched, alone = traces_of(firsts_only, **SETTINGS[setting])
    assert len(traces) == 4
    torch.testing.assert_close(watched, alone, rtol=0, atol=1e-9)


@pytest.mark.parametrize("weighting", sorted(WEIGHTINGS))
@pytest.mark.parametrize("setting", ["none", "few", "shares"])
def test_traces_show_live_pieces_alone(setting: str, weighting: str) -> None:
    traces, _, _ = traces_of(weighting=weighting, **SETTINGS[setting])
    gone: dict[int, set[int]] = {text: set() for text in range(len(LENGTHS))}
    for trace in traces:
        for text, view in enumerate(trace.by_text()):
            n = len(view.origin)
            assert view.weights.shape == (len(view.heads), n, n)
            torch.testing.assert_close(
                view.weights.sum(-1), torch.ones(len(view.heads), n).double()
            )
            torch.testing.assert_close(view.weights @ view.value, view.mixed)
            origin, stayed = set(view.origin.tolist()), set(view.stayed.tolist())
            assert stayed <= origin
            assert not origin & gone[text]
            gone[text] |= origin - stayed
    n_gone = sum(map(len, gone.values()))
    assert n_gone == 0 if setting == "none" else n_gone > len(LENGTHS)


def test_padded_rows_show_the_same_as_rows_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = SETTINGS["few"]
    apart = [view for trace in traces_of(**setting)[0] for view in trace.by_text()]
    monkeypatch.setattr(Rows, "of", classmethod(lambda cls, layout: cls(layout, apart=False)))
    padded = [view for trace in traces_of(**setting)[0] for view in trace.by_text()]
    for one, other in zip(apart, padded, strict=True):
        assert one.heads == other.heads
        torch.testing.assert_close(one.weights, other.weights)
        torch.testing.assert_close(one.mixed, other.mixed)


def test_heads_keep_their_first_numbers() -> None:
    kept = [[0, 2], [1], [0, 1, 2, 3], [3]]
    traces, _, _ = traces_of(heads_kept=kept)
    shown = [[list(view.heads) for view in trace.by_text()] for trace in traces]
    assert shown == [[heads] * len(LENGTHS) for heads in kept]


def test_heads_that_left_are_not_shown() -> None:
    last: TextAttention = list(traces_of(**SETTINGS["few"])[0][-1].by_text())[3]
    assert 0 < len(last.heads) < 4
    assert last.mixed.abs().sum(dim=(1, 2)).min() > 0  # the heads shown are those that work
