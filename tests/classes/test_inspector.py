"""The inspector gives the same report whoever runs the training, and loses no epoch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import likewise
from likewise import wordnet
from likewise._base.optional import prepare_torchvision
from likewise.classes import ClassSimilarity, Inspector, from_wordnet, inspect
from likewise.classes.adapters.lightning import logits_and_labels
from likewise.data import Data
from likewise.errors import InputError, MissingDataError
from likewise.networks import train
from tests.classes.helpers import IMAGES, LABELS, LOGITS, NAMES, NET, PATHS, WEIGHTS, confused, refusals, refused
from tests.conftest import ROOT

EPOCHS = 3


CLASSES = ("cat", "dog", "frog", "ship", "truck")


MEANINGS = ("cat.n.01", "dog.n.01", "frog.n.01", "ship.n.01", "truck.n.01")


def inspector(**options: Any) -> Inspector:
    return Inspector(CLASSES, reference=MEANINGS, **options)


def samples(n: int, seed: int) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % len(CLASSES)
    centres = torch.randn(len(CLASSES), 6, generator=torch.Generator().manual_seed(0))
    return centres[labels] + 1.5 * torch.randn(n, 6, generator=draw), labels


TRAIN, TEST = samples(120, 1), samples(60, 2)


def batches(data: tuple[Tensor, Tensor]) -> list[tuple[Tensor, Tensor]]:
    return list(zip(data[0].split(20), data[1].split(20), strict=True))


class Net(nn.Module):
    """A small classifier that also speaks as the Trainer of transformers wants it to."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.hidden, self.fc = nn.Linear(6, 16), nn.Linear(16, len(CLASSES))

    def forward(self, x: Tensor, labels: Tensor | None = None) -> Any:
        logits = self.fc(self.hidden(x).relu())
        if labels is None:
            return logits
        return {"loss": functional.cross_entropy(logits, labels), "logits": logits}


def sgd(net: nn.Module) -> torch.optim.SGD:
    return torch.optim.SGD(net.parameters(), lr=0.05)


def by_hand(watch: Inspector) -> nn.Module:
    net = Net()
    optimiser = sgd(net)
    watch.report(net.fc.weight, epoch=0)
    for _ in range(EPOCHS):
        for x, y in batches(TRAIN):
            optimiser.zero_grad()
            functional.cross_entropy(net(x), y).backward()
            optimiser.step()
        with torch.no_grad():
            for x, y in batches(TEST):
                watch.update(net(x), y)
        watch.report(net.fc.weight)
    return net


def same(a: Inspector, b: Inspector) -> None:
    """The curves of a are those of b, in all that b reports."""
    ours, theirs = a.curves(), b.curves()
    assert ours.index.tolist() == theirs.index.tolist()
    for name in theirs:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-12, atol=1e-12, err_msg=name)


QUIET = pytest.mark.filterwarnings("ignore:::lightning", "ignore:.*does not have many workers.*", "ignore:.*treespec.*")


def lightning_run(
    folder: Path, watch: Inspector, epochs: int, checkpoint: Path | None = None, returned: str = "both", **options: Any
) -> Any:
    """Train with Lightning, from a checkpoint if one is given, keeping one after every epoch."""
    prepare_torchvision()
    lightning = pytest.importorskip("lightning.pytorch")

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = Net()

        def forward(self, x: Tensor) -> Any:
            return self.net(x)

        def training_step(self, batch: Any, index: int) -> Any:
            return functional.cross_entropy(self(batch[0]), batch[1])

        def validation_step(self, batch: Any, index: int) -> Any:
            logits = self(batch[0])
            both = {"logits": logits, "labels": batch[1]}
            return {"both": both, "logits": logits, "nothing": None, "other": {"scores": logits}}[returned]

        def configure_optimizers(self) -> Any:
            return sgd(self)

    keep = lightning.callbacks.ModelCheckpoint(folder, filename="{epoch}", save_top_k=-1)
    trainer = lightning.Trainer(
        max_epochs=epochs,
        callbacks=[watch.lightning(prefix="dsi/", **options), keep],
        accelerator="cpu",
        logger=lightning.loggers.CSVLogger(folder),
        enable_progress_bar=False,
        enable_model_summary=False,
        log_every_n_steps=1,
        default_root_dir=folder,
    )
    trainer.fit(Module(), _loader(TRAIN), _loader(TEST), ckpt_path=checkpoint)
    return trainer


def _loader(data: tuple[Tensor, Tensor]) -> Any:
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*data), batch_size=20)


