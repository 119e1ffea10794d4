"""Networks: from an address to a network, its classifier, its weights and its training."""

from likewise.networks import graph as graph
from likewise.networks import language as language
from likewise.networks import zoo as zoo
from likewise.networks.building import Recipe, network, recipe, save
from likewise.networks.call import call, logits
from likewise.networks.heads import Head, head
from likewise.networks.listing import Listed, listed
from likewise.networks.normalise import Normalised, inner
from likewise.networks.optimisation import Settings
from likewise.networks.steps import evaluate
from likewise.networks.training import Training, train

__all__ = [
    "Head",
    "Listed",
    "Normalised",
    "Recipe",
    "Settings",
    "Training",
    "call",
    "evaluate",
    "head",
    "inner",
    "listed",
    "logits",
    "network",
    "recipe",
    "save",
    "train",
]
