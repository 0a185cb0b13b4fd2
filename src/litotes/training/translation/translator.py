"""Texts in, texts out: the model's folder, the search for a text, and the one way to ask.

A hypothesis y of n pieces, the last one included, is worth

    s(y) = log p(y | x) / ((5 + n) / 6)^λ

with the length penalty λ (Wu et al. 2016, arXiv 1609.08144, §7); λ = 0 favours short texts. Beam
search keeps the most probable beginnings. It stops when it has found as many whole texts as it
keeps beginnings, or when no beginning could still become worth more than the best of them; so with
enough beams it finds the very best, and with one it takes the best piece at every step.

The folder:

litotes.json        what the model is: kind, encoder, decoder, recipe; written last
manifest.json       the hashes of all files
model.safetensors   all weights, under our own names
tokenizer.json      the pieces of both sides
scores.json         validation loss, BLEU and chrF
translations.jsonl  what the model makes of the test texts
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from pydantic import Field, ValidationError
from safetensors.torch import save as to_bytes
from torch import Tensor

from litotes.core.errors import UserError, reason_of
from litotes.core.machine import choose_device
from litotes.core.storage import write_bytes, write_json, write_text
from litotes.core.text import one_line
from litotes.core.values import TRANSLATION
from litotes.core.version import __version__
from litotes.data.corpus import SARCASM
from litotes.encoder.encoder import Encoder
from litotes.encoder.families import spec_from_json
from litotes.encoder.operations import Encoding
from litotes.encoder.packing import batches_by_budget
from litotes.encoder.pretrained import check_fits, empty_encoder, read_tensors, read_tokenizer
from litotes.encoder.tokenizer import Frame, PieceTokenizer
from litotes.evaluation.scores import Result
from litotes.model.folder import (
    FORMAT,
    HASHED,
    TOKENIZER,
    WEIGHTS,
    ModelFolder,
    read_description,
    write_description,
)
from litotes.prediction.predictor import Predictor
from litotes.training.recipe import SearchSettings, Table, first_problem
from litotes.training.translation.model import DecoderSpec, EncoderDecoder
from litotes.training.translation.pairs import Numbers, as_numbers, pack_sources

AT_ONCE = 512
"""Texts that a stream is read ahead by: enough to find some of the same length."""
NEVER = -torch.inf
SCORES = "scores.json"
SAME = "same as said"
_DAMAGE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RuntimeError)
"""The errors of a description that makes no model."""
_MORE = 10
"""Pieces a target may have beyond its ratio: the shortest texts need some room."""


@dataclass(frozen=True)
class TranslationModel:
    """An encoder-decoder with its tokenizer. search: how texts are found, where no one says.

    facts: the key of the run, its recipe, and what the texts were.
    """

    network: EncoderDecoder
    tokenizer: PieceTokenizer
    search: SearchSettings
    facts: Mapping[str, Any] = field(default_factory=dict)


class Description(Table):
    """The content of `litotes.json`."""

    format: int
    litotes: str
    kind: str
    encoder: dict[str, Any]
    decoder: DecoderSpec
    max_pieces: int = Field(ge=1)
    search: SearchSettings
    facts: dict[str, Any]


def save_translation(model: TranslationModel, folder: Path, scores: Mapping[str, Any]) -> None:
    """Writes the model folder; `litotes.json` comes last, so a folder that has it is whole."""
    network = model.network
    named = network.named_parameters()  # a table that is shared comes once
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in named}
    write_bytes(folder / WEIGHTS, to_bytes(tensors, metadata={"format": "pt"}))
    write_text(folder / TOKENIZER, model.tokenizer.to_json())
    write_json(folder / SCORES, scores)
    description = {
        "format": FORMAT,
        "litotes": __version__,
        "kind": TRANSLATION,
        "encoder": network.encoder.spec.as_json(),
        "decoder": asdict(network.spec),
        "max_pieces": model.tokenizer.max_pieces,
        "search": model.search.model_dump(),
        "facts": dict(model.facts),
    }
    write_description(folder, description)


def load_translation(path: str | Path) -> TranslationModel:
    """Reads a folder, in evaluation mode; every file is checked against its hash first."""
    folder = ModelFolder(Path(path), *read_description(Path(path)))
    if folder.kind != TRANSLATION:
        raise UserError(
            f"{folder} is not a translation model: make one with `litotes train` and kind ="
            ' "translation" in the recipe.'
        )
    try:
        return _load(folder)
    except ValidationError as error:
        raise folder.damaged(first_problem(error)) from error
    except _DAMAGE as error:
        raise folder.damaged(reason_of(error)) from error


def _load(folder: ModelFolder) -> TranslationModel:
    about = Description.model_validate(folder.description)
    weights, pieces = map(folder.read_file, HASHED)
    tensors = read_tensors(folder.path / WEIGHTS, weights)
    encoder, decoder = spec_from_json(about.encoder), about.decoder
    check_fits(encoder, sum(tensor.nbytes for tensor in tensors.values()), str(folder))
    with torch.device("meta"):  # takes no memory: a description may ask for an endless model
        described = EncoderDecoder(Encoder(encoder), decoder)
    shapes = {name: parameter.shape for name, parameter in described.named_parameters()}
    if shapes != {name: tensor.shape for name, tensor in tensors.items()}:
        raise ValueError("the weights are not those of this encoder and decoder")
    if about.max_pieces > decoder.n_positions:
        raise ValueError(f"the decoder has no positions for {about.max_pieces} pieces")
    network = EncoderDecoder(empty_encoder(encoder), decoder)
    network.load_state_dict(tensors, strict=False)  # a table that is shared is there once
    longest = about.max_pieces
    tokenizer = read_tokenizer(folder.path, encoder, max_pieces=longest, content=pieces)
    return TranslationModel(network.eval(), tokenizer, about.search, about.facts)


@dataclass(frozen=True)
class Found:
    """The pieces of a text without special ones, and what they are worth."""

    pieces: tuple[int, ...]
    score: float


def length_divisor(n_pieces: Any, penalty: float) -> Any:
    return ((5 + n_pieces) / 6) ** penalty


@torch.no_grad()
def search(
    model: EncoderDecoder,
    source: Encoding,
    frame: Frame,
    limits: Sequence[int],
    *,
    n_beams: int = 1,
    penalty: float = 0.0,
) -> list[Found]:
    """Finds the best text of each source that `n_beams` beginnings lead to. limits: the most pieces
    of each text, its end included.
    """
    beams = _Beams(model, source, frame, limits, n_beams, penalty)
    while beams.texts:
        beams.step()
    return beams.found


class _Beams:
    """The hypotheses of all texts still searched for.

    texts: which those are. scores: (text, beam). pieces: (text, beam, piece). found: the best
    whole text of each, so far, of `n_found`.
    """

    def __init__(
        self,
        model: EncoderDecoder,
        source: Encoding,
        frame: Frame,
        limits: Sequence[int],
        n_beams: int,
        penalty: float,
    ) -> None:
        self.model, self.n_beams, self.penalty = model, n_beams, penalty
        self.end = frame.after[-1]
        device, n_texts = source.hidden.device, source.layout.n_texts
        self.cache = model.decoder.begin(source, n_beams)
        self.texts = list(range(n_texts))
        self.limits = torch.tensor(limits, device=device)  # (text,)
        self.pieces = torch.full((n_texts, n_beams, 1), frame.before[0], device=device)
        self.scores = torch.full((n_texts, n_beams), NEVER, device=device)
        self.scores[:, 0] = 0.0  # all beams begin alike: one of them is enough
        self.found, self.n_found = [Found((), NEVER)] * n_texts, [0] * n_texts

    def step(self) -> None:
        """One more piece for every hypothesis."""
        n_now = self.pieces.shape[2]  # pieces after this step, without the first one
        guesses, self.cache = self.model.step(self.pieces[:, :, -1].flatten(), self.cache)
        guesses = guesses.unflatten(0, (len(self.texts), self.n_beams))
        # nothing but the end where a text must end
        goes_on = torch.arange(guesses.shape[-1], device=guesses.device) != self.end
        is_last = (self.limits == n_now)[:, None, None]
        guesses = guesses.masked_fill(is_last & goes_on, NEVER)
        totals = (self.scores[:, :, None] + guesses).flatten(1)  # (text, beam × vocabulary)
        n_wanted = min(2 * self.n_beams, totals.shape[1])  # so many cannot all be ends
        best, places = totals.topk(n_wanted, dim=1)  # (text, candidate)
        beams, pieces = places // guesses.shape[-1], places % guesses.shape[-1]
        is_end = pieces == self.end
        worth = (best / length_divisor(n_now, self.penalty)).masked_fill(~is_end, NEVER)
        self._keep_whole_texts(worth[:, : self.n_beams], beams)
        self._go_on(best.masked_fill(is_end, NEVER), beams, pieces)
        self._leave_finished()

    def _keep_whole_texts(self, worth: Tensor, beams: Tensor) -> None:
        """Ends among the best candidates are whole texts. worth: of them, (text, candidate)."""
        values, candidates = worth.max(1)  # (text,)
        ended = self.pieces.take_along_dim(beams.gather(1, candidates[:, None])[:, :, None], 1)
        n_new = (worth > NEVER).sum(1)
        rows = zip(values.tolist(), ended[:, 0, 1:].tolist(), n_new.tolist(), strict=True)
        for number, (value, pieces, n) in zip(self.texts, rows, strict=True):
            self.n_found[number] += n
            if value > self.found[number].score:
                self.found[number] = Found(tuple(pieces), value)

    def _go_on(self, scores: Tensor, beams: Tensor, pieces: Tensor) -> None:
        """The best candidates that have not ended become the hypotheses."""
        self.scores, chosen = scores.topk(self.n_beams, dim=1)
        beams, pieces = beams.gather(1, chosen), pieces.gather(1, chosen)
        if self.n_beams > 1:
            self.cache = self.cache.choose(self._rows(torch.arange(len(beams)), beams))
        history = self.pieces.take_along_dim(beams[:, :, None], 1)
        self.pieces = torch.cat([history, pieces[:, :, None]], dim=2)

    def _leave_finished(self) -> None:
        """Texts leave of which enough was found, or no hypothesis could become worth more."""
        divisors = length_divisor(self.limits.float(), self.penalty)
        attainable = (self.scores.max(1).values / divisors).tolist()
        stays = [
            place
            for place, (number, most) in enumerate(zip(self.texts, attainable, strict=True))
            if most > self.found[number].score and self.n_found[number] < self.n_beams
        ]
        if len(stays) == len(self.texts):
            return
        kept = torch.tensor(stays, device=self.scores.device, dtype=torch.long)
        self.cache = self.cache.choose(self._rows(kept, torch.arange(self.n_beams)), kept)
        self.texts = [self.texts[place] for place in stays]
        self.limits, self.scores = self.limits[kept], self.scores[kept]
        self.pieces = self.pieces[kept]

    def _rows(self, texts: Tensor, beams: Tensor) -> Tensor:
        """The rows of the cache with these beams, (text, beam) or (beam,), of these texts."""
        device = self.scores.device
        return (texts.to(device)[:, None] * self.n_beams + beams.to(device)).flatten()


@dataclass(frozen=True, repr=False)
class Translation(Result):
    """The translation of a text. score: what the search thought of it.

    truncated: whether the text is longer than the model reads, and its end was not seen.
    """

    shown = ("text", "output", "score")

    text: str
    output: str
    score: float
    truncated: bool


class Translator:
    """A translation model, ready to be asked."""

    def __init__(self, model: TranslationModel, *, device: str | None = None) -> None:
        self.model = model
        self.network: EncoderDecoder = model.network.to(choose_device(device)).eval()
        self.tokenizer = model.tokenizer
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
        """Translates each text. beams, length_penalty: None: as the model's recipe says."""
        changes = {"beams": beams, "length_penalty": length_penalty}
        given = {name: value for name, value in changes.items() if value is not None}
        settings = self.model.search.model_dump() | given
        search = SearchSettings.of(settings, "translate")
        for place, text in enumerate(texts, start=1):
            if not text.strip():
                raise UserError(f"Text {place} is empty: there is nothing to translate.")
        pieces = self.tokenizer.encode(texts)
        found = self._find([as_numbers(one) for one in pieces], search)
        return [
            Translation(text, self.tokenizer.decode(best.pieces), best.score, read.truncated)
            for text, read, best in zip(texts, pieces, found, strict=True)
        ]

    def stream(
        self, texts: Iterable[str], *, at_once: int | None = None, **settings: Any
    ) -> Iterator[Translation]:
        """Does the same for any number of texts, `at_once` (None: 512) at a time, in order."""
        waiting = iter(texts)
        while block := list(islice(waiting, at_once or AT_ONCE)):
            yield from self.translate(block, **settings)

    @torch.no_grad()
    def _find(self, sources: Sequence[Numbers], settings: SearchSettings) -> list[Found]:
        network, most = self.network, self.network.spec.n_positions - 1
        # one beam takes the best piece at every step, whatever whole texts are worth
        penalty = settings.length_penalty if settings.beams > 1 else 0.0
        on_cuda = network.device.type == "cuda"
        n_texts, n_pieces, n_rows = (1024, 32_768, 8192) if on_cuda else (64, 2048, 512)
        # every hypothesis takes a row of the cache, and as many logits as there are pieces
        n_texts = max(1, min(n_texts, n_rows // settings.beams))
        order = sorted(range(len(sources)), key=lambda place: len(sources[place]))
        lengths = [len(sources[place]) for place in order]
        found: dict[int, Found] = {}
        for some in batches_by_budget(lengths, max_texts=n_texts, max_pieces=n_pieces):
            places = [order[number] for number in some]
            limits = [min(int(settings.ratio * lengths[n]) + _MORE, most) for n in some]
            batch = pack_sources([sources[place] for place in places], network.device)
            read, n_beams = network.read(batch), settings.beams
            best = search(network, read, self.frame, limits, n_beams=n_beams, penalty=penalty)
            found |= dict(zip(places, best, strict=True))
        return [found[place] for place in range(len(sources))]


def find_frame(tokenizer: PieceTokenizer) -> Frame:
    """Finds the pieces with which a text begins and ends."""
    frame = tokenizer.frame(pair=False)
    if not frame.before or not frame.after:
        raise UserError(
            "This tokenizer puts no piece before and after a text, so a decoder could not know"
            " where to begin and end. Choose another encoder, or none."
        )
    return frame


@dataclass(frozen=True)
class Interpretation:
    """The meaning of a text. meaning: None where it means what it says.

    why_same: who says so. sarcasm: the judge's probability that the text is sarcastic; None without
    a judge.
    """

    text: str
    meaning: str | None
    why_same: str | None
    sarcasm: float | None
    truncated: bool = False

    def __repr__(self) -> str:
        return one_line(self, text=self.text, meaning=self.meaning or SAME)

    def as_json(self) -> dict[str, Any]:
        same = {"meaning": self.meaning or SAME, "same_as_said": self.meaning is None}
        return {**asdict(self), **same}


def interpret(
    texts: Sequence[str],
    translator: Translator,
    judge: Predictor | None,
    *,
    beams: int | None = None,
) -> list[Interpretation]:
    """Says plainly what sarcastic texts mean.

    A translation model that has learned from sarcastic texts and their interpretations (Peled and
    Reichart 2017, arXiv 1704.06836) rewrites anything it is given. So a classifier of sarcasm is
    asked first: a text that it takes literally means what it says, and so does one that the model
    leaves as it is. judge: a model with the task sarcasm; None: every text is taken to be
    sarcastic.
    """
    found = translator.translate(texts, beams=beams)
    judged = [None] * len(texts) if judge is None else _ask_judge(texts, judge)
    answers = []
    for one, sarcasm in zip(found, judged, strict=True):
        why = None
        if sarcasm is not None and sarcasm.label != SARCASM.labels[1]:
            why = "the judge sees no sarcasm"
        elif _plain(one.output) in ("", _plain(one.text)):
            why = "the model would change nothing"
        meaning = one.output if why is None else None
        probability = None if sarcasm is None else sarcasm.probabilities[SARCASM.labels[1]]
        answers.append(Interpretation(one.text, meaning, why, probability, one.truncated))
    return answers


def _ask_judge(texts: Sequence[str], judge: Predictor) -> list[Any]:
    """The answers about sarcasm."""
    word, task = SARCASM.labels[1], judge.tasks.get(SARCASM.name)
    if task is None or word not in task.labels:
        raise UserError(
            f"The judge does not answer sarcasm with {word!r}, only {', '.join(judge.tasks)}. Give"
            " --judge another model, or --judge none."
        )
    return [prediction.answers[SARCASM.name] for prediction in judge.predict(list(texts))]


def _plain(text: str) -> str:
    """Without case and blanks, by which a vocabulary may differ from the text."""
    return "".join(text.casefold().split())
