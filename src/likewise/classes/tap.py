"""What the classifier is given, taken as it passes: no second forward pass for the features."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from likewise.errors import LikewiseError
from likewise.networks.heads import head as find
from likewise.networks.normalise import inner


class Tap:
    """Keeps the last input of the classifier; gives none for a network without one."""

    def __init__(self, net: nn.Module, head: str | None = None) -> None:
        self.seen: Tensor | None = None
        self._hook: Any = None
        try:
            layer = inner(net).get_submodule(find(net, layer=head).layer_name)
        except LikewiseError:
            return
        self._hook = layer.register_forward_pre_hook(self._keep)

    def _keep(self, layer: nn.Module, given: tuple[Any, ...]) -> None:
        value = given[0] if given and isinstance(given[0], Tensor) else None
        if value is not None and value.ndim == 4:  # a 1 x 1 convolution on maps
            value = value.mean(dim=(2, 3))
        self.seen = value.detach() if value is not None and value.ndim == 2 else None

    def take(self) -> Tensor | None:
        """The features of the last batch, once."""
        seen, self.seen = self.seen, None
        return seen

    def close(self) -> None:
        """Leave the network as it was."""
        if self._hook is not None:
            self._hook.remove()
        self._hook = None
