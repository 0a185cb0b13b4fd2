"""What the corpus analyses found, as pictures: one for each. A new analysis needs one here as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from litotes.plots.inside import attribution, change, diversity, effective, faithfulness, patterns, token_types, trace

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
