"""Attacks: small changes of an input that change what a network answers."""

from likewise.attacks.gradient import pgd

__all__ = ["pgd"]
