"""Which method to believe: a row for each, with how faithful it was on this text."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from litotes.core.harmless import markup
from litotes.core.numbers import format_signed
from litotes.explain.explanation import Curve, Explanation, Faithfulness, Shading
from litotes.explain.page.words import method_name

_WIDTH, _HEIGHT = 96, 34


def methods_html(explanation: Explanation) -> str:
    """A choice of methods as a table, and a sentence on which one the model itself bears out most."""
    limits = _limits(explanation)
    rows = "".join(
        _row(name, shading, name == explanation.method, limits)
        for name, shading in explanation.shadings.items()
    )
    tested = {
        name: shading.faithfulness
        for name, shading in explanation.shadings.items()
        if shading.faithfulness is not None
    }
    if not tested:
        head = '<th scope="col">method</th>'
        legend = (
            '<p class="note">Whether the words a method points at are those the model needs was not'
            " tested on this text.</p>"
        )
    else:
        head = "".join(
            f'<th scope="col">{name}</th>'
            for name in (
                "method",
                "falls without<br>its words",
                "falls with its<br>words alone",
                "as words go",
            )
        )
        legend = f"<p>{markup(_verdict(tested))}</p>{_HOW_TO_READ}"
    return (
        f'{legend}<table class="methods"><caption class="hidden">Methods and how faithful they'
        f" were</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
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
    notes = "".join(f"<small>{markup(note)}</small>" for note in (signed, error) if note)
    chosen = " checked" if is_chosen else ""
    choice = (
        f'<label><input type="radio" name="method" value="{escape(name)}"{chosen}>'
        f" <bdi>{markup(method_name(name))}</bdi>{notes}</label>"
    )
    cells = ""
    if (found := shading.faithfulness) is not None:
        cells = f"<td>{_signed(found.comprehensiveness)}</td><td>{_signed(found.sufficiency_loss)}</td><td>{_curves(found, limits)}</td>"
    elif limits[1] > limits[0]:
        cells = '<td colspan="3">not tested</td>'
    row = ' class="chosen"' if is_chosen else ""
    return f'<tr{row}><th scope="row">{choice}</th>{cells}</tr>'


def _limits(explanation: Explanation) -> tuple[float, float]:
    """Of the curves' scale: probabilities share 0 to 1, a regression's values their own range;
    equal where there are none.
    """
    curves = [
        curve
        for shading in explanation.shadings.values()
        if shading.faithfulness is not None
        for curve in (shading.faithfulness.deletion, shading.faithfulness.sufficiency)
    ]
    values = [value for curve in curves for value in curve.values]
    if not values:
        return 0.0, 0.0
    if explanation.answer.probability is not None:
        return 0.0, 1.0
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 1, high + 1)


def _curves(found: Faithfulness, limits: tuple[float, float]) -> str:
    lines = _line(found.deletion, limits, "deletion") + _line(
        found.sufficiency, limits, "sufficiency"
    )
    box = f'viewBox="-2 -2 {_WIDTH + 4} {_HEIGHT + 4}" preserveAspectRatio="none"'
    return f'<svg class="curve" {box} role="img" aria-label="{markup(_told(found))}">{lines}</svg>'


def _line(curve: Curve, limits: tuple[float, float], kind: str) -> str:
    low, high = limits
    points = " ".join(
        f"{_WIDTH * share:.1f},{_HEIGHT * (1 - (value - low) / (high - low)):.1f}"
        for share, value in zip(curve.shares, curve.values, strict=True)
    )
    return f'<polyline class="{kind}" points="{points}"/>'


def _told(found: Faithfulness) -> str:
    ends = [
        f"{curve.values[0]:.2f} to {curve.values[-1]:.2f}"
        for curve in (found.deletion, found.sufficiency)
        if curve.values
    ]
    return (
        "the answer from " + " as words go, and from ".join(ends) + " as words come back"
        if len(ends) == 2
        else "no curve"
    )


def _signed(value: float) -> str:
    return format_signed(value, 2, minus="−", plus="")
