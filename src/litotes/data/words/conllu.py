"""ud-ewt: words and universal parts of speech from files in the form of Universal Dependencies.

De Marneffe et al. 2021, "Universal Dependencies"; Silveira et al. 2014, "A Gold Standard Dependency
Corpus for English". A folder with train, dev and test files, or one file. Where there is no train
file, dev is learned from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from litotes.core.errors import UserError
from litotes.data.tables.files import read_lines, require_file
from litotes.data.words.corpus import WordCorpus, WordExample, check_tags, check_words, labels_of

TASK = "part_of_speech"
_N_COLUMNS, _FORM, _TAG = 10, 1, 3


def read(path: Path, options: Mapping[str, str]) -> WordCorpus:
    files, notes = _find(path)
    examples: list[WordExample] = []
    for split, file in files.items():
        for words, tags in _sentences(file):
            examples.append(WordExample(words, tags, split=split))
    return WordCorpus("ud-ewt", TASK, labels_of(examples), tuple(examples), notes=notes)


def _find(path: Path) -> tuple[dict[str, Path], tuple[str, ...]]:
    """The files by split, and what should be known about them."""
    if not path.is_dir():
        require_file(path)
        return {"train": path}, ()
    found: dict[str, Path] = {}
    for name in ("train", "dev", "test"):
        files = sorted(path.glob(f"*{name}*.conllu")) or sorted(path.glob(f"*{name}*.conllu.gz"))
        if files:
            found[name] = files[0]
    if not found:
        raise UserError(f"{path} holds no train, dev or test file that ends in .conllu (or .gz).")
    if "train" not in found and "dev" in found:
        note = f"{path} has no train file: its dev file is learned from."
        return {"train": found.pop("dev"), **found}, (note,)
    if "dev" in found:
        found["valid"] = found.pop("dev")
    return found, ()


def _sentences(file: Path) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    words: list[str] = []
    tags: list[str] = []
    for number, line in read_lines(file):
        place, columns = f"{file}, line {number}", line.rstrip("\r\n").split("\t")
        if not columns[0].strip():
            if words:
                yield check_words(words, place), check_tags(tags, place)
            words, tags = [], []
        elif not columns[0].startswith("#"):
            if len(columns) != _N_COLUMNS:
                raise UserError(
                    f"{place}: {len(columns)} columns where CoNLL-U has {_N_COLUMNS}, with tabs"
                    " between them."
                )
            # 3-4 stands for the words 3 and 4 together, 8.1 for one that is not written
            if columns[0].isdigit():
                words.append("_".join(columns[_FORM].split()))
                tags.append(columns[_TAG])
    if words:
        place = f"{file}, its end"
        yield check_words(words, place), check_tags(tags, place)
