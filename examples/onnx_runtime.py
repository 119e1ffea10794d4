"""Is the exported network the same? ONNX Runtime is recorded layer by layer and held against the network in torch.

python examples/onnx_runtime.py [FOLDER] [NETWORK DATA]
"""

import sys
import warnings
from pathlib import Path

import onnxruntime
import torch

import likewise
from likewise.difference import record_arrays

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
address, data = sys.argv[2:4] if len(sys.argv) > 3 else ("zoo:resnet20,channels=1", "digits:test[:100]")
probe = likewise.dataset(data)
net = likewise.network(address, data=probe)


class Tapped(torch.nn.Module):
    """A network that gives its layers beside its answers, for the exporter."""

    def __init__(self, net, names):
        super().__init__()
        self.net, self.names, self.rows = net, names, {}
        for name in names:
            likewise.networks.unwrapped(net).get_submodule(name).register_forward_hook(self.keep(name))

    def keep(self, name):
        def hook(module, given, output):
            self.rows.setdefault(name, output.flatten(1).clone())  # the first call, before anything changes it in place

        return hook

    def forward(self, images):
        self.rows.clear()
        answers = self.net(images)
        return (*(self.rows[name] for name in self.names), answers)


current = likewise.record(net, probe, name="torch", progress=False)
names = [name for name in current.layers if "#" not in name]  # a second call of a module has a number after its name
images = next(iter(probe.batches(len(probe))))[0]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what the exporter says of itself
    torch.onnx.export(
        Tapped(net, names).eval(),
        (images,),
        folder / "net.onnx",
        input_names=["images"],
        output_names=[*names, "answers"],
        dynamo=False,
    )
session = onnxruntime.InferenceSession(folder / "net.onnx")
*rows, answers = session.run(None, {"images": images.numpy()})
ported = record_arrays(dict(zip(names, rows, strict=True)), current.probe, name="ONNX Runtime", logits=answers)

change = likewise.diff(current, ported)
print(*(f"{layer.layer}: {layer.change:.1g}" for layer in change.layers if layer.moved), sep="\n")
print(f"{len(names)} layers, the largest change {max(layer.change for layer in change.layers):.1g}: {change.verdict}")
