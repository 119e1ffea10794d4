"""Layers of two language models: where does one see what the other sees?

Two small ones with random weights, so that it runs offline; with addresses it is
likewise.layerwise("hf:gpt2", "hf:EleutherAI/pythia-70m", "texts.txt").

    python examples/language_layers.py [FOLDER]
"""

import sys

import torch

import likewise
from likewise._base.optional import prepare_torchvision

prepare_torchvision()
import transformers  # noqa: E402

torch.manual_seed(0)
gpt2 = transformers.GPT2Model(transformers.GPT2Config(vocab_size=99, n_embd=32, n_layer=3, n_head=2, n_positions=64))
llama = transformers.LlamaModel(
    transformers.LlamaConfig(
        vocab_size=99, hidden_size=32, intermediate_size=64, num_hidden_layers=4, num_attention_heads=2
    )
)
tokens = torch.randint(99, (40, 16), generator=torch.Generator().manual_seed(0))
batches = [{"input_ids": tokens[start : start + 20]} for start in (0, 20)]

found = likewise.layerwise({"gpt2": gpt2, "llama": llama}, data=batches, reduce="mean")
print(found)
for layer in found.rows:
    nearest = max(found[layer], key=found[layer].get)
    print(f"{layer} of gpt2 is nearest to {nearest} of llama ({found[layer, nearest]:.2f})")
if len(sys.argv) > 1:
    found.plot(f"{sys.argv[1]}/layers.png")
