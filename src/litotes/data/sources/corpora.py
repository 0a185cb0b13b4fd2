"""Corpora that are read in the form their authors publish them in, and those that are built in."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from litotes.data.sources.source import FACTS, choice, number, whole_number
from litotes.data.tables import read_rows
from litotes.data.tables.files import find_file, find_files, require_file
from litotes.data.tables.rows import Row, read_header, read_records, require_columns, rows_from

_TASKS = {task.name: task for task in (SENTIMENT, SARCASM)}


def _corpus(name: str, examples: Iterable[Example], *tasks: Task) -> Corpus:
    return Corpus(name, tuple(examples), {task.name: task for task in tasks})


# --- Corpora that are one layout: a file a split, a column for the text, one for the label


@dataclass(frozen=True)
class Layout:
    """The files, columns and labels of a corpus.

    labels: by their spellings; none: the task is a regression. folder: where the files may lie
    inside the folder that is given.
    """

    name: str
    task: str
    labels: Mapping[str, str] = field(default_factory=dict)
    # the official test files of GLUE are unlabelled
    files: Mapping[str, str] = field(
        default_factory=lambda: {"train": "train.tsv", "valid": "dev.tsv"}
    )
    label: str = "label"
    text: str = "text"
    pair: str | None = None
    source: str | None = None
    folder: str = ""
    quotes: bool = False

    def read(self, path: Path, options: Mapping[str, str]) -> Corpus:
        """Reads the files of a folder."""
        path = path / self.folder if (path / self.folder).is_dir() else path
        needs = [column for column in (self.text, self.pair, self.label) if column is not None]
        examples = [
            Example(
                row.text(self.text),
                {self.task: self._label(row)},
                None if self.pair is None else row.text(self.pair),
                source=self.source,
                split=split,
            )
            for split, file in find_files(path, self.files).items()
            for row in read_rows(file, needs=needs, quotes=self.quotes)
        ]
        return _corpus(self.name, examples, Task(self.task, tuple(self.labels.values())))

    def _label(self, row: Row) -> Label:
        if self.labels:
            return row.translate(self.label, self.labels)
        score = row.as_number(self.label)
        if not 0 <= score <= 5:
            raise UserError(
                f"{row.at(self.label)}: a similarity of {score} does not lie between 0 and 5. Mend"
                " it, or take the row out."
            )
        return score


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
        text, source = row.text("text"), row.require_word("source")
        labels = {name: row.translate(name, task.labels) for name, task in _TASKS.items()}
        split = split_by_hash(text_key(text), test_share=0.3)
        examples.append(Example(text, labels, variety=variety, source=source, split=split))
    return _corpus("sampler", examples, *_TASKS.values())


def read_meant(name: str, test_share: float) -> Callable[[Path, Mapping[str, str]], Corpus]:
    """Reads texts labelled by what is meant, and by what they look like.

    `contrast`: on the same topic and in nearly the same words, what is said is once meant and once
    not. `asides`: remarks as people make them, mostly without a sign of whether they are sarcastic.
    test_share: of the topics; a topic is either trained on or tested on.
    """

    def read(path: Path, options: Mapping[str, str]) -> Corpus:
        sentiment = SENTIMENT if choice(options, "classes", ("2", "3")) == "2" else SENTIMENT_3
        needs = ("text", "topic", "form", "kind", "sentiment", "sarcasm")
        rows = [(variety, row, row.require_word("kind")) for variety, row in _builtin(name, needs)]
        kinds, value = {kind for _, _, kind in rows}, options.get("kind", "all")
        chosen = kinds if value == "all" else value.split("+")
        for kind in chosen:
            if kind not in kinds:
                raise UserError(f"kind={value}: {unknown_name(kind, kinds, 'kind of text')}")
        examples = []
        for variety, row, kind in rows:
            if kind not in chosen:
                continue
            topic, meant = row.require_word("topic"), row.require_word("sentiment")
            labels = {"sarcasm": row.translate("sarcasm", SARCASM.labels)}
            if meant in sentiment.labels:
                labels["sentiment"] = meant
            text, source = row.text("text"), row.require_word("form")
            split = split_by_hash(topic, test_share=test_share)
            examples.append(Example(text, labels, None, variety, source, split, group=topic))
        return _corpus(name, examples, sentiment, SARCASM)

    return read


# --- BESSTIE


_VARIETIES = {variety.casefold(): variety for variety in ("en-AU", "en-IN", "en-UK")}
_ADJECTIVES = {"en-au": "australian", "en-in": "indian", "en-uk": "british"}
_SOURCES = {source.casefold(): source for source in ("Google", "Reddit")}


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
    return _corpus("besstie", examples, *_TASKS.values())


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
    columns = first.values.keys()
    is_long = "label" in columns or "task" in columns
    if is_long:
        require_columns(str(path), columns, ("label", "task"))
    elif split != "test":  # an unlabelled test file has neither column
        require_columns(str(path), columns, tuple(_TASKS))
    examples = [
        Example(
            row.text("text"),
            _long_labels(row, split) if is_long else _wide_labels(row),
            None,
            row.translate("variety", _VARIETIES, "variety"),
            row.translate("source", _SOURCES, "source"),
            split,
        )
        for row in chain([first], rows)
    ]
    return _merge_tasks(examples) if is_long else examples


def _wide_labels(row: Row) -> dict[str, str]:
    named = (task for task in _TASKS if row.word(task) is not None)
    return {task: row.translate(task, SPELLINGS[task]) for task in named}


def _long_labels(row: Row, split: str) -> dict[str, str]:
    task = row.translate("task", _TASKS.keys(), "task")
    if split == "test" and row.word("label") is None:
        return {}
    return {task: row.translate("label", SPELLINGS[task])}


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
    examples = []
    for row in _twitter_rows(file):
        label, group = row.translate("sentiment", _TWITTER_LABELS), row.require_word("id")
        if label and len(row.values["text"].split()) >= max(min_words, 1):
            labels = {SENTIMENT.name: label}
            examples.append(Example(row.text("text"), labels, source="Twitter", group=group))
    if not examples:
        raise UserError(
            f"{file} has no positive or negative text of {min_words} words or more: choose a"
            " smaller min_words."
        )
    # paraphrases share an id
    return _corpus("twitter", _split_by_group(examples), SENTIMENT)


def _split_by_group(examples: Sequence[Example]) -> list[Example]:
    """A tenth becomes the test split. A few texts occur in two groups: texts and groups must each
    stay in one split.
    """
    ties = [(("group", one.group), ("text", text_key(one.text))) for one in examples]
    roots = (examples[root] for root in components(ties))
    return [
        replace(one, split=split_by_hash(str(root.group), test_share=0.1))
        for one, root in zip(examples, roots, strict=True)
    ]


def _twitter_rows(path: Path) -> Iterator[Row]:
    records = read_records(path)
    first = next(records)
    header = [name.casefold() for name in read_header(path, first)]
    # the original file begins with its first tweet
    if "sentiment" not in header and "text" not in header:
        return rows_from(path, _TWITTER_COLUMNS, chain([first], records))
    require_columns(str(path), header, _TWITTER_COLUMNS)
    return rows_from(path, header, records)


# --- Bicodemix


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
        own_language = row.translate(_LANGUAGE, _LANGUAGES, "language")
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
    return _corpus("bicodemix", examples, sentiment, SARCASM)


# --- iSarcasmEval


_ISARCASM_FILES = {"train": "train.En.csv", "test": "task_A_En_test.csv"}


def read_isarcasm(path: Path, options: Mapping[str, str]) -> Corpus:
    """Reads tweets whose own authors say which are sarcastic, and say what they meant.

    Abu Farha et al. 2022, "SemEval-2022 Task 6: iSarcasmEval, Intended Sarcasm Detection in English
    and Arabic": the English training and test files in a folder.
    """
    has_rephrased = choice(options, "rephrased", ("no", "yes")) == "yes"
    examples = []
    for split, file in find_files(path, _ISARCASM_FILES).items():
        text = "tweet" if split == "train" else "text"
        rephrased = ["rephrase"] if has_rephrased and split == "train" else []
        for row in read_rows(file, needs=[text, "sarcastic", *rephrased]):
            if row.word(text) is None:
                continue  # one tweet of the official training file is empty
            said = {text: row.translate("sarcastic", SPELLINGS["sarcasm"])}
            if said[text] == "sarcastic":
                said |= {one: "literal" for one in rephrased if row.word(one) is not None}
            # a tweet and what was meant by it say the same: the group keeps them in one split
            examples += [
                Example(
                    row.text(column),
                    {SARCASM.name: label},
                    source="iSarcasm",
                    split=split,
                    group=f"{split} {row.number}",
                )
                for column, label in said.items()
            ]
    return _corpus("isarcasm", examples, SARCASM)


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
    examples = [
        replace(one, labels={SENTIMENT.name: "positive" if rating > 0 else "negative"})
        for one, rating in ratings(path)
        if rating and abs(rating) >= least  # a mean of exactly 0 takes no side
    ]
    if not examples:
        raise UserError(
            f"{path} has no text rated {least:g} or further from 0: choose a smaller least."
        )
    return _corpus("vader", _split_by_group(examples), SENTIMENT)


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


CORPORA = {
    "sampler": read_sampler,
    "contrast": read_meant("contrast", test_share=0.3),
    "asides": read_meant("asides", test_share=0.15),
    "besstie": read_besstie,
    "twitter": read_twitter,
    "bicodemix": read_bicodemix,
    "vader": read_vader,
    "isarcasm": read_isarcasm,
    **{
        name: Layout(name, **facts["layout"]).read
        for name, facts in FACTS["texts"].items()
        if "layout" in facts
    },
}
