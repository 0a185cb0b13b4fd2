"""Models that answer words: a label for each (tagging), or a stretch of them (span).

tagging:  L = Σ_w c_{y_w} · (−log p_w[y_w]) / Σ_w c_{y_w}        over all words of the batch
span:     L = 1/2n Σ_texts (−log softmax(s)_i − log softmax(e)_j)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from litotes.core.errors import UserError
from litotes.core.json_text import read_as
from litotes.core.storage import write_json
from litotes.core.values import MISSING, Example, Task
from litotes.data.words import WordCorpus, labels_of, load_words
from litotes.encoder import pretrained
from litotes.encoder.layout import Layout
from litotes.model.checkpoint import SavedWordModel, load_word_model, save_word_model
from litotes.model.classifier import WordModel
from litotes.model.folder import write_trained_texts
from litotes.training.card import word_card
from litotes.training.checkpoints import RunState
from litotes.training.course import Course, Run
from litotes.training.losses import class_weights
from litotes.training.objective import Objective, RunContext
from litotes.training.recipe import WordRecipe
from litotes.training.tagging.answers import WordSet, evaluate_words, make_word_set
from litotes.training.tagging.scores import TagScores, most_frequent_tags, score_tags

FREQUENT = "most_frequent_tag"


class WordObjective(Objective):
    """A model of words learns the windows of `words`."""

    def __init__(
        self,
        network: WordModel,
        words: WordSet,
        recipe: WordRecipe,
        context: RunContext,
        *,
        validate: Callable[[], float | None] | None = None,
    ) -> None:
        self.network, self.words = network, words
        settings, task = recipe.training, network.task
        self.score_name = held_out_score(recipe)[0]
        self.weights: Tensor | None = None  # (label,)
        if network.kind == "tagging":
            weights = torch.ones(len(task.labels))
            if settings.class_weights:
                weights = class_weights(torch.cat(words.targets), task)
            self.weights = weights.to(context.device)
        super().__init__(
            network,
            network.encoder,
            settings,
            context,
            seed=recipe.seed,
            lengths=words.lengths,
            validate=validate,
        )

    def losses(self, batch: Sequence[int], step: int) -> Iterator[Sequence[Tensor]]:
        own, weight = self.share(batch)
        normaliser = total_weight(self._targets(batch), self.weights)
        for part in self.divide(own, self.lengths):
            words = self.words.batch(part, self.device)
            with self.autocast():
                logits = self.network(words)  # (word, label); of a span (position, 2)
            targets = self._targets(part)
            if self.weights is None:
                loss = span_loss(logits, targets, words.places.texts)
            else:
                loss = functional.cross_entropy(
                    logits.float(),
                    targets,
                    weight=self.weights,
                    ignore_index=MISSING,
                    reduction="sum",
                )
            yield [weight * loss / normaliser]

    def _targets(self, places: Sequence[int]) -> Tensor:
        return self.words.targets_of(places).to(self.device, non_blocking=True)


def total_weight(targets: Tensor, weights: Tensor | None) -> Tensor:
    """Returns the divisor of a sum of losses. weights: of labels; None: each target counts 1."""
    known = targets[targets != MISSING]
    total = known.new_tensor(len(known)).float() if weights is None else weights[known].sum()
    return total.clamp(min=1e-6)


def span_loss(logits: Tensor, targets: Tensor, texts: Layout) -> Tensor:
    """The sum over texts. logits (position, [start, end]), targets (text, 2)"""
    # each text's positions as a row, −inf beyond its end: (text, position, 2)
    rows = logits.new_full((texts.n_texts, texts.longest, 2), -torch.inf, dtype=torch.float)
    rows = rows.index_put((texts.texts, texts.positions), logits.float())
    scores = rows.transpose(1, 2).flatten(0, 1)  # (text × 2, position)
    return functional.cross_entropy(
        scores, targets.flatten(), ignore_index=MISSING, reduction="sum"
    )


def held_out_score(recipe: WordRecipe) -> tuple[str, str]:
    """Names what epochs are judged by, in words and as a field of the scores: where labels are
    weighed, rare ones count as much as others.
    """
    if recipe.kind == "span":
        return "overlap F1", "overlap_f1"
    return ("macro-F1", "macro_f1") if recipe.training.class_weights else ("accuracy", "accuracy")


class WordCourse(Course):
    """From a `WordRecipe` to a model folder, tested next to the most frequent tag of each word."""

    recipe: WordRecipe

    def __init__(self, recipe: WordRecipe, **given: Any) -> None:
        super().__init__(recipe, **given)
        corpus = load_words(recipe.data.source)
        self.notes = list(corpus.notes)
        self._prepare(self._without_leaks(corpus.for_kind(recipe.kind)))
        parts = (self.train, self.held_out, self.tested)
        hashes = ["" if part is None else part.fingerprint() for part in parts]
        self.fingerprint = sha256("".join(hashes).encode()).hexdigest()
        self.key = f"{recipe.key()}-{self.fingerprint[:16]}"

    def _without_leaks(self, corpus: WordCorpus) -> WordCorpus:
        """The texts with leaks treated as the recipe says."""
        clean, n_leaks = corpus.without_leaks()
        is_dropped = self.recipe.data.leaks == "drop"
        if n_leaks:
            leaks = f"{n_leaks} training texts also sit in another split and were"
            self.notes.append(
                f"{leaks} dropped. Keep them with --set data.leaks=keep."
                if is_dropped
                else f"WARNING: {leaks} kept, as told: scores on it will be too high."
            )
        return clean if is_dropped else corpus

    def _prepare(self, corpus: WordCorpus) -> None:
        """Divides the texts into those to learn from, to choose the epoch by, to test on."""
        recipe, is_tagging = self.recipe, self.recipe.kind == "tagging"
        self.train, self.held_out = corpus.only("train"), None
        if not self.train.examples:
            raise UserError(f"{recipe.data.source} has no training texts.")
        if is_tagging and len(labels_of(self.train.examples)) < 2:
            raise UserError(
                f"The training texts of {corpus.name} carry one label: nothing to learn."
            )
        self.task = Task(self.train.task, corpus.labels if is_tagging else ())
        share = recipe.training.held_out
        if share:
            self.train, self.held_out = self.train.hold_out(share, seed=recipe.seed)
        found = (corpus.only(split) for split in ("test", "valid"))
        self.tested = next((part for part in found if part.examples), None)
        if self.tested is None:
            self.notes.append(
                "There is no test split: the model is not tested. Add test=0.2 to the source, or"
                " test the model on other texts with `litotes evaluate`."
            )

    def begin(self, context: RunContext) -> Objective:
        recipe, model = self.recipe, self.recipe.model
        source = pretrained.load(model.encoder, **model.attention_choices())
        torch.manual_seed(recipe.seed)  # the head's first weights
        network = WordModel(source.encoder, self.task, kind=recipe.kind, dropout=model.dropout)
        self.model = SavedWordModel(
            network.to(context.device),
            source.tokenizer,
            source.name,
            source.sha256,
            self.train.cutting,
        )
        self.words = make_word_set(self.train.examples, self.task, source.tokenizer, recipe.kind)
        validate = None if self.held_out is None else self._judge
        return WordObjective(network, self.words, recipe, context, validate=validate)

    def _judge(self) -> float:
        assert self.held_out is not None
        found = evaluate_words(self.model.network, self.model.tokenizer, self.held_out)
        return float(getattr(found, held_out_score(self.recipe)[1]))

    def test(self, state: RunState, context: RunContext) -> Run:
        network, train = self.model.network.eval(), self.train
        if n_cut := self.words.n_cut:
            self.notes.append(
                f"{n_cut} of {len(train)} training texts hold more than the encoder reads at once"
                f" and were cut at {max(self.words.lengths)} pieces."
            )
        data = {"name": train.name, "sha256": self.fingerprint, "n_train": len(train)}
        model = replace(self.model, facts=self.facts(state, data, self.notes))
        scores: dict[str, Any] = {}
        if self.tested is not None:
            found = evaluate_words(
                network, model.tokenizer, self.tested, seed=self.recipe.seed, watch=context.watch
            )
            scores = found.as_json()
            if isinstance(found, TagScores):
                scores["baselines"] = {FREQUENT: self._frequent_scores(self.tested)}
        return Run(context.folder, (model,), scores, tuple(self.notes))

    def _frequent_scores(self, tested: WordCorpus) -> dict[str, Any]:
        """Scores each word's most frequent tag in training on the test texts."""
        gold = [one.tags or () for one in tested]
        answers = most_frequent_tags(self._seen(), tested.examples)
        content = score_tags(self.task.name, self.task.labels, gold, answers).as_json()
        del content["labels"]
        return content

    def _seen(self) -> list[Any]:
        """All texts that the model or a choice about it depends on."""
        return [*self.train, *(self.held_out or ())]

    def save(self, run: Run) -> None:
        write_json(run.folder / "scores.json", run.scores)
        write_trained_texts(run.folder, [Example(one.text, {}) for one in self._seen()])
        save_word_model(run.model, run.folder, card=word_card(run.model, run.scores))

    def load(self, folder: Path) -> tuple[str, Run]:
        model = load_word_model(folder)
        scores = read_as(folder / "scores.json", dict[str, Any], advice="Choose another --out.")
        notes = tuple(model.facts["notes"])
        return str(model.facts.get("key")), Run(folder, (model,), scores, notes)
