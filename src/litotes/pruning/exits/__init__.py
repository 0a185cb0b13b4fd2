"""Early exits for a trained model: taught by its own last layer, calibrated, and a threshold that
keeps a promise.
"""

from litotes.pruning.exits.add import add_exits
from litotes.pruning.exits.result import ExitSettings, ExitsResult

__all__ = ["ExitSettings", "ExitsResult", "add_exits"]
