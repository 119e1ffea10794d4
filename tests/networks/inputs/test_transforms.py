"""What networks are shown: each image by the transform of the network's makers, equal to their own."""

from __future__ import annotations

import copy
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import likewise
from likewise._base.hashing import fingerprint
from likewise.data import Data, image_files
from likewise.networks import Normalised, recipe, unwrapped
from likewise.networks.forward import transform_for
from likewise.networks.inputs.normalisation import record_transform, transform_of
from likewise.networks.inputs.transforms import Transform, from_processor
from likewise.views.layers import layers
from tests.data.helpers import mixed_photos
from tests.networks.helpers import refused

pytestmark = pytest.mark.usefixtures("vision")
TIMM = ("timm:test_vit", "timm:tinynet_e", "timm:test_resnet")
TORCHVISION = "torchvision:shufflenet_v2_x0_5"


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Data:
    """A folder of images of many sizes and kinds."""
    return likewise.dataset(f"imagefolder:{mixed_photos(tmp_path_factory.mktemp('photos'))}")


@pytest.fixture(scope="module")
def tiny_vit(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny random network of transformers with a processor: 32 × 32, not cropped, bicubic, normalised its own way."""
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("vit")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = transformers.ViTConfig(**sizes, image_size=32, patch_size=8, num_labels=3)
    torch.manual_seed(0)
    transformers.ViTForImageClassification(config).save_pretrained(folder)
    transformers.ViTImageProcessor(
        size={"height": 32, "width": 32}, resample=3, image_mean=[0.4, 0.5, 0.6], image_std=[0.2, 0.3, 0.4]
    ).save_pretrained(folder)
    return f"hf:{folder}"


def pictures(data: Data) -> list[Any]:
    return [image_files.decode(path, path.read_bytes()) for path in data.inputs.paths]


def seen_by(net: nn.Module, data: Any, **options: Any) -> Tensor:
    """What the network inside is shown by `extract`, normalised."""
    caught: list[Any] = []

    def catch(_module: nn.Module, given: tuple[Any, ...], words: dict[str, Any]) -> None:
        caught.append(given[0] if given else words["pixel_values"])

    hook = unwrapped(net).register_forward_pre_hook(catch, with_kwargs=True)
    try:
        likewise.extract(net, data, layers="logits", batch_size=len(data), progress=False, **options)
    finally:
        hook.remove()
    return torch.as_tensor(max(caught, key=len)).clone()  # two inputs are shown again


def by_library(address: str, net: nn.Module, images: list[Any]) -> Tensor:
    """What the library's own transform for evaluation, normalisation included, makes of images."""
    source, _, name = address.partition(":")
    if source == "timm":
        import timm

        config = timm.data.resolve_model_data_config(unwrapped(net))
        transform = timm.data.create_transform(**config, is_training=False)
        return torch.stack([transform(image) for image in images])
    if source == "torchvision":
        import torchvision

        transform = torchvision.models.get_model_weights(name).DEFAULT.transforms()
        return torch.stack([transform(image) for image in images])
    import transformers

    processor = transformers.AutoImageProcessor.from_pretrained(name)
    return processor(images=images, return_tensors="pt")["pixel_values"]


def untrained(address: str) -> nn.Module:
    return likewise.network(f"{address},pretrained=false")


@pytest.mark.parametrize("address", [*TIMM, TORCHVISION, "timm:test_efficientnet"])
def test_inputs_are_those_of_the_librarys_own_transform(photos: Data, address: str) -> None:
    net = untrained(address)
    assert (seen_by(net, photos) - by_library(address, net, pictures(photos))).abs().max() < 1e-5


def test_inputs_of_transformers_are_those_of_its_processor(photos: Data, tiny_vit: str) -> None:
    net = likewise.network(tiny_vit)
    assert (seen_by(net, photos) - by_library(tiny_vit, net, pictures(photos))).abs().max() < 1e-5


@pytest.mark.parametrize("mode", ["squash", "border", "center"])
def test_every_crop_of_timm_is_timms_own(photos: Data, mode: str) -> None:
    net = likewise.network(
        "timm:test_vit,pretrained=false", pretrained_cfg_overlay={"crop_mode": mode, "crop_pct": 0.9}
    )
    assert unwrapped(net).pretrained_cfg["crop_mode"] == mode
    assert (seen_by(net, photos) - by_library("timm:test_vit", net, pictures(photos))).abs().max() < 1e-5


def test_five_networks_of_different_transforms_are_compared_on_one_folder(photos: Data, tiny_vit: str) -> None:
    addresses = {name: f"{name},pretrained=false" for name in (*TIMM, TORCHVISION)} | {"vit": tiny_vit}
    nets = {name: likewise.network(address) for name, address in addresses.items()}
    found = likewise.compare(nets, "cka", data=photos, progress=False)
    by_hand = {}
    for name, net in nets.items():
        inputs = by_library(tiny_vit if name == "vit" else name, net, pictures(photos))
        caught: list[Tensor] = []
        head = {"timm:tinynet_e": "classifier", "vit": "classifier"}.get(name) or (
            "fc" if hasattr(unwrapped(net), "fc") else "head"
        )
        hook = (
            unwrapped(net).get_submodule(head).register_forward_pre_hook(lambda _, given, c=caught: c.append(given[0]))
        )
        with torch.no_grad():
            unwrapped(net)(inputs)
        hook.remove()
        by_hand[name] = caught[-1]
    expected = likewise.compare(by_hand, "cka", progress=False)
    assert len({tuple(transform_of(net).size) for net in nets.values()}) >= 4
    assert np.abs(found.values - expected.values).max() < 1e-4
    assert np.abs(found.values - np.eye(5)).max() > 0.01


def test_images_are_decoded_once_for_all_networks(photos: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[Any] = []
    decode = image_files.decode
    monkeypatch.setattr(image_files, "decode", lambda path, content: counted.append(path) or decode(path, content))
    addresses = [f"{name},pretrained=false" for name in TIMM[:2]]
    likewise.compare(addresses, "cka", data=likewise.dataset(photos.name), progress=False)
    assert len(counted) == len(photos)


def test_the_view_records_the_transform_and_the_store_asks_for_it(photos: Data, tmp_path: Path) -> None:
    net = untrained("timm:test_vit")
    view = likewise.extract(net, photos, store=tmp_path, progress=False)
    assert view.about["transform"] == "timm: 160 × 160, crop 0.95 (center), bicubic"
    smaller = likewise.dataset(f"{photos.name},size=160,crop=1")
    other = likewise.extract(net, smaller, store=tmp_path, progress=False)
    assert other.about["transform"] == "160 × 160, crop 1, bicubic"
    assert other.probe == view.probe
    assert not np.allclose(np.asarray(other), np.asarray(view))
    again = likewise.extract(net, photos, store=tmp_path, progress=False)
    assert np.array_equal(np.asarray(again), np.asarray(view))


def test_what_the_person_asks_for_goes_before_the_networks_own(photos: Data) -> None:
    net = untrained("timm:test_resnet")  # 160 × 160, crop 0.95, bilinear
    asked = likewise.dataset(f"{photos.name},size=96")
    from torchvision import transforms

    theirs = transforms.Compose([transforms.Resize(101), transforms.CenterCrop(96), transforms.ToTensor()])
    expected = torch.stack([theirs(image) for image in pictures(photos)])  # 96 / 0.95 is 101
    assert (seen_by(net, asked) - (expected - 0.5) / 0.5).abs().max() < 1e-5


def test_zoo_networks_and_plain_modules_are_shown_the_size_of_the_data(photos: Data) -> None:
    plain = nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(48, 3))
    for net in (plain, likewise.network("zoo:mlp,size=224,hidden=4", data=photos)):
        assert transform_of(net) is None
        assert transform_for(net, photos, "it") is photos
    assert seen_by(plain, photos).shape == (len(photos), 3, 224, 224)


def small(dtype: torch.dtype = torch.uint8, side: int = 32, channels: int = 3) -> Data:
    pixels = torch.randint(0, 256, (6, channels, side, side), generator=torch.Generator().manual_seed(0))
    return Data("small", "image", pixels.byte() if dtype == torch.uint8 else pixels / 255)


def test_small_images_are_enlarged_by_the_networks_transform_which_is_said() -> None:
    net, data = untrained("timm:test_vit"), small()
    with pytest.warns(UserWarning, match="enlarged") as said:
        inputs = seen_by(net, data, name="vit")
    assert [str(each.message) for each in said] == [
        "images of 32 × 32 are enlarged to 160 × 160 for 'vit', by its own transform. To show all networks one size, "
        "choose it with the data: 'small,size=32'."
    ]
    from PIL import Image

    images = [Image.fromarray(image) for image in data.inputs.stored.permute(0, 2, 3, 1).numpy()]
    assert (inputs - by_library("timm:test_vit", net, images)).abs().max() < 1e-5


def test_floats_are_resized_by_torch_as_bytes_are() -> None:
    net = untrained("timm:test_vit")
    smooth = torch.nn.functional.interpolate(small(torch.float32, 4).inputs, (32, 32), mode="bilinear")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        floats = seen_by(net, Data("floats", "image", smooth))
        bytes_ = seen_by(net, Data("bytes", "image", (smooth * 255).round().byte()))
    assert (floats - bytes_).abs().max() < 0.02  # two roundings to bytes, over a deviation of 0.5


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_images_of_the_networks_size_are_shown_as_they_are(dtype: torch.dtype) -> None:
    net, data = untrained("timm:test_vit"), small(dtype, 160)
    assert torch.equal(transform_for(net, data, "it").inputs[:], data.inputs[:])
    assert "transform" not in likewise.extract(net, data, progress=False).about
    grey = small(dtype, 160, channels=1)
    assert torch.equal(transform_for(net, grey, "it").inputs[:], grey.inputs[:].expand(-1, 3, -1, -1))


def test_a_network_of_grey_images_is_shown_grey_ones(photos: Data) -> None:
    net = likewise.network("timm:test_vit,pretrained=false", channels=1)
    assert transform_for(net, photos, "it").inputs[:2].shape == (2, 1, 160, 160)
    built = likewise.network("timm:test_vit,img_size=32,pretrained=false", channels=1)
    grey = small(channels=1)
    assert torch.equal(transform_for(built, grey, "it").inputs[:], grey.inputs[:])


def test_arrays_are_shown_as_they_are() -> None:
    images = torch.rand(4, 3, 160, 160)
    net = untrained("timm:test_vit")
    assert torch.equal(seen_by(net, images), (images - 0.5) / 0.5)


def test_a_network_trained_here_is_shown_the_data_as_it_was_trained_on(tmp_path: Path) -> None:
    draw = torch.Generator().manual_seed(0)
    data = Data("few", "image", torch.rand(8, 3, 32, 32, generator=draw), torch.arange(8) % 2, ("a", "b"))
    done = likewise.train("timm:test_resnet", data, epochs=1, batch_size=4, out=tmp_path, progress=False)
    again = likewise.network(str(tmp_path))
    typed = likewise.network(f"timm:test_resnet,classes=2@{tmp_path / 'weights.safetensors'}")
    for net in (done.net, again, typed):
        assert transform_of(net) is None
    module = likewise.network("timm:test_resnet,pretrained=false", classes=2)
    assert transform_of(module) is not None
    likewise.train(module, data, epochs=1, batch_size=4, progress=False)
    assert transform_of(module) is None


def test_a_copy_of_a_network_is_shown_what_the_network_is(photos: Data) -> None:
    net = untrained("timm:test_vit")
    before = fingerprint(net)
    twin = copy.deepcopy(net)
    assert transform_of(twin) is transform_of(net)
    assert recipe(twin) == recipe(net)  # so it can be saved, and loaded by its file
    assert torch.equal(seen_by(twin, photos), seen_by(net, photos))
    record_transform(twin, None)
    assert transform_of(net) is not None
    assert (fingerprint(net), fingerprint(twin)) == (
        before,
        before,
    )  # it says how images are shown, not what it computes
    assert transform_of(pickle.loads(pickle.dumps(net))) is None


def test_a_published_network_keeps_its_transform_where_it_is_saved(tmp_path: Path) -> None:
    net = untrained("timm:test_vit")
    likewise.networks.save(net, tmp_path / "a.safetensors")
    assert transform_of(likewise.network(str(tmp_path / "a.safetensors"))).recipe == transform_of(net).recipe
    torch.save(unwrapped(net).state_dict(), tmp_path / "a.pth")
    assert transform_of(likewise.network(f"timm:test_vit@{tmp_path / 'a.pth'}")).recipe == transform_of(net).recipe


# A person's own transform


def own_transform(side: int = 40) -> Any:
    from torchvision import transforms

    parts = [transforms.Resize((side, side)), transforms.ToTensor(), transforms.Normalize([0.1] * 3, [0.7] * 3)]
    return transforms.Compose(parts)


def test_a_persons_transform_gives_what_the_network_inside_takes(photos: Data) -> None:
    net = untrained("timm:test_resnet")
    expected = torch.stack([own_transform()(image) for image in pictures(photos)])
    assert isinstance(net, Normalised)
    assert torch.equal(seen_by(net, photos, transform=own_transform()), expected)
    view = likewise.extract(net, photos, transform=own_transform(), progress=False)
    assert view.about["transform"].startswith("Compose (")


def test_transforms_may_be_given_by_network(photos: Data) -> None:
    nets = {"a": untrained("timm:test_resnet"), "b": untrained("timm:test_resnet")}
    both = likewise.compare(nets, "cka", data=photos, transform={"b": own_transform()}, progress=False)
    views = {
        "a": likewise.extract(nets["a"], photos, progress=False),
        "b": likewise.extract(nets["b"], photos, transform=own_transform(), progress=False),
    }
    assert np.allclose(both.values, likewise.compare(views, "cka").values)
    assert refused(lambda: likewise.compare(nets, "cka", data=photos, transform={"c": own_transform()})) == (
        "transform names a function of 'c', and the networks are 'a', 'b'. Give transform={network: function} by these "
        "names."
    )


def test_a_processor_is_a_transform_too(photos: Data) -> None:
    transformers = pytest.importorskip("transformers")
    processor = transformers.ViTImageProcessor(size={"height": 40, "width": 40})
    expected = processor(images=pictures(photos), return_tensors="pt")["pixel_values"]
    assert torch.equal(seen_by(untrained("timm:test_resnet"), photos, transform=processor), expected)


def test_layers_are_compared_with_each_network_shown_its_own(photos: Data) -> None:
    a, b = untrained("timm:test_resnet"), untrained("timm:tinynet_e")
    found = likewise.layerwise(a, b, photos, layers="logits", progress=False)
    views = [likewise.extract(net, photos, layers="logits", progress=False) for net in (a, b)]
    assert float(found.values[0, 0]) == pytest.approx(float(likewise.compare(*views, "cka-debiased")), abs=1e-3)
    assert found.about["transform"] == (
        "timm: 160 × 160, crop 0.95 (center), bilinear; timm: 106 × 106, crop 0.875 (center), bicubic"
    )
    other = likewise.layerwise(a, b, photos, measure="cka", layers="logits", progress=False)
    assert other.about["transform"] == found.about["transform"]
    same = likewise.layerwise(a, b, photos, layers="logits", transform=own_transform(), progress=False)
    views = [likewise.extract(n, photos, layers="logits", transform=own_transform(), progress=False) for n in (a, b)]
    assert float(same.values[0, 0]) == pytest.approx(float(likewise.compare(*views, "cka-debiased")), abs=1e-3)


def test_layers_show_their_shapes_at_the_networks_own_size(photos: Data) -> None:
    net = untrained("timm:test_vit")
    for shown in (photos, None):
        shapes = {layer.name: layer.shape for layer in layers(net, shown)}
        assert shapes["patch_embed.norm"] == (10, 10, 64)


@pytest.mark.parametrize(
    ("transform", "data", "sentence"),
    [
        (
            lambda image: image,
            None,
            "the transform gives a Image, not a tensor. End it with torchvision.transforms.ToTensor(), for one.",
        ),
        (
            lambda image: torch.zeros(3, *image.size),
            None,
            "the transform gives images of shapes (3, 64, 48) and (3, 40, 90), which make no batch. Bring them to "
            "one size with the data, as in 'imagefolder:PATH,size=224', or show one at a time: batch_size=1.",
        ),
        (
            "bicubic",
            None,
            "transform is 'bicubic'. Give a function of a PIL image that gives a tensor, or FILE.py:function.",
        ),
        (
            torch.as_tensor,
            torch.zeros(4, 3, 8, 8),
            "transform takes images, and the data is a Tensor, which is shown as it is. Give images: an address of "
            "some, or a list of PIL images.",
        ),
        (
            torch.as_tensor,
            "sentences[:4]",
            "transform takes images, and the data is text inputs. Give images: an address of some, or a list of PIL "
            "images.",
        ),
    ],
    ids=["no tensor", "many shapes", "no function", "a tensor", "texts"],
)
def test_a_transform_that_does_not_fit_is_refused(photos: Data, transform: Any, data: Any, sentence: str) -> None:
    net = nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(12, 3))
    assert (
        refused(lambda: likewise.extract(net, photos if data is None else data, transform=transform, progress=False))
        == sentence
    )


