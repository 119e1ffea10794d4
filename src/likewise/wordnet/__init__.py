"""WordNet: how alike the meanings of classes are, which synset a dataset's class is, and other words for a word.

The words of version 3.0, whose ids ImageNet uses, are part of this package; nothing is downloaded. The
room needs neither torch nor a corpus reader, and imports `_base`.
"""

from likewise._base.lazy import lazy
from likewise.wordnet.class_lists import ClassList, classes, lists
from likewise.wordnet.class_senses import depicted
from likewise.wordnet.matching import ClassNames, listed, locate, match, recognised
from likewise.wordnet.nouns import Synset, find, senses
from likewise.wordnet.path_similarity import MEASURES, similarity
from likewise.wordnet.thesaurus import synonyms
from likewise.wordnet.tree import branches, order

__all__ = [
    "MEASURES",
    "ClassList",
    "ClassNames",
    "Synset",
    "branches",
    "classes",
    "depicted",
    "find",
    "listed",
    "lists",
    "locate",
    "match",
    "order",
    "recognised",
    "senses",
    "similarity",
    "synonyms",
]
lazy(__name__)
