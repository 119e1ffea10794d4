"""The zoo: networks written here, for small images, graphs and text."""

from likewise.networks.zoo import capsules as capsules
from likewise.networks.zoo import convolutional as convolutional
from likewise.networks.zoo import dense as dense
from likewise.networks.zoo import graph as graph
from likewise.networks.zoo import patches as patches
from likewise.networks.zoo import residual as residual
from likewise.networks.zoo import shuffle as shuffle
from likewise.networks.zoo import text as text
from likewise.networks.zoo.registry import ZOO, Entry, ImageNetwork, add

__all__ = ["ZOO", "Entry", "ImageNetwork", "add"]
