"""Runs an exported model: pieces of texts of one length in, logits out.

Needs onnxruntime, not torch, so that it is ready at once.
"""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.errors import UserError, reason_of
from litotes.core.json_text import from_json, parse_json, read_small_file
from litotes.core.machine import n_cores, this_processor
from litotes.core.storage import sha256_of
from litotes.core.text import harmless
from litotes.encoder.tokenizer import Pieces
from litotes.model.exits import Outputs, StaticTier
from litotes.model.folder import DESCRIPTION, HASHED, TOKENIZER, WEIGHTS, ModelFolder, name_model
from litotes.model.runtime import Runtime, describe_threads
from litotes.prediction.onnx_file import (
    EXITS,
    FILE,
    HASH_OF,
    LAYERS,
    NOTE,
    ONE_BY_ONE,
    PIECES,
    SEGMENTS,
    SEVERAL,
    check_content,
    export_folder,
    read_model_bytes,
)

if TYPE_CHECKING:
    from litotes.model.checkpoint import Model


class OnnxSession:
    """An ONNX Runtime session over one file. facts: what the file says about itself."""

    def __init__(self, session: Any, path: Path, sha256: str = "") -> None:
        self._session, self.path, self.sha256 = session, path, sha256
        found = {one.name: (one.type, one.shape[-1:]) for one in session.get_outputs()}
        try:
            self.facts: dict[str, str] = session.get_modelmeta().custom_metadata_map
            tasks = from_json(self.facts["tasks"])
            self.n_outputs = {task: len(labels) or 1 for task, labels in tasks.items()}
            """By task: its labels, or one number."""
            self.max_pieces = int(self.facts["max_pieces"])
            for task, n in self.n_outputs.items():
                if found.get(f"{task}.logits") != ("tensor(float)", [n]):
                    raise ValueError(f"it has not the outputs of {task!r:.60}")
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise UserError(
                f"{path} is not a file that litotes exported ({_reason(error)}). Export the model"
                " again."
            ) from error
        self._one_by_one, self.has_exits = ONE_BY_ONE in self.facts, LAYERS in found

    @classmethod
    def load(cls, path: Path, n_threads: int = 1) -> OnnxSession:
        """Reads, checks and opens a file. n_threads: the cores one text may use; 1 leaves the
        others to other sessions.
        """
        return cls.from_bytes(path, read_model_bytes(path), n_threads)

    @classmethod
    def from_bytes(
        cls, path: Path, content: bytes, n_threads: int = 1, sha256: str = ""
    ) -> OnnxSession:
        """The bytes that are checked are those that are run: the file cannot be exchanged in
        between.
        """
        import onnxruntime as runtime  # takes a moment

        check_content(path, content)
        options = runtime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = n_threads, 1
        # its errors become our sentence; they need not be on the terminal as well
        options.log_severity_level = 4
        # what the bytes look like must not decide
        options.add_session_config_entry("session.load_model_format", "ONNX")
        # weights in other files would be read from the working directory; nothing lies below this
        options.add_session_config_entry(
            "session.model_external_initializers_file_folder_path", os.devnull
        )
        try:
            session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the library's errors have no common class
            raise UserError(
                f"ONNX Runtime {runtime.__version__} cannot run {path} ({_reason(error)})."
                " Export the model again, or install the newest: `pip install -U onnxruntime`."
            ) from error
        return cls(session, path, sha256)

    def logits(self, group: Sequence[Pieces]) -> dict[str, NDArray[np.float32]]:
        """{task: (text, class)}"""
        return self.compute(group).logits

    def compute(self, group: Sequence[Pieces]) -> Outputs:
        """Computes one text, or several of equal length: each as if it were alone."""
        names = [f"{task}.logits" for task in self.n_outputs] + [LAYERS] * self.has_exits
        ids = np.array([pieces.ids for pieces in group], np.int64)  # (text, piece)
        segments = np.array([pieces.segments for pieces in group], np.int64)
        size = 1 if self._one_by_one else len(group)
        runs = []
        try:
            for start in range(0, len(group), size):
                these = slice(start, start + size)
                feeds = {PIECES: ids[these], SEGMENTS: segments[these]}
                runs.append(self._session.run(names, feeds))
        # whether the operators of a carefully changed file fit each other shows only here
        except Exception as error:
            raise UserError(
                f"The exported model cannot read this text ({_reason(error)}). Export the model"
                " again."
            ) from error
        found = runs[0]
        if len(runs) > 1:
            found = [np.concatenate(parts) for parts in zip(*runs, strict=True)]
        layers = found.pop() if self.has_exits else None
        return Outputs(dict(zip(self.n_outputs, found, strict=True)), layers)


