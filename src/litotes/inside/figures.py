"""What the corpus analyses found, as pictures: one for each.

A new analysis needs one here as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from litotes.inside.attribution import figure as attribution
from litotes.inside.change import figure as change
from litotes.inside.diversity import figure as diversity
from litotes.inside.effective import figure as effective
from litotes.inside.faithfulness import figure as faithfulness
from litotes.inside.patterns import figure as patterns
from litotes.inside.token_types import figure as token_types
from litotes.inside.trace import figure as trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES: dict[str, Callable[[Any], Figure]] = {
    "effective": effective.figure,
    "patterns": patterns.figure,
    "token_types": token_types.figure,
    "change": change.figure,
    "diversity": diversity.figure,
    "trace": trace.figure,
    "attribution": attribution.figure,
    "faithfulness": faithfulness.figure,
}
"""By the names in `ANALYSES`; each takes the result of its own analysis."""
