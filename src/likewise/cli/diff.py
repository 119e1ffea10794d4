"""`likewise diff`: what changed between two networks, and whether it stays within limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Exit, Option

from likewise.cli._options import ROWS, flags, seed_option, show_keywords, show_options
from likewise.cli._print import echo, refuse_unused
from likewise.cli._words import claim_out, thresholds
from likewise.views.show import ENGINE


@show_options(without=["data", "layers"], long=True, reduce=ROWS)
def diff(
    a: Annotated[str, Argument(help="Address of a network, or a recording; one that is not there yet is made of B.")],
    b: Annotated[str, Argument(help="Address of the changed one.")],
    data: Annotated[str, Option(help="What to show both, like cifar10:test[:1000].")],
    layers: Annotated[list[str] | None, Option(help="Names or globs; else all layers. May be repeated.")] = None,
    fail_under: Annotated[list[str] | None, Option(help="MEASURE=VALUE: exit with 1 if less. May be repeated.")] = None,
    fail_over: Annotated[list[str] | None, Option(help="MEASURE=VALUE: exit with 1 if more. May be repeated.")] = None,
    transfer: Annotated[
        int | None, Option(help="Inputs to attack; 0 for none. Else 100 if images are small.", min=0)
    ] = None,
    seed: Annotated[int, seed_option("Draws the order of the inputs and the start of attacks.")] = 0,
    memory: Annotated[str | None, Option(help="The most to hold at a time, like 4GB.")] = None,
    blockwise: Annotated[
        bool | None, Option("--blockwise/--whole", help="Read language models block by block; else if both do not fit.")
    ] = None,
    out: Annotated[Path | None, Option(help="Folder for diff.md, diff.json and diff.png.")] = None,
    as_markdown: Annotated[bool, Option("--markdown", help="For a pull request.")] = False,
    as_json: Annotated[bool, Option("--json", help="For programs.")] = False,
    **show: Any,
) -> None:
    """Say what changed between two networks. Looks at layers, answers, classes and attacks, and gives a verdict."""
    import likewise
    from likewise.comparison.recordings.recording import is_new_baseline, is_recording
    from likewise.networks.names import named_networks

    under, over = thresholds(fail_under, "--fail-under"), thresholds(fail_over, "--fail-over")
    if is_new_baseline(a):
        refuse_unused({"--transfer": transfer, "--blockwise": blockwise}, "beside a recording")
        later: dict[str, Any] = {"--fail-under": fail_under, "--fail-over": fail_over, "--out": out}
        later |= {"--markdown": as_markdown, "--json": as_json}
        _write_baseline(a, b, data, layers, memory, show, later)
        return
    claim_out(out)
    change = likewise.diff(
        a,
        b,
        data,
        layers=layers,
        transfer=transfer,
        fail_under=under,
        fail_over=over,
        seed=seed,
        memory=memory,
        blockwise=blockwise,
        **show_keywords(show, named_networks([one for one in (a, b) if not is_recording(one)])),
    )
    if out is not None:
        for path in change.write(out):
            echo(str(path), err=True)
    if as_json:
        echo(json.dumps(change.to_dict()))
    else:
        echo(change.to_markdown() if as_markdown else str(change), nl=not as_markdown)
    for failure in change.failures:
        echo(f"likewise: {failure}", err=True)
    if not change.ok:
        raise Exit(1)


def _write_baseline(
    path: str, network: str, data: str, layers: Any, memory: str | None, show: dict[str, Any], later: dict[str, Any]
) -> None:
    """Record the network that later ones are compared with, which alone is what `later` is for."""
    import likewise
    from likewise.networks.names import named_networks

    options = show_keywords(show, named_networks([network]))
    later |= flags({name: options.pop(name, None) for name in ENGINE})
    written = likewise.record(network, data, layers=layers, memory=memory, **options).save(path)
    echo(f"{written} was not there: {network} is recorded as the baseline. Later runs are compared with it.")
    if unused := [flag for flag, value in later.items() if value not in (None, False)]:
        echo(f"{', '.join(unused)}: of no effect until then", err=True)
