"""Corpora that are read in the form their authors publish them in, and those that are built in."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from itertools import chain
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.registry import unknown_name
from litotes.core.values import Example, Label, Task
from litotes.data.corpus import (
    SARCASM,
    SENTIMENT,
    SENTIMENT_3,
    SPELLINGS,
    SPLIT_WORDS,
    SPLITS,
    Corpus,
    components,
    split_by_hash,
    text_key,
)
from litotes.data.sources.source import choice, number, whole_number
from litotes.data.tables import read_rows
from litotes.data.tables.files import find_file, find_files, require_file
from litotes.data.tables.rows import Row, read_records, require_columns, rows_from

_TASKS = {task.name: task for task in (SENTIMENT, SARCASM)}


def _require_folder(path: Path, files: Iterable[str]) -> None:
    if not path.is_dir():
        raise UserError(f"{path} is not a folder: give the one that holds {', '.join(files)}.")


# --- Corpora that are one layout: a file a split, a column for the text, one for the label


@dataclass(frozen=True)
class Layout:
    """Which files, columns and spellings a corpus has; a task without labels is a regression.

    folder: where the files may lie inside the folder that is given. spellings: of the labels;
    empty: as they are.
    """

    name: str
    files: Mapping[str, str]
    task: Task
    spellings: Mapping[str, str]
    label: str = "label"
    text: str = "text"
    pair: str | None = None
    source: str | None = None
    folder: str = ""
    quotes: bool = True

    def read(self, path: Path, options: Mapping[str, str]) -> Corpus:
        """Reads the files of a folder."""
        path = path / self.folder if (path / self.folder).is_dir() else path
        _require_folder(path, self.files.values())
        needs = [column for column in (self.text, self.pair, self.label) if column is not None]
        examples = []
        for split, file in find_files(path, self.files).items():
            for row in read_rows(file, needs=needs, quotes=self.quotes):
                label: Label
                if self.task.is_regression:
                    label = self._score(row)
                else:
                    label = row.translate(self.label, self.spellings)
                pair = None if self.pair is None else row.text(self.pair)
                labels = {self.task.name: label}
                text = row.text(self.text)
                examples.append(Example(text, labels, pair, source=self.source, split=split))
        return Corpus(self.name, tuple(examples), {self.task.name: self.task})

    def _score(self, row: Row) -> float:
        score = row.as_number(self.label)
        if not 0 <= score <= 5:
            raise UserError(
                f"{row.at(self.label)}: a similarity of {score} does not lie between 0 and 5. Mend"
                " it, or take the row out."
            )
        return score


# Van Hee et al. 2018, "SemEval-2018 Task 3: Irony Detection in English Tweets"; Barbieri et al.
# 2020, "TweetEval": found by their hashtags and then judged by people. Irony is read as sarcasm,
# which it mostly is: a score here says how far a model of sarcasm generalises.
IRONY = Layout(
    "irony",
    {"train": "train.csv", "valid": "val.csv", "test": "test.csv"},
    SARCASM,
    SPELLINGS["sarcasm"],
    source="irony tweets",
)


_FILES = {"train": "train.tsv", "valid": "dev.tsv"}  # the official test files are unlabelled
_ENTAILMENT = Task("entailment", ("entailment", "not_entailment"))
_AS_THEY_ARE = {word: word for word in _ENTAILMENT.labels}
_PARAPHRASE = Task("paraphrase", ("different", "paraphrase"))
_NUMBERS = dict(zip("01", _PARAPHRASE.labels, strict=True))
_SIDES = dict(zip("01", SENTIMENT.labels, strict=True))
# Wang et al. 2019, "GLUE: A Multi-Task Benchmark and Analysis Platform for Natural Language
# Understanding", ICLR: five of its tasks, to compare with published numbers.
GLUE = {
    f"glue/{name}": Layout(
        f"glue/{name}", _FILES, task, spellings, label, text, pair, folder=folder, quotes=False
    )
    for name, folder, task, spellings, label, text, pair in (
        ("sst2", "SST-2", SENTIMENT, _SIDES, "label", "sentence", None),
        ("rte", "RTE", _ENTAILMENT, _AS_THEY_ARE, "label", "sentence1", "sentence2"),
        ("qnli", "QNLI", _ENTAILMENT, _AS_THEY_ARE, "label", "question", "sentence"),
        ("mrpc", "MRPC", _PARAPHRASE, _NUMBERS, "Quality", "#1 String", "#2 String"),
        ("stsb", "STS-B", Task("similarity", ()), {}, "score", "sentence1", "sentence2"),
    )
}

# --- Built in: a file of rows for each variety


def _builtin(corpus: str, needs: Collection[str]) -> Iterator[tuple[str, Row]]:
    """The rows of a corpus, each with its variety."""
    with as_file(files("litotes.data") / corpus) as folder:
        for file in sorted(folder.glob("*.jsonl")):
            for row in read_rows(file, needs=needs):
                yield file.stem, row


def read_sampler(path: Path, options: Mapping[str, str]) -> Corpus:
    """Reads invented texts in three varieties of English, for trying things out."""
    examples = []
    for variety, row in _builtin("sampler", ("text", "source", *_TASKS)):
        text = row.text("text")
        labels = {
            name: row.translate(name, {word: word for word in task.labels})
            for name, task in _TASKS.items()
        }
        split = split_by_hash(text_key(text), test_share=0.3)
        source = row.require_word("source")
        examples.append(Example(text, labels, variety=variety, source=source, split=split))
    return Corpus("sampler", tuple(examples), _TASKS)


_KINDS = """
advice complaint deadpan hyperbole idiom joke litotes negation plain politeness praise question
quoted thanks understatement
"""
CONTRAST_KINDS = tuple(_KINDS.split())
"""What a text looks like, sarcastic or not."""
ASIDES_KINDS = tuple(sorted((*CONTRAST_KINDS, "agreement")))


def meant_options(kinds: Iterable[str]) -> dict[str, str]:
    """Describes the options of a corpus that is labelled by what is meant."""
    return {
        "classes": "2 (default) takes the sentiment label from texts without sentiment; 3 calls"
        " them neutral",
        "kind": f"all (default), or some, with + between: {', '.join(kinds)}",
    }


def read_meant(
    name: str, kinds: Collection[str], test_share: float
) -> Callable[[Path, Mapping[str, str]], Corpus]:
    """Reads texts labelled by what is meant, and by what they look like.

    `contrast`: on the same topic and in nearly the same words, what is said is once meant and once
    not. `asides`: remarks as people make them, mostly without a sign of whether they are sarcastic.
    test_share: of the topics; a topic is either trained on or tested on.
    """

    def read(path: Path, options: Mapping[str, str]) -> Corpus:
        sentiment = SENTIMENT if choice(options, "classes", ("2", "3")) == "2" else SENTIMENT_3
        value = options.get("kind", "all")
        chosen = kinds if value == "all" else value.split("+")
        for kind in chosen:
            if kind not in kinds:
                raise UserError(f"kind={value}: {unknown_name(kind, kinds, 'kind of text')}")
        examples = []
        needs = ("text", "topic", "form", "kind", "sentiment", "sarcasm")
        for variety, row in _builtin(name, needs):
            if row.require_word("kind") not in chosen:
                continue
            topic, meant = row.require_word("topic"), row.require_word("sentiment")
            labels = {"sarcasm": row.translate("sarcasm", {word: word for word in SARCASM.labels})}
            if meant in sentiment.labels:
                labels["sentiment"] = meant
            text, source = row.text("text"), row.require_word("form")
            split = split_by_hash(topic, test_share=test_share)
            examples.append(Example(text, labels, None, variety, source, split, group=topic))
        return Corpus(name, tuple(examples), {"sentiment": sentiment, "sarcasm": SARCASM})

    return read


# --- BESSTIE


_LABELS = {  # as floats too: that is how a table with an empty cell in the column stores them
    task.name: dict(zip(("0", "1", "0.0", "1.0"), task.labels * 2, strict=True))
    for task in _TASKS.values()
}
_VARIETIES = {variety.casefold(): variety for variety in ("en-AU", "en-IN", "en-UK")}
_ADJECTIVES = {"en-au": "australian", "en-in": "indian", "en-uk": "british"}
_SOURCES = {source.casefold(): source for source in ("Google", "Reddit")}

BESSTIE_OPTIONS = {
    "split": "train, valid or test: the split of a single file whose name does not say it",
    "prefix": "variety puts source and variety before every text, as words the model reads (none)",
}


def read_besstie(path: Path, options: Mapping[str, str]) -> Corpus:
    """Reads a folder with train, valid and test files, or one such file.

    Srirag et al. 2025, "BESSTIE: A Benchmark for Sentiment and Sarcasm Classification for Varieties
    of English", ACL Findings; in the long form it is published in (a row for each text and task)
    and in the wide form of the ALTA 2026 shared task.
    """
    has_prefix = choice(options, "prefix", ("none", "variety")) == "variety"
    examples: list[Example] = []
    for split, file in _besstie_files(path, options).items():
        examples += _besstie_examples(file, split)
    if has_prefix:
        examples = [
            replace(one, text=with_prefix(one.text, str(one.variety), str(one.source)))
            for one in examples
        ]
    return Corpus("besstie", tuple(examples), _TASKS)


def with_prefix(text: str, variety: str, source: str) -> str:
    """Puts source and variety before a text.

    BESSTIE gives both, and how often a text is sarcastic depends on them.

    >>> with_prefix("Cheers for nothing", variety="en-UK", source="Reddit")
    'reddit british: Cheers for nothing'
    """
    return f"{source.casefold()} {_ADJECTIVES.get(variety.casefold(), variety)}: {text}"


def _besstie_files(path: Path, options: Mapping[str, str]) -> dict[str, Path]:
    if path.is_dir():
        if "split" in options:
            raise UserError(
                f"split={options['split']} is for a single file, and {path} is a folder: leave it"
                " out."
            )
        return find_files(path, {split: f"{split}.csv" for split in SPLITS})
    require_file(path)
    if "split" in options:
        return {choice(options, "split", SPLITS): path}
    words = re.findall("[a-z]+", path.name.lower())
    named = {SPLIT_WORDS[word] for word in words if word in SPLIT_WORDS}
    if len(named) != 1:
        raise UserError(
            f"The name of {path} does not say its split: add ?split=train, ?split=valid or"
            " ?split=test."
        )
    return {named.pop(): path}


def _besstie_examples(path: Path, split: str) -> Iterable[Example]:
    rows = read_rows(path, needs=("text", "variety", "source"))
    first = next(rows)
    columns, all_rows = first.values.keys(), chain([first], rows)
    if "label" in columns or "task" in columns:  # the long form
        require_columns(str(path), columns, ("label", "task"))
        return _merge_tasks(_labelled(row, _long_labels(row, split), split) for row in all_rows)
    if split != "test":  # an unlabelled test file has neither column
        require_columns(str(path), columns, tuple(_TASKS))
    return [
        _labelled(
            row,
            {
                task: row.translate(task, _LABELS[task])
                for task in _TASKS
                if row.word(task) is not None
            },
            split,
        )
        for row in all_rows
    ]


def _long_labels(row: Row, split: str) -> dict[str, str]:
    task = row.translate("task", {name: name for name in _TASKS}, "task")
    if split == "test" and row.word("label") is None:
        return {}
    return {task: row.translate("label", _LABELS[task])}


def _labelled(row: Row, labels: Mapping[str, Label], split: str) -> Example:
    variety = row.translate("variety", _VARIETIES, "variety")
    source = row.translate("source", _SOURCES, "source")
    return Example(row.text("text"), labels, None, variety, source, split)


def _merge_tasks(examples: Iterable[Example]) -> Iterable[Example]:
    """The rows of a text for the two tasks as one; a second row for the same task stays apart."""
    merged: dict[tuple[str, str | None, str | None, int], Example] = {}
    for item in examples:
        n_copies = 0
        while True:
            key = (item.text, item.variety, item.source, n_copies)
            earlier = merged[key].labels if key in merged else {}
            if not earlier.keys() & item.labels.keys():
                break
            n_copies += 1  # a label given again, which the audit must see
        merged[key] = replace(item, labels={**earlier, **item.labels})
    return merged.values()


# --- Tweets about brands and games


_TWITTER_COLUMNS = ("id", "entity", "sentiment", "text")
# texts of the last two are left out
_TWITTER_LABELS = {"positive": "positive", "negative": "negative", "neutral": "", "irrelevant": ""}


def read_twitter(path: Path, options: Mapping[str, str]) -> Corpus:
    """Reads the positive and negative texts of a file, or of twitter_training.csv in a folder.

    The Twitter entity-sentiment data set: 74,682 tweets, of which the long ones are read.
    """
    min_words = whole_number(options, "min_words", 40)
    file = find_file(path, "twitter_training.csv")
    kept = []
    for row in _twitter_rows(file):
        label = row.translate("sentiment", _TWITTER_LABELS)
        if label and len(row.values["text"].split()) >= max(min_words, 1):
            kept.append((row, label))
    if not kept:
        raise UserError(
            f"{file} has no positive or negative text of {min_words} words or more: choose a"
            " smaller min_words."
        )
    # paraphrases share an id, and a few texts occur under two ids: each must stay in one split
    ties = [
        (("id", row.require_word("id")), ("text", text_key(row.values["text"]))) for row, _ in kept
    ]
    examples = []
    for (row, label), root in zip(kept, components(ties), strict=True):
        first, _ = kept[root]
        split = split_by_hash(first.values["id"], test_share=0.1)
        labels, group = {SENTIMENT.name: label}, row.values["id"]
        examples.append(
            Example(row.text("text"), labels, source="Twitter", split=split, group=group)
        )
    return Corpus("twitter", tuple(examples), {SENTIMENT.name: SENTIMENT})


def _twitter_rows(path: Path) -> Iterator[Row]:
    records = read_records(path)
    first = next(records)
    header = [field.strip().casefold() for field in first.fields]
    # the original file begins with its first tweet
    if "sentiment" not in header and "text" not in header:
        return rows_from(path, _TWITTER_COLUMNS, chain([first], records))
    require_columns(f"{path}, line {first.first.number}", header, _TWITTER_COLUMNS)
    return rows_from(path, header, records)


# --- Bicodemix


BICODEMIX_OPTIONS = {
    "lang": "en (default), my, cm (code-mixed) or all",
    "kind": "all (default), comment or reply",
    "classes": "3 (default); 2 takes the sentiment label from neutral texts",
}
_TEXT, _REPLY, _LANGUAGE = "comment/tweet", "2nd level comment/ reply", "lang_id"
_LANGUAGES = ("en", "my", "cm")


def read_bicodemix(path: Path, options: Mapping[str, str]) -> Corpus:
    """Reads the comments of one language, or of all.

    Md Suhaimin et al. 2024, "Annotated dataset for sentiment analysis and sarcasm detection:
    Bilingual code-mixed English-Malay social media data in the public security domain", Data in
    Brief 55: 10,000 Malaysian social-media comments.
    """
    language = choice(options, "lang", (*_LANGUAGES, "all"))
    kind = choice(options, "kind", ("all", "comment", "reply"))
    sentiment = SENTIMENT if choice(options, "classes", ("3", "2")) == "2" else SENTIMENT_3
    columns = {"sarcasm": "majority_sarc", "sentiment": "majority_sent"}
    file = find_file(path, "annotated_bicodemix_publicsa_v2.csv")
    examples = []
    for row in read_rows(file, needs=(_TEXT, _REPLY, *columns.values(), _LANGUAGE)):
        own_language = row.translate(_LANGUAGE, {one: one for one in _LANGUAGES}, "language")
        # In spite of its name the column holds a flag, and where that is not set, numbers that a
        # spreadsheet has spoilt.
        own_kind = "reply" if row.word(_REPLY) == "Yes" else "comment"
        if language not in ("all", own_language) or kind not in ("all", own_kind):
            continue
        labels = {"sarcasm": row.translate(columns["sarcasm"], SPELLINGS["sarcasm"])}
        if row.word(columns["sentiment"]) is not None:
            word = row.translate(columns["sentiment"], SPELLINGS["sentiment"])
            if word in sentiment.labels:
                labels["sentiment"] = word
        text = row.text(_TEXT)
        split = split_by_hash(text_key(text), test_share=0.2)
        examples.append(Example(text, labels, source="Bicodemix", split=split))
    if not examples:
        raise UserError(f"{file} has no text with lang={language} and kind={kind}: choose others.")
    return Corpus("bicodemix", tuple(examples), {"sentiment": sentiment, "sarcasm": SARCASM})


# --- iSarcasmEval


_ISARCASM_FILES = {"train": "train.En.csv", "test": "task_A_En_test.csv"}


def read_isarcasm(path: Path, options: Mapping[str, str]) -> Corpus:
    """Reads tweets whose own authors say which are sarcastic, and say what they meant.

    Abu Farha et al. 2022, "SemEval-2022 Task 6: iSarcasmEval, Intended Sarcasm Detection in English
    and Arabic": the English training and test files in a folder.
    """
    has_rephrased = choice(options, "rephrased", ("no", "yes")) == "yes"
    _require_folder(path, _ISARCASM_FILES.values())
    examples = []
    for split, file in find_files(path, _ISARCASM_FILES).items():
        text = "tweet" if split == "train" else "text"
        rephrased = ["rephrase"] if has_rephrased and split == "train" else []
        for row in read_rows(file, needs=[text, "sarcastic", *rephrased]):
            if row.word(text) is None:
                continue  # one tweet of the official training file is empty
            label = row.translate("sarcastic", SPELLINGS["sarcasm"])
            said = [(text, label)]
            if label == "sarcastic":
                said += [(one, "literal") for one in rephrased if row.word(one) is not None]
            # a tweet and what was meant by it say the same: the group keeps them in one split
            group = f"{split} {row.number}"
            for column, own in said:
                labels = {"sarcasm": own}
                examples.append(
                    Example(row.text(column), labels, source="iSarcasm", split=split, group=group)
                )
    return Corpus("isarcasm", tuple(examples), {SARCASM.name: SARCASM})


# --- VADER


_VADER_FILES = {
    "tweets": "tweets_GroundTruth.txt",
    "film reviews": "movieReviewSnippets_GroundTruth.txt",
    "product reviews": "amazonReviewSnippets_GroundTruth.txt",
    "editorials": "nytEditorialSnippets_GroundTruth.txt",
}


def read_vader(path: Path, options: Mapping[str, str]) -> Corpus:
    """Reads the texts that people found positive or negative; a tenth of them is the test split.

    Twenty people rated each sentence from −4 to 4. Hutto and Gilbert 2014, "VADER: A Parsimonious
    Rule-based Model for Sentiment Analysis of Social Media Text", ICWSM.
    """
    least = number(options, "least", 0.5)
    _require_folder(path, _VADER_FILES.values())
    # a mean of exactly 0 takes no side
    rated = [(one, rating) for one, rating in ratings(path) if rating and abs(rating) >= least]
    if not rated:
        raise UserError(
            f"{path} has no text rated {least:g} or further from 0: choose a smaller least."
        )
    # some texts occur in two documents: texts and documents must each stay in one split
    ties = [(("document", one.group), ("text", text_key(one.text))) for one, _ in rated]
    examples = []
    for (one, rating), root in zip(rated, components(ties), strict=True):
        labels = {SENTIMENT.name: "positive" if rating > 0 else "negative"}
        split = split_by_hash(str(rated[root][0].group), test_share=0.1)
        examples.append(replace(one, labels=labels, split=split))
    return Corpus("vader", tuple(examples), {SENTIMENT.name: SENTIMENT})


def ratings(folder: Path) -> list[tuple[Example, float]]:
    """Reads every sentence of VADER, without a label, and its mean rating, document by document."""
    found = []
    for domain, file in find_files(folder, _VADER_FILES).items():
        # the files have no header and no quoting
        records = read_records(file, delimiter="\t", quotes=False)
        for row in rows_from(file, ("id", "rating", "text"), records):
            rating = row.as_number("rating")
            # the review or article a sentence is from: the number before the underscore
            document = f"{domain} {row.require_word('id').partition('_')[0]}"
            text = row.text("text")
            found.append((Example(text, {}, source=domain, group=document), rating))
    return found