SCRIPT = """
import os, signal, sys
import likewise
from likewise.classes import Inspector
from likewise.networks import train
out, last = sys.argv[1], int(sys.argv[2])

def end(net, record):
    if record["epoch"] == last:
        os.kill(os.getpid(), signal.SIGKILL)

inspector = Inspector(likewise.dataset("digits:test[:60]"), out=out + "/inspection")
train("zoo:mlp", "digits:train[:150]", validation="digits:test[:60]", epochs=6, lr=0.05,
      out=out + "/run", callbacks=[inspector, end])
"""


DISTRIBUTED = """
import sys, warnings
import torch
from torch import distributed
sys.path.insert(0, sys.argv[3])
from tests.classes.test_inspector import TEST, Net, inspector
rank, file = int(sys.argv[1]), sys.argv[2]
distributed.init_process_group("gloo", init_method="file://" + file, rank=rank, world_size=2)
torch.set_num_threads(1)
watch, net = inspector(out=file + "-out"), Net()
with torch.no_grad():
    x, y = TEST[0][rank::2], TEST[1][rank::2]
    watch.update(net(x), y, net.hidden(x))
report = watch.report(net)
distributed.destroy_process_group()
"""


MINI = wordnet.classes("mini-imagenet")  # in Ravi and Larochelle's order, not that of the ids


SORTED = sorted(MINI.wnids)


test_an_error_is_a_sentence = refusals(
    (lambda: inspect([], IMAGES), "no checkpoint was given. Give a training's folder, or its checkpoints in order."),
    (
        lambda: inspect("nothere", IMAGES),
        "there is no folder or file nothere. Give a training's folder, its checkpoints in order, or a network's "
        "address.",
        MissingDataError,
    ),
    (lambda: Inspector(["cat"]), "an inspector needs at least two classes. Give their names or their number."),
    (lambda: Inspector(3, every_n_epochs=0), "every_n_epochs must be a whole number of at least 1, got 0."),
    (lambda: Inspector(3, every_n_epochs="2"), "every_n_epochs must be a whole number of at least 1, got '2'."),
    (lambda: Inspector(3, adversarial_every=-1), "adversarial_every must be a whole number of at least 1, got -1."),
    (lambda: Inspector(3, adversarial_epochs=5), "adversarial_epochs is 5. Give a list of epochs."),
    (
        lambda: Inspector(3, adversarial_epochs=["last"]),
        "an epoch of adversarial_epochs must be a whole number of at least 0, got 'last'.",
    ),
    (lambda: Inspector(3).report(epoch=-1), "epoch must be a whole number of at least 0, got -1."),
    (
        lambda: Inspector(["dog", "cat", "newt"], reference=PATHS),
        "the reference has no class that is surely 'newt'; it has 'cat', 'dog', 'ship'. Classes are "
        "matched by WordNet id or by name, never by position: name them as it does, or give one WordNet "
        "id per class.",
    ),
    (
        lambda: Inspector(10, reference="cifar10"),
        "the reference 'cifar10' has no class that is surely '0', '1', '2' and 7 more; it has 'airplane', "
        "'automobile', 'bird' and 7 more. Classes are matched by WordNet id or by name, never by position: "
        "name them as it does, or give one WordNet id per class.",
    ),
    (lambda: confused(LOGITS, LABELS, split="valid"), "split is 'valid'. Give 'test', 'train' or 'adversarial'."),
    (lambda: Inspector(3).phases(), "no curve named 'wsi_max'. There are none."),
    (
        lambda: logits_and_labels(torch.tensor(0.5), (torch.ones(4, 2), torch.ones(4))),
        "validation_step returned tensor(0.5000), and the inspector needs the logits and labels of every batch. Return "
        "{'logits': ..., 'labels': ...} from it (the logits alone where a batch is (inputs, labels)), or say where "
        "they are: inspector.lightning(get=lambda outputs, batch: (logits, labels)).",
    ),
    (
        lambda: logits_and_labels(None, (torch.ones(4, 2), torch.ones(4))),
        "validation_step returned None, and the inspector needs the logits and labels of every batch. Return "
        "{'logits': ..., 'labels': ...} from it (the logits alone where a batch is (inputs, labels)), or say where "
        "they are: inspector.lightning(get=lambda outputs, batch: (logits, labels)).",
    ),
)


