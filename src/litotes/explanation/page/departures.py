"""The third part of the page: which words left at which layer of a pruned model, as a stepper and
as a grid that prints.
"""

from __future__ import annotations

from collections.abc import Sequence

from litotes.core.text import markup
from litotes.explanation.explanation import Explanation
from litotes.explanation.page.words import text_html
from litotes.explanation.trace import Trace

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
    n_seen = len(trace.there(n_layers - 1))
    text = text_html(explanation.read, [""] * len(explanation.read.words), name="fading-text")
    stepper = (
        f'<div class="live"><label>Layer <input type="range" id="step" min="1" max="{n_layers}"'
        f' value="{explanation.layer_to_show + 1}"></label>'
        f' <output id="step-said" for="step"></output>{text}</div>'
    )
    return (
        f"<p>Of {len(trace.written)} pieces the last layer sees {n_seen}.{_specials(explanation)}"
        f" What has left does not come back.</p>{stepper}{_layers_table(trace)}{_grid(explanation)}"
    )


def _specials(explanation: Explanation) -> str:
    """Pieces like [SEP] belong to no word; where they left is said separately."""
    trace, words = explanation.trace, explanation.read.word_of()
    left = []
    for piece, layer, word in zip(trace.written, trace.left_after, words, strict=True):
        if word is None and layer is not None:
            left.append(f"{piece} after layer {layer + 1}")
    if not left:
        return ""
    return f" Of those that belong to no word there left {markup(', '.join(left))}."


def _layers_table(trace: Trace) -> str:
    layers = range(len(trace.heads))
    pieces = "".join(f"<td>{len(trace.there(layer))}</td>" for layer in layers)
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
    tables = ""
    for start in range(0, len(rows), _N_ROWS):
        tables += _grid_table(rows[start : start + _N_ROWS], len(explanation.trace.heads))
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
        if n_seen == len(word.pieces):
            cells += '<td class="all">■</td>'
        elif n_seen:
            cells += '<td class="some">◧</td>'
        else:
            cells += '<td class="none">·</td>'
    left = explanation.left_at_layer[number]
    last = "" if left is None else left + 1
    return f'<tr><th scope="row" dir="auto">{markup(word.written)}</th>{cells}<td>{last}</td></tr>'


def _numbers(n_layers: int) -> str:
    return "".join(f'<th scope="col">{layer + 1}</th>' for layer in range(n_layers))
