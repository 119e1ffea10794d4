"""What a network is given for one batch of texts or sounds, prepared by the tokenizer or extractor it came with."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from math import gcd, inf
from typing import Any

import numpy as np
import torch
from torch import Tensor

from likewise._base.progress import warn
from likewise.errors import InputError

# Their code, docstrings included, is part of the fingerprint of networks that hold them.


class Prepared(dict[str, Tensor]):
    """Tensors by the names a network takes them by; `mask` says what is not padding, also where it takes no mask."""

    mask: Tensor | None = None

    @classmethod
    def of(cls, tensors: Any, accepted: Collection[str], mask: Tensor | None = None) -> Prepared:
        """Those of the tensors given that the network takes."""
        prepared = cls({name: value for name, value in tensors.items() if not accepted or name in accepted})
        prepared.mask = tensors.get("attention_mask") if mask is None else mask
        return prepared

    def with_rows(self, values: dict[str, Tensor], index: slice | list[int]) -> Prepared:
        """Values of some of the inputs, with their mask."""
        some = Prepared(values)
        some.mask = None if self.mask is None else self.mask[index]
        return some

    def to(self, device: Any) -> Prepared:
        """The same on another device."""
        moved = Prepared({name: value.to(device) for name, value in self.items()})
        moved.mask = None if self.mask is None else self.mask.to(device)
        return moved


def accepted_names(net: Any) -> frozenset[str]:
    """The names a network takes its inputs by; none where it takes any."""
    for forward in (net.forward, type(net).forward):  # the forward of a part may hand on whatever it is given
        parameters = list(inspect.signature(forward).parameters.values())
        names = {one.name for one in parameters if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)}
        if names:
            more = {"attention_mask"} if any(one.kind is one.VAR_KEYWORD for one in parameters) else set()
            return frozenset(names | more)
    return frozenset()


class FromExtractor:
    """A feature extractor of transformers as a function of sounds: rows of samples, or arrays of different length.

    `rate` is the rate of the samples per second; others than the extractor's are resampled to it.
    """

    def __init__(self, extractor: Any, rate: int | None, accepted: Collection[str] = ()) -> None:
        self.extractor, self.accepted = extractor, accepted
        self.rate = int(extractor.sampling_rate) if rate is None else int(rate)
        default = inspect.signature(extractor.__call__).parameters.get("padding")
        # Whisper pads to its full length, most others only where they are asked to
        self.padding = True if default is None or not default.default else default.default

    def __call__(self, sounds: Sequence[Any] | Tensor) -> Prepared:
        """What the network takes, padded to one length, and which frames or samples are none of padding."""
        arrays = [self._samples(sound, number) for number, sound in enumerate(sounds)]
        longest = self._longest()
        cut = sum(len(array) > longest for array in arrays)
        if cut:
            seconds = longest / self._own_rate
            warn(f"{cut} of {len(arrays)} sounds are longer than {seconds:g} seconds, and are cut there.")
        features = self.extractor(arrays, sampling_rate=self._own_rate, padding=self.padding, return_tensors="pt")
        return Prepared.of(features, self.accepted, self._mask(features, [len(array) for array in arrays]))

    @property
    def _own_rate(self) -> int:
        return int(self.extractor.sampling_rate)

    def _longest(self) -> float:
        """The most samples the extractor takes."""
        samples: Any = getattr(self.extractor, "n_samples", None)
        frames: Any = getattr(self.extractor, "max_length", None)  # of 10 ms, with those that make a spectrogram
        return float(samples or (frames * self._own_rate / 100 if frames else inf))

    def _samples(self, sound: Any, number: int) -> np.ndarray:
        array = np.asarray(sound.detach().cpu() if isinstance(sound, Tensor) else sound)
        if array.ndim != 1 or not len(array) or array.dtype.kind not in "fiu":
            raise InputError(
                f"sound {number} is an array of shape {array.shape} and type {array.dtype}. Give one row of samples "
                "per sound, such as sound.mean(axis=0) of several channels."
            )
        if array.dtype.kind in "iu":  # as files of sound hold them
            half = 2.0 ** (8 * array.itemsize - 1)
            array = array / half - (array.dtype.kind == "u")
        if self.rate != self._own_rate:
            from scipy.signal import resample_poly

            shared = gcd(self.rate, self._own_rate)
            array = resample_poly(array, self._own_rate // shared, self.rate // shared)
        return array.astype(np.float32)

    def _mask(self, features: Any, lengths: list[int]) -> Tensor | None:
        """Which samples, or frames of a spectrogram, are none of padding; None where that cannot be told."""
        if "attention_mask" in features:
            return None  # it is taken from there
        values = next(iter(features.values()))
        step = 1 if values.ndim == 2 else getattr(self.extractor, "hop_length", None)
        if step is None:
            return None
        ends = torch.tensor([-(-length // step) for length in lengths])
        return (torch.arange(values.shape[-1])[None] < ends[:, None]).long()


@contextmanager
def quiet(logging: Any) -> Iterator[None]:
    """Without what transformers shows for every network: a progress bar, and tables of weights it has no use for."""
    enabled, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if enabled:
            logging.enable_progress_bar()