def test_a_processor_that_does_more_than_resize_gives_everything(photos: Data) -> None:
    transformers = pytest.importorskip("transformers")
    plain = from_processor(transformers.CLIPImageProcessor(size={"shortest_edge": 64}, crop_size=56))
    assert (plain.whole, plain.size, plain.crop, plain.interpolation) == (False, (56, 56), 0.875, "bicubic")
    assert plain(pictures(photos)).shape == (len(photos), 3, 56, 56)
    masked = from_processor(transformers.DetrImageProcessor(size={"shortest_edge": 48, "longest_edge": 96}))
    given = masked(pictures(photos))
    assert (masked.whole, sorted(given)) == (True, ["pixel_mask", "pixel_values"])
    offset = from_processor(transformers.EfficientNetImageProcessor(rescale_offset=True))
    assert offset.whole  # its pixels do not lie in [0, 1]
    unnormalised = from_processor(transformers.ViTImageProcessor(do_normalize=False))
    assert (unnormalised.whole, unnormalised.mean) == (False, None)


def test_a_whole_transform_is_finished_at_the_size_that_is_asked_for(photos: Data) -> None:
    transformers = pytest.importorskip("transformers")
    processor = transformers.DetrImageProcessor(size={"shortest_edge": 48, "longest_edge": 96})
    net = nn.Identity()
    record_transform(net, from_processor(processor))
    asked = likewise.dataset(f"{photos.name},size=32,crop=1,interpolation=bilinear")
    given = transform_for(net, asked, "it").inputs[:]
    expected = processor(images=asked.inputs.pictures(slice(None)), return_tensors="pt", do_resize=False)
    assert torch.equal(given["pixel_values"], expected["pixel_values"])