def _reason(error: Exception) -> str:
    """Shortens and cleans a reason: names may be long, and a terminal obeys some characters."""
    return harmless(reason_of(error), in_terminal=True)[:300]


@contextmanager
def checked_export(folder: ModelFolder) -> Iterator[tuple[OnnxSession, bytes]]:
    """The session of a folder's export, and the content of the tokenizer next to it.

    Where ONNX Runtime answers, the weights are not read; but a folder whose files are of two models
    is a mistake that the user should hear of. So these must agree: the note with the sha256 of the
    whole file; the file's facts, which give the sha256 of the weights and the tokenizer it was made
    from; `litotes.json`; the manifest; and the files that are there.

    What takes time as well can be done in the block: hashes are computed next to it, and compared
    when it ends. What it has made must not be used before that. Damage is reported as such,
    whatever else it led to within the block.
    """
    place = export_folder(folder)
    path, note = place / FILE, place / NOTE
    content = read_model_bytes(path)
    if not note.is_file():
        raise UserError(
            f"{path} was not finished: there is no {NOTE} next to it. Export the model again."
        )
    stated = _stated_hash(note)
    tokenizer_file = folder.path / TOKENIZER
    tokenizer = tokenizer_file.read_bytes() if tokenizer_file.is_file() else b""

    def hash_files() -> dict[str, str]:
        weights = folder.path / WEIGHTS
        return {
            WEIGHTS: sha256_of(weights) if weights.is_file() else "",
            TOKENIZER: hashlib.sha256(tokenizer).hexdigest(),
            NOTE: sha256_of(note),
            # the largest last: it needs the interpreter no more, which opening the file may keep
            FILE: hashlib.sha256(content).hexdigest(),
        }

    session: OnnxSession | None = None
    with ThreadPoolExecutor(1) as pool:  # hashing leaves the interpreter free
        hashing = pool.submit(hash_files)
        try:
            session = OnnxSession.from_bytes(path, content, sha256=stated)
            _check_description(session, folder.description)
            yield session, tokenizer
        finally:
            found = hashing.result()
            if found[FILE] != stated:
                raise UserError(
                    f"{path} is not the file that was exported: {NOTE} has another sha256. Export"
                    " the model again."
                )
            for name in HASHED:
                if session is not None and session.facts.get(f"{HASH_OF}{name}") != found[name]:
                    raise UserError(
                        f"{path} was not made from the {name} next to it. Export the model again."
                    )
            # elsewhere its note alone has the sha256
            for name in found if place == folder.path else HASHED:
                folder.manifest.check(folder.path / name, found[name])


def _stated_hash(note: Path) -> str:
    try:
        return str(parse_json(read_small_file(note))["sha256"])
    except (OSError, LookupError, TypeError, ValueError) as error:
        raise UserError(
            f"{note}: not readable ({error}). Copy the model folder again, or export the model"
            " again."
        ) from error


def _check_description(session: OnnxSession, description: Mapping[str, Any]) -> None:
    differs = f"{session.path} and the {DESCRIPTION} next to it disagree about"
    for name in ("tasks", "calibration", EXITS, SEVERAL):
        try:
            stated = from_json(session.facts[name]) if name in session.facts else None
        except ValueError as error:
            raise UserError(f"{differs} {name} ({error}). Export the model again.") from error
        if stated != description.get(name):
            raise UserError(f"{differs} {name}. Export the model again.")
    longest = description["max_pieces"]
    if not isinstance(longest, int) or not 1 <= longest <= session.max_pieces:
        raise UserError(
            f"{session.path} reads {session.max_pieces} pieces, the {DESCRIPTION} next to it"
            f" promises {longest}. Export the model again."
        )


# Texts on all cores: every worker computes one group of texts at a time, on one thread.
#
#     texts  →  groups of equal length, the longest first  →  workers
#            →  logits in the order of the texts
#
# A second thread on one text saves a fifth to a third of its time; on another text it nearly
# doubles what is done (docs/results/performance.md). So cores are given different texts. Texts of
# equal length share the reading of the weights. The longest groups go first, so that no core is
# left with a long one at the end. The workers share one session: ONNX Runtime computes a call on
# the thread that makes it, all threads read the same weights, one more core costs no memory.

