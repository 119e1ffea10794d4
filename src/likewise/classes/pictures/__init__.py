"""Pictures of class similarity: matrices, curves, mistakes, templates, films, and all of them for one inspection."""

from likewise.classes.pictures.curves import curves, joint
from likewise.classes.pictures.film import LARGEST, animate
from likewise.classes.pictures.still import TITLES, histogram, matrices, mistakes

__all__ = ["LARGEST", "TITLES", "animate", "curves", "histogram", "joint", "matrices", "mistakes"]
