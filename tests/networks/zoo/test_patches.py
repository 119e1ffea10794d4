"""Networks on patches: attention written out."""

from __future__ import annotations

import torch
from torch import nn


def test_attention_equals_that_of_torch() -> None:
    from likewise.networks.zoo.patches import Encoder

    ours = Encoder(16, 4, 32, "post", nn.ReLU())
    theirs = nn.TransformerEncoderLayer(16, 4, 32, dropout=0, batch_first=True)
    spelled = {"attention.qkv.": "self_attn.in_proj_", "attention.proj.": "self_attn.out_proj."}
    state = {}
    for key, value in ours.state_dict().items():
        for here, there in spelled.items():
            key = key.replace(here, there)
        state[key] = value
    theirs.load_state_dict(state)
    tokens = torch.randn(3, 5, 16)
    torch.testing.assert_close(ours(tokens), theirs(tokens), atol=1e-5, rtol=1e-5)
