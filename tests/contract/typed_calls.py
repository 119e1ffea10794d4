"""What a type checker learns of calls: mypy reads this file along with the sources; nothing runs it."""

from typing import assert_type

import numpy as np
import torch

import likewise
from likewise.classes import ClassSimilarity
from likewise.comparison.compare import compare
from likewise.matrices.score import Score
from likewise.matrices.similarity import Comparison, SimilarityMatrix
from likewise.networks import Training


def calls() -> None:
    x, y = np.zeros((9, 2)), np.ones((9, 2))
    t = torch.zeros(9, 2)
    assert_type(compare(x, y), Score)
    assert_type(compare(x, y, "cka"), Score)
    assert_type(compare(t, t, measure="jaccard", k=5), Score)
    assert_type(compare(x, y, ["cka", "rsa"]), Comparison)
    assert_type(compare(x, y, "resi"), Comparison)
    assert_type(compare({"a": x, "b": y}), SimilarityMatrix)
    assert_type(compare({"a": x, "b": y}, "cka", calibrate=True), SimilarityMatrix)
    assert_type(compare([x, y, x], "cka"), SimilarityMatrix)
    assert_type(compare(["zoo:lenet", "zoo:mlp"], measure="cka", data="digits"), SimilarityMatrix)
    assert_type(compare({"a": x, "b": y}, ["cka", "rsa"]), Comparison)
    assert_type(compare({"a": x, "b": y}, "all"), Comparison)
    assert_type(compare({"a": x, "b": y}, "cka")["a", "b"], float)
    assert_type(compare({"a": x, "b": y}, "cka")["a"], dict[str, float])
    assert_type(likewise.compare(x, y), Score)
    assert_type(likewise.measures.jaccard(x, y, k=5), float)
    assert_type(likewise.measures.get("jaccard", k=5)(x, y), float)
    assert_type(likewise.classes.from_weights(x), ClassSimilarity)
    assert_type(likewise.classes.from_weights({"a": x, "b": y}), dict[str, ClassSimilarity])
    assert_type(likewise.classes.from_features(["zoo:mlp"], data="digits:test[:200]"), dict[str, ClassSimilarity])
    assert_type(likewise.train("zoo:mlp", "digits:train[:20]", epochs=1, lr=0.1, augment="flip"), Training)


def refused() -> None:
    """Settings of trainings and options of measures are keywords with their types: mypy reports needless ignores."""
    likewise.train("zoo:mlp", "digits", epoch=1)  # type: ignore[call-arg]
    likewise.train("zoo:mlp", "digits", lr="fast")  # type: ignore[arg-type]
    likewise.classes.from_weights("zoo:mlp", batchsize=2)  # type: ignore[call-overload]
    likewise.measures.jaccard([[1]], [[2]], kk=5)  # type: ignore[call-arg]
    likewise.measures.jaccard([[1]], [[2]], k="5")  # type: ignore[arg-type]
