"""What a language model says of every token of a batch, in pieces: its logits are never held whole.

A vocabulary has up to 256,000 tokens, so the logits of one batch may take gigabytes. Where the last layer of the head
gives the logits as they are, its inputs are kept instead, and it is called on some positions at a time. A network that
changes the logits after it (by a scale or a cap) is shown fewer texts at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from likewise.errors import InputError
from likewise.language.texts import IDS, MASK
from likewise.networks.anatomy.outputs import first_tensor
from likewise.networks.forward import call, explained
from likewise.networks.inputs.normalisation import unwrapped
from likewise.networks.sources.language import language_kind

ROOM = 2**28  # bytes that logits may take at a time
Pieces = Callable[[Tensor], Tensor]  # from positions of a flattened batch to their logits


class TokenLogits:
    """The logits of one network, batch by batch.

    Args:
        net: A language model.
        name: What it is called in messages.
        first: The inputs of one text, which show whether its logits are those of its last layer.
    """

    def __init__(self, net: nn.Module, name: str, first: Mapping[str, Tensor]) -> None:
        self.net, self.name = net, name
        with explained(net, first):
            whole = self._whole(first)
            self.vocabulary = int(whole.shape[-1])
            self._head = self._find_head(first, whole)

    @property
    def most(self) -> int | None:
        """How many tokens a batch may have, where its logits have to be held whole; else None."""
        return None if self._head is not None else max(1, ROOM // (4 * self.vocabulary))

    def of(self, inputs: Mapping[str, Tensor]) -> Pieces:
        """The logits of a batch by positions, counted over all texts and their padding."""
        with explained(self.net, inputs):
            if self._head is None:
                whole = self._whole(inputs).flatten(0, 1)
                return whole.__getitem__
            head, states = self._head, self._states(self._head, inputs).flatten(0, 1)
        return lambda positions: head(states[positions])

    def _whole(self, inputs: Mapping[str, Tensor]) -> Tensor:
        output = call(self.net, dict(inputs) if language_kind(self.net) else _plain(inputs))
        logits, ids = first_tensor(output), inputs.get("decoder_input_ids", inputs[IDS])
        if logits is None or logits.ndim != 3 or logits.shape[:2] != ids.shape or logits.shape[2] <= int(ids.max()):
            shape = "nothing" if logits is None else f"numbers of shape {tuple(logits.shape)}"
            raise InputError(
                f"{self.name!r} does not answer with tokens: for tokens of shape {tuple(ids.shape)} it gives {shape}, "
                "and a language model gives one number per token and word of its vocabulary."
            )
        return logits

    def _find_head(self, first: Mapping[str, Tensor], whole: Tensor) -> nn.Module | None:
        """The last layer, where it gives the logits as they are."""
        inside: Any = unwrapped(self.net)
        find = getattr(inside, "get_output_embeddings", None)
        head = find() if callable(find) else None
        if not isinstance(head, nn.Module):
            return None
        states = self._states(head, first)
        same = states is not None and states.shape[:2] == whole.shape[:2] and torch.equal(head(states).to(whole), whole)
        return head if same else None

    def _states(self, head: nn.Module, inputs: Mapping[str, Tensor]) -> Any:
        """What the last layer is given, while it is called on one position per text alone; None where it is not."""
        caught: list[Tensor] = []

        def catch(_: nn.Module, given: tuple[Any, ...]) -> Any:
            caught.append(given[0])
            return (given[0][:, :1], *given[1:])

        handle = head.register_forward_pre_hook(catch)
        try:
            call(self.net, dict(inputs))
        finally:
            handle.remove()
        return caught[0] if len(caught) == 1 and caught[0].ndim == 3 else None


def _plain(inputs: Mapping[str, Tensor]) -> Any:
    """The tokens alone, for a network that is no one's of transformers; it is not told of padding."""
    return inputs[IDS] if set(inputs) <= {IDS, MASK} else dict(inputs)
