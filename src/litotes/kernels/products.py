"""What a layer computes between one attention and the next, two ways.

TorchProducts    with gradients, by the modules themselves: training
FusedProducts    bias and activation inside the product, residual and norm in one pass: inference
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from litotes.encoder.embeddings import Embeddings
from litotes.kernels.norm import add_and_norm, embed
from litotes.kernels.selection import Staying, take, take_both

if TYPE_CHECKING:
    from litotes.encoder.block import Block
    from litotes.encoder.route import Route

TANH_GELUS = ("gelu", "gelu_new", "gelu_pytorch_tanh")
"""Activations a product can end with. It knows only the tanh form, which differs from `gelu` by
0.0005 at most: less than half precision rounds away.
"""


MOST_STAY = 0.5
FEW_LEAVE = 4096
"""The share of rows that stay, or the number that leave, from which on a gather before the output
product costs more than it saves: it is a launch and a pass over memory, it waits for the choice,
and the product after it is a twelfth of a layer.
"""

FEWER_LEAVE = 256 * 768**2
"""Rows that leave times the width squared, up to which even the rest of the layer is computed for
all: some microseconds, in which the choice is made.
"""


class Products(ABC):
    """Embeddings at the beginning, and the second half of a layer."""

    @abstractmethod
    def embed(self, embeddings: Embeddings, route: Route) -> Tensor:
        """(piece, width)"""

    @abstractmethod
    def finish(self, block: Block, hidden: Tensor, mixed: Tensor) -> Tensor:
        """From what each piece was and what it gathered to what it is next. (piece, width)"""

    def finish_beside(
        self, block: Block, hidden: Tensor, mixed: Tensor, count: Callable[[], None]
    ) -> Tensor:
        """The same where nobody leaves but `count` has to be done before the next layer."""
        count()
        return self.finish(block, hidden, mixed)

    def finish_staying(
        self,
        block: Block,
        hidden: Tensor,
        mixed: Tensor,
        n_after: int,
        choose: Callable[[], Staying],
        *,
        fuses: bool,
    ) -> Tensor:
        """The same for the n_after pieces that stay; who does, `choose` says. (new piece, width)"""
        return self.finish(block, *take_both(hidden, mixed, choose()))


class TorchProducts(Products):
    def embed(self, embeddings: Embeddings, route: Route) -> Tensor:
        return embeddings.of(route.pieces, route.positions, route.segments)

    def finish(self, block: Block, hidden: Tensor, mixed: Tensor) -> Tensor:
        return block(hidden, mixed)


class FusedProducts(Products):
    """Without dropout, without gradients. Passes that may run at the same time have their own."""

    def __init__(self) -> None:
        self.side_by_side = SideBySide()

    def embed(self, embeddings: Embeddings, route: Route) -> Tensor:
        assert embeddings.position is not None  # `has_kernels` sees to it
        hidden = embed(
            route.pieces,
            route.positions,
            route.segments,
            tables=(embeddings.piece, embeddings.position, embeddings.segment),
            norm=embeddings.norm,
            first_position=embeddings.first_position,
        )
        return hidden if embeddings.projection is None else embeddings.projection(hidden)

    def finish(self, block: Block, hidden: Tensor, mixed: Tensor) -> Tensor:
        return self._finish(block, block.attention.output(mixed), hidden)

    def finish_beside(
        self, block: Block, hidden: Tensor, mixed: Tensor, count: Callable[[], None]
    ) -> Tensor:
        """Nothing in this layer waits for the count."""
        finished, _ = self.side_by_side.both(
            lambda: self.finish(block, hidden, mixed), count, device=mixed.device
        )
        return finished

    def finish_staying(
        self,
        block: Block,
        hidden: Tensor,
        mixed: Tensor,
        n_after: int,
        choose: Callable[[], Staying],
        *,
        fuses: bool,
    ) -> Tensor:
        """The residual is read where it lies: one gather less. Where few leave, so is the output
        product of all, or that of the whole layer, which then need not wait for the choice.
        """
        if fuses:
            return super().finish_staying(block, hidden, mixed, n_after, choose, fuses=True)
        output, device = block.attention.output, mixed.device
        n_leaving = len(mixed) - n_after
        if n_leaving * hidden.shape[1] ** 2 <= FEWER_LEAVE:
            (x, residual), staying = self.side_by_side.both(
                lambda: self._rest(block, output(mixed), hidden), choose, device=device
            )
            return add_and_norm(x, residual, block.outer_norm, staying.places, both_at_places=True)
        if n_leaving <= FEW_LEAVE or n_after >= MOST_STAY * len(mixed):
            x, staying = self.side_by_side.both(lambda: output(mixed), choose, device=device)
            return self._finish(block, x, hidden, staying.places, late=True)
        staying = choose()
        return self._finish(block, output(take(mixed, staying)), hidden, staying.places)

    def _finish(
        self,
        block: Block,
        x: Tensor,
        hidden: Tensor,
        places: Tensor | None = None,
        *,
        late: bool = False,
    ) -> Tensor:
        """As `_rest`, with its norm."""
        return add_and_norm(*self._rest(block, x, hidden, places, late=late), block.outer_norm)

    def _rest(
        self,
        block: Block,
        x: Tensor,
        hidden: Tensor,
        places: Tensor | None = None,
        *,
        late: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """What the layer's last product gives, and its residual.

        x: the output product. places: the rows of `hidden` that go on; late: of x, too.
        """
        norm = block.attention_norm
        assert isinstance(norm, nn.LayerNorm)
        hidden = add_and_norm(x, hidden, norm, places, both_at_places=late)
        return block.outer(self._inner(block, hidden)), hidden

    def _inner(self, block: Block, hidden: Tensor) -> Tensor:
        """act(W₁ h + b). (piece, inner_width)"""
        inner = block.inner
        if block.activation_name in TANH_GELUS and hidden.dtype != torch.float32:
            # bias and activation at the end of the product itself: one pass over memory less
            return torch._addmm_activation(inner.bias, hidden, inner.weight.t(), use_gelu=True)
        return block.activation(functional.linear(hidden, inner.weight, inner.bias))


# Two pieces of work side by side on a GPU, in a recorded pass as well.

A = TypeVar("A")
B = TypeVar("B")


class SideBySide:
    """Has a stream of its own: passes that may run at the same time must not share one."""

    def __init__(self) -> None:
        self._stream: torch.cuda.Stream | None = None

    def both(
        self, long: Callable[[], A], short: Callable[[], B], *, device: torch.device
    ) -> tuple[A, B]:
        """What both give; on a GPU the second is computed beside the first.

        Whatever they read must live until this returns: memory that is given back earlier may be
        written by the one while the other still reads it.
        """
        if device.type != "cuda":
            return long(), short()
        if self._stream is None:
            self._stream = torch.cuda.Stream(device)
        here = torch.cuda.current_stream(device)
        self._stream.wait_stream(here)
        with torch.cuda.stream(self._stream):
            of_short = short()
        of_long = long()
        here.wait_stream(self._stream)
        return of_long, of_short
