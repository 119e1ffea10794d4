"""Networks of which nothing says how their images are normalised: that is said once, and the usual ways are tried.

Published networks, and those trained and saved here, bring their normalisation along. A module or a checkpoint of one's
own does not: it is shown images in [0, 1], and most were trained on something else. Where labels tell how often it is
right, a few images are shown to it normalised in the usual ways too. No number is changed by that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from likewise._base.progress import warn
from likewise.data import Data, Images
from likewise.data.inputs import channel_statistics
from likewise.networks.class_names import output_indices, output_labels
from likewise.networks.forward import eval_mode, input_kind, logits
from likewise.networks.inputs.normalisation import Normalised, note, noted, transform_of, typed_values, unwrapped

TRIED, _AT_ONCE = 200, 50  # images, and those of one batch
LEVEL = 0.05
_HALF = (0.5,), (0.5,)
_BYTES = (0.0,), (1 / 255,)  # as in a file, from 0 to 255
_IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_REMEDY = (
    "Where it was trained otherwise, add ',mean=0.5,std=0.5' or ',transform=FILE.py:function' to its address, or say "
    "--mean, --std or --transform (in Python mean=, std=, transform=); mean 0 and std 1 confirm [0, 1]."
)
Normalisation = tuple[Sequence[float], Sequence[float]]


def check_normalisation(
    net: nn.Module, data: Any, label: str, device: Any = None, fit: Callable[[Tensor], Any] = lambda images: images
) -> None:
    """Warn, once per network, where nothing says how its images are normalised; name what fits better, if it does.

    Args:
        net: A network that is to be shown the data as it is.
        data: Images in [0, 1]; whatever else is left alone.
        label: What the network is called in the sentence.
        device: Where it runs, by default where it is.
        fit: What brings images to the size of the network.
    """
    known = isinstance(unwrapped(net, keep_normalisation=True), Normalised) or transform_of(net) is not None
    if known or noted(net, "normalisation") or not _are_images(data) or input_kind(net) not in (None, "image"):
        return
    images, labels = next(data[_spread(len(data))].batches(TRIED))
    if not isinstance(images, Tensor):
        return
    note(net, "normalisation", "unknown")
    start = f"nothing says how images are normalised for {label}"
    tried = {} if labels is None else _right_answers(net, data, images, labels, device, fit)
    if not tried:
        warn(f"{start}: they are shown as [0, 1]. {_REMEDY}")
        return
    (_, plain), *others = tried.items()
    share = f"{_percent(plain)} of {len(plain)} of them"
    better = [entry for entry in others if _chance(plain, entry[1]) * len(others) <= LEVEL]
    if not better:
        chance = "and by no usual normalisation more often than by chance"
        warn(f"{start}: they are shown as [0, 1]. It is right on {share}, {chance}. {_REMEDY}")
        return
    (mean, std), best = max(better, key=lambda entry: int(entry[1].sum()))
    alike = [
        f"{_typed(*values)} ({_percent(right)})"
        for values, right in better
        if right is not best and _chance(right, best) > LEVEL
    ]
    spoken = f"--mean {typed_values('mean', mean)} --std {typed_values('std', std)}"
    equal = f" (and hardly less often by {' or '.join(alike)})" if alike else ""
    warn(
        f"{start}. It is shown [0, 1] and is right on {share}; normalised by {_typed(mean, std)} it would be on "
        f"{_percent(best)}{equal}. Add ',{_typed(mean, std)}' to its address, or say {spoken} (in Python "
        "mean=, std=), which hold for all networks."
    )


def _percent(right: Tensor) -> str:
    return f"{float(right.double().mean()):.1%}"


def _are_images(data: Any) -> bool:
    return isinstance(data, Data) and data.domain == "image" and len(data) > 0 and hasattr(data.inputs, "shape")


def _spread(n: int) -> list[int]:
    """Rows from all over the data, which may be sorted by class."""
    return list(range(n)) if n <= TRIED else torch.linspace(0, n - 1, TRIED).round().int().tolist()


def _right_answers(
    net: nn.Module, data: Data, images: Tensor, labels: Tensor, device: Any, fit: Callable[[Tensor], Any]
) -> dict[Normalisation, Tensor]:
    """Which images a network is right on, as they are first, then by the usual normalisations; {} where none tells."""
    right: dict[Normalisation, Tensor] = {}
    try:
        with eval_mode(net, device) as resting, torch.random.fork_rng(devices=[]):
            weight = next((value for value in resting.parameters() if value.is_floating_point()), images)
            for mean, std in dict.fromkeys([((0.0,), (1.0,)), *_usual(net, data, images)]):
                center, scale = (torch.tensor(values).view(-1, 1, 1) for values in (mean, std))
                chunks = torch.split(((images - center) / scale).to(weight), _AT_ONCE)
                answer = torch.cat([logits(resting, fit(chunk)).cpu() for chunk in chunks])
                indices = output_indices(data, net, answer.shape[1], "the network")
                right[mean, std] = answer.argmax(dim=1) == output_labels(labels, indices)
    except Exception:  # it does not classify these images; whatever is wrong shows where it is used
        return {}
    return right


def _usual(net: nn.Module, data: Data, images: Tensor) -> Iterator[Normalisation]:
    """What images are usually normalised by; a network of timm says it itself."""
    config = getattr(unwrapped(net), "pretrained_cfg", None) or {}
    if "mean" in config and "std" in config:
        yield tuple(config["mean"]), tuple(config["std"])
    yield _HALF
    mean, std = channel_statistics(data if isinstance(data.inputs, (Images, Tensor)) else data[_spread(len(data))])
    yield tuple(mean), tuple(std)
    if images.shape[1] == len(_IMAGENET[0]):
        yield _IMAGENET
    yield _BYTES


def _chance(plain: Tensor, other: Tensor) -> float:
    """How likely so many more right answers of the other are if both are equally good (McNemar's exact test)."""
    from scipy.stats import binomtest

    lost, gained = int((plain & ~other).sum()), int((other & ~plain).sum())
    return float(binomtest(gained, lost + gained, 0.5, "greater").pvalue) if gained else 1.0


def _typed(mean: Sequence[float], std: Sequence[float]) -> str:
    return f"mean={typed_values('mean', mean)},std={typed_values('std', std)}"
