"""The contract of every analysis: order and batch mates do not matter, pruned texts are borne, JSON
holds the result.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from tiny_models import TEXTS, observations_of

from litotes.encoders.encoder import Encoder
from litotes.explain.observation import Observation, observe
from litotes.inside import ANALYSES
from litotes.inside.analysis import Result
from litotes.model.checkpoint import Model


def base_of(model: Model) -> Encoder:
    """Another random encoder of the same size, with nothing taken away."""
    torch.manual_seed(1)
    from dataclasses import replace

    plain = replace(
        model.classifier.encoder.spec, pruning="none", pruning_options={}, heads_kept=()
    )
    return Encoder(plain).eval()


def result_of(name: str, model: Model, observations: list[Observation]) -> Result:
    analysis = ANALYSES[name](model)
    for observation in observations:
        analysis.add(observation)
    return analysis.result()


def assert_same(one: Any, other: Any) -> None:
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            assert_same(left, right)
    elif isinstance(one, float):
        assert one == pytest.approx(other, abs=1e-5)
    else:
        assert one == other


def plain(result: Result) -> Any:
    return json.loads(json.dumps(result.as_json(), allow_nan=False))


@pytest.mark.parametrize("name", sorted(ANALYSES))
def test_order_and_batch_mates_do_not_matter(name: str, model: Model) -> None:
    base = base_of(model)
    together = observations_of(model, base=base)
    alone = [observe(model, model.tokenizer.read([text]), base=base)[0] for text in TEXTS]
    assert_same(plain(result_of(name, model, together)), plain(result_of(name, model, alone[::-1])))


@pytest.mark.parametrize("name", sorted(ANALYSES))
def test_a_result_is_json_and_says_something(name: str, model: Model) -> None:
    result = result_of(name, model, observations_of(model, base=base_of(model)))
    content = plain(result)
    assert content["n_texts"] == len(TEXTS)
    assert result.findings()
    assert all(
        finding.endswith((".", "?")) and "nan" not in finding and "None" not in finding
        for finding in result.findings()
    )


@pytest.mark.parametrize("name", sorted(ANALYSES))
def test_one_text_of_one_piece_is_enough(name: str, dense: Model) -> None:
    observations = observe(dense, dense.tokenizer.read(["a"]), base=base_of(dense))
    assert plain(result_of(name, dense, observations))["n_texts"] == 1


@pytest.mark.parametrize("name", sorted(ANALYSES))
def test_an_analysis_says_in_a_line_what_it_is(name: str) -> None:
    first = (ANALYSES[name].__doc__ or "").splitlines()[0]
    assert first.endswith(".")
    assert len(first) < 120
