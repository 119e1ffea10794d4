"""Networks: from an address to a network, its classifier, its weights and its training.

`sources/` has one file per prefix of an address, `inputs/` what a network is shown, `anatomy/` what is where in it,
`zoo/` the architectures written here, `training/` the loop.
The room imports `_base`, `work`, `wordnet` and `data`.
"""

from likewise._base.lazy import lazy
from likewise.networks import zoo as zoo
from likewise.networks.address import Recipe, list_networks, network, recipe, save
from likewise.networks.anatomy.classifier import Head, head
from likewise.networks.forward import call, logits
from likewise.networks.inputs.normalisation import Normalised, unwrapped
from likewise.networks.sources.base import NetworkInfo
from likewise.networks.training.augment import Noise
from likewise.networks.training.loop import Training, train
from likewise.networks.training.presets import preset
from likewise.networks.training.settings import Settings
from likewise.networks.training.step import evaluate

__all__ = [
    "Head",
    "NetworkInfo",
    "Noise",
    "Normalised",
    "Recipe",
    "Settings",
    "Training",
    "call",
    "evaluate",
    "head",
    "list_networks",
    "logits",
    "network",
    "preset",
    "recipe",
    "save",
    "train",
    "unwrapped",
]
lazy(__name__)