def test_a_transform_is_what_a_source_may_bring() -> None:
    net = nn.Linear(2, 2)
    record_transform(net, Transform(lambda images: torch.zeros(len(images), 2), "zeros", whole=True))
    assert transform_of(Normalised(net, [0.0], [1.0])) is transform_of(net)
    record_transform(net, None)
    assert transform_of(net) is None


@pytest.mark.parametrize(
    ("options", "size", "crop"),
    [
        ({"size": {"shortest_edge": 32}, "crop_pct": 0.8}, (32, 32), 0.8),  # resized to 40, then the middle
        ({"size": {"shortest_edge": 384}}, (384, 384), 0.875),
    ],
)
def test_the_size_of_a_processor_is_what_it_gives(options: dict[str, Any], size: tuple[int, int], crop: float) -> None:
    transformers = pytest.importorskip("transformers")
    transform = from_processor(transformers.ConvNextImageProcessor(**options))
    assert (transform.size, transform.crop, transform.whole) == (size, crop, False)


def test_a_segmenter_keeps_all_of_an_image_and_asks_for_one_size(photos: Data) -> None:
    import torchvision

    net = untrained("torchvision:lraspp_mobilenet_v3_large")
    assert refused(lambda: likewise.extract(net, photos, "backbone.0", reduce="mean", progress=False)) == (
        "the transform gives images of shapes (3, 520, 693) and (3, 1170, 520), which make no batch. Bring them to one "
        "size with the data, as in 'imagefolder:PATH,size=224', or show one at a time: batch_size=1."
    )
    preset = torchvision.models.segmentation.LRASPP_MobileNet_V3_Large_Weights.DEFAULT.transforms()
    first = transform_for(net, photos, "it").inputs[:1]
    assert torch.allclose(normalised(net, first)[0], preset(pictures(photos)[0]), atol=1e-5)
    sized = likewise.dataset(f"{photos.name},size=64")
    assert likewise.extract(net, sized, "backbone.0", reduce="mean", progress=False).n == len(photos)


