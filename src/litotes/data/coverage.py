"""Coverage: how much of what is frequent in one part of a corpus is frequent in another part too.

    coverage(A, B) = |A ∩ B| / |A|,   A, B: the `top` most frequent pieces (or words) of each part

It is figure 1 of the paper the project grew from, "Percentage of top 1000 most frequent words
shared across datasets". What the paper calls words are the word pieces of bert-base-uncased that
the encoder reads of the *training* texts: at most 512 of a text, without [CLS] and [SEP],
punctuation counted like the rest. Unit so, BESSTIE's Reddit cells come out within 0.003 of
figures 1b and 1c. Real words, or the pieces a long text loses to the encoder's limit, take the
numbers further away (docs/results/coverage.md).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

from litotes.core.errors import UserError
from litotes.core.figures import new_figure, text_colour
from litotes.data.corpus import Corpus

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TOP = 1000
# texts tokenized at once: a corpus of pieces would fill the memory, their counts do not
_CHUNK = 512
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


@dataclass(frozen=True)
class Part:
    """The texts of one variety as one source writes them, labelled for one task.

    group: what it shares with the parts that differ in variety alone.
    """

    name: str
    group: str
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Unit:
    """A unit counted in texts: its name in the plural, and how texts are split into it."""

    name: str
    split: Callable[[Sequence[str]], Iterable[Sequence[str]]]


@dataclass(frozen=True)
class Coverage:
    """The share of each part's most frequent pieces (row) that are as frequent in each (column).

    matrix: the shares. n_different: how many different pieces each part has; where these are fewer
    than `top`, all of them count.
    """

    by: str
    top: int
    names: tuple[str, ...]
    groups: tuple[str, ...]
    n_texts: tuple[int, ...]
    n_different: tuple[int, ...]
    matrix: tuple[tuple[float, ...], ...]

    def share(self, of: str, among: str) -> float:
        """The share of the frequent pieces of one part that are frequent in another."""
        return self.matrix[self.names.index(of)][self.names.index(among)]

    def notes(self) -> list[str]:
        """A sentence about parts that have too few different pieces to choose from."""
        different = zip(self.names, self.n_different, strict=True)
        small = [f"{name} ({n:,})" for name, n in different if n < self.top]
        if not small:
            return []
        return [
            f"Fewer than {self.top:,} different {self.by}, so that rare ones count as frequent:"
            f" {', '.join(small)}. Lower --top."
        ]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def words(texts: Sequence[str]) -> list[list[str]]:
    """The words of each text in lower case: runs of letters and digits, with inner apostrophes."""
    return [_WORD.findall(text.casefold().replace("’", "'")) for text in texts]


WORDS = Unit("words", words)


def pieces(split: Callable[[Sequence[str]], Iterable[Sequence[str]]]) -> Unit:
    """The pieces an encoder reads, as its tokenizer splits texts (`PieceTokenizer.piece_strings`).

    All that the vocabulary cannot spell (emoji, say) is one piece, [UNK], to the encoder and here.
    """
    return Unit("pieces", split)


def parts_of(corpus: Corpus) -> tuple[Part, ...]:
    """The corpus by task, source and variety, in this order.

    A corpus without any label makes parts without a task.
    """
    has_labels = any(example.labels for example in corpus)
    parts: list[Part] = []
    for task in corpus.tasks if has_labels else (None,):
        parts += _parts_of_task(corpus, task)
    return tuple(parts)


def _parts_of_task(corpus: Corpus, task: str | None) -> Iterator[Part]:
    texts: dict[tuple[str, str], list[str]] = defaultdict(list)
    for example in corpus:
        if task is None or task in example.labels:
            own = filter(None, (example.text, example.pair))
            texts[example.source or "", example.variety or ""] += own
    for (source, variety), found in sorted(texts.items()):
        name = _join_words(variety, source) or corpus.name
        group = _join_words(source or corpus.name, task)
        yield Part(_join_words(name, task), group, tuple(found))


def coverage(parts: Sequence[Part], *, by: Unit, top: int = TOP) -> Coverage:
    """The coverage of every part by every part.

    Of pieces equally frequent at the last rank, the alphabet decides which are in.
    """
    names = tuple(part.name for part in parts)
    for name, n_times in sorted(Counter(names).items()):
        if n_times > 1:
            raise UserError(f"Two parts are called {name!r}: give each corpus once.")
    if top < 1:
        raise UserError(
            f"The {top} most frequent {by.name} cannot be compared: give a number from 1."
        )
    counts = [_counts(part, by) for part in parts]
    frequent = [
        set(sorted(count, key=lambda piece: (-count[piece], piece))[:top]) for count in counts
    ]
    return Coverage(
        by=by.name,
        top=top,
        names=names,
        groups=tuple(part.group for part in parts),
        n_texts=tuple(len(part.texts) for part in parts),
        n_different=tuple(map(len, counts)),
        matrix=tuple(tuple(len(own & other) / len(own) for other in frequent) for own in frequent),
    )


def _join_words(*words: str | None) -> str:
    return " ".join(filter(None, words))


def _counts(part: Part, by: Unit) -> Counter[str]:
    counts: Counter[str] = Counter()
    source = iter(part.texts)
    while chunk := list(islice(source, _CHUNK)):
        for found in by.split(chunk):
            counts.update(found)
    if not counts:
        raise UserError(
            f"{part.name} has no {by.name} to count: leave it out with --where, or count something"
            " else."
        )
    return counts


# A heatmap of coverage: every part against every part, with lines between the groups.

_INCHES = 0.5


def draw(coverage: Coverage, ax: Axes) -> Any:
    """Draws the matrix into the given axes and returns the image (for a colour bar)."""
    image = ax.imshow(coverage.matrix, cmap="YlGnBu", vmin=0, vmax=1)
    places = range(len(coverage.names))
    small: dict[str, Any] = {"fontsize": 9, "parse_math": False}
    slanted: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(places, coverage.names, **slanted, **small)
    ax.set_yticks(places, coverage.names, **small)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    for row, shares in enumerate(coverage.matrix):
        for column, share in enumerate(shares):
            colour = text_colour(image, share)
            ax.text(column, row, f"{share:.2f}", ha="center", va="center", color=colour, fontsize=8)
    for place, (one, other) in enumerate(pairwise(coverage.groups)):
        if one != other:
            ax.axhline(place + 0.5, color="white", linewidth=3)
            ax.axvline(place + 0.5, color="white", linewidth=3)
    return image


def figure(coverage: Coverage) -> Figure:
    """The matrix with its title and its colour bar."""
    side = _INCHES * len(coverage.names) + 2.4  # the names take the rest
    picture = new_figure(side + 0.6, side)
    ax = picture.subplots()
    image = draw(coverage, ax)
    ax.set_title(
        f"Share of a row's {coverage.top:,} most frequent {coverage.by}\namong those of a column",
        fontsize=10,
        pad=10,
    )
    picture.colorbar(image, ax=ax, shrink=0.7, pad=0.02).outline.set_visible(False)
    return picture
