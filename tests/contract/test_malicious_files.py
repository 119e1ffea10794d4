"""Files and folders of strangers run nothing: every way to read one is watched by an audit hook."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import likewise
from tests.fuzz.file_kinds import KINDS

PATIENCE = 1800  # seconds, on a busy machine

# Python tells an audit hook of everything that would run, fetch or leave the folder. The hook is set
# after the libraries are imported, and lets what they import of themselves later on pass.
WATCHED = """
import json, os, sys, sysconfig, warnings
warnings.simplefilter("ignore")
reading, folder = sys.argv[1], sys.argv[2]
import likewise, likewise.classes, likewise.cli, torch, numpy, PIL.Image, typer
from likewise._base.optional import prepare_torchvision
prepare_torchvision()
if "transformers" in reading:
    import transformers, transformers.models.auto
if "datasets:" in reading:
    import datasets, pyarrow.parquet
if "cora" in reading:
    from likewise._base.optional import geometric
    geometric("watch it").datasets
from likewise.errors import LikewiseError
likewise.network("zoo:lenet")
OURS = [os.path.realpath(p) for p in (sysconfig.get_path("purelib"), sysconfig.get_path("stdlib"),
        os.path.dirname(likewise.__file__), sys.prefix, sys.base_prefix)]
seen, folder_path = [], os.path.realpath(folder)

def watch(event, given):
    if event in ("os.system", "os.exec", "os.posix_spawn", "os.spawn", "subprocess.Popen",
                 "os.fork", "os.forkpty", "pty.spawn", "socket.connect", "socket.getaddrinfo",
                 "socket.bind", "ctypes.dlopen", "code.__new__", "builtins.input"):
        if event == "ctypes.dlopen" and str(given[0]).startswith(tuple(OURS)):
            return
        if event == "code.__new__":
            return  # torch and dataclasses make code of their own
        seen.append([event, repr(given)[:200]])
    elif event == "pickle.find_class":
        if given[0].split(".")[0] not in ("numpy", "scipy", "collections", "copyreg", "torch"):
            seen.append([event, repr(given)])
    elif event == "exec":
        name = getattr(given[0], "co_filename", "?")
        if os.path.exists(name) and os.path.realpath(name).startswith(folder_path):
            seen.append([event, name])
    elif event == "import" and given[1]:
        if os.path.realpath(str(given[1])).startswith(folder_path):
            seen.append([event, repr(given)[:200]])
    elif event == "open" and isinstance(given[0], str) and isinstance(given[1], str):
        if set(given[1]) & set("wax+") and not os.path.realpath(given[0]).startswith(
            (folder_path, "/dev/", "/tmp", "/proc")
        ):
            seen.append([event, repr(given)[:200]])

sys.addaudithook(watch)
sys.stdin = open(os.devnull)
os.chdir(folder)
outcome = "read"
try:
    exec(compile(reading, "reading", "exec"))
except LikewiseError as error:
    outcome = "refused: " + str(error)
print(json.dumps({"seen": seen, "outcome": outcome}))
"""


def watched(reading: str, folder: Path) -> tuple[list[Any], str]:
    """What the audit hook saw while a statement read a stranger's files, and how that ended."""
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, reading, str(folder)],
        capture_output=True,
        text=True,
        env=env,
        input="y\ny\ny\n",
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    return found["seen"], found["outcome"]


class Harm:
    """A pickle that leaves a file named `ran` where it is unpickled."""

    def __reduce__(self) -> Any:
        return os.system, ("touch ran",)


MARKING = "import os\nos.system('touch ran')\n"
BUILD = "from torch import nn\ndef build(**options):\n    return nn.Linear(2, 2)\n"


