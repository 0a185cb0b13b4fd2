"""What all figures share: colours that everyone can tell apart, and bytes that are the same for the
same figure.
"""

from __future__ import annotations

import re
from io import BytesIO
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings

from litotes.core.text import harmless

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BAR, GAP, INK = "#56B4E9", "#D55E00", "#222222"
"""From the palette of Okabe and Ito, which colour-blind readers can tell apart."""

ON_LIGHT = "#111111"
"""Of letters on a light cell. Not quite black: what is black turns light on a dark page, cells and
their letters stay as they are.
"""

_NOT_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters, which a label may hold and XML may not, and those that turn the direction."""


def render_figure(picture: Figure, kind: str) -> bytes:
    """The figure as `svg` or `png`; the same figure gives the same bytes.

    Glyphs that matplotlib's font lacks, many emoji among them, a browser finds elsewhere in an SVG;
    a PNG has a box there. Neither needs a warning.
    """
    from matplotlib import rc_context

    target = BytesIO()
    with rc_context({"svg.hashsalt": "litotes", "svg.fonttype": "none"}), catch_warnings():
        filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        metadata = {"Date": None} if kind == "svg" else {"Software": None}
        picture.savefig(
            target, format=kind, dpi=160, metadata=metadata, bbox_inches="tight", pad_inches=0.15
        )
    content = target.getvalue()
    if kind == "svg":
        content = _NOT_XML.sub(lambda found: harmless(found[0]), content.decode()).encode()
        # a layout that is solved ends a hair to either side of 0, and -0 is written as such
        content = re.sub(rb'(?<=[ "(,])-0(?=[ ",)\n])', b"0", content)
    return content


def text_colour(image: Any, value: float) -> str:
    """Almost black, or white, whichever has the greater contrast with the cell (WCAG 2.2: they are
    equal at a luminance of 0.179).
    """
    red, green, blue = (_linear(channel) for channel in image.cmap(image.norm(value))[:3])
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "white" if luminance < 0.179 else ON_LIGHT


def _linear(channel: float) -> float:
    """From sRGB."""
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
