"""Images with one text each: one probe, of which every network is shown what it takes.

So two networks, one of images and one of text, give rows for the same inputs and can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from likewise.data.inputs import Data, Domain
from likewise.errors import InputError


@dataclass(frozen=True, eq=False)
class Captioned(Data):
    """Images with one text each.

    Attributes:
        texts: One text per image; all others are those of `Data`.

    Example:
        >>> import torch
        >>> both = Captioned("both", "image", torch.zeros(2, 3, 8, 8), texts=["a cat", "a dog"])
        >>> both.of_kind("text").inputs, both.of_kind("text").probe == both.of_kind("image").probe
        (['a cat', 'a dog'], True)
    """

    texts: Sequence[str] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.texts) != len(self.inputs):
            raise InputError(
                f"{self.name!r} has {len(self.inputs)} images and {len(self.texts)} texts. Give one text per image."
            )

    def _rows(self, index: slice | list[int], rows: list[int]) -> dict[str, Any]:
        return super()._rows(index, rows) | {"texts": [self.texts[row] for row in rows]}

    @property
    def domains(self) -> tuple[Domain, ...]:
        """What a network may take to be shown this data."""
        return ("image", "text")

    def content(self) -> Iterator[str | bytes | Tensor]:
        """What the hash is made of: images and texts."""
        yield from super().content()
        yield from map(repr, self.texts)

    def of_kind(self, kind: str | None) -> Data:
        """The texts for a network that takes text, the images for any other; both are one probe.

        Args:
            kind: What the network takes.
        """
        side: Domain = "text" if kind == "text" else "image"
        inputs = list(self.texts) if side == "text" else self.inputs
        return Side(self.name, side, inputs, self.labels, self.classes, self.wnids, whole=self)


@dataclass(frozen=True, eq=False)
class Side(Data):
    """The images or the texts of captioned images."""

    whole: Data | None = field(default=None, repr=False)

    def _rows(self, index: slice | list[int], rows: list[int]) -> dict[str, Any]:
        return super()._rows(index, rows) | {"whole": self.whole and self.whole[index]}

    def content(self) -> Iterator[str | bytes | Tensor]:
        """What the hash is made of: that of the whole."""
        return super().content() if self.whole is None else self.whole.content()
