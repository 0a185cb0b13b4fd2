"""How sure a model may say it is, and from which probability on it says yes: both are learned from
held-out texts after training.

    probabilities = softmax(logits / T)
    label         = [P(class 1) ≥ threshold] for two classes with a threshold, else the likeliest

T is the temperature of Guo et al. (2017, arXiv 1706.04599, §4.2). It changes no label; the
threshold changes no probability.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from itertools import compress
from math import ceil, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.errors import UserError
from litotes.core.numbers import Counts, Floats, macro_f1
from litotes.core.values import Answer, Label, Task

LOWEST, HIGHEST = 0.05, 20.0
"""Of the temperature: beyond them probabilities are almost 0 and 1, or almost equal."""

NEEDED_WINS = 0.9
"""Share of resamples in which another threshold must beat one half before it replaces it."""

_N_RESAMPLES = 499  # odd, so that the median is one of the candidates
_N_CANDIDATES = 200
_N_HALVINGS = 50


@dataclass(frozen=True)
class Calibration:
    """The temperature and the thresholds of one task.

    `Calibration()` does nothing; `n` is how many texts it was learned from. thresholds: one for
    each label, of a task with several labels for one text (`several_labels.py`).
    """

    temperature: float = 1.0
    threshold: float | None = None
    n: int = 0
    thresholds: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if not is_number(self.temperature) or not LOWEST <= self.temperature <= HIGHEST:
            raise ValueError(
                f"the temperature must be a number from {LOWEST} to {HIGHEST:g}, not"
                f" {self.temperature!r:.60}"
            )
        one = () if self.threshold is None else (self.threshold,)
        for threshold in (*one, *(self.thresholds or ())):
            require_share(threshold, "the threshold")
        require_whole(self.n, 0, "the number of texts calibrated on")

    def as_json(self) -> dict[str, Any]:
        """The thresholds of several labels only where there are such."""
        content = asdict(self)
        if self.thresholds is None:
            del content["thresholds"]
        return content

    @classmethod
    def from_json(cls, content: Any) -> Calibration:
        """Reads a calibration; anything else is an error of Python."""
        several = content.get("thresholds")
        return cls(**{**content, "thresholds": None if several is None else tuple(several)})

    def apply(self, logits: NDArray[Any]) -> tuple[Counts, Floats]:
        """Labels (text,) and probabilities (text, class) of logits (text, class)."""
        probabilities = _softmax(logits / np.float64(self.temperature))
        if self.threshold is None or not len(logits):
            return logits.argmax(1), probabilities
        return (probabilities[:, 1] >= self.threshold).astype(np.int64), probabilities


def fit_calibration(
    logits: NDArray[Any],
    gold: Sequence[int] | Counts,
    *,
    groups: Sequence[object] | None = None,
    with_threshold: bool = True,
) -> Calibration:
    """The calibration of held-out texts. logits (text, class), gold (text,), groups (text,):
    varieties, say.

    The likelihood of texts that are all answered correctly grows as T → 0 without end: it only says
    "at least this sure". Their temperature stays 1, or twenty easy texts would make a model certain
    of everything. A threshold of one half is kept as None.
    """
    logits, gold = _as_arrays(logits, gold)
    if not len(gold):
        return Calibration()
    is_faultless = bool((logits.argmax(1) == gold).all())
    temperature = 1.0 if is_faultless else fit_temperature(logits, gold)
    scaled = Calibration(temperature, None, len(gold))
    if logits.shape[1] != 2 or not with_threshold:
        return scaled
    _, probabilities = scaled.apply(logits)
    threshold = fit_threshold(probabilities[:, 1], gold, groups)
    return Calibration(temperature, None if threshold == 0.5 else threshold, len(gold))


def fit_temperature(logits: NDArray[Any], gold: Sequence[int] | Counts) -> float:
    """The T that makes the gold labels most likely, between LOWEST and HIGHEST; 1 when there is
    nothing to learn from.

        minimise over T   − mean over texts of log softmax(z / T)[gold]

    With β = 1 / T this is convex, and its slope, mean of Σ_c softmax(βz)_c · (z_c − z_gold), grows
    with β. So the slope's sign says on which side of β the best one lies, and halving the interval
    cannot go wrong. logits (text, class), gold (text,)
    """
    logits, gold = _as_arrays(logits, gold)
    if not len(gold):
        return 1.0
    # (text, class): by how much a class leads the gold one
    lead = logits - logits[np.arange(len(gold)), gold, None]

    def slope(beta: float) -> float:
        return float((_softmax(beta * lead) * lead).sum(1).mean())

    wants_hottest, wants_coldest = slope(1 / HIGHEST) >= 0, slope(1 / LOWEST) <= 0
    if wants_hottest and wants_coldest:  # the likelihood is the same everywhere
        return 1.0
    if wants_hottest:
        return HIGHEST
    if wants_coldest:
        return LOWEST
    return min(max(1 / _zero_of(slope, 1 / HIGHEST, 1 / LOWEST), LOWEST), HIGHEST)


def _zero_of(slope: Callable[[float], float], low: float, high: float) -> float:
    """Finds where a rising function crosses 0 between two positive numbers."""
    for _ in range(_N_HALVINGS):
        middle = (low * high) ** 0.5  # half way in the logarithm
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return (low * high) ** 0.5


def fit_threshold(
    probabilities: NDArray[Any],
    gold: Sequence[int] | Counts,
    groups: Sequence[object] | None = None,
) -> float:
    """Finds from which P(class 1) on to answer class 1 for the best macro-F1; with groups, that of
    the worst group.

    The best threshold of a few hundred texts is mostly noise, so it must do no harm: every resample
    of the texts (within their groups) names its best threshold, the median of these is the
    candidate, and it replaces one half only if it beats it in a share NEEDED_WINS of the resamples.
    A group with one class alone cannot tell a threshold from a constant and is left out.
    probabilities (text,), gold (text,), groups (text,)
    """
    probabilities = np.asarray(probabilities, dtype=np.float64)
    gold = np.asarray(gold, dtype=np.int64)
    candidates = _candidate_thresholds(probabilities)
    generator = np.random.default_rng(0)
    scores = [
        # (resample, candidate)
        _resampled_scores(probabilities[members], gold[members], candidates, generator)
        for members in _group_members(gold, groups)
        if 0 < gold[members].sum() < members.sum()
    ]
    if not scores:
        return 0.5
    return _safe_threshold(candidates, np.minimum.reduce(scores))


def _safe_threshold(candidates: Floats, scores: Floats) -> float:
    """The median of the resamples' best candidates, if it beats one half often enough; else one
    half. scores: (resample, candidate)
    """
    # The first of several equal ones wins: the one nearest to one half.
    order = np.argsort(np.abs(candidates - 0.5), kind="stable")
    best = order[scores[:, order].argmax(1)]  # (resample,)
    middle, half = int(np.median(best)), int(order[0])
    share_of_wins = float((scores[:, middle] > scores[:, half]).mean())
    return float(candidates[middle]) if share_of_wins >= NEEDED_WINS else 0.5


def _candidate_thresholds(probabilities: Floats) -> Floats:
    """Lists one half and the middles between neighbouring probabilities, in order; of very many
    some, evenly by rank. (candidate,)
    """
    distinct = np.unique(probabilities)
    middles = (distinct[1:] + distinct[:-1]) / 2
    if len(middles) > _N_CANDIDATES:
        places = np.linspace(0, len(middles) - 1, _N_CANDIDATES).round().astype(np.int64)
        middles = middles[places]
    is_possible = (middles > 0) & (middles < 1)
    return np.unique(np.append(middles[is_possible], 0.5))


def _group_members(gold: Counts, groups: Sequence[object] | None) -> list[NDArray[np.bool_]]:
    """Marks the texts of each group. (group, text)"""
    if groups is None:
        return [np.ones(len(gold), dtype=np.bool_)]
    names, numbers = np.unique([str(group) for group in groups], return_inverse=True)
    return [numbers == number for number in range(len(names))]


def _resampled_scores(
    probabilities: Floats, gold: Counts, candidates: Floats, generator: np.random.Generator
) -> Floats:
    """Macro-F1 of resampled texts at every candidate. (resample, candidate)

    A text matters only through its class and how many candidates it reaches, so drawing texts is a
    multinomial draw of these counts.
    """
    n, n_places = len(gold), len(candidates) + 1
    # (text,): candidates ≤ its probability
    reached = np.searchsorted(candidates, probabilities, side="right")
    counts = np.bincount(gold * n_places + reached, minlength=2 * n_places)
    draws = generator.multinomial(n, counts / n, size=_N_RESAMPLES)
    draws = draws.reshape(_N_RESAMPLES, 2, n_places)
    below = draws.cumsum(2)[:, :, :-1]  # (resample, gold, candidate): answered 0
    above = draws.sum(2, keepdims=True) - below
    # (resample, candidate, gold, predicted)
    confusions = np.stack([below, above], axis=-1).swapaxes(1, 2)
    return macro_f1(confusions, np.array([True, True]))


def _softmax(logits: Floats) -> Floats:
    """Softmax over the last axis."""
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def _as_arrays(logits: NDArray[Any], gold: Sequence[int] | Counts) -> tuple[Floats, Counts]:
    """Converts logits (text, class) and gold (text,) to arrays."""
    logits, gold = np.asarray(logits, dtype=np.float64), np.asarray(gold, dtype=np.int64)
    if not np.isfinite(logits).all():
        raise UserError(
            "The model's logits are not all finite numbers: training has diverged. Train with a"
            " lower learning rate."
        )
    return logits, gold


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < inf


def require_share(value: object, what: str) -> None:
    """Refuses, as a ValueError, what is no share of something."""
    if not is_number(value) or not 0 < value < 1:  # type: ignore[operator]
        raise ValueError(f"{what} must be a number between 0 and 1, not {value!r:.60}")


def require_whole(value: object, least: int, what: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{what} must be a count from {least}, not {value!r:.60}")


# Tasks whose answer may be several labels of one text, or none: each label is decided alone.
#
#     p_c    = 1 / (1 + exp(−z_c / T))
#     given  = {c : p_c ≥ threshold_c}
#
# T is one temperature for all labels (Guo et al. 2017, arXiv 1706.04599, §4.2, for the two classes
# "given" and "not given"). A threshold is learned for each label by the rule of a task with two
# labels (`calibration.fit_threshold`): it stays one half unless another is reliably better.

HALF = 0.5
Flags = NDArray[np.bool_]


def apply_to_each(calibration: Calibration, logits: NDArray[Any]) -> tuple[Flags, Floats]:
    """Marks the labels that are given, with the probability of each; (text, class) both."""
    precise = np.asarray(logits, dtype=np.float64) / calibration.temperature
    probabilities = np.exp(-np.logaddexp(0.0, -precise))
    return probabilities >= thresholds_of(calibration, logits.shape[1]), probabilities


def thresholds_of(calibration: Calibration, n_labels: int) -> Floats:
    """(class,)"""
    if calibration.thresholds is None:
        return np.full(n_labels, HALF)
    return np.array(calibration.thresholds)


def fit_each(
    logits: NDArray[Any],
    gold: NDArray[Any],
    *,
    groups: Sequence[object] | None = None,
    with_threshold: bool = True,
) -> Calibration:
    """The calibration of texts kept apart. logits, gold (1: given): (text, class); groups (text,)

    Texts that are all answered correctly leave the temperature at 1, as of a task with one label.
    """
    if not len(gold):
        return Calibration()
    right = np.asarray(gold).astype(np.int64)
    flat = np.asarray(logits, dtype=np.float64).reshape(-1, 1)
    two = np.concatenate([np.zeros_like(flat), flat], axis=1)  # (text × class, 2)
    temperature = fit_calibration(two, right.reshape(-1), with_threshold=False).temperature
    scaled = Calibration(temperature, None, len(gold))
    if not with_threshold:
        return scaled
    _, probabilities = apply_to_each(scaled, logits)
    columns = zip(probabilities.T, right.T, strict=True)
    thresholds = tuple(fit_threshold(own, given, groups) for own, given in columns)
    return Calibration(temperature, None, len(gold), thresholds)


def label_to_explain(answer: Answer) -> str:
    """The surest of the labels that were given; where none was, the likeliest of all."""
    given = answer.label if isinstance(answer.label, tuple) else ()
    return max(given or answer.probabilities, key=lambda label: answer.probabilities[label])


# Answers that may say "unsure": a set of labels that holds the truth with a promised probability.
#
#     share   c_y = (p_y / t_y) / Σ_k (p_k / t_k)
#     set     {y : c_y ≥ least}
#     least   the k-th largest share of the gold label among n calibration texts,
#             k = ⌈(n + 1) · coverage⌉; 0, which gives every label, if k > n
#
# Split conformal prediction (Vovk, Gammerman & Shafer 2005, §4.2; Angelopoulos & Bates 2021, arXiv
# 2107.07511, §1): if a new text is exchangeable with the calibration texts, its set holds the gold
# label with a probability of at least `coverage`, whatever the model is worth. t is (1 −
# threshold,
# threshold) for two classes with a threshold, else the same for all: a set of one label is then
# always the label that the model answers. With a bound for each variety (Mondrian, ibid. §4.5) the
# promise holds within each of them.


@dataclass(frozen=True)
class Bound:
    """The least share that a label of the set has, learned from n texts."""

    least: float
    n: int

    def __post_init__(self) -> None:
        if not is_number(self.least) or not 0 <= self.least <= 1:
            raise ValueError(f"the least share must be from 0 to 1, not {self.least!r:.60}")
        require_whole(self.n, 1, "the number of texts calibrated on")


@dataclass(frozen=True)
class LabelSets:
    """The bounds of one task: of all texts, and of the varieties that had enough of them."""

    coverage: float
    overall: Bound
    varieties: Mapping[str, Bound] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_share(self.coverage, "the coverage")
        if not all(name.isprintable() for name in self.varieties):
            raise ValueError("the name of a variety holds characters that cannot be printed")

    def bound(self, variety: str | None) -> Bound:
        """Returns the bound of a variety, or of all texts where it has none of its own."""
        return self.overall if variety is None else self.varieties.get(variety, self.overall)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: Any) -> LabelSets:
        """Reads such bounds; anything else is an error of Python."""
        varieties = {name: Bound(**own) for name, own in content["varieties"].items()}
        return cls(**{**content, "overall": Bound(**content["overall"]), "varieties": varieties})


def label_shares(probabilities: Floats, threshold: float | None) -> Floats:
    """Weighs the labels by the threshold, so that the answer has the largest share.

    threshold: that of the task's calibration. (text, class) → (text, class)
    """
    if threshold is None:
        return probabilities
    weighed = probabilities / np.array([1 - threshold, threshold])
    return np.asarray(weighed / weighed.sum(1, keepdims=True))


def fit_bound(shares: NDArray[Any], gold: Sequence[int] | Counts, coverage: float) -> Bound:
    """The bound that calibration texts give. shares (text, class), gold (text,)

    Fewer texts than `needed_texts(coverage)` are a UserError: every set would hold every label.
    """
    require_share(coverage, "the coverage")
    gold = np.asarray(gold, dtype=np.int64)
    n = len(gold)
    if n < needed_texts(coverage):
        raise UserError(too_few(n, coverage))
    own = np.sort(shares[np.arange(n), gold])[::-1]  # (text,): the gold label's, largest first
    return Bound(float(own[_rank(n, coverage) - 1]), n)


def needed_texts(coverage: float) -> int:
    """The fewest texts that can support a coverage: ⌈1 / (1 − coverage)⌉ − 1, at least 1."""
    return max(1, ceil(1 / (1 - _exactly(coverage))) - 1)


def supported_coverage(n: int) -> float:
    """The highest coverage that n texts can promise: n / (n + 1)."""
    return n / (n + 1)


def too_few(n: int, coverage: float) -> str:
    """The sentence for it."""
    texts = "1 text supports" if n == 1 else f"{n} texts support"
    can = f"{texts} a coverage of at most {int(1000 * supported_coverage(n)) / 1000:g}"
    return (
        f"{can}, and {coverage:g} needs {needed_texts(coverage)}: add texts, or ask for less with"
        " --coverage."
    )


def _rank(n: int, coverage: float) -> int:
    return ceil((n + 1) * _exactly(coverage))


def _exactly(coverage: float) -> Fraction:
    """0.9 as nine tenths: the nearest double is a little more, and would cost a rank."""
    return Fraction(repr(float(coverage)))


@dataclass(frozen=True, eq=False)
class TaskAnswers:
    """The answers to one task for some texts, as arrays over these.

    values: of one label its place in `Task.labels`, (text,); of several which are given, (text,
    class); of a regression the number, (text,). probabilities: (text, class), but of a regression
    None. possible: which labels are still possible, (text, class); None: that was not calibrated.
    """

    task: Task
    values: NDArray[Any]
    probabilities: Floats | None = None
    possible: Flags | None = None

    def labels(self) -> Sequence[Label]:
        if self.task.multi_label:
            return _named(self.values, self.task)
        if self.task.is_regression:
            return self.values.tolist()
        return np.array(self.task.labels, dtype=object)[self.values].tolist()

    def shares(self) -> list[float | None]:
        """The probability of each text's label, where it has one."""
        if self.probabilities is None or self.task.multi_label:
            return [None] * len(self.values)
        return np.take_along_axis(self.probabilities, self.values[:, None], 1)[:, 0].tolist()

    def sets(self) -> Sequence[tuple[str, ...] | None]:
        """The labels that are still possible."""
        return (
            [None] * len(self.values) if self.possible is None else _named(self.possible, self.task)
        )

    def objects(self) -> list[Answer]:
        """An Answer for each text, for those who ask for objects."""
        rows = (
            [()] * len(self.values) if self.probabilities is None else self.probabilities.tolist()
        )
        by_label = [dict(zip(self.task.labels, row, strict=False)) for row in rows]
        return list(map(Answer, self.labels(), self.shares(), by_label, self.sets()))


def _named(flags: NDArray[Any], task: Task) -> list[tuple[str, ...]]:
    """The labels that are marked in each row. (text, class)"""
    return [tuple(compress(task.labels, row)) for row in flags.tolist()]


def to_answers(
    logits: NDArray[Any], task: Task, calibration: Calibration, *, least: float | None = None
) -> TaskAnswers:
    """Label and probabilities of every text, or the number. logits: (text, class)

    least: the share from which on a label is possible (`Bound`); None: that is not said.
    """
    if task.is_regression:
        return TaskAnswers(task, logits[:, 0])
    if task.multi_label:
        return TaskAnswers(task, *apply_to_each(calibration, logits))
    places, probabilities = calibration.apply(logits)
    possible = None
    if least is not None:
        possible = label_shares(probabilities, calibration.threshold) >= least
    return TaskAnswers(task, places, probabilities, possible)
