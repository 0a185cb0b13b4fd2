"""Texts in, texts out: the one way to ask a translation model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch

from litotes.core.errors import UserError
from litotes.core.machine import choose_device
from litotes.core.text import one_line
from litotes.encoder.packing import batches_by_budget
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.training.translation.folder import TranslationModel, load_translation
from litotes.training.translation.model import EncoderDecoder
from litotes.training.translation.pairs import Numbers, as_numbers, pack_sources
from litotes.training.translation.recipe import SearchSettings, search_of
from litotes.training.translation.search import Found, Frame, search_beams, search_greedily

AT_ONCE = 512
"""Texts that a stream is read ahead by: enough to find some of the same length."""

_MORE = 10
"""Pieces a target may have beyond its ratio: the shortest texts need some room."""


@dataclass(frozen=True)
class Translation:
    """What a text became. score: what the search thought of it, see search.py.

    truncated: whether the text is longer than the model reads, and its end was not seen.
    """

    text: str
    output: str
    score: float
    truncated: bool

    def __repr__(self) -> str:
        return one_line(self, text=self.text, output=self.output, score=self.score)


class Translator:
    """A translation model, ready to be asked."""

    def __init__(self, model: TranslationModel, *, device: str | None = None) -> None:
        self.model = model
        self.network: EncoderDecoder = model.network.to(choose_device(device)).eval()
        self.tokenizer: PieceTokenizer = model.tokenizer
        self.search = search_of(model.search, "The model's search")
        self.frame = find_frame(model.tokenizer)

    @classmethod
    def load(cls, folder: str | Path, *, device: str | None = None) -> Translator:
        return cls(load_translation(folder), device=device)

    def translate(
        self,
        texts: Sequence[str],
        *,
        beams: int | None = None,
        length_penalty: float | None = None,
    ) -> list[Translation]:
        """One for each text. beams, length_penalty: None: as the model's recipe says."""
        changes = {"beams": beams, "length_penalty": length_penalty}
        given = {name: value for name, value in changes.items() if value is not None}
        search = search_of(self.search.model_dump() | given, "translate")
        for place, text in enumerate(texts, start=1):
            if not text.strip():
                raise UserError(f"Text {place} is empty: there is nothing to translate.")
        pieces = self.tokenizer.encode(texts)
        found = self._find([as_numbers(one) for one in pieces], search)
        answers = []
        for text, read, best in zip(texts, pieces, found, strict=True):
            output = self.tokenizer.decode(best.pieces)
            answers.append(Translation(text, output, best.score, read.truncated))
        return answers

    def stream(
        self,
        texts: Iterable[str],
        *,
        at_once: int | None = None,
        beams: int | None = None,
        length_penalty: float | None = None,
    ) -> Iterator[Translation]:
        """The same for any number of texts, `at_once` (None: 512) at a time, in order."""
        waiting = iter(texts)
        while block := list(islice(waiting, at_once or AT_ONCE)):
            yield from self.translate(block, beams=beams, length_penalty=length_penalty)

    def _find(self, sources: Sequence[Numbers], search: SearchSettings) -> list[Found]:
        order = sorted(range(len(sources)), key=lambda place: len(sources[place]))
        lengths = [len(sources[place]) for place in order]
        on_cuda = self.network.device.type == "cuda"
        n_texts, n_pieces, n_rows = (1024, 32_768, 8192) if on_cuda else (64, 2048, 512)
        # every hypothesis takes a row of the cache, and as many logits as there are pieces
        n_texts = max(1, min(n_texts, n_rows // search.beams))
        found: dict[int, Found] = {}
        for some in batches_by_budget(lengths, max_texts=n_texts, max_pieces=n_pieces):
            places = [order[number] for number in some]
            batch = self._find_batch([sources[place] for place in places], search)
            found |= dict(zip(places, batch, strict=True))
        return [found[place] for place in range(len(sources))]

    @torch.no_grad()
    def _find_batch(self, sources: Sequence[Numbers], search: SearchSettings) -> list[Found]:
        network = self.network
        encoding = network.read(pack_sources(sources, network.device))
        most = network.spec.n_positions - 1
        limits = [min(int(search.ratio * len(one)) + _MORE, most) for one in sources]
        if search.beams == 1:
            return search_greedily(network, encoding, self.frame, limits)
        return search_beams(
            network,
            encoding,
            self.frame,
            limits,
            n_beams=search.beams,
            penalty=search.length_penalty,
        )


def find_frame(tokenizer: PieceTokenizer) -> Frame:
    """The pieces with which a text begins and ends."""
    frame = tokenizer.frame(pair=False)
    if not frame.before or not frame.after:
        raise UserError(
            "This tokenizer puts no piece before and after a text, so a decoder could not know"
            " where to begin and end. Choose another encoder, or none."
        )
    return Frame(frame.before[0], frame.after[-1])