@QUIET
def test_a_validation_step_of_lightning_returns_what_the_page_says(tmp_path: Path) -> None:
    given: dict[str, Any] = {"both": {}, "logits": {}, "other": {"get": lambda out, batch: (out["scores"], batch[1])}}
    reports = {}
    for returned, options in given.items():
        watch = inspector()
        torch.manual_seed(0)
        lightning_run(tmp_path / returned, watch, 1, returned=returned, **options)
        reports[returned] = watch.curves()["accuracy"].loc[1:].tolist()
    assert reports["both"] == reports["logits"] == reports["other"]
    with pytest.raises(InputError, match=r"^validation_step returned None, and the inspector needs the logits"):
        lightning_run(tmp_path / "nothing", inspector(), 1, returned="nothing")


@QUIET
def test_lightning_gives_the_report_of_a_plain_loop(tmp_path: Path) -> None:
    plain, watched = inspector(), inspector()
    by_hand(plain)
    trainer = lightning_run(tmp_path, watched, EPOCHS)
    same(watched, plain)
    logged = float(trainer.callback_metrics["dsi/widm"])
    assert logged == pytest.approx(plain.curves()["widm"].iloc[-1], abs=1e-6)
    assert "dsi/wsi_max" in next(tmp_path.rglob("metrics.csv")).read_text()
    assert not trainer.lightning_module.net.fc._forward_pre_hooks


@QUIET
def test_lightning_goes_on_from_a_checkpoint_without_a_gap_or_a_double_epoch(tmp_path: Path) -> None:
    plain = inspector()
    by_hand(plain)
    out = tmp_path / "inspection"
    lightning_run(tmp_path, inspector(out=out), EPOCHS)
    resumed = inspector(out=out)  # all three epochs are there; training goes on after the second
    lightning_run(tmp_path / "again", resumed, EPOCHS, tmp_path / "epoch=1.ckpt")
    assert resumed.curves().index.tolist() == [0, 1, 2, 3]
    same(resumed, plain)
    same(inspector(out=out), plain)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_the_trainer_of_transformers_gives_the_report_of_a_plain_loop(tmp_path: Path) -> None:
    prepare_torchvision()
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    plain, watched = inspector(), inspector()
    by_hand(plain)
    hook, net = watched.trainer(), Net()

    class InOrder(transformers.Trainer):
        def _get_train_sampler(self, *given: Any) -> Any:
            return torch.utils.data.SequentialSampler(self.train_dataset)

    def rows(data: tuple[Tensor, Tensor]) -> list[dict[str, Tensor]]:
        return [{"x": x, "labels": y} for x, y in zip(*data, strict=True)]

    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path),
        num_train_epochs=EPOCHS,
        per_device_train_batch_size=20,
        per_device_eval_batch_size=20,
        eval_strategy="epoch",
        save_strategy="no",
        report_to=[],
        max_grad_norm=0,
        disable_tqdm=True,
        use_cpu=True,
        remove_unused_columns=False,
        dataloader_pin_memory=False,
        logging_strategy="no",
    )
    optimiser = sgd(net)
    flat = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1.0)
    trainer = InOrder(
        net,
        arguments,
        train_dataset=rows(TRAIN),
        eval_dataset=rows(TEST),
        callbacks=[hook],
        compute_metrics=hook,
        optimizers=(optimiser, flat),
    )
    trainer.train()
    same(watched, plain)
    logged = [entry for entry in trainer.state.log_history if "eval_widm" in entry]
    assert [entry["eval_widm"] for entry in logged] == plain.curves()["widm"].loc[1:].tolist()


def test_curves_that_an_earlier_run_did_not_come_to_write_are_written(tmp_path: Path) -> None:
    train("zoo:mlp", "digits:train[:60]", epochs=1, out=tmp_path / "run", keep_epochs=True)
    inspect(tmp_path / "run", "digits:test[:40]", out=tmp_path / "seen", progress=False)
    curves = tmp_path / "seen" / "curves.csv"
    whole = curves.read_text()
    curves.write_text("\n".join(whole.splitlines()[:-1]))
    inspect(tmp_path / "run", "digits:test[:40]", out=tmp_path / "seen", progress=False)
    assert curves.read_text() == whole


