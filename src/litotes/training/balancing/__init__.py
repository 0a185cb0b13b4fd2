"""How several tasks share one encoder's step.

A new balancing is one file and one line in `BALANCINGS`.
"""

from litotes.training.balancing.balancing import Balancing
from litotes.training.balancing.pcgrad import PCGrad
from litotes.training.balancing.total import Total
from litotes.training.balancing.uncertainty import Uncertainty

BALANCINGS: dict[str, type[Balancing]] = {
    "sum": Total,
    "pcgrad": PCGrad,
    "uncertainty": Uncertainty,
}

__all__ = ["BALANCINGS", "Balancing"]
