"""Watch a training with Lightning: which classes does the network find alike, epoch by epoch?

python examples/lightning_training.py
"""

import logging
import warnings

import torch
from torch.utils.data import DataLoader, TensorDataset

import likewise
from likewise._base.optional import prepare_torchvision

prepare_torchvision()  # where torchvision does not fit torch, Lightning does not import without it
import lightning  # noqa: E402

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", module="lightning|torch")


class Digits(lightning.LightningModule):
    """A small network of the digits; `validation_step` gives back what the inspector looks at."""

    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10)
        )

    def training_step(self, batch, _):
        return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def validation_step(self, batch, _):
        return {"logits": self.net(batch[0]), "labels": batch[1]}

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=5e-3)


def batches(address):
    data = likewise.dataset(address)
    return DataLoader(TensorDataset(data.inputs[:], data.labels), batch_size=64)


torch.manual_seed(0)
watch = likewise.Inspector(likewise.dataset("digits:test"))
quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
trainer = lightning.Trainer(max_epochs=3, accelerator="cpu", callbacks=[watch.lightning()], **quiet)
trainer.fit(Digits(), batches("digits:train"), batches("digits:test"))
print(watch.curves()[["accuracy", "wsi_max", "sai_ncsm_ccsm"]].round(3))
print({name: m.closest("8", 3) for name, m in watch.matrices(3).items()})
