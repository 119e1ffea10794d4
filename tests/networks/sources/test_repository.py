"""Where a network of transformers is read from: revisions, commits, sub-folders, kinds of weights."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

pytest.importorskip("transformers")

import likewise
from likewise.cli import main
from likewise.errors import InputError, MissingDataError
from likewise.networks import recipe, unwrapped
from tests.fuzz.tiny_transformers import KINDS, build, save, tokenizer
from tests.networks.helpers import refused
from tests.networks.sources.helpers import NAME, commit, hub_cache, publish, seeded_bert

__all__ = ["hub_cache"]
pytestmark = pytest.mark.usefixtures("vision")

TEXTS = ["the cat sat .", "a dog ran", "good film !", "the very bad fish", "a bird", "under the tree", "not good"]


@pytest.fixture
def two_steps(hub_cache: Path) -> Path:
    publish(hub_cache, "main", 3)
    publish(hub_cache, "step1000", 1)
    publish(hub_cache, "step2000", 2)
    return hub_cache


def same(net: Any, other: Any) -> bool:
    mine, theirs = net.state_dict(), other.state_dict()
    return mine.keys() == theirs.keys() and all(torch.equal(mine[key], theirs[key]) for key in mine)


@pytest.mark.parametrize("form", ["hf:org/tiny@{0}", "hf:org/tiny,revision={0}", "hf:org/tiny@{0},longest=64"])
def test_a_revision_chooses_the_weights(two_steps: Path, form: str) -> None:
    for revision, number in (("step1000", 1), ("step2000", 2), (commit(2), 2), ("main", 3)):
        net = likewise.network(form.format(revision))
        assert same(net, seeded_bert(number))
        assert recipe(net).commit == commit(number)
    assert same(likewise.network(f"hf:{NAME}"), seeded_bert(3))


def test_config_and_tokenizer_are_those_of_the_revision(hub_cache: Path) -> None:
    publish(hub_cache, "main", 1)
    publish(hub_cache, "wide", 2, build("roberta"))
    snapshot = next(hub_cache.glob(f"*/snapshots/{commit(2)}"))
    words = json.loads((snapshot / "tokenizer.json").read_text())
    ids = words["model"]["vocab"]
    ids["cat"], ids["dog"] = ids["dog"], ids["cat"]
    (snapshot / "tokenizer.json").write_text(json.dumps(words))
    plain, wide = likewise.network(f"hf:{NAME}"), likewise.network(f"hf:{NAME}@wide")
    assert (type(plain).__name__, type(wide).__name__) == ("BertModel", "RobertaModel")
    assert torch.equal(plain.tokenize(["a cat"])["input_ids"], wide.tokenize(["a dog"])["input_ids"])
    assert not torch.equal(plain.tokenize(["a cat"])["input_ids"], wide.tokenize(["a cat"])["input_ids"])


def test_two_revisions_differ_and_the_report_names_both_commits(two_steps: Path, tmp_path: Path) -> None:
    steps = [f"hf:{NAME}@step1000", f"hf:{NAME}@step2000"]
    matrix = likewise.compare(steps, "cka", data=TEXTS, layers="logits", reduce="mean", progress=False)
    assert matrix.names == ("step1000", "step2000")
    assert matrix["step1000", "step2000"] < 0.999
    notes = [f"step1000 is at commit {commit(1)}", f"step2000 is at commit {commit(2)}"]
    assert matrix.notes() == notes
    matrix.save(tmp_path / "m.safetensors")
    assert type(matrix).load(tmp_path / "m.safetensors").notes() == notes
    frame = matrix.to_frame(long=True)
    assert set(zip(frame["a"], frame["commit_a"], strict=True)) == {("step1000", commit(1)), ("step2000", commit(2))}


def test_the_command_compares_a_list_of_revisions_in_their_order(
    two_steps: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    words = ["compare", f"hf:{NAME}@step2000,main,step1000", "--data", f"lines:{tmp_path}/texts.txt"]
    with pytest.raises(SystemExit) as end:
        main([*words, "--layers", "logits", "--reduce", "mean", "-m", "cka", "--out", str(tmp_path / "out")])
    assert end.value.code == 0
    said = capsys.readouterr().err
    for name, number in (("step2000", 2), ("main", 3), ("step1000", 1)):
        assert f"{name} is at commit {commit(number)}" in said
    rows = list(csv.DictReader((tmp_path / "out" / "scores.csv").read_text().splitlines()))
    assert list(dict.fromkeys(row["a"] for row in rows)) == ["step2000", "main", "step1000"]
    assert {row["commit_b"] for row in rows} == {commit(1), commit(2), commit(3)}


def test_one_address_with_several_revisions_is_a_list_of_networks(two_steps: Path) -> None:
    options: dict[str, Any] = {"data": TEXTS, "layers": "logits", "reduce": "mean", "progress": False}
    listed = likewise.compare([f"hf:{NAME}@step1000,step2000"], "cka", **options)
    alone = likewise.compare(f"hf:{NAME}@step1000,step2000", "cka", **options)
    assert listed.names == alone.names == ("step1000", "step2000")
    assert refused(lambda: likewise.network(f"hf:{NAME}@step1000,step2000")) == (
        f"'hf:{NAME}@step1000,step2000' names 2 networks, one per revision ('step1000', 'step2000'). Name one, or "
        "compare them: likewise.compare([address], data=...)."
    )


def test_the_same_weights_at_two_commits_are_recorded_by_their_own(hub_cache: Path, tmp_path: Path) -> None:
    publish(hub_cache, "one", 1)
    publish(hub_cache, "two", 2, seeded_bert(1))
    for revision, number in (("one", 1), ("two", 2), ("one", 1)):
        view = likewise.extract(
            f"hf:{NAME}@{revision}", TEXTS, "logits", reduce="mean", store=tmp_path / "store", progress=False
        )
        assert view.about["commit"] == commit(number)


def test_layers_of_two_revisions_are_recorded_with_both_commits(two_steps: Path) -> None:
    steps = (f"hf:{NAME}@step1000", f"hf:{NAME}@step2000")
    found = likewise.layerwise(*steps, data=TEXTS, layers=["encoder.layer.0", "encoder.layer.1"], progress=False)
    assert found.about["commit"] == f"{commit(1)}; {commit(2)}"


def test_a_revision_that_is_not_there_is_refused_with_those_that_are(two_steps: Path) -> None:
    assert refused(lambda: likewise.network(f"hf:{NAME}@step200"), MissingDataError) == (
        "revision 'step200' of org/tiny is not on this disk and cannot be downloaded. Did you mean 'step2000'? On this "
        "disk are main, step1000, step2000. Name one that the repository has: 'hf:org/tiny@main'."
    )


def test_a_folder_has_no_revisions(tmp_path: Path) -> None:
    save("bert", tmp_path / "net")
    assert refused(lambda: likewise.network(f"hf:{tmp_path}/net@step1000")) == (
        f"{tmp_path}/net is a folder, which has no revisions such as 'step1000'. Name the folder of that revision, or "
        "a network of the hub."
    )


@pytest.mark.parametrize("end", ["", "step1000,,step2000", "longest=3", ","])
def test_a_revision_has_a_name(end: str) -> None:
    with pytest.raises(InputError) as error:
        likewise.network(f"hf:{NAME}@{end}" if end else f"hf:{NAME},revision=a@b")
    address = f"hf:{NAME}@{end}" if end else f"hf:{NAME},revision=a@b"
    assert str(error.value) == (
        f"{address!r} names no revision after the @. Write one, as in 'hf:{NAME}@main', or the path of a weights file, "
        f"as in 'hf:{NAME}@weights.safetensors'."
    )


def test_a_weights_file_after_the_at_is_still_a_weights_file(two_steps: Path, tmp_path: Path) -> None:
    net = likewise.network(f"hf:{NAME}@step1000")
    for path in (tmp_path / "lr=0.1,wd=0.safetensors", tmp_path / "w.pth.tar", tmp_path / "plain"):
        if path.suffix == ".safetensors":
            likewise.networks.save(net, path)
        else:
            torch.save(net.state_dict(), path)
    again = likewise.network(f"hf:{NAME},revision=step1000@{tmp_path}/lr=0.1,wd=0.safetensors")
    assert same(again, net)
    assert same(likewise.network(f"hf:{NAME}@{tmp_path}/w.pth.tar"), net)
    with pytest.raises(InputError) as error:
        likewise.network(f"hf:{NAME}@{tmp_path}/plain")
    assert str(error.value).startswith("plain is no weights file: it ends in ''.")


def test_a_sub_folder_holds_the_weights_and_may_leave_the_tokenizer_above(tmp_path: Path) -> None:
    seeded_bert(5).save_pretrained(tmp_path / "encoder")
    tokenizer().save_pretrained(tmp_path)
    net = likewise.network(f"hf:{tmp_path},subfolder=encoder")
    assert same(net, seeded_bert(5))
    assert net.tokenize(["a cat"])["input_ids"].shape == (1, 4)


def test_another_tokenizer_may_be_named(hub_cache: Path, tmp_path: Path) -> None:
    seeded_bert(5).save_pretrained(tmp_path / "net")
    tokenizer().save_pretrained(tmp_path / "words")
    net = likewise.network(f"hf:{tmp_path}/net,tokenizer={tmp_path}/words")
    assert net.tokenize(["a cat"])["input_ids"].shape == (1, 4)
    for other in (f"{tmp_path}/nowhere", str(tmp_path), "nobody/nothing", ""):
        with pytest.raises(MissingDataError) as error:
            likewise.network(f"hf:{tmp_path}/net,tokenizer={other}")
        assert str(error.value) == f"there is no tokenizer at {other!r}. Give a folder or a name."


def test_weights_in_shards_and_in_torch_files_are_read(tmp_path: Path) -> None:
    own = build("bert")
    own.save_pretrained(tmp_path / "shards", max_shard_size="20KB")
    assert len(list((tmp_path / "shards").glob("model-*.safetensors"))) > 2
    own.config.save_pretrained(tmp_path / "torch")
    torch.save(own.state_dict(), tmp_path / "torch" / "pytorch_model.bin")
    own.config.save_pretrained(tmp_path / "torch_shards")
    index: dict[str, Any] = {"metadata": {}, "weight_map": {}}
    for number, (key, value) in enumerate(own.state_dict().items()):
        file = f"pytorch_model-{number:05d}.bin"
        torch.save({key: value}, tmp_path / "torch_shards" / file)
        index["weight_map"][key] = file
    (tmp_path / "torch_shards" / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    for kind in ("shards", "torch", "torch_shards"):
        assert same(likewise.network(f"hf:{tmp_path / kind}"), own)


def test_safetensors_are_taken_where_both_are_there(tmp_path: Path) -> None:
    own, other = build("bert"), seeded_bert(7)
    own.save_pretrained(tmp_path)
    torch.save(other.state_dict(), tmp_path / "pytorch_model.bin")
    assert same(likewise.network(f"hf:{tmp_path}"), own)


class Harm:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path("harm").touch, ())


def test_a_torch_file_that_is_more_than_tensors_is_not_unpickled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    build("bert").config.save_pretrained(tmp_path / "net")
    torch.save({"weight": Harm()}, tmp_path / "net" / "pytorch_model.bin")
    assert refused(lambda: likewise.network(f"hf:{tmp_path}/net")) == (
        f"the weights of hf:{tmp_path}/net are a pickle of more than tensors, and nothing is unpickled here. Where you "
        "trust them, load them with transformers and save_pretrained them anew."
    )
    assert not (tmp_path / "harm").exists()


def test_a_folder_without_weights_says_so(tmp_path: Path) -> None:
    build("bert").config.save_pretrained(tmp_path)
    assert refused(lambda: likewise.network(f"hf:{tmp_path}"), MissingDataError) == (
        f"hf:{tmp_path} has a config.json but no weights that can be read (model.safetensors or pytorch_model.bin, "
        "whole or in shards), nor can they be downloaded. Fetch them, or take it untrained: "
        f"'hf:{tmp_path},pretrained=false'."
    )
    assert type(likewise.network(f"hf:{tmp_path},pretrained=false")).__name__ == "BertModel"


def test_half_precision_and_tied_weights_come_as_they_were_saved(tmp_path: Path) -> None:
    build("gpt2").to(torch.bfloat16).save_pretrained(tmp_path / "half")
    tokenizer().save_pretrained(tmp_path / "half")
    half = likewise.network(f"hf:{tmp_path}/half")
    assert {weight.dtype for weight in half.parameters()} == {torch.bfloat16}
    assert likewise.extract(half, TEXTS, "logits", reduce="mean", progress=False).d == 32
    save("bart", tmp_path / "tied")
    with pytest.warns(UserWarning, match="the encoder is looked at"):
        encoder = likewise.network(f"hf:{tmp_path}/tied")
    stored = load_file(tmp_path / "tied" / "model.safetensors")
    assert torch.equal(encoder.embed_tokens.weight, stored["model.shared.weight"])


def test_a_damaged_file_is_a_sentence_with_the_address(tmp_path: Path) -> None:
    for file, content in (("model.safetensors", b"no"), ("tokenizer.json", b"{"), ("config.json", b"{")):
        save("bert", tmp_path / file)
        (tmp_path / file / file).write_bytes(content)
        with pytest.raises((InputError, MissingDataError)) as error:
            likewise.network(f"hf:{tmp_path}/{file}")
        assert f"hf:{tmp_path}/{file}" in str(error.value)


def test_what_a_header_names_is_read_from_this_disk_alone(two_steps: Path, tmp_path: Path) -> None:
    net = likewise.network(f"hf:{NAME}")
    likewise.networks.save(net, tmp_path / "w.safetensors")
    again = likewise.network(str(tmp_path / "w.safetensors"))
    assert same(unwrapped(again), net)
    assert KINDS["bert"].architecture == type(again).__name__


def test_a_damaged_image_processor_is_named(tmp_path: Path) -> None:
    save("vit", tmp_path)
    (tmp_path / "preprocessor_config.json").write_text("{")
    with pytest.raises(InputError) as error:
        likewise.network(f"hf:{tmp_path}")
    assert str(error.value).startswith(f"{tmp_path}/preprocessor_config.json is damaged: ")
    assert str(error.value).endswith(". Fetch it again.")


def test_a_tokenizer_without_padding_pads_all_the_same(tmp_path: Path) -> None:
    seeded_bert(5).save_pretrained(tmp_path)
    bare = tokenizer()
    bare.pad_token = bare.eos_token = None
    bare.save_pretrained(tmp_path)
    net = likewise.network(f"hf:{tmp_path}")
    together = likewise.extract(net, TEXTS, "logits", reduce="mean", progress=False)
    alone = likewise.extract(net, [TEXTS[1], TEXTS[1]], "logits", reduce="mean", progress=False)
    assert torch.allclose(torch.as_tensor(together.values[1]), torch.as_tensor(alone.values[0]), atol=1e-5)
