"""The copy an attack runs on: faster where it answers alike, the network itself where it does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from likewise import attacks
from likewise._base.optional import prepare_torchvision
from likewise.attacks.inference import AGREE, agree, fast, layout
from likewise.networks.address import network
from likewise.networks.forward import eval_mode
from likewise.networks.inputs.normalisation import Normalised
from tests.attacks.helpers import digits, small


def lived_in(net: nn.Module) -> nn.Module:
    """The network with batch norms that do something, as after training."""
    draw = torch.Generator().manual_seed(1)
    for part in net.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm) and part.running_mean is not None:
            part.running_mean.normal_(0, 0.3, generator=draw)
            part.running_var.uniform_(0.3, 2, generator=draw)
            if part.affine:
                part.weight.data.uniform_(0.5, 1.5, generator=draw)
                part.bias.data.normal_(0, 0.3, generator=draw)
    return net.eval()


def images(n: int = 4, size: int = 16) -> Tensor:
    return torch.rand(n, 3, size, size, generator=torch.Generator().manual_seed(0))


def copied(net: nn.Module, shown: Tensor) -> tuple[nn.Module, int]:
    """What stands in for a network, and how many of its batch norms are folded."""
    with eval_mode(net, input_gradients=True) as resting:
        copy, answers = fast(resting, shown)
        with torch.no_grad():
            assert torch.equal(answers, resting(shown))
            assert agree(copy(shown), answers)
        return copy, sum("forward" in vars(part) for part in copy.modules())


class Block(nn.Module):
    """Parts for the networks below, listed in another order than they run in."""

    def __init__(self) -> None:
        super().__init__()
        self.norm_b, self.norm_a = nn.BatchNorm2d(4), nn.BatchNorm2d(4)
        self.conv_b, self.conv_a = nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(3, 4, 3, bias=False)
        self.fc = nn.Linear(4, 5)


class OutOfOrder(Block):
    def forward(self, shown: Tensor) -> Tensor:
        maps = self.norm_a(self.conv_a(shown)).relu_()
        return self.fc(self.norm_b(self.conv_b(maps)).mean(dim=(2, 3)))


class ReadTwice(Block):
    def forward(self, shown: Tensor) -> Tensor:
        maps = self.conv_a(shown)
        maps = maps.relu() + self.norm_a(maps)
        return self.fc(self.norm_b(self.conv_b(maps)).mean(dim=(2, 3)))


class ChangedBetween(Block):
    def forward(self, shown: Tensor) -> Tensor:
        maps = self.norm_a(self.conv_a(shown).relu_())
        return self.fc(self.norm_b(self.conv_b(maps)).mean(dim=(2, 3)))


class SharedLayer(Block):
    def forward(self, shown: Tensor) -> Tensor:
        maps = self.norm_a(self.conv_b(self.conv_a(shown)))
        return self.fc(self.norm_b(self.conv_b(maps)).mean(dim=(2, 3)))


class SharedNorm(Block):
    def forward(self, shown: Tensor) -> Tensor:
        maps = self.norm_a(self.conv_a(shown)).relu()
        return self.fc(self.norm_a(self.conv_b(maps)).mean(dim=(2, 3)))


class Viewed(Block):
    """Its maps are taken for rows as they lie in memory, so channels may not lie last."""

    def forward(self, shown: Tensor) -> Tensor:
        maps = self.norm_b(self.conv_b(self.norm_a(self.conv_a(shown))))
        return self.fc(maps.view(len(maps), 4, -1).mean(dim=2))


class Tokens(nn.Module):
    """A batch norm that counts tokens, not what the linear layer before it gives."""

    def __init__(self) -> None:
        super().__init__()
        self.mix, self.norm, self.fc = nn.Linear(16, 16), nn.BatchNorm1d(16), nn.Linear(16, 5)

    def forward(self, shown: Tensor) -> Tensor:
        return self.fc(self.norm(self.mix(shown.mean(dim=1))).mean(dim=1))


@pytest.mark.parametrize(
    ("kind", "folded"),
    [(OutOfOrder, 2), (ReadTwice, 1), (ChangedBetween, 1), (SharedLayer, 0), (SharedNorm, 0), (Viewed, 2), (Tokens, 0)],
)
def test_a_batch_norm_is_folded_where_it_alone_reads_a_layer(kind: type[nn.Module], folded: int) -> None:
    assert copied(lived_in(kind()), images())[1] == folded


def test_a_batch_norm_of_the_batch_itself_is_not_folded() -> None:
    net = OutOfOrder()
    net.norm_a = nn.BatchNorm2d(4, track_running_stats=False)
    assert copied(lived_in(net), images())[1] == 1


@pytest.mark.parametrize("affine", [True, False])
def test_the_copy_gives_the_answers_and_slopes_of_the_network(affine: bool) -> None:
    net = OutOfOrder().double()
    net.norm_a = nn.BatchNorm2d(4, affine=affine, eps=0.1).double()
    net, shown = lived_in(net), images().double()
    copy, _ = copied(net, shown)
    slopes = []
    for either in (net, copy):
        given = shown.clone().requires_grad_(True)
        slopes.append(torch.autograd.grad(either(given)[:, 0].sum(), given)[0])
    torch.testing.assert_close(slopes[1], slopes[0], rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(copy(shown), net(shown), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda net: Normalised(net, [0.5] * 3, [0.2] * 3),
        nn.DataParallel,
        lambda net: torch.compile(net, backend="eager"),
    ],
)
def test_wrapped_networks_are_copied_too(wrap: Callable[[nn.Module], nn.Module]) -> None:
    assert copied(wrap(lived_in(network("zoo:resnet20"))), images())[1] == 19


def test_the_activation_inside_a_batch_norm_of_timm_stays() -> None:
    prepare_torchvision()
    timm = pytest.importorskip("timm")
    net = timm.create_model("test_efficientnet", num_classes=5)
    norms = sum(isinstance(part, nn.BatchNorm2d) for part in net.modules())
    assert copied(lived_in(net), images(size=32))[1] == norms > 0


def test_a_layer_somebody_watches_is_left_as_it_is() -> None:
    net, seen = lived_in(OutOfOrder()), []
    handle = net.norm_a.register_forward_hook(lambda *given: seen.append(given[2]))
    assert copied(net, images())[1] == 1
    assert len(seen) == 4  # the trace, the check of the copy, and the two passes above
    torch.testing.assert_close(seen[1], seen[0])
    handle.remove()


def test_the_network_keeps_its_weights_and_gets_no_hooks() -> None:
    net = lived_in(network("zoo:resnet20")).train()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    copied(net, images())
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert all(weight.requires_grad for weight in net.parameters())
    assert all(part.training and not part._forward_hooks for part in net.modules())


def test_a_network_that_cannot_be_copied_is_attacked_itself() -> None:
    net = lived_in(OutOfOrder())
    net.cache = net.fc.weight * 2  # torch copies no tensor that was computed
    assert copied(net, images())[0] is net


def test_a_network_without_maps_and_batch_norms_has_nothing_to_gain() -> None:
    net = nn.Sequential(nn.Flatten(), nn.Linear(768, 5))
    assert copied(net, images())[0] is net


def test_a_network_that_answers_at_random_is_attacked_itself() -> None:
    class Noisy(OutOfOrder):
        def forward(self, shown: Tensor) -> Tensor:
            return super().forward(shown) + 0.1 * torch.rand(5)

    net = lived_in(Noisy())
    with eval_mode(net, input_gradients=True) as resting:
        assert fast(resting, images())[0] is net


def test_logits_agree_within_a_share_of_their_spread() -> None:
    expected = torch.tensor([[100.0, 102.0], [101.0, 101.0]])  # they spread by 1 around the mean of their row
    assert agree(expected + 0.9 * AGREE, expected)
    assert not agree(expected + torch.tensor([0, 1.2 * AGREE]), expected)
    assert not agree(expected * float("nan"), expected)


def test_exact_follows_the_network_itself_bit_by_bit() -> None:
    net, (shown, labels) = small().eval(), digits()
    ours = attacks.pgd(net, shown, labels, eps=0.1, step=0.01, iterations=10, random_start=False, exact=True).images
    moved = shown.clone()
    for _ in range(10):
        moved.requires_grad_(True)
        slope = torch.autograd.grad(nn.functional.cross_entropy(net(moved), labels, reduction="sum"), moved)[0]
        change = (moved.detach() + 0.01 * slope.sign() - shown).clamp(-0.1, 0.1)
        moved = (shown + change).clamp(0, 1)
    assert torch.equal(ours, moved)


def test_the_copy_leads_an_attack_where_the_network_leads_it() -> None:
    net, shown = lived_in(network("zoo:resnet20")), images(8)
    ours, exact = (attacks.pgd(net, shown, eps=0.03, iterations=5, exact=exact).images for exact in (False, True))
    assert float((ours != exact).float().mean()) < 0.02  # values whose slope is nearly zero
    assert not torch.equal(ours, shown)


class ViewedImages(Block):
    """Its images are taken for rows as they lie in memory."""

    def forward(self, shown: Tensor) -> Tensor:
        return self.fc(self.conv_a(shown).mean(dim=(2, 3))) + shown.view(len(shown), -1)[:, :5]


@pytest.mark.parametrize(
    ("net", "order"),
    [(OutOfOrder(), torch.channels_last), (ViewedImages(), torch.contiguous_format)],
)
def test_images_lie_as_the_weights_do_where_the_network_takes_them_so(
    net: nn.Module, order: torch.memory_format
) -> None:
    with torch.no_grad():
        assert layout(net.eval(), images()) is torch.contiguous_format  # as its weights do
        assert layout(net.to(memory_format=torch.channels_last), images()) is order  # type: ignore[call-overload]