def headers(folder: Path) -> list[str]:
    """Weights files whose headers name everything that a header should not."""
    (folder / "evil.py").write_text(MARKING + BUILD)
    stdlib = os.__file__
    wanted: list[tuple[Any, Any]] = [
        (f"{folder}/evil.py:build", {}),
        ("evil.py:build", {}),
        (f"{stdlib}:system", {"command": "touch ran"}),
        ("timm:resnet18", {"checkpoint_path": "evil.pth"}),
        ("timm:hf-hub:evil/net", {}),
        ("timm:local-dir:.", {}),
        ("hf:evil/net", {"trust_remote_code": True}),
        (f"hf:{folder}/net", {}),
        (f"hf:{folder}/net", {"trust_remote_code": True}),
        ("zoo:minilm", {"folder": f"{folder}/net"}),
        ("zoo:lenet", {"__class__": "os.system"}),
        ("zoo:lenet@evil.pth", {}),
    ]
    state = likewise.network("zoo:lenet").state_dict()
    for number, (network, options) in enumerate(wanted):
        about = json.dumps({"network": network, "options": options})
        save_file(dict(state), folder / f"h{number}.safetensors", {"likewise": about})
    return [f"h{number}.safetensors" for number in range(len(wanted))]


def folder_of_transformers(folder: Path) -> None:
    auto = {"AutoConfig": "code.Config", "AutoModel": "code.Net", "AutoTokenizer": "code.Words"}
    (folder / "net").mkdir()
    config = {"model_type": "evil", "architectures": ["Net"], "auto_map": auto}
    for name in ("config.json", "tokenizer_config.json", "preprocessor_config.json"):
        (folder / "net" / name).write_text(json.dumps(config | {"trust_remote_code": True}))
    (folder / "net" / "code.py").write_text(MARKING)


def pickles(folder: Path) -> None:
    torch.save({"state_dict": Harm()}, folder / "new.pt")
    torch.save([Harm()], folder / "old.th", _use_new_zipfile_serialization=False)
    for ending in (".pt", ".pth", ".th", ".bin", ".ckpt", ".npy", ".npz", ".safetensors"):
        (folder / f"bare{ending}").write_bytes(pickle.dumps(Harm()))
    objects = np.array([Harm(), 1], dtype=object)
    np.save(folder / "objects.npy", objects, allow_pickle=True)
    np.savez(folder / "objects.npz", values=objects, facts=objects)
    with zipfile.ZipFile(folder / "climbs.npz", "w") as archive:
        archive.writestr("../../climbed.npy", b"x")
        archive.writestr("/tmp/climbed.npy", b"x")
    (folder / "link.npy").symlink_to("/etc/passwd")


def runs_over(names: list[str], call: str) -> str:
    """A statement that reads several files one after the other, whatever becomes of each."""
    return (
        f"for name in {names!r}:\n"
        "    try:\n"
        f"        {call}\n"
        "        print('READ', name)\n"
        "    except LikewiseError:\n"
        "        pass\n"
    )


