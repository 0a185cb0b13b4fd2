"""The third part of the page: which words left at which layer of a pruned model, as a stepper and
as a grid that prints.
"""

from __future__ import annotations

from collections.abc import Sequence

from litotes.core.harmless import markup
from litotes.explain.explanation import Explanation
from litotes.explain.page.words import text_html
from litotes.explain.trace import Trace

_N_ROWS = 25
"""Words of one grid; longer texts get several side by side, so that a page of paper holds a few
hundred words.
"""


def departures_html(explanation: Explanation) -> str:
    """One sentence where nothing leaves."""
    trace = explanation.trace
    n_layers = len(trace.heads)
    if all(left is None for left in trace.left_after):
        heads = _layers_table(trace) if len(set(trace.heads)) > 1 else ""
        return (
            f"<p>No word leaves: each of the {n_layers} layers sees all {len(trace.written)}"
            f" pieces.</p>{heads}"
        )
    seen = n_there(trace, n_layers - 1)
    text = text_html(explanation.read, [""] * len(explanation.read.words), name="fading-text")
    stepper = (
        f'<div class="live"><label>Layer <input type="range" id="step" min="1" max="{n_layers}"'
        f' value="{n_layers}"></label> <output id="step-said" for="step"></output>{text}</div>'
    )
    return (
        f"<p>Of {len(trace.written)} pieces the last layer sees {seen}.{_specials(explanation)}"
        f" What has left does not come back.</p>{stepper}{_layers_table(trace)}{_grid(explanation)}"
    )


def n_there(trace: Trace, layer: int) -> int:
    return len(trace.there(layer))


def _specials(explanation: Explanation) -> str:
    """Pieces like [SEP] belong to no word; where they left is told apart."""
    words = explanation.read.word_of()
    lefts = [
        f"{piece} after layer {left + 1}"
        for piece, left, word in zip(
            explanation.trace.written, explanation.trace.left_after, words, strict=True
        )
        if word is None and left is not None
    ]
    return (
        f" Of those that belong to no word there left {markup(', '.join(lefts))}." if lefts else ""
    )


def _layers_table(trace: Trace) -> str:
    layers = range(len(trace.heads))
    pieces = "".join(f"<td>{n_there(trace, layer)}</td>" for layer in layers)
    heads = "".join(f"<td>{len(trace.heads[layer])}</td>" for layer in layers)
    head = f'<thead><tr><th scope="col">layer</th>{_numbers(len(layers))}</tr></thead>'
    seen = f'<tr><th scope="row">pieces it sees</th>{pieces}</tr>'
    used = f'<tr><th scope="row">attention heads it uses</th>{heads}</tr>'
    return (
        '<div class="scroll"><table class="numbers'
        f' layers">{head}<tbody>{seen}{used}</tbody></table></div>'
    )


def _grid(explanation: Explanation) -> str:
    """Words × layers: a full square where a layer sees the whole word, half a square where it sees
    some of its pieces.
    """
    rows = [_grid_row(explanation, number) for number in range(len(explanation.read.words))]
    n_layers = len(explanation.trace.heads)
    tables = "".join(
        _grid_table(rows[start : start + _N_ROWS], n_layers)
        for start in range(0, len(rows), _N_ROWS)
    )
    return (
        '<p class="note">A square: the layer sees the word; half a square: some of its pieces; a'
        " dot: the word is gone. The last column is the layer after which it left.</p><div"
        f' class="grids">{tables}</div>'
    )


def _grid_table(rows: Sequence[str], n_layers: int) -> str:
    head = f'<tr><th scope="col">word</th>{_numbers(n_layers)}<th scope="col">left</th></tr>'
    return f'<table class="grid"><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table>'


def _grid_row(explanation: Explanation, number: int) -> str:
    word = explanation.read.words[number]
    cells = ""
    for row in explanation.trace.seen:
        n_seen = sum(row[piece] for piece in word.pieces)
        look, sign = (
            ("all", "■")
            if n_seen == len(word.pieces)
            else ("some", "◧")
            if n_seen
            else ("none", "·")
        )
        cells += f'<td class="{look}">{sign}</td>'
    left = explanation.left_at_layer[number]
    return (
        '<tr><th scope="row"'
        f' dir="auto">{markup(word.written)}</th>{cells}<td>{"" if left is None else left + 1}</td></tr>'
    )


def _numbers(n_layers: int) -> str:
    return "".join(f'<th scope="col">{layer + 1}</th>' for layer in range(n_layers))
