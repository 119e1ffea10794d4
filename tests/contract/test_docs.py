"""Every block of code in README and docs runs as it is written, and every command line can be parsed.

Blocks of one page run in order, in one namespace and an empty folder. What a page takes for granted (two arrays, a
trained network) is made before, in `SETUPS`; where it names data or networks that have to be fetched, `STAND_INS` are
small ones of the same kind.
"""

from __future__ import annotations

import re
import runpy
import shlex
import sys
import warnings
from doctest import ELLIPSIS, OutputChecker
from pathlib import Path
from typing import Any

import matplotlib.pyplot
import pytest
import typer
import typer.main

from likewise.benchmark.domains import DOMAINS
from likewise.benchmark.groundings import GROUNDINGS
from likewise.cli import _app, commands
from likewise.cli._words import spread
from likewise.data.address import DATASETS
from likewise.measures.registry import MEASURES
from likewise.networks.zoo.registry import ZOO
from tests.conftest import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
REGISTRIES = (MEASURES, DATASETS, ZOO, GROUNDINGS, DOMAINS)  # what pages add to, which is taken out again
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.S | re.M)
ARRAYS = """
import likewise, numpy as np
draw = np.random.default_rng(0)
x, noise, z = draw.normal(size=(3, 60, 8))
y, labels = x + noise, draw.integers(3, size=60)
"""
PHOTOS = """
from pathlib import Path
from PIL import Image
Path("photos").mkdir()
for i in range(12):
    Image.fromarray((255 * np.random.default_rng(i).random((40, 40, 3))).astype("uint8")).save(f"photos/{i}.png")
Path("texts.txt").write_text("a good film\\n" * 3 + "a dull plot\\nwhat a cast\\n" * 4)
"""
TRAINED = """
import likewise
for seed, name in enumerate("abc"):
    likewise.train("zoo:mlp", "digits:train[:200]", epochs=2, seed=seed, out=f"runs/{name}", progress=False)
networks = ["runs/a", "runs/b", "runs/c"]
"""
ANSWERED = """
answers = likewise.transfer.answers({f"{k} {n[-1]}": n for k in range(2) for n in networks}, "digits:test")
matrix = likewise.compare(dict(zip(answers.names, networks * 2)), "disagreement", data="digits:test[:100]")
"""
CLASSIFIER = """
import likewise, torch, transformers, lightning
from torch import nn
from torch.nn import functional
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 10)
model, epochs = Model(), 2
logits, labels = torch.eye(10).repeat(3, 1) + 0.1, torch.arange(10).repeat(3)
tiny = nn.Linear(2, 2)
settings = transformers.TrainingArguments(output_dir="runs/tiny", report_to=[], use_cpu=True)
"""
BERT = """
import likewise, transformers
class tokenizer:
    pad_token = "."
    def __call__(self, texts, **options):
        import torch
        ids = torch.tensor([[min(ord(letter), 98) for letter in text.ljust(9)[:9]] for text in texts])
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
tokenizer = tokenizer()
config = transformers.BertConfig(
    vocab_size=99, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
)
transformers.BertModel(config).save_pretrained("bert")
"""
SETUPS = {
    "benchmark.md": "from pathlib import Path\nfolder = Path('own')\nfolder.mkdir()\n",
    "boundaries.md": TRAINED,
    "class-similarity.md": CLASSIFIER,
    "families.md": TRAINED + ANSWERED,
    "hugging-face.md": BERT,
    "layers.md": ARRAYS + PHOTOS,
    "running.md": "from torch import nn\n",
    "transfer.md": TRAINED,
}
STAND_INS = {
    "boundaries.md": {"cifar10:test[:1000]": "digits:test[:20]"},
    "class-similarity.md": {
        'Inspector("cifar100"': 'Inspector(likewise.dataset("digits:test")',
        '"zoo:resnet20", "cifar100", validation="cifar100:test", epochs=50': (
            '"zoo:mlp", "digits:train[:100]", validation="digits:test[:60]", epochs=3'
        ),
        "transformers.Trainer(...,": "transformers.Trainer(tiny, settings,",
    },
    "families.md": {"answers, 5)": "answers, 3)"},
    "hugging-face.md": {'from_pretrained("...")': 'from_pretrained("bert")'},
    "layers.md": {
        "hf:gpt2": "zoo:bert-tiny,seed=0",
        "hf:llama": "zoo:bert-tiny,seed=1",
        '"gpt2": "ln_f"': '"bert-tiny,seed=0": "encoder.embeddings"',
        '"llama": "norm"': '"bert-tiny,seed=1": "encoder.embeddings"',
    },
    "transfer.md": {"cifar10:test[:500]": "digits:test[:30]"},
    "zeroshot.md": {'"zoo:lenet", "digits", preset="small", epochs=2': '"zoo:mlp", "digits", preset="small", epochs=1'},
}
NEEDS = {
    "README.md": ("timm", "torchvision", "transformers"),
    "class-similarity.md": ("lightning", "transformers", "accelerate"),
    "families.md": ("sklearn",),
    "hugging-face.md": ("transformers",),
    "layers.md": ("transformers",),
}


