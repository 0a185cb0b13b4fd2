"""The report of a study: one HTML file that needs nothing else, readable on screen and in print."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template

from litotes.core.version import __version__
from litotes.data.corpus import Corpus, Count
from litotes.evaluation.cross_matrix import CrossMatrix, MatrixCell
from litotes.study.matrix import Crossing


def html_report(study: Crossing, corpus: Corpus, *, picture: str) -> str:
    """The report; `picture` is the heatmap as SVG."""
    template = Template(files("litotes.study").joinpath("matrix_report.html").read_text("utf-8"))
    data, model = study.recipe.data, study.recipe.model
    return template.substitute(
        corpus=escape(corpus.name),
        seeds=escape(", ".join(map(str, study.seeds))),
        model=escape(
            f"encoder {model.encoder}, head {model.head}, weighting {model.weighting}, pruning"
            f" {model.pruning}"
        ),
        source=escape(data.source),
        picture=picture[picture.index("<svg") :],
        reading="\n".join(f"<p>{escape(in_words(matrix))}</p>" for matrix in study.matrices),
        tables="\n".join(_matrix_table(matrix) for matrix in study.matrices),
        notes="".join(f"<li>{escape(note)}</li>" for note in study.notes) or "<li>None.</li>",
        counts=_count_table(corpus.counts()),
        recipe=escape(study.recipe.model_dump_json(indent=2)),
        version=escape(__version__),
    )


def in_words(matrix: CrossMatrix) -> str:
    """What the matrix says, and how far it can be believed."""
    if not matrix.cells:
        return f"{matrix.task.capitalize()}: no run has finished."
    widest = max(cell.interval[1] - cell.interval[0] for cell in matrix.cells)
    useless = [cell for cell in matrix.cells if cell.interval[0] <= cell.majority]
    home, elsewhere = matrix.at_home, matrix.elsewhere
    words = f"{matrix.task.capitalize()}: {matrix.mean:.3f} macro-F1 on average over the table."
    if home is not None and elsewhere is not None:
        words = (
            f"{matrix.task.capitalize()}: tested on the {matrix.axis} they were trained on, the"
            f" models reach {home:.3f} macro-F1 on average; tested elsewhere {elsewhere:.3f}, a gap"
            f" of {home - elsewhere:+.3f}."
        )
    words += (
        f" A single cell's 95 % interval is up to {widest:.2f} wide, so differences between cells"
        " smaller than that may be chance."
    )
    if useless:
        pairs = ", ".join(f"{cell.trained_on} → {cell.tested_on}" for cell in useless)
        words += f" Not clearly better than always answering the commonest label: {pairs}."
    return words


def _matrix_table(matrix: CrossMatrix) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in matrix.columns)
    rows = "".join(
        f"<tr><th>{escape(row)}</th>{''.join(_cell(matrix.find(row, column)) for column in matrix.columns)}</tr>"
        for row in matrix.rows
    )
    return (
        f"<table><caption>{escape(matrix.task)}: macro-F1, 95 % interval, majority line</caption>"
        f"<tr><th>trained on \\ tested on</th>{head}</tr>{rows}</table>"
    )


def _cell(cell: MatrixCell | None) -> str:
    if cell is None:
        return "<td>–</td>"
    low, high = cell.interval
    mark = ' class="collapsed"' if cell.n_collapsed else ""
    return (
        f"<td{mark}><b>{cell.macro_f1:.3f}</b><br><small>{low:.3f} to {high:.3f}<br>majority"
        f" {cell.majority:.3f}, n {cell.n}</small></td>"
    )


def _count_table(counts: Sequence[Count]) -> str:
    rows = "".join(
        f"<tr><td>{escape(str(count.cell))}</td><td>{count.split}</td><td>{escape(count.task)}</td>"
        f"<td>{escape(count.label or 'a number')}</td><td>{count.n}</td></tr>"
        for count in counts
    )
    return f"<table><tr><th>cell</th><th>split</th><th>task</th><th>label</th><th>texts</th></tr>{rows}</table>"
