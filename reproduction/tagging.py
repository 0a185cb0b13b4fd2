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
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from litotes.core.machine import choose_device, gpu_facts, machine_now
from litotes.core.storage import write_json
from litotes.data.words import WordExample, load_words
from litotes.data.words.sarcasm_sign import CHANGED, KEPT, longest_stretch
from litotes.model.checkpoint import SavedWordModel
from litotes.prediction.predictor import Predictor
from litotes.training.recipe import recipe_of as classifier_recipe_of
from litotes.training.run import train
from litotes.training.tagging.baselines import most_frequent_tags
from litotes.training.tagging.preparing import prepare_words
from litotes.training.tagging.recipe import WordRecipe, recipe_of
from litotes.training.tagging.run import train_words
from reproduction.word_answers import (
    best_threshold,
    changed_share,
    changed_shares,
    cost_of,
    held_out_score,
    mark_from,
    mark_strongest,
    occlusion,
    tag_texts,
    tags_from,
    word_answers,
)
from reproduction.word_statistics import (
    accuracy_counts,
    compare,
    f1,
    f1_counts,
    ratio,
    second_ratio,
    span_counts,
    summarise,
    word_auc,
)

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
        return recipe_of(content | {"model": model, "training": training}, "reproduction")

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
        held_out = prepare_words(recipe, load_words(recipe.data.source)).held_out
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
        recipe = classifier_recipe_of(content, "reproduction")
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


if __name__ == "__main__":
    main()
