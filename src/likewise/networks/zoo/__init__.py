"""The zoo: architectures written here, for images, graphs and text, one file per family.

Families are loaded when a name is looked up; a class is imported from its family.
"""

from likewise.networks.zoo.registry import ZOO, Architecture, ImageNetwork, architecture

__all__ = ["ZOO", "Architecture", "ImageNetwork", "architecture"]
