"""Views on disk: streamed, whole or absent, mapped back, found again."""

from __future__ import annotations

import pickle
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from torch import Tensor, nn

import likewise
from likewise.data import Data
from likewise.errors import DamagedStoreWarning, ForwardError, StoreError
from likewise.views import Activations
from likewise.views.cache import read_view
from likewise.views.extract import extract


def _net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))


def _files(store: Path) -> list[Path]:
    return sorted((store / "views").glob("*.safetensors"))


def test_a_stored_view_equals_one_in_memory_and_is_mapped(tmp_path: Path) -> None:
    rows = torch.rand(50, 6)
    kept = dict(extract(_net(), rows, "all", store=tmp_path, batch_size=7))
    remembered = extract(_net(), rows, "all", batch_size=7)
    maps = Path("/proc/self/maps")
    assert not maps.exists() or all(str(path) in maps.read_text() for path in _files(tmp_path))
    for layer, view in kept.items():
        assert view.values.dtype == torch.float32
        assert torch.equal(view.values, remembered[layer].values)
        assert view.digest == remembered[layer].digest
        torch.testing.assert_close(view.mean, remembered[layer].mean)
        assert view.probe == remembered[layer].probe
        assert torch.equal(view.outputs.logits, remembered[layer].outputs.logits)


@pytest.mark.parametrize("name", ["cka", "procrustes", "rsa"])
def test_a_stored_view_scores_as_one_in_memory(tmp_path: Path, name: str) -> None:
    measures = pytest.importorskip("likewise.measures")
    score = measures.get(name)
    net, rows = nn.Sequential(nn.Linear(6, 70), nn.ReLU()), torch.rand(50, 6)
    kept, remembered = extract(net, rows, "all", store=tmp_path), extract(net, rows, "all")
    expected = float(score(remembered["0"], remembered["1"]))
    assert float(score(kept["0"], kept["1"])) == expected
    assert float(score(kept["0"], remembered["1"])) == expected


def test_other_tools_can_read_a_stored_view_and_its_facts(tmp_path: Path) -> None:
    view = extract(_net(), torch.rand(50, 6), "0", store=tmp_path, name="mine")
    found = {}
    for path in _files(tmp_path):
        with safe_open(path, framework="pt") as file:
            found[file.metadata()["layer"]] = (file.metadata(), file.get_tensor("values"))
    facts, values = found["0"]
    assert torch.equal(values, view.values)
    assert (len(facts.pop("checksum")), facts.pop("sealed")) == (8, "likewise")
    assert facts == dict(view.about)
    assert facts["network"] == "mine"
    assert facts["kind"] == "Linear"
    assert facts["probe"] == view.probe


def test_the_same_request_is_answered_without_a_pass(tmp_path: Path) -> None:
    net, rows = _net(), torch.rand(50, 6)
    passes: list[int] = []
    net[0].register_forward_hook(lambda _net, inputs, _rows: passes.append(len(inputs[0])))
    for _ in range(2):
        views = extract(net, rows, "blocks", store=tmp_path)
    assert passes == [50, 2, 2]  # two inputs twice: whether it answers at random
    assert list(views) == ["0", "2"]


@pytest.mark.parametrize("change", ["weights", "inputs", "labels"])
def test_whatever_a_view_depends_on_makes_another_request(tmp_path: Path, change: str) -> None:
    net, rows, labels = _net(), torch.rand(50, 6), torch.zeros(50, dtype=torch.long)

    def shown() -> Data:
        return Data("rows", "text", rows, labels, ("a", "b", "c"))

    extract(net, shown(), "0", store=tmp_path)
    if change == "weights":
        net[0].weight.data[0, 0] += 1
    elif change == "inputs":
        rows = rows.flip(0)
    else:
        labels = labels + 1
    again = extract(net, shown(), "0", store=tmp_path)
    with torch.no_grad():
        assert torch.equal(again.values, net[0](rows))
    assert again.outputs.labels.tolist() == labels.tolist()


def test_an_extraction_that_fails_leaves_no_files(tmp_path: Path) -> None:
    with pytest.raises(ForwardError):
        extract(_net(), [torch.rand(5, 6), torch.rand(5, 7)], "all", store=tmp_path)
    assert list((tmp_path / "views").iterdir()) == []