def test_our_own_training_gives_what_inspecting_its_epochs_gives(tmp_path: Path) -> None:
    digits = likewise.dataset("digits:test")
    live = Inspector(digits)
    done = train(
        "zoo:mlp",
        "digits:train[:300]",
        validation=digits,
        epochs=2,
        lr=0.05,
        out=tmp_path,
        keep_epochs=True,
        callbacks=[live],
    )
    later = inspect(tmp_path, digits, train="digits:train[:300]", progress=False)
    assert later.curves().index.tolist() == [0, 1, 2]
    on_test = [name for name in live.curves() if not name.endswith("train") and "train_" not in name]
    on_test = [name for name in on_test if name not in ("overfitting",)]
    assert "sai_ncsm_tncsm" in on_test
    of_weights = {"wsi_mean", "wsi_max", "wsi_min"}
    assert set(live.curves().loc[0].dropna().index) == of_weights
    for name in on_test:
        first = 0 if name in of_weights else 1
        np.testing.assert_allclose(
            live.curves()[name].loc[first:], later.curves()[name].loc[first:], rtol=1e-6, atol=1e-9, err_msg=name
        )
    assert done.history[1]["wsi_max"] == live.curves()["wsi_max"].loc[2]
    assert done.history[1]["validation_accuracy"] == pytest.approx(live.curves()["accuracy"].loc[2])


def test_the_attack_of_the_inspector_is_that_of_its_paper_and_an_option_changes_itself_alone() -> None:
    paper = {"eps": 0.05, "step": 0.001, "iterations": 2}
    assert Inspector(3).attack == paper
    assert Inspector(3, attack={"eps": 0.1}).attack == paper | {"eps": 0.1}
    assert Inspector(3, attack={"relative_step": 0.1}).attack == paper | {"step": None, "relative_step": 0.1}


def test_only_every_second_epoch_is_looked_at() -> None:
    live = Inspector(likewise.dataset("digits:test"), every_n_epochs=2)
    train("zoo:mlp", "digits:train[:100]", validation="digits:test[:50]", epochs=5, lr=0.05, callbacks=[live])
    assert live.curves().index.tolist() == [0, 2, 4]


def test_attacked_epochs_have_a_fooling_rate_and_leave_the_training_as_it_was() -> None:
    plain, attacked = (
        Inspector(likewise.dataset("digits:test"), adversarial_every=every, attack={"step": 0.05})
        for every in (None, 2)
    )
    weights = [
        train(
            "zoo:mlp", "digits:train[:200]", validation="digits:test[:100]", epochs=3, lr=0.05, callbacks=[live]
        ).net.state_dict()
        for live in (plain, attacked)
    ]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    rates = attacked.curves()["fooling_rate"]
    assert np.isfinite(rates).tolist() == [False, False, True, False]
    assert attacked.curves()["samples_adversarial"].loc[2] == 100
    assert attacked.matrices(2)["confusion_adversarial"].short == "CCSM-adversarial"


def test_killed_and_resumed_curves_have_no_gap_and_no_double_epoch(tmp_path: Path) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}

    def run(last: int) -> int:
        command = [sys.executable, "-c", SCRIPT, str(tmp_path / "killed"), str(last)]
        return subprocess.run(command, env=environment, check=False).returncode

    assert run(3) == -signal.SIGKILL  # epoch 3 is reported, its checkpoint not yet written
    assert (tmp_path / "killed" / "inspection" / "0003.safetensors").exists()
    assert not (tmp_path / "killed" / "inspection" / "0004.safetensors").exists()
    assert run(0) == 0
    whole = Inspector(likewise.dataset("digits:test[:60]"))
    train("zoo:mlp", "digits:train[:150]", validation="digits:test[:60]", epochs=6, lr=0.05, callbacks=[whole])
    seen = tmp_path / "killed" / "inspection"
    resumed = Inspector(likewise.dataset("digits:test[:60]"), out=seen).curves()
    assert resumed.index.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert resumed.equals(whole.curves())


def test_a_checkpoint_takes_the_inspector_back(tmp_path: Path) -> None:
    watch = inspector(out=tmp_path)
    by_hand(watch)
    earlier = {"reports": {k: v for k, v in watch.state_dict()["reports"].items() if k != "3"}}
    again = inspector(out=tmp_path)
    again.load_state_dict(earlier)
    assert again.curves().index.tolist() == [0, 1, 2]
    assert again.next_epoch == 3
    assert not (tmp_path / "0003.safetensors").exists()


def test_epochs_come_back_from_the_folder_as_they_were(tmp_path: Path) -> None:
    held, kept = inspector(), inspector(out=tmp_path)
    by_hand(held)
    by_hand(kept)
    back = inspector(out=tmp_path)
    same(back, held)
    ours, theirs = held.matrices(2), back.matrices(2)
    assert ours.keys() == theirs.keys()
    np.testing.assert_allclose(theirs["weights"].values, ours["weights"].values, atol=1e-7)
    assert theirs["weights"].wnids == ours["weights"].wnids


