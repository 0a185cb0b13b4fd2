"""A section of the article for every analysis, in the order they are read in.

A new analysis needs one here as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from litotes.inside.attribution import section as attribution
from litotes.inside.change import section as change
from litotes.inside.diversity import section as diversity
from litotes.inside.effective import section as effective
from litotes.inside.faithfulness import section as faithfulness
from litotes.inside.patterns import section as patterns
from litotes.inside.section import Section
from litotes.inside.token_types import section as token_types
from litotes.inside.trace import section as trace

SECTIONS: dict[str, Callable[[Any], Section]] = {
    "effective": effective.section,
    "patterns": patterns.section,
    "token_types": token_types.section,
    "change": change.section,
    "diversity": diversity.section,
    "trace": trace.section,
    "attribution": attribution.section,
    "faithfulness": faithfulness.section,
}
"""By the names in `ANALYSES`; each takes the result of its own analysis."""
