"""The forward pass: show a network what it takes, find its logits; in evaluation mode, in any precision meanwhile."""

from __future__ import annotations

import copy
import sys
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from likewise._base.machine import check_device, is_out_of_memory
from likewise.data import Data
from likewise.errors import ForwardError, InputError, LikewiseError, brief, did_you_mean, first_line
from likewise.networks.anatomy.classifier import answer_field
from likewise.networks.anatomy.outputs import fields, tensor_at
from likewise.networks.inputs.feature_extractors import Prepared, quiet
from likewise.networks.inputs.normalisation import Normalised, transform_of, unwrapped, warn_replaced
from likewise.networks.inputs.transforms import from_callable, transformed
from likewise.networks.sources.python_file import load_function
from likewise.networks.zoo.registry import ImageNetwork

InputKind = Literal["image", "text", "audio", "graph"]
_MAIN_INPUTS: dict[str, InputKind] = {
    "pixel_values": "image",
    "input_ids": "text",
    "input_values": "audio",
    "input_features": "audio",
}
_SENTENCES = "sentence_transformers"  # whose networks take a mapping as it is
KINDS = {"text": "text", "image": "images", "audio": "sounds", "graph": "graphs"}
_EXAMPLES = {
    "text": "a text network, such as zoo:minilm",
    "images": "a network of images, such as zoo:resnet20",
    "sounds": "a network of sounds, such as hf:facebook/wav2vec2-base",
}
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
_SIZES = (32, 28, 64, 96, 128, 224, 299)  # of images that networks are made for
_HALF = (torch.float16, torch.bfloat16)
_LIBRARIES: dict[str, InputKind] = {"timm": "image", "torchvision": "image", "torch_geometric": "graph"}

_DETECTORS = {  # what torchvision says of its detectors, and what it means
    "custom C++ ops": "cannot run: the compiled operators of torchvision do not load with this build of torch. "
    "Install the torchvision made for it; class layer and class names need no run.",
    "targets should not be none": "learns from boxes, not from one label per input. Use a network that classifies.",
}


def input_kind(net: nn.Module) -> InputKind | None:
    """What kind of inputs a network takes, None where nothing about it says so.

    >>> from likewise.networks.address import network
    >>> input_kind(network("zoo:lenet")), input_kind(network("zoo:gcn", features=4)), input_kind(nn.Linear(2, 2))
    ('image', 'graph', None)
    """
    if isinstance(unwrapped(net, keep_normalisation=True), (Normalised, ImageNetwork)):
        return "image"
    net = unwrapped(net)
    if callable(getattr(net, "tokenize", None)):
        return "text"
    main = getattr(net, "main_input_name", None)  # networks of transformers say it
    if isinstance(main, str) and main in _MAIN_INPUTS:
        return _MAIN_INPUTS[main]
    return next((_LIBRARIES[home] for home in map(_library, type(net).__mro__) if home in _LIBRARIES), None)


def _is_of(net: nn.Module, library: str) -> bool:
    """Whether the class of a network, or one it is made from, is a library's."""
    return any(_library(kind) == library for kind in type(net).__mro__)


def _library(kind: type) -> str:
    return kind.__module__.partition(".")[0]


def transform_for(net: nn.Module, data: Any, label: str, transform: Any = None) -> Any:
    """The data as a network is shown it: what it takes of it, images by the transform that is given, else by its own.

    A network without a transform, and whatever is not data of images, is shown the data as it is.
    """
    if isinstance(data, Data):
        kind = input_kind(net)
        if kind is not None and kind not in data.domains and data.domain != "text":  # text says what it needs
            raise InputError(
                f"{label} takes {KINDS[kind]}, and {data.name!r} holds {KINDS[data.domain]}. Choose another network, "
                f"or data of {KINDS[kind]}."
            )
        data = data.of_kind(kind)
    applied = transform_of(net) if transform is None else from_callable(load_function(transform))
    if isinstance(transform, str):
        warn_replaced(net, label, f"transform={transform}")
    return data if applied is None else transformed(data, applied, label, asked=transform is not None)


def prepare_inputs(net: nn.Module, inputs: Any) -> Any:
    """One batch as the network takes it: texts as its tokens, sounds as its features, all in its precision.

    Every pass of a network comes by here, whatever it is for.
    """
    return to_network(net, _features(net, inputs))


