"""The figures of the tour, each drawn from what the snippets of its chapter computed.

python -m reproduction.tour.figures           all of them, into docs/tour/figures
python -m reproduction.tour.figures 08 09     those of two chapters
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING

from litotes.core.figures import render_figure
from reproduction.tour.chapters import FIGURES, chapter_files
from reproduction.tour.drawings import DRAWINGS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SNIPPET = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_NEEDLESS = re.compile(rb" *<metadata>.*?</metadata>\n| *<!--.*?-->\n", re.DOTALL)
_MORE_FONTS = re.compile(rb"(?<='DejaVu Sans'),[^;\"]*(?=, sans-serif)")

DARK = b"""
 <style type="text/css">
  @media (prefers-color-scheme: dark) {
   text { fill: #e3e8ed; }
   [style*="fill: #ffffff"]:not(text) { fill: #14191f !important; }
   [style*="stroke: #ffffff"] { stroke: #14191f !important; }
   [style*="fill: #222222"], [style*="fill: #000000"] { fill: #e3e8ed !important; }
   [style*="stroke: #222222"], [style*="stroke: #000000"] { stroke: #e3e8ed !important; }
   [style*="stroke: #e5e5e5"] { stroke: #3a444e !important; }
  }
 </style>
"""
"""Paper and ink change places on a dark page; whatever has a colour keeps it, and so do letters on
coloured cells, which are neither black nor white ink (litotes.core.figures).
"""


def run_snippets(chapter: Path) -> SimpleNamespace:
    """Runs the snippets of a chapter as one program; what they leave behind, by name."""
    program = "\n".join(SNIPPET.findall(chapter.read_text("utf-8")))
    module = ModuleType(chapter.stem)
    with redirect_stdout(StringIO()):
        code = compile(program, str(chapter), "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102
    return SimpleNamespace(**module.__dict__)


def render(picture: Figure) -> bytes:
    """The figure as SVG that can be read on light and on dark pages."""
    content = _NEEDLESS.sub(b"", render_figure(picture, "svg"))
    content = _MORE_FONTS.sub(b"", content)
    head, separator, rest = content.partition(b" <g id=")
    return head.rstrip(b"\n") + DARK + separator + rest


def figure_file(chapter: Path) -> Path:
    return FIGURES / f"{chapter.stem}.svg"


def main(arguments: Sequence[str]) -> None:
    for chapter in chapter_files():
        if arguments and chapter.stem[:2] not in arguments:
            continue
        content = render(DRAWINGS[chapter.stem](run_snippets(chapter)))
        figure_file(chapter).write_bytes(content)
        print(f"{figure_file(chapter).name}: {len(content) / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