def test_what_a_killed_extraction_left_is_removed_by_the_next(tmp_path: Path) -> None:
    script = f"""
        import os, signal, time, torch
        from pathlib import Path
        from torch import nn
        from likewise.views.extract import extract

        def batches():
            yield torch.rand(5, 6)
            while not list(Path({str(tmp_path)!r}).rglob(".*.part")):
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)

        extract(nn.Sequential(nn.Linear(6, 5)), batches(), "all", store={str(tmp_path)!r})
    """
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False)
    assert killed.returncode != 0
    assert list((tmp_path / "views").glob(".*.part"))
    extract(_net(), torch.rand(5, 6), "0", store=tmp_path)
    assert not list((tmp_path / "views").glob(".*.part"))


def test_writing_behind_the_network_keeps_order_and_loses_nothing(tmp_path: Path) -> None:
    """More than may wait for the disk at once, from several layers in turn, in uneven batches."""
    net = nn.Sequential(nn.Linear(3, 4000), nn.Linear(4000, 3))
    rows = torch.rand(10_000, 3)
    parts = rows.split([1, 4999, 5000])
    views = extract(net, list(parts), "all", store=tmp_path)
    with torch.no_grad():
        for layer, values in (("0", net[0](rows)), ("1", net(rows))):
            torch.testing.assert_close(views[layer].values, values)


def test_a_disk_that_fails_behind_the_network_is_said_and_leaves_no_files(tmp_path: Path) -> None:
    script = f"""
        import resource, signal, torch
        from torch import nn
        from likewise.errors import StoreError
        from likewise.views.extract import extract

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))  # no file may grow beyond
        try:
            extract(nn.Sequential(nn.Linear(6, 500)), torch.rand(BATCHES, 6), "all",
                    store={str(tmp_path)!r}, batch_size=20)
        except StoreError as error:
            print(error)
    """
    for inputs in ("40", "4000"):  # the last write fails, and one in the middle
        code = textwrap.dedent(script).replace("BATCHES", inputs)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.startswith("no room to write")
        assert list((tmp_path / "views").iterdir()) == []


def test_memory_does_not_grow_with_the_number_of_inputs(tmp_path: Path) -> None:
    # 2,000 columns: 300 batches of 200 rows are 480 MB in float32, of the layer and again of the answers, and
    # 64 MB of each may wait for the disk
    net = nn.Sequential(nn.Linear(2, 2000))
    held: list[int] = []

    def batches() -> Iterator[Tensor]:
        for _ in range(300):
            yield torch.rand(200, 2)
            held.append(_resident())

    extract(net, batches(), ["0"], store=tmp_path)
    assert max(held) - held[10] < 200 * 2**20


def _resident() -> int:
    psutil = pytest.importorskip("psutil")
    return int(psutil.Process().memory_info().rss)


def test_a_damaged_file_is_refused_with_its_name(tmp_path: Path) -> None:
    views = extract(_net(), torch.rand(50, 6), ["0"], store=tmp_path)
    for path in _files(tmp_path):
        path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(StoreError) as caught:
        views["0"]
    assert str(caught.value) in {
        f"{path} is no file of a store, or it is damaged. Remove it, and run again." for path in _files(tmp_path)
    }


def test_no_damaged_byte_changes_what_is_read_back(tmp_path: Path) -> None:
    """Anywhere in the rows, the labels or the header; the file is named and extracted anew."""
    data = Data("rows", "text", torch.rand(50, 6), torch.arange(50) % 3, ("a", "b", "c"))
    net = _net()
    expected = extract(net, data, "0", store=tmp_path)
    digest, about = expected.digest, dict(expected.about)
    noticed = 0
    indices = torch.Generator().manual_seed(0)
    for trial in range(60):
        path = _files(tmp_path)[trial % 2]
        whole = path.read_bytes()
        limit = 600 if trial % 3 == 0 else len(whole)  # the header is short: often enough there
        index = int(torch.randint(limit, (1,), generator=indices))
        path.write_bytes(whole[:index] + bytes([whole[index] ^ (1 << trial % 8)]) + whole[index + 1 :])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            again = extract(net, data, "0", store=tmp_path)
        assert (again.digest, dict(again.about)) == (digest, about)
        if caught:
            noticed += 1
            assert [str(w.message) for w in caught] == [f"{path} does not match its checksum; it is extracted anew."]
            assert caught[0].category is DamagedStoreWarning
        path.write_bytes(whole)
    assert noticed > 40  # the rest fell on spaces behind the header