def _features(net: nn.Module, inputs: Any) -> Any:
    """Texts as the network's tokens, sounds as its features, everything else as it is."""
    inside: Any = unwrapped(net)
    if isinstance(inputs, (list, tuple)) and inputs and isinstance(inputs[0], (str, tuple, list)):
        if not callable(getattr(inside, "tokenize", None)):
            raise InputError(_no_tokenizer(inside))
        words = inside.preprocess if _is_of(inside, _SENTENCES) and hasattr(inside, "preprocess") else inside.tokenize
        prepared = words(list(inputs))
    elif _are_sounds(inputs) and callable(getattr(inside, "from_samples", None)):
        prepared = inside.from_samples(inputs)
    else:
        return _of_its_kind(inside, inputs)
    device = device_of(net, torch.device("cpu"))
    if isinstance(prepared, (Prepared, Tensor)):
        return prepared.to(device)
    if not isinstance(prepared, Mapping):
        raise InputError(
            f"the tokenizer of {type(inside).__name__} gives {brief(prepared)}. Have it give a tensor with one row per "
            "text, or tensors by the names that the network takes."
        )
    return {name: value.to(device) for name, value in prepared.items() if isinstance(value, Tensor)}


def to_network(net: nn.Module, inputs: Any) -> Any:
    """Tensors on the device and in the precision of a network's weights; whole numbers (tokens, bytes) stay whole.

    >>> to_network(nn.Linear(2, 2).half(), torch.zeros(1, 2)).dtype
    torch.float16
    """
    device = device_of(net)  # weights without values take nothing away
    # formats of one byte hold weights, and nothing is computed in them
    floating = (value.dtype for value in net.parameters() if value.is_floating_point() and value.element_size() > 1)
    dtype = next(floating, None)

    def fitted(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        return value.to(device=device, dtype=dtype if value.is_floating_point() else None)

    if not isinstance(inputs, dict):
        return fitted(inputs)
    values = {name: fitted(value) for name, value in inputs.items()}
    if all(value is inputs[name] for name, value in values.items()):
        return inputs
    same = copy.copy(inputs)  # a graph stays one
    same.update(values)
    return same


def _are_sounds(inputs: Any) -> bool:
    """Whether this is one row of samples per input, or a list of arrays of one axis."""
    if isinstance(inputs, Tensor):
        return inputs.ndim == 2
    return isinstance(inputs, list) and bool(inputs) and all(getattr(one, "ndim", 0) == 1 for one in inputs)


def _of_its_kind(net: nn.Module, inputs: Any) -> Any:
    """Inputs as they are, a list of arrays as one; refused where the network takes another kind."""
    kind, sounds = input_kind(net), isinstance(inputs, list) and _are_sounds(inputs)
    images = isinstance(inputs, Tensor) and inputs.is_floating_point() and inputs.ndim == 4
    if (images and kind in ("text", "audio")) or (sounds and kind in ("text", "image")):
        raise InputError(_other_kind(net, kind, "images" if images else "sounds"))
    if not sounds:
        return inputs
    if len({len(one) for one in inputs}) > 1:
        raise InputError(
            f"{type(net).__name__} has no feature extractor, and was shown arrays of different length. Give it rows of "
            "one length, or load it from a folder with its preprocessor_config.json: hf:PATH."
        )
    return torch.stack([torch.as_tensor(one) for one in inputs])


def _no_tokenizer(net: nn.Module) -> str:
    kind = input_kind(net)
    if kind not in (None, "text"):
        return _other_kind(net, kind, "text")
    return (
        f"{type(net).__name__} has no tokenizer, and was shown text. Give it one: likewise.network(net, "
        "tokenizer=tokenizer), or 'hf:NAME,tokenizer=NAME' in its address."
    )


def _other_kind(net: nn.Module, kind: InputKind | None, inputs: str) -> str:
    return f"{type(net).__name__} takes {KINDS[kind or 'text']}, and was shown {inputs}. Use {_EXAMPLES[inputs]}."


def padding_mask(net: nn.Module, inputs: Any, length: int) -> Tensor | None:
    """Which of the `length` tokens or frames of each input are not padding, None where nothing says so."""
    mask = getattr(inputs, "mask", None)
    if mask is None and isinstance(inputs, Mapping):
        mask = inputs.get("attention_mask")
    if not isinstance(mask, Tensor) or mask.ndim != 2:
        return None
    if mask.shape[1] == length:
        return mask
    inside: Any = unwrapped(net)
    if not hasattr(inside, "_get_feat_extract_output_lengths"):
        return None
    adapted = getattr(inside.config, "add_adapter", False)  # there are fewer frames after an adapter than before
    for options in ({}, {"add_adapter": False}) if adapted else ({},):
        frames = partial(inside._get_feat_extract_output_lengths, **options)  # each of them spans many samples
        if int(frames(torch.tensor([mask.shape[1]]))[0]) == length:
            ends = frames(mask.sum(dim=1))
            return (torch.arange(length, device=mask.device)[None] < ends[:, None]).long()
    return None


def call(net: nn.Module, inputs: Any) -> Any:
    """What the network gives for one batch.

    Args:
        net: A network.
        inputs: Tensors, passed as they are; a mapping, by name; texts, which become tokens; or sounds.
    """
    inputs = prepare_inputs(net, inputs)
    if hasattr(inputs, "rows"):
        _check_features(unwrapped(net), inputs)
    try:
        with _without_notices(unwrapped(net)):
            by_name = isinstance(inputs, Mapping) and not _is_of(unwrapped(net), _SENTENCES)
            return net(**inputs) if by_name else net(inputs)
    except (RuntimeError, AssertionError) as error:
        for words, sentence in _DETECTORS.items():
            if words in str(error):
                raise InputError(f"{type(unwrapped(net)).__name__} {sentence}") from error
        raise


def _without_notices(net: nn.Module) -> AbstractContextManager[None]:
    """Keep what transformers has to say of every batch off the screen."""
    return quiet(sys.modules["transformers.utils.logging"]) if _is_of(net, "transformers") else nullcontext()


def _check_features(net: nn.Module, batch: Mapping[str, Tensor]) -> None:
    """Refuse a graph whose nodes have other features than the network was built for."""
    expected, features = getattr(net, "in_channels", None), batch["x"].shape[1]
    if isinstance(expected, int) and expected not in (features, -1):  # -1 waits for the first graph
        raise InputError(
            f"{type(net).__name__} was built for {expected} features per node and was shown {features}. "
            f"Build it with features={features}."
        )


def logits(net: nn.Module, inputs: Any) -> Tensor:
    """The logits (inputs, classes) for one batch; of a graph, those of the nodes asked for.

    Args:
        net: A network that classifies.
        inputs: One batch, as `call` takes it.
    """
    output = call(net, inputs)
    field = None if isinstance(output, Tensor) else answer_field(net, output, type(unwrapped(net)).__name__)
    answers: Any = tensor_at(output, field)
    if not isinstance(output, Tensor) and field is None:
        may_be = isinstance(output, (list, tuple)) or "logits" in fields(output)
        if answers is None or answers.ndim != 2 or not may_be:
            raise InputError(
                f"{type(unwrapped(net)).__name__} gives {type(output).__name__} without logits "
                "(inputs, classes). Use a network that classifies."
            )
    return cast(Tensor, inputs.rows(answers) if hasattr(inputs, "rows") else answers)


def checked_logits(net: nn.Module, inputs: Any) -> Tensor:
    """The logits for one batch, or a sentence that says why there are none."""
    with explained(net, inputs):
        return logits(net, inputs)


@contextmanager
def explained(net: nn.Module, inputs: Any) -> Iterator[None]:
    """Say in a sentence why a network fails on inputs."""
    try:
        yield
    except LikewiseError:
        raise
    except Exception as error:
        name, shape = type(unwrapped(net)).__name__, getattr(inputs, "shape", None)
        if is_out_of_memory(error):
            raise ForwardError(f"{name} does not fit in memory with this batch. Lower batch_size.") from error
        described = type(inputs).__name__ if shape is None else f"inputs of shape {tuple(shape)}"
        raise ForwardError(
            f"{name} failed on {described}: {type(error).__name__}: {first_line(error)}. {shape_remedy(net, inputs)}"
        ) from error


def shape_remedy(net: nn.Module, inputs: Any) -> str:
    """What to do about inputs that a network fails on: of images, the size that it takes, where it is a usual one."""
    if isinstance(inputs, Tensor) and inputs.ndim == 4 and inputs.is_floating_point():
        hooks = [(part, part._forward_hooks, part._forward_pre_hooks) for part in net.modules()]
        try:
            for part, *_ in hooks:
                part._forward_hooks, part._forward_pre_hooks = OrderedDict(), OrderedDict()
            for size in (None, *_SIZES):  # first their own: an error that is not of the size has another remedy
                shape = inputs.shape[2:] if size is None else (size, size)
                with suppress(Exception), torch.no_grad():
                    net(inputs.new_zeros(2, inputs.shape[1], *shape))
                    if size is None:
                        break
                    return f"It takes images of {size} × {size}: add ',size={size}' to the address of the data."
        finally:
            for part, after, before in hooks:
                part._forward_hooks, part._forward_pre_hooks = after, before
    return "Check that the network takes inputs of this shape and type."


@contextmanager
def eval_mode(net: nn.Module, device: Any = None, *, input_gradients: bool = False) -> Iterator[nn.Module]:
    """The network in evaluation mode, without gradients, on the device; as it was afterwards.

    What is given is free of DataParallel, whose copies would each see a part of the batch, and of
    compilation. With `input_gradients` there are gradients, which flow to the inputs and to no weight.
    """
    modes = [(module, module.training) for module in net.modules()]
    trained = [weight for weight in net.parameters() if input_gradients and weight.requires_grad]
    home = _only_device(net, device)
    inside = unwrapped(net, keep_normalisation=True)
    try:
        for module, _ in modes:
            module.training = False
        with torch.inference_mode(False) if input_gradients else nullcontext():
            for weight in trained:
                weight.requires_grad_(False)
            with torch.set_grad_enabled(input_gradients):
                yield inside if home is None else inside.to(device)
    finally:
        for weight in trained:
            weight.requires_grad_(True)
        for module, mode in modes:
            module.training = mode
        if home is not None:
            net.to(home)


def _only_device(net: nn.Module, device: Any) -> torch.device | None:
    """Where the network has to be brought back to: None where it stays."""
    if device is None:
        return None
    check_device(device)
    homes = {value.device for value in [*net.parameters(), *net.buffers()]}
    if len(homes) > 1:
        raise InputError(
            f"the network is on {len(homes)} devices, so it cannot be moved to {device}. Leave out device."
        )
    home = next(iter(homes), None)
    return None if home == torch.device(device) else home


def device_of(net: nn.Module, default: Any = None) -> Any:
    """Where the inputs of a network have to be: with its first weight that is in memory."""
    return next((value.device for value in net.parameters() if not value.is_meta), default)


def check_dtype(dtype: str) -> None:
    """Refuse a precision that networks are not run in."""
    if dtype not in DTYPES:
        hint = did_you_mean(str(dtype), DTYPES)
        raise InputError(f"no dtype named {dtype!r}.{hint} There are {', '.join(DTYPES)}.")


@contextmanager
def in_precision(net: nn.Module, dtype: str) -> Iterator[None]:
    """The network in this precision meanwhile, whatever that of its weights is.

    float32 raises weights of half precision to it. float16 and bfloat16 are torch's autocast: products run in half
    precision, normalisations and sums in float32, and the weights stay as they are.

    >>> net = nn.Linear(2, 2)
    >>> with in_precision(net, "bfloat16"):
    ...     net(torch.zeros(1, 2)).dtype
    torch.bfloat16
    """
    check_dtype(dtype)
    precision = DTYPES[dtype]
    device = next((value.device.type for value in net.parameters()), "cpu")
    values = [*net.parameters(), *net.buffers()]
    raised = [(value, value.data) for value in values if value.dtype in _HALF and value.dtype != precision]
    try:
        for value, kept in raised:
            value.data = kept.float()
        with torch.autocast(device, dtype=precision if precision in _HALF else None, enabled=precision in _HALF):
            yield
    finally:
        for value, kept in raised:
            value.data = kept
