"""A section of the article for every analysis, in the order they are read in. A new analysis needs one here as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from litotes.analysis.report.section import Section
from litotes.analysis.report.sections import attribution, change, diversity, effective, faithfulness, patterns, token_types, trace

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
