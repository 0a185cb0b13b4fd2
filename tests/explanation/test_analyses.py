"""What holds for every analysis: order and batch mates do not matter, its result is JSON and says
something, its figure covers nothing, its section of the report asks, shows, says and doubts.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass, field, replace
from functools import cached_property
from html.parser import HTMLParser
from itertools import combinations
from typing import Any

import pytest
import torch
from markupsafe import escape
from matplotlib.figure import Figure
from matplotlib.text import Text
from tiny_models import KINDS, TEXTS, model_of, observations_of

from litotes.core.figures import render_figure
from litotes.core.values import Task
from litotes.encoder.encoder import Encoder
from litotes.encoder.pretrained import Pretrained
from litotes.explanation.analyses import ANALYSES
from litotes.explanation.analyses.analysis import Result
from litotes.explanation.analyses.analyze import CorpusAnalysis, report_html
from litotes.explanation.analyses.drawing import MapGroup, maps_figure
from litotes.explanation.analyses.trace import Traces, WordStay
from litotes.explanation.observation import Observation, observe
from litotes.model.checkpoint import Model

every_analysis = pytest.mark.parametrize("name", sorted(ANALYSES))


def base_of(model: Model) -> Encoder:
    """Another random encoder of the same size, with nothing taken away."""
    torch.manual_seed(1)
    plain = {"pruning": "none", "pruning_options": {}, "heads_kept": ()}
    return Encoder(replace(model.classifier.encoder.spec, **plain)).eval()


def result_of(name: str, model: Model, observations: list[Observation]) -> Any:
    measure = ANALYSES[name](model)
    for observation in observations:
        measure.add(observation)
    return measure.result()


@dataclass(frozen=True)
class Observed:
    """A model and what it did with the texts, for all analyses, as `analyze` shares it."""

    model: Model
    texts: tuple[str, ...] = TEXTS
    results: dict[str, Result] = field(default_factory=dict)

    @cached_property
    def base(self) -> Encoder:
        return base_of(self.model)

    @cached_property
    def together(self) -> list[Observation]:
        return observations_of(self.model, self.texts, base=self.base)

    @cached_property
    def alone(self) -> list[Observation]:
        """Each text in a batch of its own, in the other order."""
        read = [self.model.tokenizer.read([text]) for text in reversed(self.texts)]
        return [observe(self.model, one, base=self.base)[0] for one in read]

    def result(self, name: str) -> Any:
        """Of the texts together; computed once."""
        if name not in self.results:
            self.results[name] = result_of(name, self.model, self.together)
        return self.results[name]


@pytest.fixture(scope="module", params=sorted(KINDS))
def observed(request: pytest.FixtureRequest, shared_tiny: Pretrained) -> Observed:
    return Observed(model_of(shared_tiny, **KINDS[request.param]))


@pytest.fixture(scope="module")
def large(shared_tiny: Pretrained) -> Observed:
    """As many attention heads as a real one has, some of them gone, and odd texts."""
    torch.manual_seed(2)
    sizes = {"n_layers": 4, "n_attention_heads": 16, **KINDS["cascade"]}
    sizes["pruning_options"] = {"schedule": "linear", "final": 0.5, "final_heads": 0.5}
    model = model_of(shared_tiny, Task("mood", ("<i>", "good")), **sizes)
    odd = "love <b> tea & $a$ 😀 a-long-word-without-an-end hate"
    return Observed(model, tuple(f"{odd} {text}" for text in "abcdef"))


def plain(result: Result) -> Any:
    return json.loads(json.dumps(result.as_json(), allow_nan=False))


def parts_of(content: Any) -> dict[tuple[Any, ...], Any]:
    """Every number, word and None by its place."""
    if not isinstance(content, dict | list):
        return {(): content}
    pairs = content.items() if isinstance(content, dict) else enumerate(content)
    parts = ((key, parts_of(one)) for key, one in pairs)
    return {(key, *more): value for key, own in parts for more, value in own.items()}


@pytest.mark.slow
@every_analysis
def test_order_and_batch_mates_do_not_matter(name: str, observed: Observed) -> None:
    alone = result_of(name, observed.model, observed.alone)
    found, expected = (parts_of(plain(one)) for one in (observed.result(name), alone))
    assert found == pytest.approx(expected, abs=1e-5)


@pytest.mark.slow
@every_analysis
def test_a_result_is_json_and_says_something(name: str, observed: Observed) -> None:
    result = observed.result(name)
    assert plain(result)["n_texts"] == len(TEXTS)
    assert result.findings()
    for finding in result.findings():
        assert finding.endswith((".", "?"))
        assert not {"nan", "None"} & set(re.findall(r"\w+", finding))


@every_analysis
def test_one_text_of_one_piece_is_enough(name: str, dense: Model) -> None:
    observations = observe(dense, dense.tokenizer.read(["a"]), base=base_of(dense))
    assert plain(result_of(name, dense, observations))["n_texts"] == 1
    first = " ".join((ANALYSES[name].__doc__ or "").split("\n\n")[0].split())
    assert first.endswith(".")
    assert len(first) < 120


class Nesting(HTMLParser):
    """Every element that is opened is closed where it should be."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in {"meta", "br", "link", "img", "input", "hr"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


