"""From logits to a text: the best piece at every step, or the best of several hypotheses.

A hypothesis y of n pieces, the last one included, is worth

    s(y) = log p(y | x) / ((5 + n) / 6)^λ

with the length penalty λ (Wu et al. 2016, arXiv 1609.08144, §7); λ = 0 favours short texts. Beam
search keeps the most probable beginnings. It stops when it has found as many whole texts as it
keeps beginnings, or when no beginning could still become worth more than the best of them; so with
enough beams it finds the very best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from litotes.encoder.walk import Encoding
from litotes.training.translation.cache import Cache
from litotes.training.translation.model import EncoderDecoder

NEVER = -torch.inf


@dataclass(frozen=True)
class Frame:
    """The piece before a text, and the one that ends it."""

    begin: int
    end: int


@dataclass(frozen=True)
class Found:
    """The pieces of a text without special ones, and what they are worth."""

    pieces: tuple[int, ...]
    score: float


def length_divisor(n_pieces: Tensor | float, penalty: float) -> Tensor | float:
    return ((5 + n_pieces) / 6) ** penalty


@torch.no_grad()
def search_greedily(
    model: EncoderDecoder, source: Encoding, frame: Frame, limits: Sequence[int]
) -> list[Found]:
    """The most probable piece at every step. limits: the most pieces of each text, its end
    included.
    """
    device, n_texts = source.hidden.device, source.layout.n_texts
    cache = model.decoder.begin(source, 1)
    texts = torch.arange(n_texts, device=device)
    most = torch.tensor(limits, device=device)  # (text,)
    last = torch.full((n_texts,), frame.begin, device=device)
    chosen = torch.full((n_texts, max(limits)), frame.end, device=device)
    scores = torch.zeros(n_texts, device=device)
    for place in range(max(limits)):
        guesses, cache = model.step(last, cache)
        guesses = _end_at_limit(guesses, most[texts] == place + 1, frame.end)
        best, last = guesses.max(-1)
        scores[texts] += best
        chosen[texts, place] = last
        goes_on = (last != frame.end).nonzero().squeeze(1)
        if not len(goes_on):
            break
        if len(goes_on) < len(texts):
            texts, last = texts[goes_on], last[goes_on]
            cache = cache.choose_rows(goes_on).choose_texts(goes_on)
    found = []
    for pieces, score in zip(chosen.tolist(), scores.tolist(), strict=True):
        found.append(Found(_until(pieces, frame.end), score))
    return found


def _until(pieces: Sequence[int], end: int) -> tuple[int, ...]:
    return tuple(pieces[: pieces.index(end)]) if end in pieces else tuple(pieces)


def _end_at_limit(guesses: Tensor, is_last: Tensor, end: int) -> Tensor:
    """Log-probabilities (…, vocabulary) with nothing but the end where a text must end (…)."""
    only_end = torch.full_like(guesses, NEVER)
    only_end[..., end] = guesses[..., end]
    return torch.where(is_last[..., None], only_end, guesses)


@torch.no_grad()
def search_beams(
    model: EncoderDecoder,
    source: Encoding,
    frame: Frame,
    limits: Sequence[int],
    *,
    n_beams: int,
    penalty: float,
) -> list[Found]:
    """The best text of each source that `n_beams` beginnings lead to."""
    beams = _Beams(model, source, frame, limits, n_beams=n_beams, penalty=penalty)
    while beams.is_searching:
        beams.step()
    return [found for found in beams.found if found is not None]


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
        *,
        n_beams: int,
        penalty: float,
    ) -> None:
        self.model, self.frame = model, frame
        self.n_beams, self.penalty = n_beams, penalty
        device, n_texts = source.hidden.device, source.layout.n_texts
        self.cache: Cache = model.decoder.begin(source, n_beams)
        self.texts = list(range(n_texts))
        self.limits = torch.tensor(limits, device=device)  # (text,)
        self.pieces = torch.full((n_texts, n_beams, 1), frame.begin, device=device)
        self.scores = torch.full((n_texts, n_beams), NEVER, device=device)
        self.scores[:, 0] = 0.0  # all beams begin alike: one of them is enough
        self.found: list[Found | None] = [None] * n_texts
        self.n_found = [0] * n_texts

    @property
    def is_searching(self) -> bool:
        return bool(self.texts)

    def step(self) -> None:
        """One more piece for every hypothesis."""
        n_now = self.pieces.shape[2]  # pieces after this step, without the first one
        guesses, self.cache = self.model.step(self.pieces[:, :, -1].flatten(), self.cache)
        guesses = guesses.unflatten(0, (len(self.texts), self.n_beams))
        is_last = (self.limits == n_now)[:, None].expand(-1, self.n_beams)
        guesses = _end_at_limit(guesses, is_last, self.frame.end)
        totals = (self.scores[:, :, None] + guesses).flatten(1)  # (text, beam × vocabulary)
        n_wanted = min(2 * self.n_beams, totals.shape[1])  # so many cannot all be ends
        best, places = totals.topk(n_wanted, dim=1)  # (text, candidate)
        n_vocabulary = guesses.shape[-1]
        beams, pieces = places // n_vocabulary, places % n_vocabulary
        self._keep_whole_texts(best, beams, pieces == self.frame.end, n_now)
        self._go_on(best, beams, pieces)
        self._leave_finished()

    def _keep_whole_texts(self, best: Tensor, beams: Tensor, is_end: Tensor, n_now: int) -> None:
        """Ends among the best candidates are whole texts."""
        worth = best / length_divisor(n_now, self.penalty)
        worth = worth.masked_fill(~is_end, NEVER)[:, : self.n_beams]
        values, candidates = worth.max(1)  # (text,)
        rows = beams.gather(1, candidates[:, None]).squeeze(1)
        texts = self.pieces[torch.arange(len(rows), device=rows.device), rows, 1:].tolist()
        n_new = (worth > NEVER).sum(1).tolist()
        rows_of_texts = zip(self.texts, values.tolist(), texts, n_new, strict=True)
        for number, value, pieces, n_ended in rows_of_texts:
            before = self.found[number]
            self.n_found[number] += n_ended
            if value > NEVER and (before is None or value > before.score):
                self.found[number] = Found(tuple(pieces), value)

    def _go_on(self, best: Tensor, beams: Tensor, pieces: Tensor) -> None:
        """The best candidates that have not ended become the hypotheses."""
        open_scores = best.masked_fill(pieces == self.frame.end, NEVER)
        n_kept = min(self.n_beams, open_scores.shape[1])
        self.scores, chosen = open_scores.topk(n_kept, dim=1)
        beams, pieces = beams.gather(1, chosen), pieces.gather(1, chosen)
        if n_kept < self.n_beams:  # a vocabulary smaller than the beams asked for
            missing = self.n_beams - n_kept
            self.scores = torch.nn.functional.pad(self.scores, (0, missing), value=NEVER)
            beams = torch.nn.functional.pad(beams, (0, missing))
            pieces = torch.nn.functional.pad(pieces, (0, missing))
        starts = torch.arange(len(beams), device=beams.device)[:, None] * self.n_beams
        self.cache = self.cache.choose_rows((starts + beams).flatten())
        history = self.pieces.gather(1, beams[:, :, None].expand(-1, -1, self.pieces.shape[2]))
        self.pieces = torch.cat([history, pieces[:, :, None]], dim=2)

    def _leave_finished(self) -> None:
        """Texts leave of which enough was found, or no hypothesis could become worth more."""
        divisors = length_divisor(self.limits.float(), self.penalty)
        attainable = (self.scores.max(1).values / divisors).tolist()
        stays = []
        for place, (number, most) in enumerate(zip(self.texts, attainable, strict=True)):
            found = self.found[number]
            can_improve = found is None or most > found.score
            if most > NEVER and can_improve and self.n_found[number] < self.n_beams:
                stays.append(place)
        if len(stays) == len(self.texts):
            return
        kept = torch.tensor(stays, device=self.scores.device, dtype=torch.long)
        rows = (kept[:, None] * self.n_beams) + torch.arange(self.n_beams, device=kept.device)
        self.cache = self.cache.choose_rows(rows.flatten()).choose_texts(kept)
        self.texts = [self.texts[place] for place in stays]
        self.limits, self.scores = self.limits[kept], self.scores[kept]
        self.pieces = self.pieces[kept]
