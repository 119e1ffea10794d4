"""What is not installed is named with the extra that brings it."""

import numpy as np

from tests.helpers import sentence

X = np.random.default_rng(0).normal(size=(30, 5))


def test_a_missing_extra_names_its_remedy() -> None:
    from likewise._base.optional import require

    assert sentence(ImportError, require, "no_such_module", extra="vision", to="load timm:resnet18") == (
        "to load timm:resnet18, no_such_module is needed: pip install 'likewise[vision]'."
    )