MOST_TEXTS, MOST_PIECES = 16, 256
"""In a group of several: enough to share the reading of the weights.

Beyond it products run no faster and rows leave the cache.
"""


class Workers:
    """n threads over one session."""

    def __init__(self, session: OnnxSession, n: int) -> None:
        self.session, self.n = session, n
        self._pool, self._process = self._new_pool(), os.getpid()

    def _new_pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.n, thread_name_prefix="litotes-worker")

    def compute(self, texts: Sequence[Pieces]) -> Outputs:
        """Computes every text, in their order."""
        groups = list(group_by_length([len(text.ids) for text in texts]))
        logits = {
            task: np.empty((len(texts), n_outputs), dtype=np.float32)
            for task, n_outputs in self.session.n_outputs.items()
        }
        layers = np.empty(len(texts), dtype=np.int64)
        for places, computed in zip(groups, self._compute(texts, groups), strict=True):
            for task, values in computed.logits.items():
                logits[task][places] = values
            if computed.layers is not None:
                layers[places] = computed.layers
        return Outputs(logits, layers if self.session.has_exits else None)

    def _compute(self, texts: Sequence[Pieces], groups: Sequence[list[int]]) -> Iterator[Outputs]:
        def compute(places: list[int]) -> Outputs:
            return self.session.compute([texts[place] for place in places])

        if len(groups) <= 1 or self.n == 1:  # nothing to share: no detour by another thread
            return map(compute, groups)
        if self._process != os.getpid():  # threads do not survive a fork
            self._pool, self._process = self._new_pool(), os.getpid()
        return self._pool.map(compute, groups)


def group_by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Places of texts of equal length, the longest first, at most MOST_TEXTS and MOST_PIECES in a
    group of several.
    """
    by_length: dict[int, list[int]] = defaultdict(list)
    for place, length in enumerate(lengths):
        by_length[length].append(place)
    for length in sorted(by_length, reverse=True):
        places = by_length[length]
        size = min(max(MOST_PIECES // length, 1), MOST_TEXTS)
        for start in range(0, len(places), size):
            yield places[start : start + size]


# A model computed by ONNX Runtime from the export in its folder.
#
# Nothing here imports torch, which takes seconds, so that the first answer comes at once.


class OnnxRuntime(Runtime):
    """An exported model on the CPU.

    n_workers: groups of texts computed at the same time; None: as many as this process has cores.
    """

    def __init__(self, folder: ModelFolder, *, n_workers: int | None = None) -> None:
        self._folder, about = folder, folder.description
        self.n_at_once = n_cores()  # each on the thread that calls, see `Workers`
        self._torch_runtime: Runtime | None = None
        with checked_export(folder) as (session, tokenizer):
            self.tasks, self.calibration = folder.tasks, folder.calibration
            self.label_sets, self.facts = folder.label_sets, about["facts"]
            exits, table, self.n_layers = folder.exits, folder.read_table(), folder.spec.n_layers
            self.has_exits, self._tier = exits is not None, None
            if exits is not None and table is not None:
                n_layers = len(folder.spec.walk)
                self._tier = StaticTier(table, exits, self.calibration, n_layers)
            try:
                self.name = name_model(about["base"]["name"], about["head"], folder.spec.pruning)
                self.tokenizer = folder.read_tokenizer(tokenizer)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise folder.damaged(error) from error
        self._precision = session.facts["precision"]
        self._workers = Workers(session, n_workers or n_cores())

    def compute(self, texts: Sequence[Pieces]) -> Outputs:
        if self._tier is None or not texts:
            return self._workers.compute(texts)
        return self._tier.answer(texts, self._workers.compute)

    def without_exits(self) -> Runtime:
        """Removes the table from a copy; exits inside the file remain."""
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

    def deciding(self) -> Iterator[bytes]:
        yield f"onnx {self._workers.session.sha256}".encode()
        if self._tier is not None:
            yield repr((self._tier.table.sha256, self._tier.rule)).encode()

    def describe(self) -> str:
        import onnxruntime

        n = self._workers.n
        threads = f"{n} workers of one thread each"
        if n == 1:  # several batches, each on the thread that asks, share the cores
            threads = describe_threads(1, self.n_at_once)
        instructions = this_processor().describe(self._precision)
        return f"ONNX Runtime {onnxruntime.__version__}, {threads}; {instructions}"
