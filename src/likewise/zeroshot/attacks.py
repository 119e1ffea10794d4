"""Attacks without gradients on the networks of Raw Zero-Shot, as the paper counts them beside DBI and AM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from likewise.data import Data, dataset
from likewise.data.address import held_out
from likewise.errors import InputError
from likewise.transfer import robustness
from likewise.zeroshot.protocol import StoreLike
from likewise.zeroshot.result import Results, as_list

if TYPE_CHECKING:
    import pandas as pd

THRESHOLDS = (1, 3, 5, 10)


def attacked(
    results: Results,
    data: Data | str,
    *,
    images: int = 100,
    thresholds: Sequence[int] = THRESHOLDS,
    generations: int = 1,
    population: int = 400,
    store: StoreLike = None,
    device: Any = None,
    progress: bool = True,
) -> dict[str, pd.DataFrame]:
    """Attack the networks of all classes: a few pixels (L0), or all values by a few grey levels (Linf).

    Of several trainings the first is attacked. The paper attacks 100 images; its code shows one generation of 400
    candidates, its text speaks of 100 generations.

    Args:
        results: Results of `run` with a store, which say where the networks are.
        data: Labelled images, or their address; of an address without a split, those held out.
        images: The first so many are attacked.
        thresholds: How many pixels, or how many grey levels, an attack may change.
        generations: How long each search lasts.
        population: Candidates per generation.
        store: A folder for examples: rerun with it to resume.
        device: Where networks are shown images.
        progress: Whether to show progress.

    Returns:
        The table of `likewise.transfer.robustness` by network, for `architectures`.

    Raises:
        InputError: A result has no networks beside it, or no image is left.
    """
    several = as_list(results, "nothing to attack")
    if images < 1:
        raise InputError(f"images is {images}. Attack at least 1.")
    bare = [one.network for one in several if not one.about.get("weights")]
    if bare:
        raise InputError(
            f"the answers of {bare[0]!r} came without its network, and attacks need it. Train it here with a store, or "
            "leave the attacks out."
        )
    shown = (data if isinstance(data, Data) else dataset(held_out(data) or data))[:images]
    search: dict[str, Any] = {"thresholds": thresholds, "generations": [generations], "population": population}
    show: dict[str, Any] = {"store": store, "device": device, "progress": progress}
    return {one.network: robustness(one.about["weights"][0], shown, **search, **show) for one in several}