@pytest.mark.skipif(sys.platform == "win32", reason="gloo by file needs a POSIX system")
def test_sums_are_added_over_processes_that_train_together(tmp_path: Path) -> None:
    here = str(ROOT)
    runs = [
        subprocess.Popen([sys.executable, "-c", DISTRIBUTED, str(rank), str(tmp_path / "meet"), here])
        for rank in (0, 1)
    ]
    assert [run.wait() for run in runs] == [0, 0]
    alone, net = inspector(), Net()
    with torch.no_grad():
        alone.update(net(TEST[0]), TEST[1], net.hidden(TEST[0]))
    alone.report(net)
    together = inspector(out=str(tmp_path / "meet-out"))
    np.testing.assert_allclose(together.curves(), alone.curves(), rtol=1e-9, atol=1e-12)


def test_a_named_reference_is_matched_with_ids_in_another_order() -> None:
    inspector = Inspector(SORTED, reference="mini-imagenet")
    assert inspector.reference is not None
    assert inspector.classes == tuple(SORTED)
    np.testing.assert_array_equal(inspector.reference.values, wordnet.similarity(SORTED))
    assert list(inspector.reference.wnids or ()) == SORTED


def test_a_named_reference_is_matched_with_names_in_another_order() -> None:
    names = sorted(wordnet.classes("cifar100").names, reverse=True)
    inspector = Inspector([name.title() for name in names], reference="cifar100")
    assert inspector.reference is not None
    expected = from_wordnet("cifar100").only(names)
    np.testing.assert_array_equal(inspector.reference.values, expected.values)


def test_data_brings_its_ids_to_a_named_reference() -> None:
    order = [2, 0, 1]
    ids = [MINI.wnids[i] for i in order]
    images = torch.rand(3, 3, 4, 4)
    data = Data("folder", "image", images, [0, 1, 2], ("a", "b", "c"), tuple(ids))
    inspector = Inspector(data, reference="mini-imagenet")
    assert inspector.reference is not None
    np.testing.assert_array_equal(inspector.reference.values, wordnet.similarity(ids))


def test_what_a_reference_does_not_have_is_refused_by_name() -> None:
    names = ["dog", "cat", "newt", "unicorn"]
    assert refused(InputError, lambda: Inspector(names, reference="cifar10")) == (
        "the reference 'cifar10' has no class that is surely 'newt', 'unicorn'; it has 'airplane', "
        "'automobile', 'bird' and 7 more. Classes are matched by WordNet id or by name, never by "
        "position: name them as it does, or give one WordNet id per class."
    )


def test_a_matrix_without_names_is_no_reference_for_named_classes() -> None:
    nameless = ClassSimilarity(np.eye(2))
    assert refused(InputError, lambda: Inspector(["cat", "dog"], reference=nameless)) == (
        "the reference has no class that is surely 'cat', 'dog'; it has '0', '1'. Classes are matched "
        "by WordNet id or by name, never by position: name them as it does, or give one WordNet id "
        "per class."
    )


def test_an_unknown_curve_lists_those_there_are() -> None:
    inspector = Inspector(NAMES)
    inspector.update(LOGITS, LABELS)
    inspector.report()
    assert refused(InputError, inspector.phases, "wsi") == (
        "no curve named 'wsi'. There are samples, errors, accuracy."
    )


def test_a_network_without_a_classifier_can_be_reported_after_all() -> None:
    inspector = Inspector(NAMES)
    inspector.update(LOGITS, LABELS)
    with pytest.raises(InputError):
        inspector.report(nn.Sequential(nn.ReLU()))
    assert inspector.report()["samples"] == 4


def test_data_with_a_class_name_that_repeats_goes_on_where_it_stopped(tmp_path: Path) -> None:
    # ImageNet has the crane that is a bird and the one that lifts
    cranes = ("n02012849", "n02009912", "n03126707")
    data = Data("birds", "image", IMAGES.inputs, [0, 1, 2], ("crane", "egret", "crane"), cranes)
    inspector = Inspector(data, out=tmp_path)
    assert inspector.classes == inspector.reference.classes == ("crane", "egret", "crane#2")
    inspector.update(LOGITS, LABELS)
    inspector.report(WEIGHTS)
    assert Inspector(data, out=tmp_path).next_epoch == 2


def test_a_reference_stands_beside_classes_given_as_a_matrix() -> None:
    assert Inspector(NET).reference is NET
    assert Inspector(NET, reference=PATHS).reference is PATHS


def test_a_folder_without_epochs_is_refused(tmp_path: Path) -> None:
    assert refused(InputError, inspect, tmp_path, IMAGES) == (
        f"{tmp_path} keeps no epochs. Train with keep_epochs (likewise train --keep-epochs), or give the "
        "checkpoints themselves."
    )
