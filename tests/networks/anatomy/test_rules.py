"""The rules that find a classifier: the first that answers wins."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from likewise.networks.anatomy.classifier import DECLARED, INFERRED, RULES, answering_call, find, head
from likewise.networks.anatomy.rules import Hints, by_name, by_shape


class Everything(nn.Module):
    """Each rule finds another layer; those that are called in a pass are `called` and, after it, `answers`."""

    def __init__(self) -> None:
        super().__init__()
        for name in ("attribute", "returned", "class_predictor", "fc", "called", "answers"):
            self.add_module(name, nn.Linear(4, 4))
        self.last = nn.Linear(4, 3)

    def forward(self, rows: Tensor) -> Any:
        return self.answers(self.called(rows))


def test_the_rules_are_asked_in_the_order_of_the_table() -> None:
    net, rows = Everything(), torch.rand(2, 4)
    assert head(net).layer_name == "class_predictor"  # by name
    net.get_classifier = lambda: net.returned
    assert head(net).layer_name == "returned"
    net.head_layer = "attribute"
    assert head(net).layer_name == answering_call(net, lambda: net(rows)) == "attribute"


def test_a_pass_comes_before_order_and_shapes() -> None:
    net, rows = Everything(), torch.rand(2, 4)
    del net.class_predictor
    assert answering_call(net, lambda: net(rows)) == "answers"
    assert find(net, INFERRED, Hints()) == "last"  # without a pass, by shape


def test_every_rule_of_the_table_says_what_it_goes_by() -> None:
    assert RULES == DECLARED | INFERRED
    assert all(rule.__doc__ and evidence for rule, evidence in RULES.items())


@pytest.mark.parametrize("rule", [by_name, by_shape])
def test_a_rule_without_an_answer_gives_none(rule: Any) -> None:
    assert rule(nn.Sequential(nn.ReLU()), Hints()) == []
