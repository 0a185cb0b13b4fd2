"""A text with shaded words as a drawing: laid out line by line, for matplotlib knows no running
text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from litotes.core.text import harmless
from litotes.encoder.tokenizer import ReadText
from litotes.explanation.explanation import Shading
from litotes.explanation.shaded_text import segments, unread

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FOR, AGAINST, FOR_LINE, AGAINST_LINE = "#6fb1e8", "#f5a04f", "#0a5ea8", "#a84300"
"""Blue and orange, as on the page: told apart by the colour-blind; lines below the words tell them
apart in grey.
"""

POINTS = 10.0
LINE_INCHES = 0.27
_MISSING = "▯"
_SPLIT = re.compile(r"\n|[^\S\n]+|\S+")  # line ends, blanks and what stands between them


@dataclass(frozen=True)
class PlacedText:
    """A part of the text with its place: inches from the left, lines from the top. number: of the
    word; None between words.
    """

    written: str
    number: int | None
    x: float
    line: int
    width: float


def lay_out(read: ReadText, *, width: float) -> list[PlacedText]:
    """The text, then the pair, in lines of `width` inches.

    Parts that touch may be separated, as at the end of any long word.
    """
    placed: list[PlacedText] = []
    line = 0
    for is_pair in (False,) if read.pair is None else (False, True):
        x, line = 0.0, line + 2 if is_pair else line
        for written, number in _parts(read, is_pair=is_pair):
            if "\n" in written:
                x, line = 0.0, line + 1
                continue
            inches = _inches(written)
            if x and x + inches > width and written.strip():
                x, line = 0.0, line + 1
            placed.append(PlacedText(written, number, x, line, inches))
            x += inches
    return placed


def draw(placed: Sequence[PlacedText], shading: Shading, ax: Axes, *, width: float) -> None:
    """Draws the laid out words into axes that are `width` inches wide."""
    n_lines = n_lines_of(placed)
    greatest = max(map(abs, shading.weights), default=0.0) or 1.0
    letters: dict[str, Any] = {"fontsize": POINTS, "color": "#1d2733", "zorder": 3}
    for part in placed:
        y = n_lines - part.line - 0.5
        if part.number is not None:
            _shade(ax, part, y - 0.38, shading.weights[part.number] / greatest)
        if not part.written.isspace():
            text = ax.text(
                part.x, y, part.written, va="center_baseline", parse_math=False, **letters
            )
            # its place is settled; measuring hundreds of them again and again takes minutes
            text.set_in_layout(False)
    ax.set_xlim(0, width)
    ax.set_ylim(0, n_lines)
    ax.set_axis_off()


def _shade(ax: Axes, part: PlacedText, y: float, share: float) -> None:
    from matplotlib.patches import Rectangle

    box = Rectangle((part.x, y), part.width, 0.76, color=_tint(share), linewidth=0, zorder=1)
    ax.add_patch(box).set_in_layout(False)
    if abs(share) >= 1 / 16:  # as on the page, where the lightest of eight shades begins
        _underline(ax, part, y, share)


def n_lines_of(placed: Sequence[PlacedText]) -> int:
    return max((part.line for part in placed), default=0) + 1


def drawable(text: str) -> str:
    """What the font has no glyph for becomes an empty box: nothing is left out, nothing warns."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    font = get_font(findfont(FontProperties()))
    return "".join(char if font.get_char_index(ord(char)) else _MISSING for char in harmless(text))


def _parts(read: ReadText, *, is_pair: bool) -> Iterator[tuple[str, int | None]]:
    """Segments, with blanks and single words between them apart; a tab is a blank."""
    for part, number in segments(read, is_pair=is_pair):
        if number is not None:
            yield drawable(part), number
            continue
        for piece in _SPLIT.findall(part):
            yield (piece if piece == "\n" else " " if piece.isspace() else drawable(piece)), None
    if rest := unread(read, is_pair=is_pair):
        yield from (
            (piece, None)
            for piece in _SPLIT.findall(f" … {len(rest):,} more characters were not read")
        )


def _inches(written: str) -> float:
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    width, _, _ = text_to_path.get_text_width_height_descent(
        written, FontProperties(size=POINTS), ismath=False
    )
    return float(width) / 72


def _tint(share: float) -> tuple[float, ...]:
    from matplotlib.colors import to_rgb

    full = to_rgb(FOR if share > 0 else AGAINST)
    return tuple(1 + (channel - 1) * abs(share) for channel in full)


def _underline(ax: Axes, part: PlacedText, y: float, share: float) -> None:
    colour, style = (FOR_LINE, "-") if share > 0 else (AGAINST_LINE, ":")
    thick = 0.8 + 2 * abs(share)
    [line] = ax.plot(
        [part.x, part.x + part.width],
        [y, y],
        color=colour,
        linestyle=style,
        linewidth=thick,
        solid_capstyle="butt",
        zorder=2,
    )
    line.set_in_layout(False)
