"""The contract of every attribution method, and each one against an outside truth."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from captum import attr
from tiny_models import TEXTS, model_of, observations_of

from litotes.core.values import Task
from litotes.encoder import pretrained
from litotes.encoder.walk import TextAttention
from litotes.explanation.attribution import METHODS, Question, by_weight
from litotes.explanation.inside import IntegratedGradients, blank_words, embed, roll_out
from litotes.explanation.observation import observe
from litotes.model.calibration import Calibration
from litotes.model.checkpoint import Model
from litotes.model.heads import HEADS
from litotes.prediction.predictor import Predictor

SARCASM = Task("sarcasm", ("literal", "sarcastic"))
STARS = Task("stars", ())
MOOD = Task("mood", ("bad", "fair", "good"))
LONG = "it is not the tea, " * 16  # 96 pieces are all the tiny encoder reads

every_method = pytest.mark.parametrize("name", sorted(METHODS))


def question_of(
    model: Model, text: str = TEXTS[0], pair: str | None = None, task: str | None = None
) -> Question:
    (read,) = model.tokenizer.read([text], [pair])
    (observation,) = observe(model, [read])
    tasks = model.classifier.tasks
    return Question.about(model, observation, tasks[task] if task else next(iter(tasks.values())))


def assert_sound(name: str, question: Question) -> None:
    weighed = METHODS[name]().weigh(question)
    assert len(weighed.weights) == len(question.read.words)
    assert all(math.isfinite(weight) for weight in (*weighed.weights, *weighed.error.values()))
    assert sorted(by_weight(weighed.weights)) == list(range(len(weighed.weights)))
    assert METHODS[name].is_signed or min(weighed.weights) >= 0


@pytest.fixture(scope="module")
def alone(model: Model) -> dict[str, Question]:
    """What is asked about each text, observed by itself."""
    return {text: question_of(model, text) for text in (*TEXTS, LONG)}


@pytest.mark.slow
@every_method
def test_a_weight_for_every_word(name: str, alone: dict[str, Question]) -> None:
    for question in alone.values():
        assert_sound(name, question)


@pytest.mark.slow
@every_method
@pytest.mark.parametrize("head", sorted(HEADS))
def test_every_head_can_be_explained(name: str, head: str, tiny: pretrained.Pretrained) -> None:
    tasks = (SARCASM, STARS, MOOD) if head == "crosstalk" else (MOOD,)
    for choices in (
        {},
        {"pruning": "cascade", "pruning_options": {"schedule": [0.6, 0.3], "fuse": True}},
    ):
        assert_sound(
            name, question_of(model_of(tiny, *tasks, head=head, **choices), TEXTS[2], task="mood")
        )


@every_method
def test_pairs_and_numbers_can_be_explained(name: str, tiny: pretrained.Pretrained) -> None:
    question = question_of(model_of(tiny, STARS), TEXTS[0], pair="the queue is not bad")
    assert {word.is_pair for word in question.read.words} == {False, True}
    assert_sound(name, question)
    weights = METHODS[name]().weigh(question).weights
    assert all(
        any(
            w
            for word, w in zip(question.read.words, weights, strict=True)
            if word.is_pair == is_pair
        )
        for is_pair in (False, True)
    )


def test_a_head_of_first_pieces_is_explained_by_what_first_pieces_ask(
    tiny: pretrained.Pretrained,
) -> None:
    question = question_of(model_of(tiny, head="linear"))
    row = question.observation.layers[-1].weights.mean(0)[0]
    weights = METHODS["standard"]().weigh(question).weights
    assert weights == pytest.approx(
        [float(row[list(word.pieces)].sum()) for word in question.read.words], abs=1e-6
    )
    effective = question.observation.effective[-1].maps.abs().mean(0)[0]
    found = METHODS["effective"]().weigh(question).weights
    assert found == pytest.approx(
        [float(effective[list(word.pieces)].sum()) for word in question.read.words], abs=1e-6
    )


@pytest.mark.parametrize("head", ["mean", "linear", "bilstm"])
def test_integrated_gradients_are_complete(head: str, tiny: pretrained.Pretrained) -> None:
    question = question_of(model_of(tiny, MOOD, head=head), TEXTS[2])
    weighed = IntegratedGradients().weigh(question)
    full, empty = question.scores([question.read.pieces, blank_words(question)]).tolist()
    assert abs(full - empty) > 0.01
    assert weighed.error["answer_less_baseline"] == pytest.approx(full - empty, abs=1e-4)
    assert sum(weighed.weights) == pytest.approx(
        full - empty + weighed.error["completeness_delta"], abs=1e-4
    )
    assert abs(weighed.error["completeness_delta"]) < 0.02 * abs(full - empty)


def test_fewer_steps_own_up_to_a_larger_error(dense: Model) -> None:
    question = question_of(dense, TEXTS[2])
    rough, fine = (IntegratedGradients(n_steps=n).weigh(question) for n in (1, 48))
    assert abs(rough.error["completeness_delta"]) > 20 * abs(fine.error["completeness_delta"])
    missed = sum(rough.weights) - sum(fine.weights)
    assert rough.error["completeness_delta"] - fine.error["completeness_delta"] == pytest.approx(
        missed, abs=1e-5
    )


@pytest.mark.parametrize("head", ["mean", "linear", "crosstalk"])
def test_gradients_equal_captum(head: str, tiny: pretrained.Pretrained) -> None:
    model = model_of(tiny, *((MOOD, SARCASM) if head == "crosstalk" else (MOOD,)), head=head)
    question = question_of(model, TEXTS[2], task="mood")
    hidden, layout = embed(question, question.read.pieces)
    blank, _ = embed(question, blank_words(question))

    # captum wants (text, piece, width), one row for every step
    def score(rows: torch.Tensor) -> torch.Tensor:
        many = replace(layout, lengths=layout.lengths * len(rows))
        return question.score(model.classifier.from_layer(rows.flatten(0, 1), many, 0)["mood"])

    expected = {
        "integrated_gradients": (
            attr.IntegratedGradients(score, multiply_by_inputs=True).attribute(
                hidden[None], baselines=blank[None], n_steps=32, method="gausslegendre"
            )
        ),
        "gradient_input": attr.InputXGradient(score).attribute(hidden[None].requires_grad_()),
    }
    for method, by_piece in expected.items():
        values = by_piece[0].detach().sum(-1)
        wanted = [float(values[list(word.pieces)].sum()) for word in question.read.words]
        assert METHODS[method]().weigh(question).weights == pytest.approx(wanted, abs=1e-4)


def test_occlusion_equals_asking_again(tiny: pretrained.Pretrained) -> None:
    """In log odds of what `predict` says; these words are words of the tokenizer, so that a text
    without one can be written down.
    """
    model = replace(model_of(tiny), calibration={"sentiment": Calibration(2.5, None, 9)})
    text = "the tea is not great"
    predictor = Predictor(model, device="cpu")
    whole = predictor.predict([text])[0].answers["sentiment"]

    def log_odds(other: str) -> float:
        answer = predictor.predict([other])[0].answers["sentiment"]
        assert answer.probability is not None
        p = answer.probability if answer.label == whole.label else 1 - answer.probability
        return math.log(p / (1 - p))

    words = text.split()
    expected = [
        log_odds(text) - log_odds(" ".join(words[:place] + words[place + 1 :]))
        for place in range(len(words))
    ]
    assert METHODS["occlusion"]().weigh(question_of(model, text)).weights == pytest.approx(
        expected, abs=1e-5
    )


def test_value_norm_equals_the_vectors_moved(tiny: pretrained.Pretrained) -> None:
    """With one attention head, what a key moves to a query is one vector: its length is counted."""
    model = model_of(tiny, heads_kept=[[1], [2]])
    question = question_of(model)
    view, attention = question.observation.layers[-1], model.classifier.encoder.attentions[-1]
    with torch.no_grad():
        # (key,)
        moved = (
            (view.weights[0][:, :, None] * (view.value[0] @ attention.output.weight.T))
            .norm(dim=-1)
            .mean(0)
        )
    expected = [float(moved[list(word.pieces)].sum()) for word in question.read.words]
    assert METHODS["value_norm"]().weigh(question).weights == pytest.approx(expected, abs=1e-5)


def view_of(
    weights: list[list[float]], origin: list[int], stayed: list[int], layer: int = 0
) -> TextAttention:
    nothing = torch.zeros(1, len(origin), 2)
    return TextAttention(
        layer,
        (0,),
        torch.tensor([weights], dtype=torch.float32),
        nothing,
        nothing,
        torch.tensor(origin),
        torch.tensor(stayed),
    )


def test_rollout_by_hand() -> None:
    # what 1 gathers before it leaves is not in the state it left in
    first = view_of([[0, 1, 0], [0, 0, 1], [1, 0, 0]], [0, 1, 2], [0, 2])
    second = view_of([[0, 1], [0, 1]], [0, 2], [0, 2], 1)
    rows = [[0.5, 0.5, 0], [0.5, 0, 0.5]]  # after the first layer, those of 0 and 2
    mixed = [[(a + b) / 2 for a, b in zip(*rows, strict=True)], rows[1]]
    np.testing.assert_allclose(roll_out((first, second), 3, restore=False), mixed)
    np.testing.assert_allclose(roll_out((first, second), 3, restore=True), [*mixed, [0, 1, 0]])


def test_rollout_of_a_fused_piece_is_the_mean_of_those_it_stands_for() -> None:
    first = view_of([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [0, 1, 2], [0, -1])
    second = view_of([[0, 1], [0, 1]], [0, -1], [0, -1], 1)
    np.testing.assert_allclose(
        roll_out((first, second), 3, restore=False), [[0.5, 0.25, 0.25], [0, 0.5, 0.5]]
    )


def test_rows_of_a_rollout_add_up_to_one(model: Model) -> None:
    for observation in observations_of(model):
        for restore in (False, True):
            rows = roll_out(observation.layers, len(observation.read.written), restore=restore)
            torch.testing.assert_close(rows.sum(-1), torch.ones(len(rows)).double())
        if model.classifier.encoder.pruning.restore:
            assert len(rows) == len(observation.read.written)


def test_what_is_asked_follows_the_threshold(dense: Model) -> None:
    """A model that says yes from a low probability on is asked why it says yes."""
    question = question_of(dense)
    (log_odds,) = replace(question, label=1).scores([question.read.pieces])
    yes = 1 / (1 + math.exp(-log_odds))
    assert question.label == int(yes >= 0.5)
    threshold = (1 + yes) / 2 if question.label == 1 else yes / 2
    assert (
        question_of(replace(dense, calibration={"sentiment": Calibration(1.0, threshold, 9)})).label
        == 1 - question.label
    )


def test_padding_is_the_baseline_of_words_alone(dense: Model) -> None:
    question = question_of(dense, "queueing", pair="tea")
    written, ids = question.read.written, blank_words(question).ids
    kept = [
        piece
        for piece, now, before in zip(written, ids, question.read.pieces.ids, strict=True)
        if now == before
    ]
    assert kept == ["[CLS]", "[SEP]", "[SEP]"]
    assert set(ids) - set(question.read.pieces.ids) == {dense.classifier.encoder.spec.padding_piece}


def test_three_labels_are_asked_for_by_their_log_odds(tiny: pretrained.Pretrained) -> None:
    model = model_of(tiny, MOOD)
    for label in range(3):
        question = replace(question_of(model), label=label)
        logits = torch.tensor([[0.3, -1.2, 2.0], [1.0, 1.0, 1.0]])
        p = logits.softmax(-1)[:, label]
        torch.testing.assert_close(question.score(logits), (p / (1 - p)).log())


@every_method
def test_weights_of_words_are_the_sums_of_their_pieces(name: str, dense: Model) -> None:
    """The attention methods share out at most 1: words and special pieces have all of it."""
    if name not in ("standard", "rollout"):
        return
    question = question_of(dense, "queueing teas")
    assert max(len(word.pieces) for word in question.read.words) > 1
    weights = METHODS[name]().weigh(question).weights
    if name == "standard":
        received = question.observation.layers[-1].weights.mean((0, 1))
        assert weights == pytest.approx(
            [float(received[list(word.pieces)].sum()) for word in question.read.words], abs=1e-6
        )
    assert 0 < sum(weights) < 1
