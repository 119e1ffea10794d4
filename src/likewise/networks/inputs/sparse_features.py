"""First layers for features that are mostly zeros, such as the words of a paper: sparse products, not dense ones.

On Cora 1.3 % of the features are not zero, and the dense product of the first layer takes most of a training. Weights
and their names are those of PyTorch Geometric's own layers, and features that are dense take its own way.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from likewise._base.compat import geometric

_nn: Any = geometric("build a graph network").nn
_SHARE = 0.1  # of entries that are not zero, up to which sparse products are faster
_FEW = 100_000  # entries below which a dense product is fast anyway
_known: Any = WeakIdKeyDictionary()  # features -> their version, and both sparse forms or None


def use_sparse_inputs(model: nn.Module) -> nn.Module:
    """Let the first convolution of a GCN, GraphSAGE or GAT look for zeros in its features; its weights stay."""
    convolutions: Any = model.convs
    first = convolutions[0]
    if isinstance(first, _nn.SAGEConv):
        with torch.random.fork_rng(devices=[]):  # what is drawn here is not used
            sparse = SparseSAGE(first.in_channels, first.out_channels)
        sparse.lin_l, sparse.lin_r = first.lin_l, SparseLinear.of(first.lin_r)
        convolutions[0] = sparse
    else:
        first.lin = SparseLinear.of(first.lin)
    return model


class SparseLinear(_nn.Linear):  # type: ignore[misc]
    """A linear layer that takes sparse products where its inputs are mostly zeros."""

    @classmethod
    def of(cls, dense: Any) -> SparseLinear:
        """The same layer with the same weights."""
        with torch.random.fork_rng(devices=[]):
            layer = cls(dense.in_channels, dense.out_channels, bias=dense.bias is not None)
        layer.weight_initializer, layer.bias_initializer = dense.weight_initializer, dense.bias_initializer
        layer.weight, layer.bias = dense.weight, dense.bias
        return layer

    def forward(self, x: Tensor) -> Tensor:
        """As of any linear layer."""
        known = _sparse_forms(x)
        if known is None:
            return super().forward(x)
        product = _times(known, self.weight)
        return product if self.bias is None else product + self.bias


class SparseSAGE(_nn.SAGEConv):  # type: ignore[misc]
    """A GraphSAGE layer that multiplies by its weights before it takes means, where features are mostly zeros.

    The mean of products is the product of the mean, and there are fewer columns behind the weights than before them.
    """

    def forward(self, x: Any, edge_index: Any, size: Any = None) -> Tensor:
        """As of any GraphSAGE layer."""
        known = _sparse_forms(x)
        if known is None:
            return super().forward(x, edge_index, size)
        projected = _times(known, self.lin_l.weight)
        means = self.propagate(edge_index, x=(projected, projected), size=size)
        return means + self.lin_l.bias + self.lin_r(x)


class _Product(torch.autograd.Function):
    """Features times the transpose of weights; the gradient of the weights takes the transposed features."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, transposed: Tensor, weight: Tensor) -> Tensor:
        ctx.transposed = transposed
        return features @ weight.t()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, Tensor]:
        return None, None, (ctx.transposed @ gradient).t()


def _times(features: tuple[Tensor, Tensor], weight: Tensor) -> Tensor:
    apply: Any = _Product.apply
    product: Tensor = apply(*features, weight)
    return product


def _sparse_forms(x: Any) -> tuple[Tensor, Tensor] | None:
    """Features and their transpose as sparse matrices, made once; None where they are not mostly zeros."""
    if not isinstance(x, Tensor) or x.requires_grad or x.layout != torch.strided or x.numel() < _FEW:
        return None
    if x.dtype not in (torch.float32, torch.float64) or x.ndim != 2:
        return None
    version, forms = _known.get(x, (None, None))
    if version != x._version:
        forms = _forms(x) if int(x.count_nonzero()) <= _SHARE * x.numel() else None
        _known[x] = (x._version, forms)
    found: tuple[Tensor, Tensor] | None = forms
    return found


def _forms(x: Tensor) -> tuple[Tensor, Tensor]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta state", UserWarning)
        return x.to_sparse_csr(), x.t().to_sparse_csr()