def blocks(page: Path, language: str) -> list[str]:
    return [found[2] for found in BLOCK.finditer(page.read_text()) if found[1] == language]


def outputs(page: Path) -> list[str | None]:
    """What each block of Python prints, where a block of text right behind it says so."""
    followed = re.findall(r"^```python\n.*?^```\n(?:\n?```text\n(.*?)^```)?", page.read_text(), re.S | re.M)
    return [text or None for text in followed]


def pictures(page: Path) -> list[str]:
    """The pictures that the code of a page draws under the same name: all of a tutorial, some of a guide."""
    shown = re.findall(r"!\[[^]]*\]\(([\w-]+\.png)\)", page.read_text())
    code = "".join(blocks(page, "python"))
    return [name for name in shown if page.parent.name == "tutorials" or f'"{name}"' in code]


WITH_CODE = [page for page in PAGES if blocks(page, "python")]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
def test_the_code_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from likewise._base.optional import prepare_torchvision

    prepare_torchvision()
    for library in NEEDS.get(page.name, ()):
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    code = blocks(page, "python")
    known = {registry: set(registry.names()) for registry in REGISTRIES}
    for text, other in STAND_INS.get(page.name, {}).items():
        assert any(text in block for block in code), f"{text!r} is no longer on the page"
        code = [block.replace(text, other) for block in code]
    space: dict[str, Any] = {"__name__": "a page"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of small data and random weights
        exec(SETUPS.get(page.name, ""), space)
        for block, output in zip(code, outputs(page), strict=True):
            capsys.readouterr()
            exec(compile(block, page.name, "exec"), space)
            printed = capsys.readouterr().out
            if output is not None:
                assert OutputChecker().check_output(output, printed, ELLIPSIS), f"{output}\nbut it prints\n{printed}"
    assert [name for name in pictures(page) if not (tmp_path / name).is_file()] == []
    capsys.readouterr()
    matplotlib.pyplot.close("all")
    for registry, before in known.items():
        for name in set(registry.names()) - before:
            registry.remove(name)


def test_code_fits_its_box() -> None:
    """88 columns; what is printed is wrapped by the site."""
    assert "white-space: pre-wrap" in (ROOT / "docs" / "site.css").read_text()
    wide = [
        f"{page.name}: {line}"
        for page in PAGES
        for block in (*blocks(page, "python"), *blocks(page, ""))
        for line in block.splitlines()
        if len(line) > 88
    ]
    assert wide == []


def test_every_guide_opens_with_the_question_it_answers() -> None:
    nav = (ROOT / "mkdocs.yml").read_text().partition("  - Guides:\n")[2].partition("  - Studies:")[0]
    guides = re.findall(r": ([\w/-]+\.md)$", nav, re.M)
    assert len(guides) > 20
    opening = re.compile(r"# .+\n\n\*\*[^*]+\?\*\*")
    assert [name for name in guides if not opening.match((ROOT / "docs" / name).read_text())] == []


def test_every_drawn_picture_stands_on_its_page() -> None:
    pytest.importorskip("matplotlib")
    made = runpy.run_path(str(ROOT / "scripts" / "pictures.py"))
    docs = ROOT / "docs"
    shown = [name for name in made["PICTURES"] if f"]({name}.png)\n" in (docs / f"{name}.md").read_text()]
    assert shown == list(made["PICTURES"])
    assert [name for name in shown if not (docs / f"{name}.png").is_file()] == []
    figure = made["PICTURES"]["language-models"]()  # from the page's table
    assert [len(axis.patches) for axis in figure.axes] == [0, 7]
    made["plt"].close(figure)


def test_tutorials_say_what_they_print() -> None:
    tutorials = [page for page in PAGES if page.parent.name == "tutorials"]
    assert len(tutorials) >= 9
    silent = [
        page.name
        for page in tutorials
        for block, output in zip(blocks(page, "python"), outputs(page), strict=True)
        if re.search(r"^print\(", block, re.M) and output is None
    ]
    assert silent == []


def test_setups_and_stand_ins_are_of_pages_with_code() -> None:
    assert {*SETUPS, *STAND_INS, *NEEDS} <= {page.name for page in WITH_CODE}


def lines() -> list[str]:
    """The command lines in blocks without a language, without what a shell does with their output."""
    found = []
    for page in PAGES:
        for block in blocks(page, ""):
            whole = block.replace("\\\n", " ")
            found += [re.sub(r"\[(-+\w+) (\w+)\]", r"\1 \2", line) for line in whole.splitlines()]
    found = [line for line in found if line.startswith("likewise ")]
    return sorted(set(found))


@pytest.mark.parametrize("line", lines())
def test_every_command_line_can_be_parsed(line: str) -> None:
    words = shlex.split(re.sub(r">>.*", "", line), comments=True)[1:]
    words = spread([word.strip("[]") for word in words])  # brackets around what may be left out
    command: Any = typer.main.get_command(_app(words))
    while hasattr(command, "resolve_command"):
        name, command, words = command.resolve_command(typer.Context(command), words)
    context = command.make_context(name, words)  # raises on an option it does not know
    assert context.args == []


@pytest.mark.parametrize("script", ["measures_table", "commands_page", "api_page", "coverage_page"])
def test_a_generated_page_is_what_its_script_writes(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [f"{script}.py"])
    made = runpy.run_path(str(ROOT / "scripts" / f"{script}.py"))
    assert made["PAGE"].read_text() == made["page"](), f"run python scripts/{script}.py"


def test_every_command_has_a_section_and_a_page() -> None:
    made = runpy.run_path(str(ROOT / "scripts" / "commands_page.py"))
    text = (ROOT / "docs" / "commands.md").read_text()
    assert [name for name in commands() if f"\n## likewise {name}\n" not in text] == []
    assert sorted(made["PAGES"]) == sorted(commands())
    assert [page for page in made["PAGES"].values() if not (ROOT / "docs" / page).exists()] == []


def test_every_study_opens_with_five_lines() -> None:
    """The list of what is here of the four papers is none: it has a summary per paper."""
    nav = (ROOT / "mkdocs.yml").read_text().partition("  - Studies:\n")[2].partition("  - Reference:")[0]
    studies = [name for name in re.findall(r": ([\w/-]+\.md)$", nav, re.M) if name != "papers.md"]
    assert len(studies) > 9
    for name in studies:
        opening = re.match(r"# .+\n\n## In five lines\n\n((?:- .+\n)+)\n", (ROOT / "docs" / name).read_text())
        assert opening is not None, name
        assert len(opening[1].splitlines()) == 5, name


def test_every_page_is_in_the_site() -> None:
    listed = re.findall(r"(?:- |: )([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M)
    assert sorted(listed) == sorted(str(page.relative_to(ROOT / "docs")) for page in PAGES[1:])


def test_every_room_has_a_page_with_code_that_runs() -> None:
    rooms = {
        "work": "cluster",
        "wordnet": "wordnet",
        "data": "data",
        "networks": "networks",
        "views": "layers",
        "matrices": "matrices",
        "measures": "adding",
        "comparison": "comparing",
        "language": "language-models",
        "attacks": "attacks",
        "classes": "class-similarity",
        "transfer": "transfer",
        "zeroshot": "zeroshot",
        "analysis": "families",
        "benchmark": "benchmark",
        "difference": "diff",
        "report": "report",
    }
    from tests.contract.test_rooms import ROOMS

    assert set(rooms) == set(ROOMS) - {"_base", "cli"}
    assert [page for page in rooms.values() if ROOT / "docs" / f"{page}.md" not in WITH_CODE] == []
