"""How often does the search for slices err? `python -m reproduction.slice_errors`

Corpora of random texts, a fifth of which are answered wrongly: first at random, so that every slice
confirmed is wrong; then with one word whose texts are answered wrongly more often.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from litotes.core.values import Answer, Example, Task
from litotes.evaluation.evaluate import TaskPredictions
from litotes.evaluation.slices.search import find_slices

TASK = Task("mood", ("calm", "angry"))
WORDS = [f"w{chr(97 + number // 26)}{chr(97 + number % 26)}" for number in range(120)]
PLANTED = WORDS[7]
USUAL = 0.2
"""The error rate where nothing is planted."""


def random_corpus(n: int, seed: int, *, inside: float = USUAL) -> TaskPredictions:
    """N texts of 5 to 29 of the words; those with the planted word are wrong at the rate
    `inside`.
    """
    generator = np.random.default_rng(seed)
    examples, answers = [], []
    for number in range(n):
        words = generator.choice(WORDS, size=int(generator.integers(5, 30)), replace=False)
        gold = int(generator.random() < 0.4)
        is_wrong = generator.random() < (inside if PLANTED in words else USUAL)
        variety = ("a", "b")[int(generator.integers(2))]
        text = " ".join([f"x{number}", *words])
        examples.append(Example(text, {TASK.name: TASK.labels[gold]}, variety=variety))
        answers.append(Answer(TASK.labels[gold != is_wrong], 0.8))
    flags = (False,) * n
    return TaskPredictions(TASK, tuple(examples), tuple(answers), flags, flags)


def confirmed_words(n: int, seed: int, *, inside: float = USUAL) -> list[str]:
    found = find_slices({TASK.name: random_corpus(n, seed, inside=inside)}, seed=seed)
    return [one.name for one in found.confirmed()]


def share(found: Sequence[bool]) -> str:
    return f"{np.mean(found):.3f} of {len(found)}"


def main() -> None:
    nothing = [bool(confirmed_words(300, 5000 + seed)) for seed in range(400)]
    print(f"nothing planted, a slice confirmed: {share(nothing)} corpora of 300 texts")
    for inside in (0.4, 0.55):
        words = [confirmed_words(800, 9000 + seed, inside=inside) for seed in range(100)]
        hits = [PLANTED in own for own in words]
        print(f"{USUAL:g} wrong, {inside:g} with a word: found in {share(hits)} of 800 texts")


if __name__ == "__main__":
    main()