OUTSIDE = (
    *("<script", "<link", "@import", 'src="http', "url(http", "<iframe", "javascript:", "<?xml"),
)


@pytest.mark.slow
def test_a_report_is_one_page_in_which_every_analysis_asks_shows_says_and_doubts(
    large: Observed,
) -> None:
    """Strict templates refuse a name that is not there."""
    results = {name: large.result(name) for name in ANALYSES}
    pictures = {name: render_figure(one.figure(), "svg").decode() for name, one in results.items()}
    facts = {"tasks": {"mood": ["<i>", "good"], "score": []}, "base": None, "pruning": "none"}
    left_out = {"<absent>": "needs <something>"}
    found = CorpusAnalysis("<m> & co", "a <corpus>", 1400, 3, 5, results, left_out, facts, 7)
    page = report_html(found, pictures)
    assert Nesting(page).open == []
    assert not [outside for outside in OUTSIDE if outside in page]
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids)) > 20
    assert {*re.findall(r'href="#([^"]+)"', page), *re.findall(r"url\(#([^)]+)\)", page)} <= {*ids}
    for written in ("<m>", "<corpus>", "<absent>", "<something>", "<i>"):
        assert written not in page
    assert len(re.findall(r'<svg[^>]*role="img"[^>]*aria-label="[^"]{40,}"', page)) == len(ANALYSES)
    for said in ("1,400 texts", "seed 7", "3 texts are longer", "5 texts are unreadable"):
        assert said in page
    assert "score (a number)" in page
    _, *sections = page.split('<h2 id="part-')
    assert len(sections) == len(ANALYSES) + 2  # how it was measured, what it cannot say
    for section, result in zip(sections, results.values(), strict=False):
        assert re.search(r'<p class="asked">[^<]{200,}', section)
        believed = section[section.index("How far to believe it") : section.index("<details>")]
        assert believed.count("<li>") >= 2
        assert "<td>" in section
        assert all(escape(finding) in section for finding in result.findings())
        assert set(result.highlights()) <= set(result.findings())
        assert not {"nan", "None"} & set(re.sub("<[^>]*>", " ", section).split())


def texts_of(picture: Figure) -> list[Text]:
    """All that can be read: titles, labels, names and numbers of ticks within the axes, what stands
    in cells.
    """
    found = [text for legend in picture.legends for text in legend.get_texts()]
    for ax in picture.axes:
        found += [ax.title, ax.xaxis.label, ax.yaxis.label, *ax.texts]
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            there = [one for one in axis.get_major_ticks() if low <= one.get_loc() <= high]
            found += [label for one in there for label in (one.label1, one.label2)]
        found += ax.get_legend().get_texts() if ax.get_legend() else []
    return [text for text in found if text.get_text() and text.get_visible()]


