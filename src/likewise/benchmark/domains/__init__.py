"""Domains: how networks of known similarity are made of graphs, texts and images. One file per domain."""

from likewise.benchmark.domains.base import (
    DOMAINS,
    ChangeKind,
    Domain,
    Experiment,
    Group,
    LayerViews,
    NetworkSpec,
    Preset,
    domain,
)

__all__ = ["DOMAINS", "ChangeKind", "Domain", "Experiment", "Group", "LayerViews", "NetworkSpec", "Preset", "domain"]
