"""What [CLS] weighs: types of pieces, the largest weight of each, texts that lack one, pieces that
left.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from test_diversity_trace_change import LONG, with_weights
from tiny_models import KINDS as MODELS
from tiny_models import model_of, observations_of

from litotes.encoder import pretrained
from litotes.encoder.tokenizer import Pieces, ReadText, Word
from litotes.explanation.analyses.token_types import (
    TYPES,
    TokenTypes,
    TokenTypesAnalysis,
    places_by_type,
)
from litotes.explanation.observation import Observation
from litotes.model.checkpoint import Model

TEXT = "it is the great tea , i love queues !"


def result_of(model: Model, *observations: Observation) -> TokenTypes:
    analysis = TokenTypesAnalysis(model)
    for observation in observations:
        analysis.add(observation)
    return analysis.result()


def test_types_stand_at_the_first_pieces_of_their_words(dense: Model) -> None:
    read = dense.tokenizer.read([TEXT])[0]
    places = places_by_type(read)
    written = {name: [read.written[place] for place in found] for name, found in places.items()}
    assert written == {
        "[CLS]": ["[CLS]"],
        "[SEP]": ["[SEP]"],
        "punctuation": [",", "!"],
        "nouns": ["tea", "queue"],  # and not ##s
        "pronouns": ["it", "i"],
        "verbs": ["is", "love"],
    }


def test_both_separators_of_a_pair_count(dense: Model) -> None:
    read = dense.tokenizer.read(["tea is great"], ["i love it"])[0]
    places = places_by_type(read)
    assert [read.written[place] for place in places["[SEP]"]] == ["[SEP]", "[SEP]"]
    assert [read.written[place] for place in places["pronouns"]] == ["i", "it"]


def test_separators_are_known_in_other_families_too() -> None:
    words = tuple(
        Word(word, 0, 4, pair, (place,))
        for word, pair, place in (("tea", False, 1), ("love", True, 4))
    )
    read = ReadText(
        "tea",
        "love",
        Pieces([0, 5, 2, 2, 6, 2], [0] * 6, False),
        ("<s>", "Ġtea", "</s>", "</s>", "Ġlove", "</s>"),
        words,
    )
    assert places_by_type(read)["[SEP]"] == [2, 3, 5]


def test_the_largest_weight_of_a_type_counts_and_texts_without_it_do_not(dense: Model) -> None:
    first, second = observations_of(dense, (TEXT, "great"))
    n = len(first.read.written)
    weights = torch.zeros(4, n, n)
    place = {piece: n for n, piece in reversed(list(enumerate(first.read.written)))}
    weights[:, 0, place["it"]], weights[:, 0, place["i"]] = 0.3, 0.4
    # not the first piece of its word
    weights[2, 0, place["[CLS]"]], weights[:, 0, place["##s"]] = 0.2, 0.9
    result = result_of(dense, with_weights(first, weights), second)
    row = dict(zip(result.types, result.from_first["standard"], strict=True))
    assert row["pronouns"] == [pytest.approx(0.4)] * 4
    assert row["nouns"] == [0.0] * 4
    assert result.n_with == {
        "[CLS]": 2,
        "[SEP]": 2,
        "punctuation": 1,
        "nouns": 1,
        "pronouns": 1,
        "verbs": 1,
    }
    alone = result_of(dense, second)
    assert row["[CLS]"][2] == pytest.approx((0.2 + alone.from_first["standard"][0][2]) / 2)
    assert alone.by_type["standard"]["pronouns"] is None
    assert alone.from_first["effective"][TYPES.index("nouns")] == [None] * 4


def test_others_are_all_pieces_but_the_one_they_look_at(dense: Model) -> None:
    observation = observations_of(dense, (TEXT,))[0]
    n = len(observation.read.written)
    weights = torch.zeros(4, n, n)
    weights[:, :, 0], weights[:, 0, 0] = 0.5, 1.0  # all give half to [CLS], which keeps to itself
    weights[:, 1, n - 1] = 0.6
    result = result_of(dense, with_weights(observation, weights))
    assert result.from_others["[CLS]"]["standard"][1][3] == pytest.approx(0.5)
    assert result.from_others["[SEP]"]["standard"][1][3] == pytest.approx(0.6 / (n - 1))
    assert result.over_layers["[CLS]"]["standard"] == pytest.approx(0.5)


def test_effective_weights_are_read_as_standard_ones_are(dense: Model) -> None:
    observation = observations_of(dense, LONG)[0]
    # so that the two differ
    assert len(observation.read.written) > dense.classifier.encoder.spec.head_width
    result = result_of(dense, observation)
    maps, last = observation.effective[-1].maps, len(observation.read.written) - 1
    assert result.from_first["effective"][0] == [
        pytest.approx(float(value)) for value in maps[:, 0, 0]
    ]
    assert result.from_first["effective"][1] == [
        pytest.approx(float(value)) for value in maps[:, 0, last]
    ]
    assert result.difference["[SEP]"] == pytest.approx(
        float((observation.layers[-1].weights - maps)[:, 0, last].mean())
    )
    assert result.from_others["[SEP]"]["effective"][1][2] == pytest.approx(
        float(maps[2, :last, last].mean())
    )


def test_what_has_left_does_not_count(tiny: pretrained.Pretrained) -> None:
    model = model_of(tiny, **MODELS["cascade"])
    observations = observations_of(model, (TEXT, *LONG, "tea"))
    gone = [len(o.read.written) - 1 not in o.layers[-1].origin.tolist() for o in observations]
    assert any(gone)
    result = result_of(model, *observations)
    assert result.n_with["[SEP]"] == len(observations) - sum(gone)
    assert result.n_with["[CLS]"] == len(observations)
    assert None not in result.from_others["[SEP]"]["standard"][0]


def test_a_fused_piece_is_neither_asked_nor_weighed(dense: Model) -> None:
    observation = observations_of(dense, (TEXT,))[0]
    n = len(observation.read.written)
    weights = torch.zeros(4, n, n)
    weights[:, 1:, 0], weights[:, n - 1, 0], weights[:, 0, n - 1] = 0.5, 1.0, 1.0
    there = with_weights(observation, weights)
    # the separator's place is taken by what stands for those gone
    origin = torch.tensor([*range(n - 1), -1])
    fused = replace(there, layers=tuple(replace(view, origin=origin) for view in there.layers))
    result = result_of(dense, fused)
    assert result.from_others["[CLS]"]["standard"][0][0] == pytest.approx(0.5)
    assert result.by_type["standard"]["[SEP]"] is None
    assert not any("[SEP]" in finding for finding in result.findings())
