"""Texts, classified by BERT and smaller encoders that are trained on.

Looked at is the class token of the last hidden state, in the layer test of all hidden states; at the lowest, the
embeddings, it is the same for every text, so that measures are undefined there. MultiBERT's networks differ in their
pre-training too, one address per seed; those of minilm share one pre-training.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from torch import nn

from likewise.benchmark.domains import ChangeKind, Domain, Experiment, Group, LayerViews, NetworkSpec, Preset, domain
from likewise.data import Data
from likewise.data.word_changes import augment_text
from likewise.networks.address import parse
from likewise.views import Activations
from likewise.views.extract import extract
from likewise.views.layers import layers

_MULTIBERT = "hf:google/multiberts-seed_{},pretrained=true"
_SEEDS = 25  # of MultiBERT
_MAJORITY = {"sst2": 0.558, "mnli": 0.354}  # the largest class: shortcuts that are right as often say nothing
_AUGMENTED = {"mnli": (0.0, 0.25, 1.0)}
_EPOCHS = {("sst2", "shortcut"): 3, ("mnli", None): 5}


@domain("language", "text")
class Language(Domain):
    """Sentences and what they say of a film, or of each other."""

    kind = "text"
    data = ("sst2", "mnli", "sentences")
    networks: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"bert": _MULTIBERT, "minilm": "zoo:minilm", "bert-tiny": "zoo:bert-tiny"}
    )
    test_split = ("dev", "test")

    def preset(self, name: str, data: str, network: str) -> Preset:
        """All texts, or so many that a network is trained in a minute."""
        if name == "paper":
            return Preset(layered=10)
        return Preset(seeds=6, group=4, layered=4, train=1500, probe=500)

    def address(self, experiment: Experiment, seed: int) -> str:
        """MultiBERT's network of that seed; they are used again after the 25th."""
        return super().address(experiment, seed).format((seed // 1000 * 10 + seed % 1000) % _SEEDS)

    def options(self, experiment: Experiment) -> dict[str, Any]:
        """The classifier looks at the class token."""
        return (
            {"pooling": "cls"} if self.networks.get(experiment.network, experiment.network).startswith("zoo:") else {}
        )

    def training(self, experiment: Experiment, group: Group) -> dict[str, Any]:
        """AdamW, the rate rising to 5e-5 for a tenth of the epochs and falling to 0, the best weights kept."""
        rate = {"optimiser": "adamw", "schedule": "linear", "clip": 1.0, "weight_decay": 0.0}
        if not experiment.as_in_paper:
            lr = 1e-3 if parse(self.address(experiment, 0)).name == "bert-tiny" else 1e-4
            return rate | {"lr": lr, "epochs": 4, "warmup": 0.4, "batch_size": 32}
        epochs = _EPOCHS.get((experiment.data_name, group.kind), 10)
        often = {"evaluate_every": 1000, "keep_best": True}
        return rate | often | {"lr": 5e-5, "epochs": epochs, "warmup": epochs / 10, "batch_size": 64}

    def levels(self, kind: ChangeKind, experiment: Experiment) -> tuple[float, ...]:
        """The groups of the paper; the weakest shortcut is right as often as the largest class is."""
        if kind == "labels":
            return (0.0, 0.75, 1.0)
        if kind == "augmentation":
            return _AUGMENTED.get(experiment.data_name, (0.0, 1.0))
        least = self.uninformative(experiment)
        return (least, round(least + 0.75 * (1 - least), 4), 1.0)

    def uninformative(self, experiment: Experiment) -> float:
        """The share of the largest class."""
        if experiment.data_name in _MAJORITY:
            return _MAJORITY[experiment.data_name]
        labels = self.load(experiment.data, "train").need_labels("find the largest class").tolist()
        return round(max(Counter(labels).values()) / len(labels), 3)

    def changed(self, data: Data, spec: NetworkSpec, share: float | None = None) -> Data:
        """Other words too: what is augmented are the texts."""
        if spec.kind == "augmentation":
            return augment_text(data, spec.share if share is None else share, spec.change_seed)
        return super().changed(data, spec, share)

    def validation_data(self, spec: NetworkSpec) -> Data | None:
        """The development split, changed as the training data is, where the best weights are kept."""
        return self.changed(self.load(spec.data, "probe"), spec) if spec.training.get("keep_best") else None

    def augmented(self, probe: Data, experiment: Experiment) -> Data:
        """The probe with all its words changed."""
        return augment_text(probe, 1.0, 2024)

    def view(self, net: nn.Module, probe: Data, **show: Any) -> Activations:
        """The class token after the last layer."""
        view: Activations = extract(net, probe, _hidden(net, probe)[-1], reduce="cls", **show)
        return view

    def layer_views(self, net: nn.Module, probe: Data, experiment: Experiment, **show: Any) -> LayerViews:
        """The class token after the embeddings and after every layer."""
        return LayerViews(extract(net, probe, _hidden(net, probe), reduce="cls", **show))


def _hidden(net: nn.Module, probe: Data) -> list[str]:
    """The embeddings and the layers of an encoder."""
    modules = layers(net, probe[:2])
    embeddings = [layer.name for layer in modules if layer.name.endswith("embeddings")]
    return [min(embeddings, key=len), *(layer.name for layer in modules if layer.block)]
