"""First layers for features that are mostly zeros, such as the words of a paper: sparse products, not dense ones.

On Cora 1.3 % of the features are not zero. The linear layers of PyTorch Geometric take sparse tensors; GraphSAGE takes
means of its features first, which are dense, so its first layer here multiplies by its weights before.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.utils.weak import WeakIdKeyDictionary

from likewise._base.optional import geometric

_nn: Any = geometric("build a graph network").nn
_SHARE = 0.1  # of entries that are not zero, up to which sparse products are faster
_FEW = 100_000  # entries below which a dense product is fast anyway
_cache: Any = WeakIdKeyDictionary()  # features -> their version, and as they are multiplied


def use_sparse_inputs(model: nn.Module) -> nn.Module:
    """Let the first convolution of a GCN, GraphSAGE or GAT look for zeros in its features; its weights stay."""
    convolutions: Any = model.convs
    first = convolutions[0]
    if isinstance(first, _nn.SAGEConv):
        with torch.random.fork_rng(devices=[]):  # what is drawn here is not used
            convolutions[0] = SparseSAGE(first.in_channels, first.out_channels)
        convolutions[0].lin_l, convolutions[0].lin_r = first.lin_l, first.lin_r
    else:
        first.lin.register_forward_pre_hook(_sparse_argument)
    return model


class SparseSAGE(_nn.SAGEConv):  # type: ignore[misc]
    """A GraphSAGE layer that multiplies by its weights before it takes means, where features are mostly zeros.

    The mean of products is the product of the mean, and there are fewer columns behind the weights than before them.
    """

    def forward(self, x: Any, edge_index: Any, size: Any = None) -> Tensor:
        """As of any GraphSAGE layer."""
        features = sparse(x)
        if features is x:
            return super().forward(x, edge_index, size)
        projected = linear(features, self.lin_l.weight)
        means = self.propagate(edge_index, x=(projected, projected), size=size)
        return means + self.lin_l.bias + self.lin_r(features)


def _sparse_argument(_layer: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(sparse, arguments))


def sparse(x: Any) -> Any:
    """Features as a sparse matrix, made once, where they are mostly zeros; else as they are."""
    if not isinstance(x, Tensor) or x.requires_grad or x.layout != torch.strided or x.numel() < _FEW:
        return x
    if x.dtype not in (torch.float32, torch.float64) or x.ndim != 2:
        return x
    version, features = _cache.get(x, (None, None))
    if version != x._version:
        features = _compressed(x) if int(x.count_nonzero()) <= _SHARE * x.numel() else None
        _cache[x] = (x._version, features)
    return x if features is None else features


def _compressed(x: Tensor) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta state", UserWarning)
        return x.to_sparse_csr()
