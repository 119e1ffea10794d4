"""Domains: how networks with a known likeness are made of graphs, texts and images. One file per domain."""

from likewise.benchmark.domains.base import DOMAINS, Case, Domain, Group, Preset, Spec, Stack, domain

__all__ = ["DOMAINS", "Case", "Domain", "Group", "Preset", "Spec", "Stack", "domain"]
