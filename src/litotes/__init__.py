"""litotes: sentiment and sarcasm across varieties of English. Saying less to mean more.

>>> from litotes import Predictor
>>> Predictor.load("builtin").predict(["Lovely. Another delay."])[0].answers["sarcasm"].label
'sarcastic'

The names below are the public ones; each is imported when it is first used. All other modules are
private by convention and may move. docs/reference/api.md is their page.
"""

from __future__ import annotations

from litotes.core.version import __version__ as __version__

TYPE_CHECKING = False  # type checkers take it as True; importing `typing` would cost more than all
if TYPE_CHECKING:
    from typing import Any

    from litotes.core.errors import UserError as UserError
    from litotes.core.values import Prediction as Prediction
    from litotes.data.corpus import Corpus as Corpus
    from litotes.data.sources import load_corpus as load_corpus
    from litotes.encoder.pretrained import load_encoder as load_encoder
    from litotes.evaluation.evaluate import evaluate as evaluate
    from litotes.evaluation.unsure import calibrate as calibrate
    from litotes.explanation.explanation import Explanation as Explanation
    from litotes.exporting.export import export as export
    from litotes.model.hub import pull as pull
    from litotes.model.hub import push as push
    from litotes.prediction.predictor import BatchPredictor as BatchPredictor
    from litotes.prediction.predictor import Predictor as Predictor
    from litotes.prediction.predictor import explain as explain
    from litotes.pruning.choice import prune as prune
    from litotes.pruning.exits import add_exits as add_exits
    from litotes.training.recipe import Recipe as Recipe
    from litotes.training.run import train as train
    from litotes.training.run import train_words as train_words
    from litotes.training.tagging.tagger import Tagger as Tagger
    from litotes.training.tagging.tagger import evaluate_words as evaluate_words

_MODULES = {
    "BatchPredictor": "litotes.prediction.predictor",
    "Corpus": "litotes.data.corpus",
    "Explanation": "litotes.explanation.explanation",
    "Prediction": "litotes.core.values",
    "Predictor": "litotes.prediction.predictor",
    "Recipe": "litotes.training.recipe",
    "Tagger": "litotes.training.tagging.tagger",
    "UserError": "litotes.core.errors",
    "add_exits": "litotes.pruning.exits",
    "calibrate": "litotes.evaluation.unsure",
    "evaluate": "litotes.evaluation.evaluate",
    "evaluate_words": "litotes.training.tagging.tagger",
    "explain": "litotes.prediction.predictor",
    "export": "litotes.exporting.export",
    "load_corpus": "litotes.data.sources",
    "load_encoder": "litotes.encoder.pretrained",
    "prune": "litotes.pruning.choice",
    "pull": "litotes.model.hub",
    "push": "litotes.model.hub",
    "train": "litotes.training.run",
    "train_words": "litotes.training.run",
}
"""Where each public name is defined."""

__all__ = ["__version__", *_MODULES]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    try:
        module = import_module(_MODULES[name])
    except ModuleNotFoundError:
        from litotes.core.errors import require_extra

        require_extra("train", f"litotes.{name}")  # the one sentence that says what to install
        raise
    value = getattr(module, name)
    globals()[name] = value  # the next use does not come here
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