def test_the_watch_sees_what_runs(tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text(MARKING + BUILD)
    seen, outcome = watched("likewise.network('evil.py:build')", tmp_path)  # typed, so it may run
    assert outcome == "read"
    assert {event for event, _ in seen} == {"exec", "os.system"}
    assert (tmp_path / "ran").exists()


COMMANDS = [
    ["layers", "h2.safetensors"],
    ["compare", "h2.safetensors", "h0.safetensors", "--data", "digits:test[:9]"],
    ["layerwise", "h2.safetensors", "--data", "digits:test[:9]"],
    ["inspect", "h2.safetensors", "--data", "digits:test[:9]", "--out", "o"],
]


def test_headers_and_folders_of_networks_run_nothing(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    folder_of_transformers(tmp_path)
    pickles(tmp_path)
    (tmp_path / "bare.pth").rename(tmp_path / "evil.pth")
    names = headers(tmp_path)
    commands = "".join(
        f"try:\n    likewise.cli.main({words!r})\nexcept SystemExit as end:\n    assert end.code\n"
        for words in COMMANDS
    )
    seen, outcome = watched(
        runs_over(names, "likewise.network(name)  # transformers")
        + runs_over(names, "likewise.layers(name, 'digits:test[:4]')")
        + runs_over(names, "likewise.network('zoo:lenet@' + name)")
        + runs_over(["net"], f"likewise.network('zoo:minilm,folder={tmp_path}/net')")
        + commands
        + f"likewise.network('hf:{tmp_path}/net')",
        tmp_path,
    )
    assert outcome.startswith(f"refused: hf:{tmp_path}/net brings code of its own")
    assert seen == []
    assert list(tmp_path.rglob("ran")) == []


def stranger_s_run(tmp_path: Path) -> None:
    """A training's folder, as ours but for what its files name."""
    run = tmp_path / "run"
    likewise.train("zoo:mlp", "digits:train[:40]", epochs=1, out=run, keep_epochs=True)
    (tmp_path / "evil.py").write_text(MARKING + BUILD)
    about = json.dumps({"network": f"{tmp_path}/evil.py:build", "options": {}})
    state = likewise.network("zoo:lenet").state_dict()
    for path in (run / "weights.safetensors", run / "epochs" / "0001.safetensors"):
        save_file(dict(state), path, {"likewise": about})
    settings = json.dumps({"network": f"{tmp_path}/evil.py:build"})
    broken = {"settings": settings, "history": "[]", "groups": "[]", "numbers": "{}"}
    save_file(dict(state), run / "checkpoint.safetensors", broken)


def strangers_data(tmp_path: Path) -> list[str]:
    """Data sets with pickles, code, links and hostile names among their files."""
    import datasets

    datasets.disable_progress_bars()
    written = {kind.name: kind for kind in KINDS}
    for name in ("planetoid", "flickr", "png", "datasets", "captions"):
        (tmp_path / name).mkdir()
        written[name].write(tmp_path / name)
    for part in ("x", "graph", "ally"):
        (tmp_path / "planetoid" / "raw" / f"ind.cora.{part}").write_bytes(pickle.dumps(Harm(), 2))
    (tmp_path / "flickr" / "processed").mkdir()
    for name in ("data.pt", "pre_filter.pt", "pre_transform.pt"):
        torch.save(Harm(), tmp_path / "flickr" / "processed" / name)
    hostile = tmp_path / "png" / "$(touch ran); touch ran"
    (tmp_path / "png" / "cat").rename(hostile)
    (hostile / "__init__.py").write_text(MARKING)
    (tmp_path / "png" / "dog" / "link.png").symlink_to("/etc")
    (tmp_path / "captions" / "metadata.csv").write_text("file_name,text\nhttps://127.0.0.1/1.png,a\n../png,b\n")
    (tmp_path / "datasets" / "datasets.py").write_text(MARKING)
    links = datasets.Dataset.from_dict({"image": ["https://127.0.0.1/1.png", "hf://datasets/a/b/1.png"]})
    plain = links.cast_column("image", datasets.Value("string"))
    plain.save_to_disk(tmp_path / "links")
    about = tmp_path / "links" / "dataset_info.json"
    about.write_text(json.dumps(json.loads(about.read_text()) | {"features": {"image": {"_type": "Image"}}}))
    named = ["datasets:datasets", "datasets:links", "datasets:nobody/nothing", "links", "captions:captions"]
    return ["cora:planetoid/", "flickr:flickr/:all", "imagefolder:png", *named]


def test_pickles_archives_data_and_runs_run_nothing(tmp_path: Path) -> None:
    pytest.importorskip("torch_geometric")
    pytest.importorskip("datasets")
    pickles(tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    addresses = strangers_data(tmp_path)
    stranger_s_run(tmp_path)
    seen, outcome = watched(
        "from likewise.views.array_files import read_arrays\n"
        + runs_over(names, "read_arrays([name])")
        + runs_over(names, "likewise.network('zoo:lenet@' + name)")
        + runs_over(names, "likewise.SimilarityMatrix.load(name)")
        + runs_over(names, "likewise.LayerMatrix.load(name)")
        + runs_over(names, "likewise.classes.ClassSimilarity.load(name)")
        + runs_over(addresses, "likewise.dataset(name).inputs[:1]")
        + runs_over(["run"], "likewise.network(name)")
        + runs_over(["run"], "likewise.classes.inspect(name, 'digits:test[:9]', progress=False)")
        + "likewise.train('zoo:mlp', 'digits:train[:40]', epochs=2, out='run')",
        tmp_path,
    )
    assert outcome.startswith("refused: ")
    assert seen == []
    assert list(tmp_path.rglob("ran")) == []
    assert not (tmp_path.parent / "climbed.npy").exists()
