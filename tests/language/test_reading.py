"""What two language models say of every token, against plain loops over whole logits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

import likewise
from likewise import language
from likewise.errors import InputError
from tests.helpers import sentence as refusal
from tests.language.models import TEXTS, causal, log_probabilities, saved, tokenizer


def by_loop(a: Any, b: Any, ids: list[torch.Tensor], context: int = 1) -> dict[str, list[float]]:
    """KL, same top token and both losses, one position at a time, each text alone."""
    rows: dict[str, list[float]] = {"kl": [], "same": [], "before": [], "after": []}
    for text in ids:
        p, q = log_probabilities(a, text), log_probabilities(b, text)
        for t in range(context - 1, len(text) - 1):
            rows["kl"].append(sum(float(x.exp() * (x - y)) for x, y in zip(p[t], q[t], strict=True)))
            rows["same"].append(float(p[t].argmax() == q[t].argmax()))
            rows["before"].append(-float(p[t, text[t + 1]]))
            rows["after"].append(-float(q[t, text[t + 1]]))
    return rows


def ids_of(texts: list[str], window: int = 512) -> list[torch.Tensor]:
    return [torch.tensor(tokenizer()(text)["input_ids"][:window]) for text in texts]


@pytest.mark.parametrize(("window", "context"), [(512, 1), (6, 1), (512, 3)])
def test_answers_are_those_of_a_loop_over_texts_and_positions(window: int, context: int) -> None:
    a, b = causal(), causal(noise=2.0)
    answers = language.answers(a, b, TEXTS, window=window, context=context, progress=False)
    expected = by_loop(a, b, ids_of(TEXTS, window), context)
    assert np.allclose(answers.kl, expected["kl"], rtol=0, atol=1e-6)
    assert np.allclose(answers.a.loss, expected["before"], atol=1e-5)
    assert np.allclose(answers.b.loss, expected["after"], atol=1e-5)
    numbers = answers.statistics()
    assert numbers["kl-median"].value == pytest.approx(np.median(expected["kl"]), abs=1e-6)
    assert numbers["kl-p95"].value == pytest.approx(np.quantile(expected["kl"], 0.95), abs=1e-6)
    assert numbers["same-top"].value == np.mean(expected["same"]) < 1
    ratio = np.mean(expected["after"]) - np.mean(expected["before"])
    assert numbers["log-perplexity-ratio"].value == pytest.approx(ratio, abs=1e-6)
    assert answers.a.perplexity == pytest.approx(math.exp(np.mean(expected["before"])), rel=1e-5)
    delta = np.exp(-np.array(expected["after"])) - np.exp(-np.array(expected["before"]))
    assert numbers["delta-p-rms"].value == pytest.approx(math.sqrt(np.mean(delta**2)), abs=1e-7)
    assert answers.a.cut == sum(len(tokenizer()(text)["input_ids"]) > window for text in TEXTS)


def test_bits_per_byte_are_losses_in_bits_over_the_bytes_of_the_texts() -> None:
    a, b = causal(), causal(seed=1)
    answers = language.answers(a, b, ["the plot is dull .", "ça — warm"], progress=False)
    losses = by_loop(a, b, ids_of(["the plot is dull .", "ça — warm"]))
    size = len("the plot is dull .") + 1 + len("ça — warm".encode())
    size -= 1
    assert answers.bits_per_byte() == pytest.approx(
        (sum(losses["before"]) / math.log(2) / size, sum(losses["after"]) / math.log(2) / size), rel=1e-6
    )


def test_a_batch_and_its_padding_change_nothing() -> None:
    a, b = causal(), causal(noise=1.0)
    together = language.answers(a, b, TEXTS, batch_size=24, progress=False)
    alone = language.answers(a, b, TEXTS, batch_size=1, progress=False)
    assert np.allclose(together.kl, alone.kl, atol=1e-6)
    assert (together.a.text == alone.a.text).all()
    assert (together.token == alone.token).all()


def test_tokens_as_a_tokenizer_gives_them_are_the_texts() -> None:
    a, b = causal(words=False), causal(noise=1.0, words=False)
    tokens = dict(tokenizer()(TEXTS, padding=True, return_tensors="pt"))
    answers = language.answers(a, b, {key: tokens[key] for key in ("input_ids", "attention_mask")}, progress=False)
    assert np.allclose(answers.kl, language.answers(causal(), causal(noise=1.0), TEXTS, progress=False).kl, atol=1e-6)
    assert answers.bits_per_byte() is None
    assert "bits-per-byte-change" not in answers.statistics()
    left = tokenizer()(TEXTS, padding=True, padding_side="left", return_tensors="pt")
    padded = language.answers(a, b, {key: left[key] for key in ("input_ids", "attention_mask")}, progress=False)
    assert np.allclose(answers.kl, padded.kl, atol=1e-6)


def test_a_network_that_caps_its_logits_is_asked_for_all_of_them() -> None:
    from transformers import Gemma2Config, Gemma2ForCausalLM

    sizes: dict[str, Any] = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "head_dim": 8}
    sizes |= {"num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": len(tokenizer())}
    nets = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        net = Gemma2ForCausalLM(Gemma2Config(final_logit_softcapping=2.0, **sizes)).eval()
        with torch.no_grad():
            net.lm_head.weight.mul_(30)
        nets.append(likewise.network(net, tokenizer=tokenizer()))
    answers = language.answers(*nets, TEXTS[:6], progress=False)
    assert np.allclose(answers.kl, by_loop(*nets, ids_of(TEXTS[:6]))["kl"], atol=1e-6)


def test_a_module_of_ones_own_answers_with_tokens() -> None:
    class Bigram(torch.nn.Module):
        def __init__(self, seed: int) -> None:
            super().__init__()
            draw = torch.Generator().manual_seed(seed)
            self.table = torch.nn.Parameter(torch.randn(9, 9, generator=draw))

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.table[ids]

    ids = torch.randint(0, 9, (5, 7), generator=torch.Generator().manual_seed(0))
    a, b = Bigram(0), Bigram(1)
    answers = language.answers(a, b, {"input_ids": ids}, progress=False)
    p, q = (net.table.double().log_softmax(-1) for net in (a, b))
    expected = (p.exp() * (p - q)).sum(dim=1)[ids[:, :-1]].flatten()
    assert np.allclose(answers.kl, expected.detach().numpy(), atol=1e-6)


def test_masked_models_answer_at_tokens_hidden_from_both() -> None:
    from transformers import BertConfig, BertForMaskedLM

    sizes: dict[str, Any] = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1}
    nets = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        config = BertConfig(vocab_size=len(tokenizer()), num_attention_heads=2, **sizes)
        nets.append(likewise.network(BertForMaskedLM(config).eval(), tokenizer=tokenizer()))
    answers = language.answers(*nets, TEXTS, progress=False)
    assert answers.kind == "masked"
    for row in (0, 7):
        text = torch.tensor(tokenizer()(TEXTS[row])["input_ids"])
        places = answers.a.position[answers.a.text == row]
        assert len(places) == max(1, round(0.15 * (len(text) - 1)))  # all but [CLS]
        shown = text.clone()
        shown[places] = tokenizer().mask_token_id
        p, q = (log_probabilities(net, shown) for net in nets)
        expected = (p.exp() * (p - q)).sum(dim=1)[places]
        assert np.allclose(answers.kl[answers.a.text == row], expected.numpy(), atol=1e-6)
        assert answers.token[answers.a.text == row].tolist() == text[places].tolist()


def test_networks_with_a_decoder_answer_with_the_target() -> None:
    from transformers import T5Config, T5ForConditionalGeneration

    nets = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        config = T5Config(
            vocab_size=len(tokenizer()),
            d_model=16,
            d_ff=32,
            d_kv=8,
            num_layers=1,
            num_heads=2,
            decoder_start_token_id=0,
        )
        nets.append(likewise.network(T5ForConditionalGeneration(config).eval(), tokenizer=tokenizer()))
    pairs = list(zip(TEXTS[:6], TEXTS[6:12], strict=True))
    answers = language.answers(*nets, pairs, progress=False)
    assert answers.kind == "seq2seq"
    for row, (source, target) in enumerate(pairs):
        ids, labels = (tokenizer()(text, return_tensors="pt")["input_ids"] for text in (source, target))
        with torch.no_grad():
            p, q = (net(input_ids=ids, labels=labels).logits[0].double().log_softmax(-1) for net in nets)
        assert np.allclose(answers.kl[answers.a.text == row], (p.exp() * (p - q)).sum(dim=1).numpy(), atol=1e-6)
    assert refusal(InputError, language.answers, *nets, TEXTS, progress=False) == (
        "T5ForConditionalGeneration has an encoder and a decoder, and texts alone do not say what it should answer. "
        "Give pairs of texts: a source and its target."
    )


def test_networks_with_other_tokens_are_compared_by_bits_per_byte() -> None:
    a, b = causal(), causal(seed=1, words=False)
    b = likewise.network(
        b, tokenizer=lambda texts: {"input_ids": torch.tensor([[len(t) % 9 + 5, 6, 7] for t in texts])}
    )
    answers = language.answers(a, b, TEXTS, progress=False)
    assert answers.kl is None
    assert list(answers.statistics()) == ["bits-per-byte-change"]
    expected = by_loop(a, a, ids_of(TEXTS))["before"]
    size = sum(len(text.encode()) for text in TEXTS)
    assert answers.bits_per_byte()[0] == pytest.approx(sum(expected) / math.log(2) / size, rel=1e-6)


def test_an_address_is_taken_with_its_head(tmp_path) -> None:
    addresses = [saved(causal(words=False), tmp_path / "a"), saved(causal(noise=1.0, words=False), tmp_path / "b")]
    answers = language.answers(*addresses, TEXTS, progress=False)
    assert np.allclose(answers.kl, language.answers(causal(), causal(noise=1.0), TEXTS, progress=False).kl, atol=1e-6)
    assert answers.names == ("a", "b")


def test_what_cannot_be_compared_is_refused_in_a_sentence() -> None:
    a = causal()
    assert refusal(InputError, language.answers, a, a, ["good", " "], progress=False) == (
        "text 1 is empty, so there is nothing to predict. Leave such texts out."
    )
    assert refusal(InputError, language.answers, a, a, torch.zeros(3, 4), progress=False) == (
        "a language model reads texts, and was given an array of shape (3, 4). Give a list of texts, the path of a "
        "text file, or what a tokenizer gives: {'input_ids': ..., 'attention_mask': ...}."
    )
    assert refusal(InputError, language.answers, a, a, TEXTS, context=9, window=9, progress=False) == (
        "context is 9 and window is 9: no token is left. Give a smaller context."
    )
    assert refusal(InputError, language.answers, a, a, TEXTS, window=0, progress=False) == (
        "window is 0. Give a whole number of at least 1."
    )
    assert refusal(InputError, language.answers, a, a, ["good"], context=4, progress=False) == (
        "no text has a token that something was read before. Give longer texts, or a smaller context."
    )
    broken = causal()
    with torch.no_grad():
        broken.model.norm.weight.fill_(float("nan"))
    assert refusal(InputError, language.answers, a, broken, TEXTS, names=["a", "b"], progress=False) == (
        "'b' answers with NaN or infinite logits, so nothing can be compared. Check its weights, or show it the texts "
        "in float32 (dtype='float32')."
    )
    encoder = likewise.network("zoo:bert-tiny", data=likewise.dataset("sentences:test[:8]"))
    with pytest.raises(InputError, match="does not answer with tokens"):
        language.answers(encoder, encoder, TEXTS, progress=False)
