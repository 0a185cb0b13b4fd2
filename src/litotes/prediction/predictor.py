"""Texts in, answers out: the one way every consumer asks a model, by torch or by ONNX Runtime.

texts  →  checked: those that cannot be asked about have a problem  →  pieces, for each model
       →  logits (text, class)  →  `Answers`: arrays; objects for those who ask for objects
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache, partial
from itertools import count
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from litotes.core.errors import UserError, has_extra
from litotes.core.machine import STREAM_THREADS
from litotes.core.progress import Watch, ignore_progress
from litotes.core.registry import pick
from litotes.core.text import is_utf8, one_line
from litotes.core.values import BadText, Prediction, Task
from litotes.encoder.tokenizer import Pieces
from litotes.model.builtin import BUILTIN, is_builtin, resolve_model
from litotes.model.calibration import Calibration, TaskAnswers, to_answers
from litotes.model.folder import ModelFolder, open_model, takes_pairs
from litotes.model.runtime import Runtime
from litotes.prediction.answers import Answers, check_variety, join_tasks
from litotes.prediction.frames import add_predictions
from litotes.prediction.onnx_runtime import OnnxRuntime
from litotes.prediction.runtime_choice import choose_runtime, load_by_torch, run_by_torch

if TYPE_CHECKING:
    from litotes.explanation.explanation import Explanation
    from litotes.model.checkpoint import Model

BAD_TEXTS = {
    "stop": "the first one ends the work with a sentence that names it",
    "empty": "their predictions have a problem and no answers",
}
"""What becomes of texts that cannot be asked about, such as empty ones."""


def match_pairs(
    texts: Sequence[object], pairs: Sequence[str | None] | None
) -> Sequence[str | None]:
    """A pair, or None, for each of the texts, which must be a list of texts."""
    if isinstance(texts, Mapping | Set) or not hasattr(texts, "__len__"):
        raise UserError(
            f"Give a text, or a list of them; this is a {type(texts).__name__}. For what comes one"
            " by one there is `stream`, for columns by name `map_batches`."
        )
    if pairs is None:
        return [None] * len(texts)
    if len(pairs) != len(texts):
        raise UserError(
            f"There are {len(texts)} texts and {len(pairs)} pairs: give as many of each, None where"
            " a text has none."
        )
    return pairs


def find_problems(
    texts: Sequence[str | BadText], pairs: Sequence[str | None], *, first: int
) -> dict[int, str]:
    """Finds bad texts and why, by their places. first: the number of the first, for sentences."""
    found = map(_find_problem, texts, pairs, count(first))
    return {place: problem for place, problem in enumerate(found) if problem is not None}


def _find_problem(text: str | BadText, pair: str | None, number: int) -> str | None:
    name = f"Text {number}"
    if isinstance(text, BadText):
        return text.problem
    for found in (text, "" if pair is None else pair):
        if not isinstance(found, str):
            kind = type(found).__name__
            return (
                f"{name} is {found!r:.60} ({kind}), not a string. Turn it into one, or take it out."
            )
    if not text.strip():
        return f"{name} is empty; there is nothing to label."
    if pair is not None and not pair.strip():
        return f"{name} has an empty pair: give that its text, or leave it out."
    if not is_utf8(text + (pair or "")):
        return f"{name} holds bytes that are not UTF-8. Save or type it as UTF-8."
    return None


def written_text(text: object) -> str:
    """Returns what is shown of a text, which may be no text at all."""
    if isinstance(text, BadText):
        return text.text
    return text if isinstance(text, str) else ""


# A stream of texts in chunks that are predicted together.

_FIRST_SIZE, _LARGEST_SIZE = 4, 1024
"""Texts in a chunk: few at first, so that the first prediction comes soon, then more and more."""
_MOST_CHARACTERS = 1 << 18
"""After so many, a chunk is full whatever its size: enough for a GPU, and little enough that
Ctrl-C, which waits for the chunks under way, does not wait for minutes.
"""


@contextmanager
def stream_pool() -> Iterator[ThreadPoolExecutor]:
    """The threads that compute chunks. At Ctrl-C, or when no one reads on, they are not waited for:
    what they compute is not wanted any more.
    """
    pool = ThreadPoolExecutor(2, thread_name_prefix=STREAM_THREADS)
    is_wanted = True
    try:
        yield pool
    except (KeyboardInterrupt, GeneratorExit):
        is_wanted = False
        raise
    finally:
        pool.shutdown(wait=is_wanted, cancel_futures=True)


Asked = str | tuple[str, str] | BadText
"""What a model is asked about: a text, a text and a second one, or why neither can be read."""


def read_chunks(
    texts: Iterable[Asked], size: int = _FIRST_SIZE
) -> Iterator[list[tuple[Any, Any]] | Exception]:
    """Yields texts with pairs in chunks that grow; at the end, why the source failed, if it did.

    After every text that does not fill a chunk, an empty chunk is yielded: the reader can hand out
    what is ready while the source is slow. size: of the first.
    """
    if isinstance(texts, str | Mapping):
        raise UserError(
            f"A stream is of several texts; this is a {type(texts).__name__}. For one text there is"
            " `predict`, for columns by name `map_batches`."
        )
    chunk: list[tuple[Any, Any]] = []
    n_characters, source = 0, iter(texts)
    while True:
        try:
            item = next(source)
        except Exception as error:
            failure = error
            break
        # what is neither a text nor a pair is reported with its number when it is asked about
        chunk.append(item if isinstance(item, tuple) and len(item) == 2 else (item, None))
        n_characters += sum(len(own) for own in chunk[-1] if isinstance(own, str))
        if len(chunk) < size and n_characters < _MOST_CHARACTERS:
            yield []
            continue
        yield chunk
        chunk, n_characters, size = [], 0, min(2 * size, _LARGEST_SIZE)
    yield chunk
    if not isinstance(failure, StopIteration):
        yield failure


# A text as models read it.


@dataclass(frozen=True)
class TokenizedText:
    """A text and its pieces, once for each model that reads it. pair: the second text of a pair."""

    text: str
    pair: str | None
    pieces: tuple[Pieces, ...]

    @property
    def n_pieces(self) -> int:
        return sum(len(own.ids) for own in self.pieces)

    @property
    def is_truncated(self) -> bool:
        return any(own.truncated for own in self.pieces)

    @property
    def is_unreadable(self) -> bool:
        return any(own.unreadable for own in self.pieces)


@dataclass(frozen=True)
class _ReadChunk:
    """Texts as the models read them. pieces: for each model, of the texts without a problem."""

    texts: Sequence[str]
    pairs: Sequence[str | None]
    problems: Mapping[int, str]
    pieces: Sequence[Sequence[Pieces]]


class Predictor:
    """One model ready to answer, or several that each answer tasks of their own.

    notes: what the user should know about how it is run. variety: that of all texts, if known.

    >>> predictor = Predictor.load("builtin")                            # doctest: +SKIP
    >>> predictor.predict(["Lovely. Another delay."])[0].answers["sarcasm"].label  # doctest: +SKIP
    'sarcastic'
    """

    def __init__(
        self,
        *models: Model | Runtime,
        device: str | None = None,
        precision: str | None = None,
        notes: Sequence[str] = (),
        variety: str | None = None,
    ) -> None:
        self.runtimes = []
        for model in models:
            if not isinstance(model, Runtime):
                model = run_by_torch(model, device, precision)
            self.runtimes.append(model)
        self.notes, self.variety = tuple(notes), variety
        check_variety(variety, self.runtimes)
        self.tasks: dict[str, Task] = join_tasks(self.runtimes)

    def __repr__(self) -> str:
        runtimes = [type(runtime).__name__ for runtime in self.runtimes]
        return one_line(self, tasks=list(self.tasks), runtimes=runtimes)

    @property
    def identities(self) -> tuple[str, ...]:
        """A name for what decides the answers of each model."""
        return tuple(runtime.identity(self.variety) for runtime in self.runtimes)

    @property
    def takes_pairs(self) -> bool:
        """True if one of the models has learned from pairs of texts."""
        return any(takes_pairs(runtime.facts) for runtime in self.runtimes)

    def for_variety(self, name: str | None) -> Predictor:
        """The same models, for texts of one variety: it decides when an answer is unsure."""
        return Predictor(*self.runtimes, notes=self.notes, variety=name)

    @classmethod
    def load(
        cls,
        *models: str | Path | ModelFolder,
        device: str | None = None,
        runtime: str | None = None,
        precision: str | None = None,
        n_cores: int | None = None,
    ) -> Predictor:
        """models: folders, or names of built-in models.

        runtime: torch or onnx; None: onnx on a CPU where every folder has an export, else torch.

        precision: on a GPU auto, float32, bfloat16 or float16; None: auto.

        n_cores: how many it may keep busy, None: all. By torch this holds for everything that the
        process computes.
        """
        folders: list[ModelFolder] = []
        for model in models:
            folders += open_model(model).models
        chosen, notes = choose_runtime(folders, device, runtime, precision)
        if chosen == "onnx":
            return cls(*(OnnxRuntime(one, n_workers=n_cores) for one in folders), notes=notes)
        loaded = load_by_torch(folders, device=device, precision=precision, n_cores=n_cores)
        return cls(*loaded, notes=notes)

    @overload
    def predict(  # type: ignore[overload-overlap]  # a string is a sequence of strings
        self, texts: str, *, pairs: str | None = None, bad_texts: str = "stop"
    ) -> Prediction: ...

    @overload
    def predict(
        self,
        texts: Sequence[str],
        *,
        pairs: Sequence[str | None] | None = None,
        bad_texts: str = "stop",
    ) -> list[Prediction]: ...

    def predict(
        self,
        texts: str | Sequence[str],
        *,
        pairs: str | Sequence[str | None] | None = None,
        bad_texts: str = "stop",
    ) -> Prediction | list[Prediction]:
        """A prediction per text, in order; of one text that is not in a list, its prediction."""
        if isinstance(texts, str):
            if not isinstance(pairs, str | None):
                raise UserError("One text has one pair: give both as strings, or both in lists.")
            return self.predict([texts], pairs=[pairs], bad_texts=bad_texts)[0]
        if isinstance(pairs, str):
            raise UserError("Several texts have several pairs: give them in a list.")
        return self.answer_columns(texts, pairs=pairs, bad_texts=bad_texts).predictions()

    def answer_columns(
        self,
        texts: Sequence[str | BadText],
        *,
        pairs: Sequence[str | None] | None = None,
        bad_texts: str = "stop",
        first: int = 1,
    ) -> Answers:
        """Answers several texts as `predict` does, in arrays and columns instead of objects.

        bad_texts: see `BAD_TEXTS`. first: the number of the first text, for error messages.
        """
        return self._answer(self._read(texts, pairs, bad_texts, first))

    def tokenize(
        self, texts: Sequence[str], pairs: Sequence[str | None] | None = None
    ) -> list[TokenizedText]:
        """The texts, checked and cut into pieces, one by one; `answer` does the rest of `predict`:
        for who puts texts into other groups than they came in.
        """
        chunk = self._read(texts, pairs, "stop")
        pieces = zip(*chunk.pieces, strict=True)
        return list(map(TokenizedText, chunk.texts, chunk.pairs, pieces))

    def answer(self, texts: Sequence[TokenizedText]) -> list[Prediction]:
        """A prediction per text, in order. There must be one."""
        written, pairs = [text.text for text in texts], [text.pair for text in texts]
        pieces = list(zip(*(text.pieces for text in texts), strict=True))
        return self._answer(_ReadChunk(written, pairs, {}, pieces)).predictions()

    def _read(
        self,
        texts: Sequence[str | BadText],
        pairs: Sequence[str | None] | None,
        bad_texts: str,
        first: int = 1,
    ) -> _ReadChunk:
        pick(BAD_TEXTS, bad_texts, "treatment of bad texts")
        pairs = match_pairs(texts, pairs)
        problems = find_problems(texts, pairs, first=first)
        if bad_texts == "stop" and problems:
            raise UserError(next(iter(problems.values())))
        written = [written_text(text) for text in texts]
        good = [place for place in range(len(texts)) if place not in problems]
        asked = [written[place] for place in good], [pairs[place] for place in good]
        pieces = [runtime.tokenizer.encode(*asked) for runtime in self.runtimes]
        return _ReadChunk(written, pairs, problems, pieces)

    def _answer(self, chunk: _ReadChunk) -> Answers:
        n_good = len(chunk.texts) - len(chunk.problems)
        truncated, unreadable = np.zeros(n_good, np.bool_), np.zeros(n_good, np.bool_)
        found: dict[str, TaskAnswers] = {}
        layers = []
        for runtime, pieces in zip(self.runtimes, chunk.pieces, strict=True):
            truncated |= np.fromiter((own.truncated for own in pieces), np.bool_, n_good)
            unreadable |= np.fromiter((own.unreadable for own in pieces), np.bool_, n_good)
            outputs = runtime.compute(pieces)
            if outputs.layers is not None:
                layers.append(outputs.layers)
            for name, logits in outputs.logits.items():
                calibration = runtime.calibration.get(name, Calibration())
                sets = runtime.label_sets.get(name)
                bound = None if sets is None else sets.bound(self.variety).least
                found[name] = to_answers(logits, runtime.tasks[name], calibration, least=bound)
        return Answers(
            chunk.texts,
            chunk.pairs,
            chunk.problems,
            {name: found[name] for name in self.tasks},
            truncated,
            unreadable,
            np.maximum.reduce(layers) if layers else None,
        )

    def stream(
        self, texts: Iterable[str | tuple[str, str] | BadText], *, bad_texts: str = "stop"
    ) -> Iterator[Prediction]:
        """Predictions for any number of texts, or (text, pair) tuples, in order.

        Memory stays constant. While some texts are computed, the next ones are read and cut into
        pieces, so that no core waits. When a text cannot be read, those before it come first.
        bad_texts: see `BAD_TEXTS`.
        """
        for answers in self.stream_columns(texts, bad_texts=bad_texts):
            yield from answers.predictions()

    def stream_columns(
        self,
        texts: Iterable[str | tuple[str, str] | BadText],
        *,
        bad_texts: str = "stop",
        at_once: bool = True,
    ) -> Iterator[Answers]:
        """The same as columns of the texts in a chunk. at_once: whether somebody waits for the
        first answers, so that chunks begin small.
        """

        def ask(chunk: list[tuple[Any, Any]], first: int) -> Answers:
            asked, pairs = zip(*chunk, strict=True)
            return self.answer_columns(asked, pairs=pairs, bad_texts=bad_texts, first=first)

        under_way: deque[Future[Answers]] = deque()
        first = 1
        with stream_pool() as pool:
            for chunk in read_chunks(texts, _FIRST_SIZE if at_once else _LARGEST_SIZE):
                n_left = 1  # so that the pool is never idle
                if isinstance(chunk, Exception):
                    n_left = 0
                elif chunk:
                    under_way.append(pool.submit(ask, chunk, first))
                    first += len(chunk)
                while len(under_way) > n_left or (under_way and under_way[0].done()):
                    yield under_way.popleft().result()
                if isinstance(chunk, Exception):
                    raise chunk
            while under_way:
                yield under_way.popleft().result()

    def map_batches(
        self,
        batch: Any,
        *,
        column: str = "text",
        pair: str | None = None,
        bad_rows: str = "empty",
        all_probabilities: bool = False,
        prefix: str = "",
    ) -> Any:
        """The batch with more columns: `sentiment`, `sentiment_probability`, …, `truncated`,
        `unreadable`, `problem`.

        batch: a pandas DataFrame, a pyarrow Table or RecordBatch, or columns by name (arrays or
        lists); the same kind comes back. To workers of Spark, Dask and Ray Data a `BatchPredictor`
        can be sent. For the options see `TableRequest`.
        """
        return add_predictions(
            batch,
            self.tasks,
            partial(self.stream_columns, bad_texts="empty", at_once=False),
            column=column,
            pair=pair,
            bad_rows=bad_rows,
            all_probabilities=all_probabilities,
            prefix=prefix,
        )

    def explain(
        self,
        text: str,
        *,
        pair: str | None = None,
        task: str | None = None,
        method: str | None = None,
        methods: Sequence[str] | None = None,
        faithfulness: bool = True,
        watch: Watch = ignore_progress,
    ) -> Explanation:
        """Why the model answers as it does, in torch and float32; without torch, by the methods
        that only ask for other answers (`ASKING`).

        One task at a time: the one named, or the first of `tasks`. A text that is too long is
        explained as far as it was read.

        method: the one to show first; None: occlusion. methods: the others; None: all there are.
        faithfulness: measures each method by removing words, which takes most of the time.
        """
        from litotes.explanation.explain import METHOD, explain

        asked = pick(self.tasks, next(iter(self.tasks)) if task is None else task, "task")
        if pair is not None and not pair.strip():
            raise UserError("The pair is empty: leave it out, or give its text.")
        # the answers of the very model that is explained
        runtimes = self.runtimes
        if has_extra("train"):
            runtimes = [runtime.to_torch() for runtime in self.runtimes]
        (answered,) = Predictor(*runtimes, variety=self.variety).predict([text], pairs=[pair])
        answers, layer = answered.answers, answered.answered_at_layer
        if layer is not None:  # where torch looks inside, it looks at the whole model
            whole = [runtime.without_exits() for runtime in runtimes]
            answers = Predictor(*whole, variety=self.variety).predict(text, pairs=pair).answers
        runtime = next(runtime for runtime in runtimes if asked.name in runtime.tasks)
        (read,) = runtime.tokenizer.read([text], [pair])
        how: dict[str, Any] = {
            "method": method or METHOD,
            "methods": methods,
            "is_tested": faithfulness,
            "answered_at_layer": layer,
            "watch": watch,
        }
        model = runtime.model() if has_extra("train") else runtime.without_exits()
        return explain(model, read, answers, asked, **how)

    def describe(self) -> list[str]:
        """Describes what computes the answers, a sentence for each model."""
        return [f"{', '.join(runtime.tasks)}: {runtime.describe()}" for runtime in self.runtimes]


# A predictor for the workers of Spark, Dask and Ray Data: it travels as a path, not as a model.

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

    def map_batches(self, batch: Any, **options: Any) -> Any:
        """See `Predictor.map_batches`, which has the same options."""
        return self.predictor().map_batches(batch, **options)

    __call__ = map_batches

    def predictor(self) -> Predictor:
        """The model of this process."""
        with _LOADING:
            return _load(self, os.getpid())


@cache
def _load(batch_predictor: BatchPredictor, process: int) -> Predictor:
    """process: a fork inherits what was loaded before, but not the threads that compute it."""
    how = asdict(batch_predictor)
    folder, variety = how.pop("folder"), how.pop("variety")
    return Predictor.load(folder, **how).for_variety(variety)


def explain(
    text: str,
    model: Predictor | str | Path = BUILTIN,
    *,
    pair: str | None = None,
    task: str | None = None,
    method: str | None = None,
    faithfulness: bool = True,
    device: str | None = None,
    watch: Watch = ignore_progress,
) -> Explanation:
    """Shows which words an answer rests on; `litotes list methods` names the methods.

    task: which answer to explain; None: that of the model's first task. faithfulness: also measures
    every method by removing the words it names, which takes most of the time.

    >>> explain("Lovely. Another delay.", task="sarcasm", faithfulness=False).task
    'sarcasm'
    """
    if not isinstance(model, Predictor):
        runtime = "torch" if has_extra("train") else "onnx"
        model = Predictor.load(model, device=device, runtime=runtime)
    return model.explain(
        text, pair=pair, task=task, method=method, faithfulness=faithfulness, watch=watch
    )
