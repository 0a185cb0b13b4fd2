"""Which method to believe: a row for each, with how faithful it was on this text."""

from __future__ import annotations

from collections.abc import Mapping

from litotes.core.numbers import format_signed
from litotes.core.text import markup
from litotes.explanation.explanation import Curve, Explanation, Faithfulness, Shading
from litotes.explanation.page.words import method_name

_WIDTH, _HEIGHT = 96, 34


def methods_html(explanation: Explanation) -> str:
    """A choice of methods as a table, and a sentence on the one this text bears out most."""
    limits = _limits(explanation)
    rows = ""
    tested = {}
    for name, shading in explanation.shadings.items():
        rows += _row(name, shading, name == explanation.method, limits)
        if shading.faithfulness is not None:
            tested[name] = shading.faithfulness
    head = "".join(f'<th scope="col">{column}</th>' for column in _COLUMNS[: None if tested else 1])
    legend = f"<p>{markup(_verdict(tested))}</p>{_HOW_TO_READ}" if tested else _NOT_TESTED
    return (
        f'{legend}<table class="methods"><caption class="hidden">Methods and how faithful they'
        f" were</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )


_COLUMNS = ("method", "falls without<br>its words", "falls with its<br>words alone", "as words go")

_NOT_TESTED = (
    '<p class="note">Whether the words a method points at are those the model needs was not'
    " tested on this text.</p>"
)


_HOW_TO_READ = (
    '<p class="note">The model was asked again without the words a method finds most important'
    " (comprehensiveness: the answer should fall far) and with those words alone (sufficiency loss:"
    " it should hardly fall). In the small curves, solid is the answer as the most important words"
    " are taken away, dashed as they alone come back; more words go to the right.</p>"
)


def _verdict(tested: Mapping[str, Faithfulness]) -> str:
    """Who is best by either measure; a text is not a corpus, and the sentence says so."""
    fallen = max(tested, key=lambda name: tested[name].comprehensiveness)
    alone = min(tested, key=lambda name: tested[name].sufficiency_loss)
    if len(tested) == 1:
        return f"Only {method_name(fallen)} was tested on this text."
    if fallen == alone:
        return f"On this text {method_name(fallen)} deserves most belief by both tests."
    return (
        f"On this text the answer falls furthest without the words of {method_name(fallen)}, and"
        f" holds best with those of {method_name(alone)} alone: the tests do not agree on one"
        " method."
    )


def _row(name: str, shading: Shading, is_chosen: bool, limits: tuple[float, float]) -> str:
    error = "; ".join(f"{method_name(what)} {value:.3g}" for what, value in shading.error.items())
    signed = "for and against" if shading.is_signed else ""
    nothing = "" if any(shading.weights) else "no word has any weight"
    notes = "".join(f"<small>{markup(note)}</small>" for note in (signed, error, nothing) if note)
    checked = " checked" if is_chosen else ""
    choice = (
        f'<label><input type="radio" name="method" value="{markup(name)}"{checked}>'
        f" <bdi>{markup(method_name(name))}</bdi>{notes}</label>"
    )
    chosen = ' class="chosen"' if is_chosen else ""
    cells = _test_cells(shading.faithfulness, limits)
    return f'<tr{chosen}><th scope="row">{choice}</th>{cells}</tr>'


def _test_cells(found: Faithfulness | None, limits: tuple[float, float]) -> str:
    if found is not None:
        fall, loss = _signed(found.comprehensiveness), _signed(found.sufficiency_loss)
        return f"<td>{fall}</td><td>{loss}</td><td>{_curves(found, limits)}</td>"
    has_curves = limits[1] > limits[0]
    return '<td colspan="3">not tested</td>' if has_curves else ""


def _limits(explanation: Explanation) -> tuple[float, float]:
    """Of the curves' scale: probabilities share 0 to 1, a regression's values their own range;
    equal where there are none.
    """
    values: list[float] = []
    for shading in explanation.shadings.values():
        if shading.faithfulness is not None:
            values += shading.faithfulness.deletion.values
            values += shading.faithfulness.sufficiency.values
    if not values:
        return 0.0, 0.0
    if explanation.answer.probability is not None:
        return 0.0, 1.0
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 1, high + 1)


def _curves(found: Faithfulness, limits: tuple[float, float]) -> str:
    lines = _line(found.deletion, limits, "deletion")
    lines += _line(found.sufficiency, limits, "sufficiency")
    box = f'viewBox="-2 -2 {_WIDTH + 4} {_HEIGHT + 4}" preserveAspectRatio="none"'
    label = markup(_describe_curves(found))
    return f'<svg class="curve" {box} role="img" aria-label="{label}">{lines}</svg>'


def _line(curve: Curve, limits: tuple[float, float], kind: str) -> str:
    low, high = limits
    points = []
    for share, value in zip(curve.shares, curve.values, strict=True):
        height = _HEIGHT * (1 - (value - low) / (high - low))
        points.append(f"{_WIDTH * share:.1f},{height:.1f}")
    return f'<polyline class="{kind}" points="{" ".join(points)}"/>'


def _describe_curves(found: Faithfulness) -> str:
    going, coming = found.deletion.values, found.sufficiency.values
    if not going or not coming:
        return "no curve"
    return (
        f"the answer from {going[0]:.2f} to {going[-1]:.2f} as words go, and from"
        f" {coming[0]:.2f} to {coming[-1]:.2f} as words come back"
    )


def _signed(value: float) -> str:
    return format_signed(value, 2, minus="−", plus="")
