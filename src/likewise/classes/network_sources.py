"""What class similarities need of networks: the rows of a classifier, features, and answers with their classes.

Which layer classifies is for `networks/anatomy/classifier.py` to say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, Protocol, cast, overload

from torch import Tensor
from torch.nn import Module

from likewise.classes.similarity import ClassSimilarity, named
from likewise.comparison.arguments import named as sort_things
from likewise.data import Data, as_data
from likewise.errors import InputError, NoClassifierError
from likewise.networks import head as find_head
from likewise.networks import network as load_network
from likewise.networks.anatomy.classifier import answering_call
from likewise.networks.class_names import class_rows
from likewise.networks.forward import call, eval_mode
from likewise.networks.names import address_of, named_networks
from likewise.views.activations import Activations, Outputs
from likewise.views.extract import extract_networks
from likewise.views.show import Show, ShowOptions
from likewise.wordnet import ClassNames, match

Names = Sequence[str] | None
Ids = Sequence[str | None] | None
Several = Mapping[str, Any] | list[str] | list[Module] | list[Activations]
P = ParamSpec("P")
ANSWERS = ("layers", "reduce")  # options that mean nothing where answers are taken
NOT_SHOWN = (
    "data",
    "layers",
    "reduce",
    "transform",
    "mean",
    "std",
    "batch_size",
    "device",
    "dtype",
    "store",
    "progress",
)


def is_network(source: Any) -> bool:
    """Whether this is a module or an address."""
    return isinstance(source, str) or hasattr(source, "named_modules")


def several(source: Any) -> dict[str, Any] | None:
    """Things by name, of a mapping or a list of networks, views or matrices; None for one thing."""
    if isinstance(source, (list, tuple)) and source:
        things = (is_network(item) or isinstance(item, Activations) or getattr(item, "ndim", 0) == 2 for item in source)
        return sort_things(source) if all(things) else None
    return dict(source) if isinstance(source, Mapping) else None


class OfSeveral(Protocol[P]):
    """A function of one thing that takes a list or mapping of them too, and then gives one result each, by name."""

    @overload
    def __call__(  # type: ignore[overload-overlap]  # a list is both, and several
        self, things: Several, /, *args: Any, **options: Any
    ) -> dict[str, ClassSimilarity]: ...
    @overload
    def __call__(self, *args: P.args, **options: P.kwargs) -> ClassSimilarity: ...


def of_several(*without: str) -> Callable[[Callable[P, ClassSimilarity]], OfSeveral[P]]:
    """Let a function take several things, with the layer, head and transform that are chosen for each."""

    def declare(function: Callable[P, ClassSimilarity]) -> OfSeveral[P]:
        call = signature(function)

        @wraps(function)
        def of_one_or_several(*args: Any, **options: Any) -> ClassSimilarity | dict[str, ClassSimilarity]:
            arguments = call.bind(*args, **options).arguments
            things, show = several(arguments.pop(next(iter(call.parameters)))), arguments.pop("show", {})
            if things is None:
                return function(*args, **options)
            layers = {"layers": arguments["layers"]} if "layers" in arguments else {}
            similarities = {}
            for name, one in Show.only(function.__name__, show, without=without, **layers).per_network(things).items():
                choices = {key: getattr(one, key) for key in (*show, *layers)}
                similarities[name] = cast(Any, function)(things[name], **(arguments | choices))
            return similarities

        return cast(OfSeveral[P], of_one_or_several)

    return declare


def one_head(verb: str, show: Show) -> str | None:
    """The classifier that is named, in a function of one network."""
    if isinstance(show.head, Mapping):
        raise InputError(f"{verb} looks at one network, so head is the name of its classifier. Give head='name'.")
    return show.head


def classifier_rows(
    network: Any, head: str | None, inputs: Any, classes: Names, wnids: Ids
) -> tuple[Tensor, Names, Ids, dict[str, Any]]:
    """The classifier's weights `(classes, width)`, its classes and their WordNet ids, and where the weights come from.

    Outputs that are no classes are left out, unless as many classes as outputs were named. Where the network has all of
    the named classes in another order, its rows follow them.
    """
    net, count = load_network(network), None if classes is None else len(classes)
    if head is None and inputs is not None:
        with eval_mode(net) as resting:
            head = answering_call(net, lambda: call(resting, inputs)).partition("#")[0]
    try:
        classifier = find_head(net, layer=head, classes=count)
    except NoClassifierError as error:
        remedy = "Or take class means: from_features(net, data), on the command line --data."
        raise NoClassifierError(f"{error} {remedy}") from error
    weight = classifier.weight
    about: dict[str, Any] = {"layer": classifier.layer_name}
    rows, names = class_rows(net, len(weight))
    if len(rows) < len(weight):
        if count == len(weight):
            return weight, classes, wnids, about
        weight, about = weight[rows], about | {"left_out": len(weight) - len(rows)}
    if names is None:
        return weight, classes, wnids, about
    if classes is None:
        return weight, names.names, wnids or names.wnids, about
    order = [row for row in match(ClassNames(tuple(map(str, classes))), names) if row is not None]
    if len(classes) == len(order) == len(names):
        weight = weight[order]
    return weight, classes, wnids, about


def features_of(network: Any, data: Any, show: Show) -> tuple[Activations, Data]:
    """What one layer of a network gives on labelled data, and the data."""
    replace(show, data=data).check_data("from_features", address_of(network))
    labelled = as_data(data)
    if not isinstance(labelled, Data):
        raise InputError(
            f"class means are of data whose classes have names, got {type(data).__name__}. Give likewise.data.Data or "
            "an address, such as 'imagefolder:PATH', or features and labels."
        )
    labelled.need_labels("know which inputs are of one class")
    view = _view("from_features", network, replace(show, data=labelled))
    if len(view) != len(labelled):
        raise InputError(
            f"{show.layers or 'the layer'} of {view.name!r} gives {len(view)} rows for {len(labelled)} inputs. Choose "
            "a reduction that gives one row per input: reduce='mean', 'cls' or 'last'."
        )
    return view, labelled


def _view(verb: str, network: Any, show: Show) -> Activations:
    """What one layer of a network gives on data, and what it answers."""
    show.check_data(verb, address_of(network))
    show.check_one_layer(verb)
    (view,) = extract_networks(named_networks([network]), show, own_names=True).values()
    return view


def answers_of(
    verb: str, source: Any, data: Any, options: ShowOptions, classes: Names, wnids: Ids
) -> tuple[Outputs, Names, Ids] | None:
    """What a network or a view answers, with names and WordNet ids of its classes; None for an array."""
    show = Show.only(verb, options, without=ANSWERS, data=data, layers="logits")
    source = _view(verb, source, show) if is_network(source) else source
    if not isinstance(source, Activations):
        return None
    if source.outputs is None:
        raise InputError(f"{source.label} has no record of answers. Pass logits, or a network and data.")
    if verb == "from_confusion" and source.outputs.labels is None:
        reason = source.unlabelled or "Show the network labelled data."
        raise InputError(f"mistakes of {source.label} cannot be counted without labels. {reason}")
    return source.outputs, *class_names(source, source.outputs.logits.shape[1], classes, wnids)


def class_names(view: Activations, count: int, classes: Names, wnids: Ids) -> tuple[Names, Ids]:
    """Names of classes and their WordNet ids: by default those of the network."""
    if classes is not None or view.classes is None:
        return named(classes, count), wnids
    return named(view.classes.names, count), wnids or view.classes.wnids
