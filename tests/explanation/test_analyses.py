"""The contract of every analysis: order and batch mates do not matter, pruned texts are borne, JSON
holds the result.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pytest
import torch
from markupsafe import escape
from tiny_models import KINDS, TEXTS, model_of, observations_of

from litotes.encoder.encoder import Encoder
from litotes.encoder.pretrained import Pretrained
from litotes.explanation.analyses import ANALYSES
from litotes.explanation.analyses.analysis import Result
from litotes.explanation.analyses.analyze import CorpusAnalysis, report_html
from litotes.explanation.observation import Observation, observe
from litotes.model.checkpoint import Model


def base_of(model: Model) -> Encoder:
    """Another random encoder of the same size, with nothing taken away."""
    torch.manual_seed(1)
    plain = replace(
        model.classifier.encoder.spec, pruning="none", pruning_options={}, heads_kept=()
    )
    return Encoder(plain).eval()


def result_of(name: str, model: Model, observations: list[Observation]) -> Result:
    measure = ANALYSES[name](model)
    for observation in observations:
        measure.add(observation)
    return measure.result()


@dataclass(frozen=True)
class Observed:
    """A model and what it did with the texts, for all analyses, as `analyze` shares it."""

    model: Model
    results: dict[str, Result] = field(default_factory=dict)

    @cached_property
    def base(self) -> Encoder:
        return base_of(self.model)

    @cached_property
    def together(self) -> list[Observation]:
        return observations_of(self.model, base=self.base)

    @cached_property
    def alone(self) -> list[Observation]:
        """Each text in a batch of its own, in the other order."""
        read = [self.model.tokenizer.read([text]) for text in reversed(TEXTS)]
        return [observe(self.model, one, base=self.base)[0] for one in read]

    def result(self, name: str) -> Result:
        """Of the texts together; computed once."""
        if name not in self.results:
            self.results[name] = result_of(name, self.model, self.together)
        return self.results[name]


@pytest.fixture(scope="module", params=sorted(KINDS))
def observed(request: pytest.FixtureRequest, shared_tiny: Pretrained) -> Observed:
    return Observed(model_of(shared_tiny, **KINDS[request.param]))


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


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ANALYSES))
def test_order_and_batch_mates_do_not_matter(name: str, observed: Observed) -> None:
    alone = result_of(name, observed.model, observed.alone)
    assert_same(plain(observed.result(name)), plain(alone))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ANALYSES))
def test_a_result_is_json_and_says_something(name: str, observed: Observed) -> None:
    result = observed.result(name)
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
    first = " ".join((ANALYSES[name].__doc__ or "").split("\n\n")[0].split())
    assert first.endswith(".")
    assert len(first) < 120


@pytest.mark.parametrize("kind", ["dense", "cascade"])
def test_a_report_asks_shows_says_and_doubts(kind: str, shared_tiny: Pretrained) -> None:
    """Whatever the analysis: strict templates refuse a name that is not there."""
    observed = Observed(model_of(shared_tiny, **KINDS[kind]))
    results = {name: observed.result(name) for name in ANALYSES}
    page = report_html(CorpusAnalysis("m", "d", len(TEXTS), 0, 0, results, {}, {}, 0), {})
    _, *sections = page.split('<h2 id="part-')
    assert len(sections) == len(ANALYSES) + 2  # how it was measured, what it cannot say
    for section, result in zip(sections, results.values(), strict=False):
        assert len(re.findall(r'<p class="asked">[^<]{200,}', section)) >= 1
        believed = section[section.index("How far to believe it") : section.index("<details>")]
        assert believed.count("<li>") >= 2
        assert "<td>" in section
        assert all(escape(finding) in section for finding in result.findings())
        assert set(result.highlights()) <= set(result.findings())
        assert not {"nan", "None"} & set(re.sub("<[^>]*>", " ", section).split())


@pytest.mark.slow
def test_importing_the_analyses_does_not_import_matplotlib() -> None:
    code = "import sys, litotes.explanation.analyses.analyze; print('matplotlib' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
