"""Tags and spans, measured: parts of speech, where the sarcasm sits, and pruning that restores.

    PYTHONPATH=src python -m reproduction.tagging --ud-ewt DIR --sign DIR --irony DIR \
        --encoder minilm --out runs/tagging-study [--seeds 5] [--device cuda]

--ud-ewt, --sign, --irony: the folders of the treebank, of Sarcasm SIGN and of TweetEval's irony
(which trains the classifier that is occluded). --encoder: a name or a folder. Everything that is
finished stays in --out: the same command goes on after a stop. Writes OUT/results.json, from which
`python -m reproduction.tagging_page` makes the page.

No setting is chosen on test texts: epochs, the way to prune and the tagging model's threshold come
from held-out training texts, the threshold of occlusion from training tweets; learning rates are
fixed below.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.gpu_facts import gpu_facts
from litotes import train_words
from litotes.core.machine import choose_device, machine_now
from litotes.core.storage import write_json
from litotes.data.words import CHANGED, KEPT, Span, WordExample, load_words, longest_stretch
from litotes.evaluation.scores import interval
from litotes.evaluation.significance import seed_margin, widen_interval
from litotes.model.checkpoint import SavedWordModel
from litotes.prediction.predictor import Predictor
from litotes.pruning.cost import flops
from litotes.training.recipe import WordRecipe, recipe_of
from litotes.training.run import train
from litotes.training.tagging.answers import TextAnswers, answer_texts, make_windows, tags_of
from litotes.training.tagging.course import WordCourse
from litotes.training.tagging.scores import draw_texts, f1_from, most_frequent_tags, span_overlap
from reproduction.roc import roc_area

WAYS: dict[str, dict[str, Any]] = {
    "early": {"schedule": (1.0, 1.0, 0.7, 0.5, 0.35, 0.25)},
    "early, by value": {"schedule": (1.0, 1.0, 0.7, 0.5, 0.35, 0.25), "importance": "value"},
    "late": {"schedule": (1.0, 1.0, 1.0, 0.4, 0.15, 0.15)},
}
"""Ways to remove a third of the operations; `schedule`: what goes on after each layer of six.
Held-out training texts choose among them. The first alone had been run, and scored on the test
texts, when the others were added.
"""
N_TUNED = 300
"""Training tweets by which the threshold of occlusion is chosen."""


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    study = Study(options)
    results: dict[str, Any] = {
        "machine": machine_now() | gpu_facts(choose_device(options.device)),
        "settings": {
            "seeds": options.seeds,
            "epochs": options.epochs,
            "encoder": Path(options.encoder).name,
            "device": str(choose_device(options.device)),
            "ways": {name: study.pruning_options(name) for name in WAYS},
        },
    }
    for name, measure in (
        ("parts_of_speech", study.parts_of_speech),
        ("locus", study.locus),
        ("span", study.span),
    ):
        results[name] = study.kept(name, measure)
        write_json(options.out / "results.json", results)
        print(f"{name}: done", flush=True)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m reproduction.tagging")
    parser.add_argument("--ud-ewt", type=Path, required=True)
    parser.add_argument("--sign", type=Path, required=True)
    parser.add_argument("--irony", type=Path, required=True)
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--device")
    parser.add_argument("--texts", type=int, help="of each split, for a trial")
    return parser.parse_args(arguments)


class Study:
    """What all measurements share: options, data, and a folder of finished work."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.out: Path = options.out
        self.sources = {
            "ud-ewt": self._source("ud-ewt", options.ud_ewt),
            "sarcasm-sign": self._source("sarcasm-sign", options.sign),
        }

    def _source(self, name: str, path: Path) -> str:
        """The source itself, or for a trial a part of it, written out as JSON lines."""
        spec, limit = f"{name}:{path}", self.options.texts
        if limit is None:
            return spec
        corpus = load_words(spec)
        lines = []
        for split in ("train", "test"):
            for one in corpus.only(split).examples[:limit]:
                row = {"words": one.words, "tags": one.tags, "split": split}
                lines.append(json.dumps(row | ({"span": one.span} if one.has_span else {})))
        file = self.out / f"{name}-{limit}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(lines) + "\n", "utf-8")
        return f"words:{file}?task={corpus.task}&words={corpus.cutting}"

    def kept(self, name: str, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """A finished measurement is read, not made again."""
        options = self.options
        key = json.dumps([options.seeds, options.epochs, options.texts, options.encoder])
        file = self.out / f"{name}.json"
        if file.is_file():
            content: dict[str, Any] = json.loads(file.read_text("utf-8"))
            if content.pop("key") == key:
                return content
        content = measure()
        write_json(file, content | {"key": key})
        return content

    @cached_property
    def n_layers(self) -> int:
        from litotes.encoder import pretrained

        return len(pretrained.load(self.options.encoder).encoder.spec.walk)

    def pruning_options(self, way: str) -> dict[str, Any]:
        """One of `WAYS`, its schedule stretched over the encoder's layers."""
        options = dict(WAYS[way])
        shares = options.pop("schedule")
        depths = np.linspace(0, len(shares) - 1, self.n_layers)
        found = np.interp(depths, range(len(shares)), shares)
        return {"schedule": [round(float(share), 4) for share in found], "restore": True, **options}

    def recipe(self, source: str, kind: str, seed: int, *, way: str | None = None) -> WordRecipe:
        model: dict[str, Any] = {"encoder": self.options.encoder}
        if way is not None:
            model |= {"pruning": "cascade", "pruning_options": self.pruning_options(way)}
        training = {
            "epochs": self.options.epochs,
            "learning_rate": 1e-4 if source == "ud-ewt" else 5e-5,
            "head_learning_rate": 1e-3,
        }
        content = {"kind": kind, "seed": seed, "data": {"source": self.sources[source]}}
        return WordRecipe.of(content | {"model": model, "training": training}, "reproduction")

    def train(self, source: str, kind: str, seed: int, *, way: str | None = None) -> SavedWordModel:
        name = f"{source}-{kind}{f'-{way}' if way else ''}-{seed}".replace(", ", "-")
        recipe = self.recipe(source, kind, seed, way=way)
        folder, device = self.out / "models" / name.replace(" ", "-"), self.options.device
        run = train_words(recipe, folder, device=device, resume=True)
        print(f"  {name}: trained", flush=True)
        run.model.network.to(choose_device(device))
        return run.model

    def parts_of_speech(self) -> dict[str, Any]:
        """Dense and pruned, beside each word's most frequent tag."""
        corpus = load_words(self.sources["ud-ewt"])
        test = corpus.only("test").examples
        gold = [list(one.tags or ()) for one in test]
        seeds = range(self.options.seeds)
        dense = [self.train("ud-ewt", "tagging", seed) for seed in seeds]
        counts = [accuracy_counts(gold, tag_texts(model, test)) for model in dense]
        train_part, _ = corpus.without_leaks()
        frequent = most_frequent_tags(train_part.only("train").examples, test)
        frequent_counts = [accuracy_counts(gold, frequent)]
        ways = {}
        for way in WAYS:
            pruned = [self.train("ud-ewt", "tagging", seed, way=way) for seed in seeds]
            own = [accuracy_counts(gold, tag_texts(model, test)) for model in pruned]
            ways[way] = summarise(own, ratio) | {
                "held_out": float(np.mean([held_out_score(model) for model in pruned])),
                "less_dense": compare(own, counts, ratio),
                "cost": cost_of(dense[0], pruned[0], test),
            }
        return {
            "n_texts": len(test),
            "n_words": sum(map(len, gold)),
            "n_train": len(train_part.only("train")),
            "dense": summarise(counts, ratio),
            "ways": ways,
            "chosen": max(ways, key=lambda way: ways[way]["held_out"]),
            "most_frequent_tag": summarise(frequent_counts, ratio),
            "dense_less_frequent": compare(counts, frequent_counts, ratio),
        }

    def locus(self) -> dict[str, Any]:
        """Words that were changed, beside answers that need no such model."""
        corpus = load_words(self.sources["sarcasm-sign"])
        clean, _ = corpus.without_leaks()
        train_part, test = clean.only("train").examples, corpus.only("test").examples
        gold = [list(one.tags or ()) for one in test]
        seeds = range(self.options.seeds)
        models = [self.train("sarcasm-sign", "tagging", seed) for seed in seeds]
        answers = [word_answers(model, test) for model in models]
        counts = [
            f1_counts(gold, tags_from(found, model), CHANGED)
            for found, model in zip(answers, models, strict=True)
        ]
        lines = self._locus_lines(train_part, test)
        rows: dict[str, Any] = {"model": summarise(counts, f1)}
        rows["model"]["auc"] = float(
            np.mean([word_auc(gold, changed_shares(found), CHANGED) for found in answers])
        )
        tuned = [
            f1_counts(gold, mark_from(changed_shares(found), self._threshold(model, seed)), CHANGED)
            for seed, found, model in zip(seeds, answers, models, strict=True)
        ]
        rows["model_tuned"] = summarise(tuned, f1)
        for name, line in lines.items():
            own = [f1_counts(gold, line["tags"], CHANGED)]
            rows[name] = summarise(own, f1) | {"less_than_model": compare(tuned, own, f1)}
            if "scores" in line:
                rows[name]["auc"] = word_auc(gold, line["scores"], CHANGED)
                rows[name]["threshold"] = line["threshold"]
        share = float(np.mean([tag == CHANGED for tags in gold for tag in tags]))
        return {"n_texts": len(test), "changed_share": share, "rows": rows}

    def _threshold(self, model: SavedWordModel, seed: int) -> float:
        """From which probability on a word is marked, by the texts that this model held out."""
        recipe = self.recipe("sarcasm-sign", "tagging", seed)
        held_out = WordCourse(recipe).held_out
        if held_out is None:
            raise ValueError("the recipe holds no texts out to choose a threshold by")
        examples = held_out.examples
        return best_threshold(examples, changed_shares(word_answers(model, examples)))

    def _locus_lines(
        self, train_part: Sequence[WordExample], test: Sequence[WordExample]
    ) -> dict[str, dict[str, Any]]:
        tagger = self.train("ud-ewt", "tagging", 0)
        adjectives = [
            [CHANGED if tag == "ADJ" else KEPT for tag in tags] for tags in tag_texts(tagger, test)
        ]
        classifier = self._classifier()
        tuned = list(train_part[:N_TUNED])
        threshold = best_threshold(tuned, occlusion(classifier, tuned))
        weights = occlusion(classifier, test)
        return {
            "all_words": {"tags": [[CHANGED] * len(one.words) for one in test]},
            "adjectives": {"tags": adjectives},
            "frequent_tag": {"tags": most_frequent_tags(train_part, test)},
            "occlusion": {
                "tags": mark_from(weights, threshold),
                "scores": weights,
                "threshold": threshold,
            },
            "occlusion_share": {"tags": mark_strongest(weights, changed_share(train_part))},
        }

    def _classifier(self) -> Predictor:
        """Sarcasm of whole tweets, from other tweets: what occlusion asks."""
        content = {
            "data": {"source": f"irony:{self.options.irony}"},
            "model": {"encoder": self.options.encoder, "head": "mean"},
            "training": {"epochs": min(self.options.epochs, 4), "learning_rate": 5e-5},
        }
        recipe = recipe_of(content, "reproduction")
        folder = self.out / "models" / "irony"
        run = train(recipe, folder, device=self.options.device, resume=True)
        print("  irony: trained", flush=True)
        return Predictor(run.model, device=self.options.device)

    def span(self) -> dict[str, Any]:
        """The longest changed stretch, beside the whole tweet and the stretch of the tags."""
        test = load_words(self.sources["sarcasm-sign"]).only("test").examples
        gold = [one.span for one in test]
        seeds = range(self.options.seeds)
        models = [self.train("sarcasm-sign", "span", seed) for seed in seeds]
        counts = [
            span_counts(gold, [one.span for one in word_answers(model, test)]) for model in models
        ]
        taggers = [self.train("sarcasm-sign", "tagging", seed) for seed in seeds]
        from_tags = []
        for model in taggers:
            found = [longest_stretch(tags, CHANGED) for tags in tag_texts(model, test)]
            from_tags.append(span_counts(gold, found))
        whole = [span_counts(gold, [(0, len(one.words)) for one in test])]
        rows = {"model": counts, "longest_of_tags": from_tags, "whole_text": whole}
        rows["none"] = [span_counts(gold, [None] * len(test))]
        content: dict[str, Any] = {"n_texts": len(test), "rows": {}}
        for name, own in rows.items():
            content["rows"][name] = {
                "exact_match": summarise(own, ratio),
                "overlap_f1": summarise(own, second_ratio),
            }
        return content


# Means over seeds with intervals, from what each text adds to a score.
#
# Texts are drawn with replacement, the same for all seeds and both systems of a comparison; the
# spread over seeds widens the interval (`litotes.evaluation.significance`).

Floats = NDArray[np.float64]
Combine = Callable[[Floats], Floats]
"""From sums over texts (…, count) to a score (…)."""


def accuracy_counts(gold: Sequence[Sequence[str]], found: Sequence[Sequence[str]]) -> Floats:
    """Right words and words of each text. (text, 2)"""
    rows = []
    for tags, answers in zip(gold, found, strict=True):
        right = sum(one == other for one, other in zip(tags, answers, strict=True))
        rows.append((right, len(tags)))
    return np.array(rows, float)


def f1_counts(gold: Sequence[Sequence[str]], found: Sequence[Sequence[str]], label: str) -> Floats:
    """Hits, words found and words meant of each text. (text, 3)"""
    rows = []
    for tags, answers in zip(gold, found, strict=True):
        meant = [tag == label for tag in tags]
        given = [tag == label for tag in answers]
        hits = sum(one and other for one, other in zip(meant, given, strict=True))
        rows.append((hits, sum(given), sum(meant)))
    return np.array(rows, float)


def span_counts(gold: Sequence[Span | None], found: Sequence[Span | None]) -> Floats:
    """Exact match, overlap F1 and 1 of each text. (text, 3)"""
    rows = []
    for one, other in zip(gold, found, strict=True):
        rows.append((float(one == other), span_overlap(one, other), 1.0))
    return np.array(rows)


def ratio(sums: Floats) -> Floats:
    """The first count by the last."""
    return np.asarray(sums[..., 0] / np.maximum(sums[..., -1], 1))


def second_ratio(sums: Floats) -> Floats:
    return np.asarray(sums[..., 1] / np.maximum(sums[..., -1], 1))


def f1(sums: Floats) -> Floats:
    return f1_from(sums[..., 0], sums[..., 1], sums[..., 2])


def summarise(counts: Sequence[Floats], combine: Combine, *, seed: int = 0) -> dict[str, Any]:
    """The mean over seeds, with its interval. counts: of each seed (text, count)"""
    by_seed, drawn = _scores(counts, combine, seed=seed)
    over_texts = interval(drawn.mean(0))
    mean = float(by_seed.mean())
    bounds = widen_interval(mean, over_texts, seed_margin(by_seed), within=(0.0, 1.0))
    return {"mean": mean, "interval": bounds, "by_seed": by_seed.tolist()}


def compare(
    counts: Sequence[Floats], others: Sequence[Floats], combine: Combine, *, seed: int = 0
) -> dict[str, Any]:
    """The mean of the first less that of the others, on the same texts."""
    ours, our_draws = _scores(counts, combine, seed=seed)
    theirs, their_draws = _scores(others, combine, seed=seed)
    difference = float(ours.mean() - theirs.mean())
    over_texts = interval(our_draws.mean(0) - their_draws.mean(0))
    margin = seed_margin(ours, theirs)
    bounds = widen_interval(difference, over_texts, margin, within=(-1.0, 1.0))
    return {"difference": difference, "interval": bounds}


def word_auc(gold: Sequence[Sequence[str]], scores: Sequence[Sequence[float]], label: str) -> float:
    """How often a word with the label has the higher score of two; ties count half."""
    meant = np.array([tag == label for tags in gold for tag in tags])
    values = np.array([score for own in scores for score in own], float)
    return roc_area(values, meant)


def _scores(counts: Sequence[Floats], combine: Combine, *, seed: int) -> tuple[Floats, Floats]:
    """The score of each seed, (seed,), and on each resample, (seed, resample)."""
    draws = draw_texts(len(counts[0]), seed=seed)  # (resample, text)
    by_seed = np.array([float(combine(own.sum(0))) for own in counts])
    return by_seed, np.stack([combine(draws @ own) for own in counts])


# What models of words, and a classifier with words left out, answer to texts of words.

N_TIMED = 5

Tags = list[list[str]]


def word_answers(model: SavedWordModel, examples: Sequence[WordExample]) -> list[TextAnswers]:
    words = [one.words for one in examples]
    windows = make_windows(words, model.tokenizer, model.network.kind)
    return answer_texts(model.network, windows)


def tags_from(answers: Sequence[TextAnswers], model: SavedWordModel) -> Tags:
    return [tags_of(one, model.network.task) for one in answers]


def tag_texts(model: SavedWordModel, examples: Sequence[WordExample]) -> Tags:
    return tags_from(word_answers(model, examples), model)


def held_out_score(model: SavedWordModel) -> float:
    """What the model scored on the texts it held out, after its best epoch."""
    return max(float(line["held_out"]) for line in model.facts["history"])


def changed_shares(answers: Sequence[TextAnswers]) -> list[list[float]]:
    """The probability that each word was changed."""
    found = []
    for one in answers:
        assert one.probabilities is not None
        found.append(one.probabilities[:, 1].tolist())
    return found


def occlusion(classifier: Predictor, examples: Sequence[WordExample]) -> list[list[float]]:
    """What the probability of sarcasm loses without each word; a text of one word loses all."""
    texts: list[str] = []
    for one in examples:
        texts.append(one.text)
        for place in range(len(one.words)):
            rest = " ".join((*one.words[:place], *one.words[place + 1 :]))
            texts.append(rest or ".")
    shares = [
        found.answers["sarcasm"].probabilities["sarcastic"] for found in classifier.predict(texts)
    ]
    weights, place = [], 0
    for one in examples:
        own = shares[place : place + 1 + len(one.words)]
        weights.append([own[0] - without for without in own[1:]])
        place += len(own)
    return weights


def best_threshold(examples: Sequence[WordExample], weights: Sequence[Sequence[float]]) -> float:
    """The weight from which words are marked so that F1 on these texts is highest."""
    values = np.array([weight for own in weights for weight in own])
    meant = np.array([tag == CHANGED for one in examples for tag in one.tags or ()])
    order = np.argsort(-values, kind="stable")
    hits = meant[order].cumsum()
    n_marked = np.arange(1, len(order) + 1)
    scores = 2 * hits / (n_marked + meant.sum())
    return float(values[order][int(scores.argmax())])


def changed_share(examples: Sequence[WordExample]) -> float:
    """Of all words."""
    return float(np.mean([tag == CHANGED for one in examples for tag in one.tags or ()]))


def mark_from(weights: Sequence[Sequence[float]], threshold: float) -> Tags:
    """The words whose weight reaches the threshold."""
    return [[CHANGED if weight >= threshold else KEPT for weight in own] for own in weights]


def mark_strongest(weights: Sequence[Sequence[float]], share: float) -> Tags:
    """Of each text this share of its words, at least one: those with the greatest weights."""
    found = []
    for own in weights:
        n_marked = max(1, round(share * len(own)))
        marked = set(np.argsort(-np.array(own), kind="stable")[:n_marked].tolist())
        found.append([CHANGED if place in marked else KEPT for place in range(len(own))])
    return found


def cost_of(
    dense: SavedWordModel, pruned: SavedWordModel, examples: Sequence[WordExample]
) -> dict[str, Any]:
    """Operations of the encoders, and seconds to answer all texts, taking turns."""
    windows = make_windows([one.words for one in examples], dense.tokenizer, "tagging")
    lengths = [len(window.pieces.ids) for own in windows for window in own]
    operations = [flops(model.network.encoder, lengths).total for model in (dense, pruned)]
    seconds: list[list[float]] = [[], []]
    for _ in range(N_TIMED):
        for place, model in enumerate((dense, pruned)):
            began = time.perf_counter()
            answer_texts(model.network, windows)  # ends with logits on the host
            seconds[place].append(time.perf_counter() - began)
    medians = [median(own) for own in seconds]
    return {
        "operations": operations,
        "fewer_operations": operations[0] / operations[1],
        "seconds": medians,
        "faster": medians[0] / medians[1],
    }


if __name__ == "__main__":
    main()