@pytest.mark.parametrize(
    "damage",
    [lambda content: content[:6] + b"\x7f" + content[7:], lambda content: content[:-8] + b"\xff" * 8],
    ids=["a header of 2^54 bytes", "not finite"],
)
def test_what_is_damaged_is_extracted_anew_and_once(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    net, rows = _net(), torch.rand(50, 6)
    expected = extract(net, rows, "0", store=tmp_path).digest
    for path in _files(tmp_path):
        path.write_bytes(damage(path.read_bytes()))
    with pytest.warns(DamagedStoreWarning, match="does not match its checksum"):
        assert extract(net, rows, "0", store=tmp_path).digest == expected
    assert extract(net, rows, "0", store=tmp_path).digest == expected  # and without a warning now


@pytest.mark.parametrize("content", ["[1, 2]", "{}", '{"0": 5}', "{", '"x"', '{"1": "FILE"}'])
def test_a_damaged_note_answers_no_request(tmp_path: Path, content: str) -> None:
    net, rows = _net(), torch.rand(50, 6)
    expected = extract(net, rows, "0", store=tmp_path)
    file = next(path.name for path in _files(tmp_path) if b'"layer": "0"' in path.read_bytes())
    (note,) = (tmp_path / "views").glob("*.json")
    note.write_text(content.replace("FILE", file))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamagedStoreWarning)
        assert extract(net, rows, "0", store=tmp_path).digest == expected.digest


def test_a_store_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError) as caught:
        extract(_net(), torch.rand(50, 6), "0", store=tmp_path / "file")
    assert str(caught.value) == f"{tmp_path / 'file'} is a file, not a store. Name a folder."


def test_activations_take_a_mapped_tensor_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "values"
    path.write_bytes(torch.rand(20, 4).numpy().tobytes())
    values = torch.from_file(str(path), shared=False, size=80, dtype=torch.float32).view(20, 4)
    view = Activations(values, name="mapped")
    assert view.values.data_ptr() == values.data_ptr()
    assert view.named("again").values.data_ptr() == values.data_ptr()
    torch.testing.assert_close(view.mean, values.double().mean(dim=0))


@pytest.mark.parametrize("folder", [False, True], ids=["in memory", "in a folder"])
def test_views_can_be_sent_to_another_process(folder: bool, tmp_path: Path) -> None:
    views = extract(_net(), torch.rand(10, 6), "all", store=tmp_path if folder else None)
    again = pickle.loads(pickle.dumps(views))
    assert list(again) == ["0", "1", "2"]
    assert again["0"].digest == views["0"].digest
    assert again["0"] is again["0"]


@pytest.fixture
def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {name: rng.normal(size=(40, 6)) for name in "abc"}


DAMAGE = {
    "one bit": lambda content: content[:-5] + bytes([content[-5] ^ 1]) + content[-4:],
    "not finite": lambda content: content[:-8] + b"\xff" * 8,
    "another shape": lambda content: content.replace(b"[40, 6]", b"[40, 7]"),
    "no values": lambda content: content.replace(b'"values"', b'"valves"'),
    "no facts": lambda content: content.replace(b'"about": "{', b'"about": "['),
    "empty": lambda content: b"",
    "a long header": lambda content: content[:6] + b"\x7f" + content[7:],
}


@pytest.mark.parametrize("damage", list(DAMAGE))
def test_however_a_view_is_damaged_it_is_written_again(
    tmp_path: Path, arrays: dict[str, np.ndarray], damage: str
) -> None:
    first = likewise.compare(arrays, "cka", store=tmp_path / "s")
    path = next((tmp_path / "s" / "views").iterdir())
    whole = path.read_bytes()
    path.write_bytes(DAMAGE[damage](whole))
    assert path.read_bytes() != whole
    with pytest.warns(DamagedStoreWarning) as caught:
        again = likewise.compare(arrays, "cka", store=tmp_path / "s")
    assert str(caught[0].message) == f"{path} does not match its checksum; it is written anew."
    assert np.array_equal(again.values, first.values)
    assert read_view([path]).digest == path.stem
