"""A predictor for the workers of Spark, Dask and Ray Data: it travels as a path, not as a model."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any

from litotes.model.builtin import is_builtin, resolve_model
from litotes.prediction.predictor import Predictor

_LOADING = Lock()  # threads of one worker process share a model


@dataclass(frozen=True)
class BatchPredictor:
    """Predicts batches in any process it is sent to; each loads the model once, on first use.

    n_cores: how many cores the model may use in each process; None: all. The default is 1 because
    there is usually a process for every core. With torch it holds for everything the process
    computes. variety: see `Predictor.for_variety`. precision: see `Predictor.load`.

    >>> frame.map_partitions(BatchPredictor("builtin"))  # Dask               # doctest: +SKIP
    """

    folder: str
    device: str | None = None
    runtime: str | None = None
    n_cores: int | None = 1
    variety: str | None = None
    precision: str | None = None

    def __post_init__(self) -> None:
        # the worker may have another working directory
        folder = resolve_model(self.folder)
        if not is_builtin(folder) and folder.exists():
            object.__setattr__(self, "folder", str(folder.resolve()))

    def __call__(self, batch: Any, **options: Any) -> Any:
        return self.map_batches(batch, **options)

    def map_batches(self, batch: Any, **options: Any) -> Any:
        """See `Predictor.map_batches`, which has the same options."""
        return self.predictor().map_batches(batch, **options)

    def predictor(self) -> Predictor:
        """The model of this process."""
        with _LOADING:
            return _load(self, os.getpid())


@cache
def _load(batch_predictor: BatchPredictor, process: int) -> Predictor:
    """process: a fork inherits what was loaded before, but not the threads that compute it."""
    return Predictor.load(
        batch_predictor.folder,
        device=batch_predictor.device,
        runtime=batch_predictor.runtime,
        precision=batch_predictor.precision,
        n_cores=batch_predictor.n_cores,
    ).for_variety(batch_predictor.variety)
