"""The page of one explanation: complete, harmless, self-contained, readable without its script."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from made_explanations import PRUNED, TEXT, explained, explanation_of, left_after

from litotes.core.text import harmless
from litotes.core.values import Answer
from litotes.encoder.pretrained import Pretrained
from litotes.explanation.explanation import Explanation
from litotes.explanation.page import why_html

VOID = {"meta", "input", "br", "link", "img", "hr"}
NASTY = (
    "</script><script>alert(1)</script> <img src=x onerror=alert(2)> \u202elive\u202c & \x07 tea 😂"
    " مرحبا"
)


class Reader(HTMLParser):
    """Every element must be closed where it was opened; what was read is kept."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.contents: dict[str, str] = {}
        self.said = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        inside = self.open[-1] if self.open else ""
        if inside in ("script", "style"):
            self.contents[self.elements[-1][1].get("id") or inside] = data
        else:
            self.said += data


def read_page(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


@pytest.fixture
def explanation(tiny: Pretrained) -> Explanation:
    return explained(tiny)


@pytest.mark.parametrize("choices", [{}, PRUNED])
@pytest.mark.parametrize("pair", [None, "a  pair\nof lines"])
def test_well_formed_and_nothing_from_outside(
    tiny: Pretrained, choices: dict[str, object], pair: str | None
) -> None:
    reader = read_page(why_html(explained(tiny, pair=pair, **choices)))
    for _, attributes in reader.elements:
        assert not attributes.keys() & {"src", "href", "style", "srcset", "action"}
        assert not [name for name in attributes if name.startswith("on")]
    ids = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert "@import" not in reader.contents["style"]
    assert "url(" not in reader.contents["style"]


def test_policy_allows_its_own_script_and_style_alone(explanation: Explanation) -> None:
    reader = read_page(why_html(explanation))
    policy = next(
        a["content"] or ""
        for _, a in reader.elements
        if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for kind in ("script", "style"):
        digest = b64encode(sha256(reader.contents[kind].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    run = [
        a
        for tag, a in reader.elements
        if tag == "script" and a.get("type") not in ("application/json", "text/plain")
    ]
    assert len(run) == 1


def test_texts_never_become_markup(tiny: Pretrained) -> None:
    page = why_html(explained(tiny, NASTY, pair=NASTY))
    reader = read_page(page)
    assert "img" not in {tag for tag, _ in reader.elements}
    assert "<script>alert" not in page
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x07]", page)
    assert reader.said.count(harmless(NASTY)) == 2  # text and pair
    assert "runs/mine <b>" in reader.said
    assert json.loads(reader.contents["facts"])["words"][1]["written"] == "/"


def test_readable_without_the_script(explanation: Explanation) -> None:
    page = why_html(explanation)
    reader = read_page(page)
    assert "sarcastic, 87 % sure" in reader.said
    assert "sentiment: negative, 70 % sure" in reader.said
    assert TEXT in reader.said  # blanks and all
    shaded = [a["class"] for tag, a in reader.elements if tag == "span" and "data-word" in a]
    assert "word for s8" in shaded or "word against s8" in shaded
    weights = explanation.shadings["integrated_gradients"].weights
    strongest = max(range(len(weights)), key=lambda word: abs(weights[word]))
    assert shaded[strongest] == f"word {'for' if weights[strongest] > 0 else 'against'} s8"
    assert f"{weights[3]:.3g}" in reader.said
    assert f"sees all {len(explanation.read.written)} pieces" in reader.said


def test_the_grid_says_where_each_word_left(tiny: Pretrained) -> None:
    explanation = explained(tiny, **PRUNED)
    assert any(left is not None for left in explanation.left_at_layer)
    page = why_html(explanation)
    rows = re.findall(
        r'<tr><th scope="row" dir="auto">([^<]*)</th>((?:<td'
        r' class="\w+">.</td>)+)<td>(\d*)</td></tr>',
        page,
    )
    assert [row[2] for row in rows] == [
        "" if left is None else str(left + 1) for left in explanation.left_at_layer
    ]
    for (_, cells, _), word in zip(rows, explanation.read.words, strict=True):
        signs = re.findall(r">(.)</td>", cells)
        lefts = [explanation.trace.left_after[piece] for piece in word.pieces]
        n_seen = [sum(left is None or left >= layer for left in lefts) for layer in range(4)]
        assert signs == ["■" if n == len(lefts) else "◧" if n else "·" for n in n_seen]


def test_layers_that_see_no_word_are_not_offered(tiny: Pretrained) -> None:
    explanation = left_after(explained(tiny, "great tea, bad", **PRUNED), 0, 0, 1, 1)
    page = why_html(explanation)
    reader = read_page(page)
    assert "<option>1</option><option selected>2</option></select>" in page
    assert "Layers 3 to 4 see no word any more" in reader.said
    assert len(json.loads(reader.contents["facts"])["layers"]) == 2
    assert 'max="4" value="2"' in page  # the words that left: of all layers, from the one shown
    assert "no word any more" not in why_html(explained(tiny))


def test_a_method_that_weighs_no_word_says_so(explanation: Explanation) -> None:
    assert "no word has any weight" not in why_html(explanation)
    rollout = explanation.shadings["rollout"]
    nothing = replace(rollout, weights=(0.0,) * len(rollout.weights))
    shadings = {**explanation.shadings, "rollout": nothing}
    assert why_html(replace(explanation, shadings=shadings)).count("no word has any weight") == 1


def test_a_regression_shows_its_number(explanation: Explanation) -> None:
    answers = {"intimacy": Answer(2.41, None)}
    number = explanation_of(
        explanation.read, explanation.layers, explanation.trace, answers=answers
    )
    said = read_page(why_html(number)).said
    assert "2.41" in said
    assert "answered with a number" in said
    assert "% sure" not in said


def test_a_cut_text_says_so(tiny: Pretrained) -> None:
    text = "the tea " * 60 + "unread"
    page = why_html(explained(tiny, text))
    assert "longer than the model can read" in page
    assert re.search(r'<i class="unread">[^<]*unread</i>', page)
    assert "more characters" not in page
    assert "and 900 more characters</i>" in why_html(explained(tiny, "tea " * 94 + "x" * 1199))


def test_a_label_that_a_threshold_chose_is_told(explanation: Explanation) -> None:
    assert "threshold" not in why_html(explanation)
    chosen = replace(explanation, answers={"sarcasm": Answer("not sarcastic", 0.134)})
    assert "threshold" in why_html(chosen)


def test_untested_methods_are_shown_as_such(explanation: Explanation) -> None:
    shadings = {
        name: replace(shading, faithfulness=None) for name, shading in explanation.shadings.items()
    }
    assert "was not tested on this text" in why_html(replace(explanation, shadings=shadings))
    one = shadings | {"rollout": explanation.shadings["rollout"]}
    said = read_page(why_html(replace(explanation, shadings=one))).said
    assert "Only rollout was tested" in said
    assert said.count("not tested") == 2
