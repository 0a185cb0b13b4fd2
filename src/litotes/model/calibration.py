"""How sure a model may say it is, and from which probability on it says yes: both are learned from
held-out texts after training.

    probabilities = softmax(logits / T)
    label         = [P(class 1) ≥ threshold] for two classes with a threshold, else the likeliest

T is the temperature of Guo et al. (2017, arXiv 1706.04599, §4.2). It changes no label; the
threshold changes no probability.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litotes.core.errors import UserError
from litotes.core.numbers import Counts, Floats, macro_f1

LOWEST, HIGHEST = 0.05, 20.0
"""Of the temperature: beyond them probabilities are almost 0 and 1, or almost equal."""

NEEDED_WINS = 0.9
"""Share of resamples in which another threshold must beat one half before it replaces it."""

_N_RESAMPLES = 499  # odd, so that the median is one of the candidates
_N_CANDIDATES = 200
_N_HALVINGS = 50


@dataclass(frozen=True)
class Calibration:
    """What is done to the logits of one task.

    `Calibration()` does nothing; `n` is how many texts it was learned from. thresholds: one for
    each label, of a task with several labels for one text (`several_labels.py`).
    """

    temperature: float = 1.0
    threshold: float | None = None
    n: int = 0
    thresholds: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        temperature, threshold = self.temperature, self.threshold
        if not (_is_number(temperature) and LOWEST <= temperature <= HIGHEST):
            raise ValueError(
                f"the temperature must be a number from {LOWEST} to {HIGHEST:g}, not"
                f" {temperature!r}"
            )
        for one in (threshold, *(self.thresholds or ())):
            if one is not None and not (_is_number(one) and 0 < one < 1):
                raise ValueError(f"the threshold must be a number between 0 and 1, not {one!r:.60}")
        is_whole = isinstance(self.n, int) and not isinstance(self.n, bool)
        if not is_whole or self.n < 0:
            raise ValueError(f"the number of texts calibrated on must be a count, not {self.n!r}")

    def __repr__(self) -> str:
        """Without what it does not have: its text is part of what names a model's answers."""
        several = "" if self.thresholds is None else f", thresholds={self.thresholds}"
        own = f"temperature={self.temperature}, threshold={self.threshold}, n={self.n}"
        return f"Calibration({own}{several})"

    def as_json(self) -> dict[str, Any]:
        """The thresholds of several labels only where there are such."""
        content = asdict(self)
        several = content.pop("thresholds")
        return content if several is None else content | {"thresholds": list(several)}

    @classmethod
    def from_json(cls, content: Any) -> Calibration:
        """Reads and checks it; what is not a calibration is a ValueError."""
        keys = {"temperature", "threshold", "n"}
        if not isinstance(content, dict) or set(content) - {"thresholds"} != keys:
            raise ValueError(f"a calibration has a temperature, a threshold and n, not {content!r}")
        if "thresholds" not in content:
            return cls(**content)
        several = content["thresholds"]
        if not isinstance(several, list) or None in several:
            raise ValueError(f"the thresholds must be a list of numbers, not {several!r:.60}")
        return cls(**{**content, "thresholds": tuple(several)})

    def apply(self, logits: NDArray[Any]) -> tuple[Counts, Floats]:
        """Labels (text,) and probabilities (text, class) of logits (text, class)."""
        probabilities = _softmax(logits / np.float64(self.temperature))
        if self.threshold is None or not len(logits):
            return logits.argmax(1), probabilities
        if logits.shape[1] != 2:
            raise ValueError(
                f"a threshold decides between 2 classes, not between {logits.shape[1]}"
            )
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
    """Where a rising function crosses 0 between two positive numbers."""
    for _ in range(_N_HALVINGS):
        middle = (low * high) ** 0.5  # half way in the logarithm
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return (low * high) ** 0.5


def fit_threshold(
    probabilities: NDArray[Any],
    gold: Sequence[int] | Counts,
    groups: Sequence[object] | None = None,
) -> float:
    """From which P(class 1) on to answer class 1, so that macro-F1 is best; with groups, that of
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
    """One half and the middles between neighbouring probabilities, in order; of very many some,
    evenly by rank. (candidate,)
    """
    distinct = np.unique(probabilities)
    middles = (distinct[1:] + distinct[:-1]) / 2
    if len(middles) > _N_CANDIDATES:
        places = np.linspace(0, len(middles) - 1, _N_CANDIDATES).round().astype(np.int64)
        middles = middles[places]
    is_possible = (middles > 0) & (middles < 1)
    return np.unique(np.append(middles[is_possible], 0.5))


def _group_members(gold: Counts, groups: Sequence[object] | None) -> list[NDArray[np.bool_]]:
    """For each group, which texts are in it. (group, text)"""
    if groups is None:
        return [np.ones(len(gold), dtype=np.bool_)]
    if len(groups) != len(gold):
        raise ValueError(f"{len(groups)} groups for {len(gold)} texts")
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
    """Over the last axis."""
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def _as_arrays(logits: NDArray[Any], gold: Sequence[int] | Counts) -> tuple[Floats, Counts]:
    """Both as arrays, if they fit each other."""
    logits, gold = np.asarray(logits, dtype=np.float64), np.asarray(gold, dtype=np.int64)
    if logits.ndim != 2 or gold.shape != logits.shape[:1]:
        raise ValueError(
            f"logits (text, class) and gold (text,) do not fit: {logits.shape} and {gold.shape}"
        )
    if len(gold) and not 0 <= gold.min() <= gold.max() < logits.shape[1]:
        raise ValueError(
            f"gold has class {gold.min()} or {gold.max()}, the logits have {logits.shape[1]}"
            " classes"
        )
    if not np.isfinite(logits).all():
        raise UserError(
            "The model's logits are not all finite numbers: training has diverged. Train with a"
            " lower learning rate."
        )
    return logits, gold


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
