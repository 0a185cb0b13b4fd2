"""A predictor for other people's workers (Spark, Dask, Ray Data): a path on its way, a model where
it arrives.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from litotes.model.builtin import BUILT_IN
from litotes.predict.predictor import Predictor

_LOADING = Lock()  # threads of one worker process share a model


@dataclass(frozen=True)
class BatchPredictor:
    """Answers batches in any process it is sent to; each loads the model once, when it is first
    asked.

    n_cores: how many cores the model may use in each process; None: all. One, because there is
    usually a process for every core. By torch it holds for all that the process computes.

    >>> frame.map_partitions(BatchPredictor("builtin"))  # Dask               # doctest: +SKIP
    """

    folder: str
    device: str | None = None
    runtime: str | None = None
    n_cores: int | None = 1

    def __post_init__(self) -> None:
        # the worker may stand in another folder
        if self.folder not in BUILT_IN and Path(self.folder).exists():
            object.__setattr__(self, "folder", str(Path(self.folder).resolve()))

    def __call__(self, batch: Any, *, column: str = "text", pair: str | None = None) -> Any:
        return self.map_batches(batch, column=column, pair=pair)

    def map_batches(self, batch: Any, *, column: str = "text", pair: str | None = None) -> Any:
        """See `Predictor.map_batches`."""
        return self.predictor().map_batches(batch, column=column, pair=pair)

    def predictor(self) -> Predictor:
        """The model of this process."""
        with _LOADING:
            return _loaded(self, os.getpid())


@cache
def _loaded(asked: BatchPredictor, process: int) -> Predictor:
    """process: a fork inherits what was loaded before, but not the threads that compute it."""
    return Predictor.load(
        asked.folder, device=asked.device, runtime=asked.runtime, n_cores=asked.n_cores
    )
