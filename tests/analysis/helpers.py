"""Matrices and answers whose structure is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import likewise
from likewise.transfer import Answers
from likewise.transfer.matrix import TransferMatrix


def matrix(values: Any, *, larger_is: str = "more alike") -> likewise.SimilarityMatrix:
    """A matrix of networks n0, n1, ..."""
    values = np.asarray(values, dtype=float)
    names = [f"n{i}" for i in range(len(values))]
    return likewise.SimilarityMatrix(names, values, measure="made", larger_is=larger_is)


def families(
    sizes: tuple[int, ...], *, larger_is: str = "more alike"
) -> tuple[likewise.SimilarityMatrix, list[list[str]]]:
    """Networks that are alike within families, with some noise, in mixed order."""
    draw = np.random.default_rng(0)
    labels = draw.permutation(np.repeat(np.arange(len(sizes)), sizes))
    alike = np.where(labels[:, None] == labels, 0.9, 0.3) + 0.05 * draw.random((len(labels), len(labels)))
    alike = (alike + alike.T) / 2
    np.fill_diagonal(alike, 1.0)
    made = matrix(alike if larger_is == "more alike" else 1 - alike, larger_is=larger_is)
    return made, [[made.names[i] for i in np.flatnonzero(labels == label)] for label in range(len(sizes))]


def zoo(
    sizes: tuple[int, ...] = (4, 4, 4), *, n: int = 400, seed: int = 0, larger_is: str = "more alike"
) -> tuple[likewise.SimilarityMatrix, Answers, dict[str, int]]:
    """Networks that err alike within families: their matrix, their answers and the family of each."""
    draw = np.random.default_rng(seed)
    family = np.repeat(np.arange(len(sizes)), sizes)
    m, labels = len(family), draw.integers(0, 5, n)
    noise = 1.2 * draw.normal(size=(len(sizes), n, 5))[family] + 0.6 * draw.normal(size=(m, n, 5))
    logits = 2 * np.eye(5)[labels] + noise
    alike = (family[:, None] == family) + 0.1 * draw.random((m, m)) + 1.0
    alike = (alike + alike.T) / 2
    given = matrix(alike if larger_is == "more alike" else 3 - alike, larger_is=larger_is)
    return given, Answers(given.names, logits, labels), dict(zip(given.names, family.tolist(), strict=True))


def run_folder(folder: Path, sizes: tuple[int, ...] = (4, 4, 4)) -> tuple[Path, TransferMatrix, Answers]:
    """The folder of a run whose networks fall together within families, with its matrix and answers."""
    _, answers, family = zoo(sizes)
    draw = np.random.default_rng(0)
    of = np.array(list(family.values()))
    share = np.where(of[:, None] == of, 0.8, 0.2)[:, :, None] + 0.1 * draw.random((len(of), len(of), 1))
    fooled = draw.random((len(of), len(of), answers.n)) < share
    predictions = np.where(fooled, (answers.labels + 1) % 5, answers.labels)
    made = TransferMatrix.of(answers, predictions)
    return made.save_run(folder), made, answers
