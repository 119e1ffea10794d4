"""Folders of sentence-transformers: what `modules.json` says comes after the encoder.

The encoder stays the network and its layers keep their names. What follows it (pooling, dense layers, normalisation)
becomes its layer `sentence`, and what that gives a field of its output, `sentence_embedding`: that is the embedding.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn

from likewise._base.files import reading
from likewise.errors import InputError, quoted_list
from likewise.networks import weights
from likewise.networks.sources.repository import Repository

_LENGTHS = ("sentence_bert_config.json", "sentence_roberta_config.json", "sentence_xlm-roberta_config.json")
_NAMES = {  # older configurations have a switch for each, in this order
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


def _weighted(states: Tensor, weights: Tensor, power: float = 1.0) -> Tensor:
    return (states * weights.unsqueeze(-1)).sum(dim=1) / weights.sum(dim=1, keepdim=True).pow(power)


def _at(states: Tensor, positions: Tensor) -> Tensor:
    return states[torch.arange(len(states), device=states.device), positions]


# of states (n, t, d) and which tokens are real (n, t)
_POOLINGS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cls": lambda states, real: _at(states, real.argmax(dim=1)),
    "max": lambda states, real: states.masked_fill(real.unsqueeze(-1) == 0, -torch.inf).amax(dim=1),
    "mean": _weighted,
    "mean_sqrt_len_tokens": lambda states, real: _weighted(states, real, 0.5),
    "weightedmean": lambda states, real: _weighted(states, real * real.cumsum(dim=1)),
    "lasttoken": lambda states, real: _at(states, real.shape[1] - 1 - real.flip(1).argmax(dim=1)),
}


class Normalize(nn.Module):
    """Rows of length 1."""

    def forward(self, rows: Tensor) -> Tensor:
        return nn.functional.normalize(rows, dim=-1)


class Sentence(nn.Sequential):
    """One row per text from the states of its tokens: pooled in one way or several, then by the layers within."""

    def __init__(self, poolings: tuple[str, ...], *layers: nn.Module) -> None:
        super().__init__(*layers)
        self.poolings = poolings

    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        wide = states.float() if states.dtype in (torch.float16, torch.bfloat16) else states
        real = torch.ones(states.shape[:2]).to(wide) if mask is None else mask.to(wide)
        rows = torch.cat([_POOLINGS[name](wide, real) for name in self.poolings], dim=-1).to(states.dtype)
        for layer in self:
            rows = layer(rows)
        return rows


def read_sentence(repository: Repository, *, pretrained: bool) -> Sentence | None:
    """What makes one row per text of the states of an encoder; None where the folder is not of sentence-transformers.

    Raises:
        InputError: It does something that is not known here.
    """
    home = repository.root
    modules = _modules(home)
    if modules is None:
        return None
    names = [kind.rpartition(".")[2] if kind.startswith("sentence_transformers.") else kind for kind, _ in modules]
    poolings: tuple[str, ...] = ()
    layers: list[nn.Module] = []
    for number, (name, (_, path)) in enumerate(zip(names, modules, strict=True)):
        facts = _facts(home, f"{path}/config.json", needed=name in ("Pooling", "Dense"))
        if name == "Pooling" and not poolings:
            prompted = not facts.get("include_prompt", True) and length_and_prompt(repository)[1]
            poolings = ("without the prompt",) if prompted else _pooling(facts)
        elif name == "Dense" and poolings and _is_plain(facts):
            layers += _dense(home, path, facts, pretrained)
        elif name == "Normalize" and poolings:
            layers.append(Normalize())
        elif name not in ("Dropout", "Transformer") or (name == "Transformer" and number):
            raise _unknown(repository, names)
    if not poolings or not set(poolings) <= set(_POOLINGS):
        raise _unknown(repository, [*names, *poolings])
    return Sentence(poolings, *layers)


def add_sentence(net: Any, sentence: Sentence) -> None:
    """Have an encoder give the embedding of each text beside its states."""
    net.sentence = sentence.to(net.dtype)
    net.forward = MethodType(_embed, net)


def _embed(self: Any, *args: Any, **inputs: Any) -> Any:
    output = type(self).forward(self, *args, **inputs)
    output["sentence_embedding"] = self.sentence(output["last_hidden_state"], inputs.get("attention_mask"))
    return output


def length_and_prompt(repository: Repository) -> tuple[int | None, str]:
    """The most tokens that texts of a sentence encoder have, None where nothing says so, and what they begin with."""
    home = repository.root
    limits = [_facts(home, name).get("max_seq_length") for name in _LENGTHS]
    facts = _facts(home, "config_sentence_transformers.json")
    prompts = facts.get("prompts")
    prompt = prompts.get(facts.get("default_prompt_name")) if isinstance(prompts, dict) else None
    return next((limit for limit in limits if isinstance(limit, int) and limit > 0), None), str(prompt or "")


def _pooling(facts: Mapping[str, Any]) -> tuple[str, ...]:
    named = facts.get("pooling_mode")
    if named is None:
        return tuple(mode for name, mode in _NAMES.items() if facts.get(name)) or ("mean",)
    return (named,) if isinstance(named, str) else tuple(map(str, named))


def _is_plain(facts: Mapping[str, Any]) -> bool:
    """Whether a dense layer takes the pooled row, and is a matrix and an activation of torch."""
    kind = str(facts.get("activation_function") or "torch.nn.Identity")
    of_torch = kind.startswith("torch.nn.") and isinstance(getattr(nn, kind.rpartition(".")[2], None), type)
    named = {facts.get(name) for name in ("module_input_name", "module_output_name")}
    return of_torch and not facts.get("use_residual") and named <= {None, "sentence_embedding"}


def _dense(home: Repository, folder: str, facts: Mapping[str, Any], pretrained: bool) -> list[nn.Module]:
    linear = nn.Linear(int(facts["in_features"]), int(facts["out_features"]), bias=bool(facts.get("bias", True)))
    kind = str(facts.get("activation_function") or "torch.nn.Identity").rpartition(".")[2]
    if pretrained:
        files = [home.file(f"{folder}/{name}") for name in ("model.safetensors", "pytorch_model.bin")]
        path = next(filter(None, files), None)
        if path is None:
            raise InputError(f"{home.address} lacks the weights of its layer {folder}. Fetch it again.")
        state = {key.removeprefix("linear."): value for key, value in weights.read(path).items()}
        weights.fit(linear, state, label=f"{folder} of {home.address}")
    return [linear, getattr(nn, kind)()]


def _modules(home: Repository) -> list[tuple[str, str]] | None:
    """The kind and the folder of every module in order, None where nothing lists them."""
    entries = _json(home, "modules.json", list)
    if entries is None:
        return None
    facts = [(entry.get("type"), entry.get("path")) if isinstance(entry, dict) else (None, None) for entry in entries]
    modules = [(kind, path) for kind, path in facts if isinstance(kind, str) and isinstance(path, str)]
    if not modules or len(modules) < len(entries):
        raise InputError(
            f"the modules.json of {home.address} does not give the type and the path of every module. Fetch it again."
        )
    return modules


def _facts(home: Repository, name: str, *, needed: bool = False) -> Mapping[str, Any]:
    """What a file says by name; nothing where there is none, which is refused if it is needed."""
    facts = _json(home, name, dict)
    if facts is None and needed:
        raise InputError(f"{home.address} lacks {name}, which says how its embedding is made. Fetch it again.")
    return facts or {}


def _json(home: Repository, name: str, kind: type) -> Any:
    """What a file of a repository holds, None where there is no such file."""
    path = home.file(name)
    if path is None:
        return None
    with reading(path, f"{path} is damaged: {{reason}}. Fetch it again."):
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        if not isinstance(content, kind):
            raise ValueError(f"it holds no {kind.__name__}")
        return content


def _unknown(repository: Repository, names: list[str]) -> InputError:
    return InputError(
        f"{repository.address} is a network of sentence-transformers whose embedding is not made by pooling, dense "
        f"layers and normalisation alone ({quoted_list(names)}). Load it with sentence-transformers and pass the "
        f"module: likewise.extract(SentenceTransformer({repository.name!r}), data)."
    )
