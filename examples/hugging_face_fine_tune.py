"""A fine-tune with the Trainer of transformers: watch it, then say what it changed.

A tiny BERT with random weights and words made up here, so that it runs offline.

    python examples/hugging_face_fine_tune.py [FOLDER]
"""

import copy
import sys
import tempfile

import torch

import likewise
from likewise._base.optional import prepare_torchvision

prepare_torchvision()
import transformers  # noqa: E402

GOOD, BAD, OTHER = ["good", "fine", "great"], ["bad", "dull", "awful"], ["film", "plot", "cast", "song", "the"]
WORDS = {word: i for i, word in enumerate(["[pad]", *GOOD, *BAD, *OTHER])}


class Bert(transformers.BertForSequenceClassification):
    """A BERT that takes texts: `tokenize` turns them into what it is shown."""

    def tokenize(self, texts):
        return {"input_ids": torch.tensor([[WORDS[word] for word in text.split()] for text in texts])}


def texts(count, seed):
    generator = torch.Generator().manual_seed(seed)

    def draw(words):
        return words[int(torch.randint(len(words), (1,), generator=generator))]

    labels = [i % 2 for i in range(count)]
    return [f"the {draw(OTHER)} {draw([BAD, GOOD][label])} {draw(OTHER)}" for label in labels], labels


torch.manual_seed(0)
config = transformers.BertConfig(
    vocab_size=len(WORDS),
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    num_labels=2,
)
net = Bert(config)
before = copy.deepcopy(net)
sets = []
for count, seed in ((256, 0), (64, 1)):
    lines, labels = texts(count, seed)
    ids = net.tokenize(lines)["input_ids"]
    sets.append([{"input_ids": row, "labels": label} for row, label in zip(ids, labels, strict=True)])

watch = likewise.Inspector(classes=("negative", "positive"))
hook = watch.trainer()
settings = transformers.TrainingArguments(
    output_dir=sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(),
    num_train_epochs=3,
    per_device_train_batch_size=32,
    learning_rate=3e-3,
    eval_strategy="epoch",
    save_strategy="no",
    report_to=[],
    disable_tqdm=True,
    use_cpu=True,
)
transformers.Trainer(
    net, settings, train_dataset=sets[0], eval_dataset=sets[1], callbacks=[hook], compute_metrics=hook
).train()

lines, labels = texts(64, 1)
probe = likewise.data.Data("reviews", "text", lines, labels, ("negative", "positive"))
print(likewise.diff(before, net, probe, names=("pretrained", "fine-tuned")))
