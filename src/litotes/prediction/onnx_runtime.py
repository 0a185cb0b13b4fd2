"""A model computed by ONNX Runtime from the export in its folder.

Nothing here imports torch, which takes seconds, so that the first answer comes at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING

from litotes.core.machine import n_cores, this_processor
from litotes.encoder.config import spec_from_json
from litotes.encoder.tokenizer import Pieces, PieceTokenizer
from litotes.model.facts import name_model
from litotes.model.folder import TOKENIZER, ModelFolder
from litotes.model.outputs import Outputs
from litotes.model.runtime import Runtime, describe_threads
from litotes.model.static_table import StaticTier
from litotes.prediction.onnx.folder_check import checked_export
from litotes.prediction.onnx.session import OnnxSession
from litotes.prediction.workers import Workers

if TYPE_CHECKING:
    from litotes.model.checkpoint import Model


class OnnxRuntime(Runtime):
    """An exported model on the CPU.

    n_workers: groups of texts computed at the same time; None: as many as this process has cores.
    """

    def __init__(self, folder: ModelFolder, *, n_workers: int | None = None) -> None:
        self._folder = folder
        self.n_at_once = n_cores()  # each on the thread that calls, see `Workers`
        self._torch_runtime: Runtime | None = None
        with checked_export(folder) as export:
            session = OnnxSession.from_file(export.file)
            self._describe(export.tokenizer)
        self._precision = session.facts["precision"]
        self._workers = Workers(session, n_workers or n_cores())

    def _describe(self, tokenizer: bytes) -> None:
        """What the folder says about the model. tokenizer: the content of its file."""
        folder = self._folder
        try:
            self.tasks, self.calibration = folder.tasks, folder.calibration
            self.label_sets = folder.label_sets
            self.facts = dict(folder.description["facts"])
            base, encoder = folder.description["base"], folder.description["encoder"]
            self.name = name_model(base["name"], folder.description["head"], encoder["pruning"])
            self.n_layers, self.has_exits = encoder["n_layers"], folder.exits is not None
            self._tier = self._read_tier()
            self.tokenizer = PieceTokenizer(
                folder.path / TOKENIZER,
                max_pieces=folder.description["max_pieces"],
                content=tokenizer,
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise folder.damaged(error) from error

    def _read_tier(self) -> StaticTier | None:
        """What answers before the first layer."""
        exits, table = self._folder.exits, self._folder.read_table()
        if exits is None or table is None:
            return None
        n_layers = len(spec_from_json(self._folder.description["encoder"]).walk)
        return StaticTier(table, exits, self.calibration, n_layers)

    @cached_property
    def _settings_hash(self) -> str:
        """The sha256 of all that decides an answer except the exported file."""
        settings = (
            self.tasks,
            sorted(self.calibration.items()),
            self.tokenizer.max_pieces,
            self.tokenizer.to_json(),
            *(() if self._tier is None else (self._tier.table.sha256, repr(self._tier.rule))),
        )
        return hashlib.sha256(repr(settings).encode()).hexdigest()

    def compute(self, texts: Sequence[Pieces]) -> Outputs:
        if self._tier is None or not texts:
            return self._workers.compute(texts)
        return self._tier.answer(texts, self._workers.compute)

    def without_exits(self) -> Runtime:
        """Without the table; exits inside the file remain."""
        whole = copy(self)
        whole._tier = None
        return whole

    def to_torch(self) -> Runtime:
        import torch

        from litotes.model.checkpoint import load_model
        from litotes.prediction.torch_runtime import TorchRuntime

        if self._torch_runtime is None:  # reads the weights, which may take seconds
            self._torch_runtime = TorchRuntime(load_model(self._folder), torch.device("cpu"))
        return self._torch_runtime

    def model(self) -> Model:
        return self.to_torch().model()

    def identity(self) -> str:
        return f"onnx {self._workers.session.sha256} {self._settings_hash}"

    def describe(self) -> str:
        import onnxruntime

        n = self._workers.n
        threads = f"{n} workers of one thread each"
        if n == 1:  # several batches, each on the thread that asks, share the cores
            threads = describe_threads(1, self.n_at_once)
        instructions = this_processor().describe(self._precision)
        return f"ONNX Runtime {onnxruntime.__version__}, {threads}; {instructions}"
