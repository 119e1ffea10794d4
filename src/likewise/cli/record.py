"""`likewise record`: one small file that stands for a network on a probe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from likewise.cli._options import ROWS, show_keywords, show_options
from likewise.cli._print import echo


@show_options(without=["data", "layers", "store"], reduce=ROWS)
def record(
    network: Annotated[str, Argument(help="Address of a network, such as zoo:resnet20@a.safetensors.")],
    data: Annotated[str, Option(help="The probe: what to show it, like cifar10:test[:500] or texts.txt.")],
    out: Annotated[Path, Option("--out", "-o", help="The file, such as old.likewise.")],
    layers: Annotated[list[str] | None, Option(help="Names or globs; else all layers. May be repeated.")] = None,
    name: Annotated[str | None, Option(help="What the network is called, if not by its address.")] = None,
    memory: Annotated[str | None, Option(help="The most to hold at a time, like 4GB.")] = None,
    **show: Any,
) -> None:
    """Keep what later comparisons need of a network. Sketches of layers and weights, answers; no inputs."""
    import likewise
    from likewise.networks.names import named_networks

    likewise.Recording.check_place(out)
    options = show_keywords(show, named_networks([network]))
    recording = likewise.record(network, data, name=name, layers=layers, memory=memory, **options)
    path = recording.save(out)
    size = path.stat().st_size
    echo(f"{path}: {len(recording.layers)} layers of {recording.name} on {recording.n} inputs, {size / 1000:,.0f} kB")
