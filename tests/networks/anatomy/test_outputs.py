"""What a network answers with: declared, or logits."""

from __future__ import annotations

from torch import nn

import likewise
from likewise.networks.anatomy.outputs import output_kind
from tests.networks.helpers import refused


def test_a_network_that_says_nothing_answers_with_logits() -> None:
    assert output_kind(likewise.network("zoo:lenet")) == "logits"
    quiz = nn.Linear(2, 2)
    quiz.answers = ["yes", "no"]  # of its own, and no word about its numbers
    assert output_kind(quiz) == "logits"


def test_capsules_answer_with_lengths_however_they_are_wrapped() -> None:
    net = likewise.network("zoo:capsnet", data=likewise.dataset("digits:test[:10]"))
    assert output_kind(nn.DataParallel(net)) == "lengths"


def test_another_word_is_refused_with_the_known_ones() -> None:
    net = nn.Linear(2, 2)
    net.answers = "probability"
    assert refused(lambda: output_kind(net)) == (
        "networks do not answer with 'probability'. Did you mean 'probabilities'? Give logits, probabilities or "
        "lengths."
    )