def normalised(net: nn.Module, images: Tensor) -> Tensor:
    assert isinstance(net, Normalised)
    return (images - net.mean) / net.std


def test_a_detector_is_shown_images_as_large_as_they_are(photos: Data) -> None:
    net = untrained("torchvision:ssdlite320_mobilenet_v3_large")
    given = transform_for(net, photos, "it").inputs[:]
    assert [tuple(image.shape[1:]) for image in given] == [image.size[::-1] for image in pictures(photos)]
    assert transform_for(net, small(), "it").inputs[:].equal(small().inputs[:])


@pytest.mark.parametrize("size", [32, 64])
def test_a_network_built_for_another_size_is_shown_that(photos: Data, size: int) -> None:
    net = likewise.network(f"timm:test_vit,img_size={size},pretrained=false")
    assert transform_for(net, photos, "it").inputs[:1].shape == (1, 3, size, size)
    with torch.device("meta"):
        net = likewise.network(f"torchvision:vit_b_32,image_size={size},pretrained=false")
    assert transform_of(net).recipe == f"torchvision: {size} × {size} after {round(size * 256 / 224)}, bilinear"


def test_a_network_of_text_is_not_shown_images(photos: Data) -> None:
    net = likewise.network("zoo:bert-tiny,width=16")
    assert refused(lambda: likewise.extract(net, photos, name="it")) == (
        f"'it' takes text, and {photos.name!r} holds images. Choose another network, or data of text."
    )