@pytest.mark.slow
@every_analysis
def test_nothing_in_a_figure_overlaps(name: str, large: Observed) -> None:
    picture = large.result(name).figure()
    picture.draw_without_rendering()
    assert picture.get_size_inches()[0] < 11
    assert all(ax.has_data() or ax.texts for ax in picture.axes)
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts_of(picture)]
    assert boxes
    for (one, box), (other, other_box) in combinations(boxes, 2):
        assert not box.shrunk(0.97, 0.97).overlaps(other_box), f"{one!r} and {other!r}"


@pytest.mark.parametrize("name", ["patterns", "change", "token_types"])
def test_two_kinds_that_are_the_same_are_drawn_once(name: str, dense: Model) -> None:
    """A text of no more pieces than a head is wide hides nothing."""
    for text, n_kinds in (("the tea is not bad a", 1), (TEXTS[2], 2)):
        result = Observed(dense, (text,) * 2).result(name)
        assert len(result.kinds) == n_kinds
        picture = result.figure()
        picture.draw_without_rendering()
        said = " ".join(text.get_text() for text in picture.findobj(Text)).casefold()
        assert ("effective" in said) is (n_kinds == 2)


def test_words_that_cannot_be_drawn_do_no_harm() -> None:
    words = (WordStay("🫠", 0.2, 5), WordStay("tur\u202en\x00ed", 0.3, 6), WordStay("$x^$", 0.4, 7))
    result = Traces(9, [1.0, 0.5], [0.1, None], [[1.0, None], [0.5, 1.0]], words, words)
    one, other = (render_figure(result.figure(), "svg").decode() for _ in range(2))
    assert one == other
    for written in ("🫠 (n 5)", "tur▯n▯ed (n 6)", "$x^$ (n 7)"):
        assert written in one


def test_what_is_missing_is_hatched_and_what_is_negative_has_a_dash() -> None:
    tables = {"holed": [[0.2, None, 0.3], [-0.1, 0.4, 0.0]]}
    ax, _ = maps_figure([MapGroup(tables, "weight", framed={"holed": [(1, 1)]})]).axes
    assert ax.patch.get_hatch()
    holes = ax.get_images()[0].get_array().mask.tolist()
    assert holes == [[False, True, False], [False, False, False]]
    assert "hatched" in ax.get_xlabel()
    assert [(text.get_text(), text.get_position()) for text in ax.texts] == [("–", (0, 1))]
    assert ax.patches[0].get_xy() == (0.5, 0.5)
    # counted from one
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "2", "3"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["1", "2"]


@pytest.mark.parametrize(
    ("values", "ends", "limits"),
    [
        ((0.31, 0.62), {}, (0.3, 0.7)),
        ((0.5, 0.5), {}, (0.5, 0.6)),
        ((1.0, 1.0), {}, (1.0, 1.1)),
        ((0.3, 1.0), {"high": 1}, (0.3, 1)),
        ((1.0, 1.0), {"high": 1}, (0.9, 1)),
        ((0.99, 1 + 5e-10), {"high": 1}, (0.9, 1)),
        ((0.2, 0.3), {"low": 0, "high": 1}, (0, 1)),
        ((-0.25, 3.2), {"low": 0, "step": 0.5}, (-0.5, 3.5)),
    ],
)
def test_a_scale_holds_its_numbers_and_is_never_empty(
    values: tuple[float, float], ends: dict[str, float], limits: tuple[float, float]
) -> None:
    assert MapGroup({"": [values]}, "", **ends).limits == pytest.approx(limits, abs=1e-12)


@pytest.mark.slow
def test_importing_the_analyses_does_not_import_matplotlib() -> None:
    code = "import sys, litotes.explanation.analyses.analyze; print('matplotlib' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
