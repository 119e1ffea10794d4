"""The peak of memory of `likewise.diff` and `likewise.language.answers` on two networks that are read block by block.

`write` makes two random networks in the shape of Llama with about 1.1 billion parameters in bfloat16, a file per block,
so that it takes little memory itself. `answers` and `diff` show them short texts of random tokens and print the peak of
their process (`ru_maxrss`, with torch and all libraries), what reading them whole would hold at least, and the seconds.

    python -m perf.larger_than_memory write FOLDER
    python -m perf.larger_than_memory answers FOLDER
    python -m perf.larger_than_memory diff FOLDER
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

import likewise
from likewise import language
from likewise._base.optional import prepare_torchvision
from likewise.networks.sources.language import weights_on_meta

SIZES: dict[str, Any] = {"vocab_size": 32_000, "hidden_size": 2048, "intermediate_size": 5632}
SIZES |= {"num_hidden_layers": 22, "num_attention_heads": 32, "num_key_value_heads": 4, "dtype": "bfloat16"}
TEXTS, TOKENS = 8, 32


def write(folder: Path, seed: int) -> None:
    """One random network, its weights drawn block by block."""
    prepare_torchvision()
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(architectures=["LlamaForCausalLM"], **SIZES)
    config.save_pretrained(folder)
    with weights_on_meta():
        net = LlamaForCausalLM(config)
    draw = torch.Generator().manual_seed(seed)
    files: dict[str, dict[str, torch.Size]] = {}
    for name, value in net.named_parameters():
        block = name.split(".")[2] if ".layers." in name else name
        files.setdefault(f"model-{block}.safetensors", {})[name] = value.shape
    for file, shapes in files.items():
        drawn = {
            name: (torch.ones(shape) if len(shape) == 1 else 0.02 * torch.randn(shape, generator=draw)).bfloat16()
            for name, shape in shapes.items()
        }
        save_file(drawn, folder / file, metadata={"format": "pt"})
    index = {"metadata": {}, "weight_map": {name: file for file, names in files.items() for name in names}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def measure(folders: list[Path], command: str) -> dict[str, Any]:
    """What reading both takes in this process."""
    start = time.perf_counter()
    ids = torch.randint(3, SIZES["vocab_size"], (TEXTS, TOKENS), generator=torch.Generator().manual_seed(0))
    a, b = (f"hf:{folder}" for folder in folders)
    data = {"input_ids": ids}
    if command == "diff":
        change = likewise.diff(a, b, data, names=["a", "b"], blockwise=True, progress=False)
        found: dict[str, Any] = {"layers": len(change.layers), "first": change.first_moved and change.first_moved.layer}
        found |= {"kl": change.tokens.statistics["kl"].value if change.tokens else None}
    else:
        found = {"kl": float(language.answers(a, b, data, blockwise=True, progress=False).statistics()["kl"])}
    return {
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 3),
        "weights_gb": round(sum(path.stat().st_size for f in folders for path in f.glob("*.safetensors")) / 1e9, 3),
        "seconds": round(time.perf_counter() - start, 1),
        **found,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["write", "answers", "diff"])
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    folders = [arguments.folder / name for name in ("a", "b")]
    if arguments.command != "write":
        print(json.dumps(measure(folders, arguments.command)))
        return
    for seed, folder in enumerate(folders):
        folder.mkdir(parents=True, exist_ok=True)
        write(folder, seed)


if __name__ == "__main__":
    main()
