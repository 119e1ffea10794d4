"""The zoo: architectures written here, for images, graphs and text, one file per family.

Families are loaded when a name is looked up; whoever needs a class imports it from its family.
"""

from likewise.networks.zoo.registry import ZOO, Architecture, ImageNetwork, architecture

__all__ = ["ZOO", "Architecture", "ImageNetwork", "architecture"]
