"""One network, watched over many batches: rows of the layers asked for, and its answers.

The first batch settles which layers there are, how often each is called and which axes of what they give
are the inputs and the channels; from then on only the layers that were asked for are hooked. Rows are
reduced as they come and own their memory, so that an in-place operation further on in the network cannot
change them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from likewise._base.warnings import warn
from likewise.errors import ForwardError, InputError, NoClassifierError
from likewise.networks.anatomy.channel_axis import ChannelAxes, input_axis
from likewise.networks.anatomy.classifier import answer_field, answering_call, declared_classifiers, gives_logits
from likewise.networks.anatomy.embedding import embedding_field, is_causal, own_reduction
from likewise.networks.anatomy.layers import watch
from likewise.networks.anatomy.outputs import first_tensor, tensor_at
from likewise.networks.anatomy.passes import join_inputs, record_calls
from likewise.networks.forward import eval_mode, prepare_inputs
from likewise.networks.inputs.normalisation import check_range, unwrapped
from likewise.networks.inputs.precision import check_dtype, in_precision
from likewise.networks.inputs.tokenizers import cut_texts, warn_of_cut_texts
from likewise.views.batches import Batch, Parts, answer_to, cast, fewer
from likewise.views.hooks import (
    EMBEDDING,
    LOGITS,
    PENULTIMATE,
    CallFacts,
    Layers,
    NoRowsError,
    RowMaker,
    Selection,
    UnfitReductionError,
    is_row,
)
from likewise.views.reduction import check_reduction

_GIVEN = "input of "


@dataclass
class Seen:
    """What one batch showed: rows by layer, and the answer `(n, c)` where the network gives one."""

    rows: dict[str, Tensor] = field(default_factory=dict)
    answer: Tensor | None = None


def joined(parts: Sequence[Seen]) -> Seen:
    """What the parts of a batch showed, as one; an answer only where all have one."""
    if len(parts) == 1:
        return parts[0]
    rows = {name: torch.cat([part.rows[name] for part in parts]) for name in parts[0].rows}
    answers = [part.answer for part in parts if part.answer is not None]
    return Seen(rows, torch.cat(answers) if len(answers) == len(parts) else None)


@dataclass(frozen=True)
class Places:
    """Where in a pass the answer and the embedding are: fields of the output, and the calls of the classifiers.

    `words` are those of `penultimate`, `embedding` and `logits` that are asked for.
    """

    words: frozenset[str] = frozenset()
    classifiers: tuple[str, ...] = ()
    answer: Any = None
    has_logits: bool = True
    embedding: Any = None

    def logits(self, output: Any) -> Tensor | None:
        """The answer in what the network gives, None where that is none."""
        return tensor_at(output, self.answer) if self.has_logits else None


@dataclass(frozen=True)
class Settled:
    """What the first batch has settled: the calls that are meant, in order, and what has to be hooked for them.

    `inputs_of` holds the layers that answer, where what they are given is asked for.
    """

    calls: Mapping[str, CallFacts]
    modules: Mapping[str, nn.Module]
    inputs_of: Mapping[str, nn.Module]
    places: Places


class Watcher:
    """A context in which a network is shown batches; afterwards it is as it was."""

    def __init__(
        self,
        network: nn.Module,
        layers: Layers,
        reduce: str | None,
        *,
        label: str,
        device: Any = None,
        head: str | None = None,
        dtype: str | None = None,
        automatic: bool = False,
    ) -> None:
        if dtype is not None:
            check_dtype(dtype)
        if reduce is not None:
            check_reduction(reduce)
        self.network, self.label, self.reduce = network, label, reduce
        self.device, self.head, self.dtype = device, head, dtype
        self.parts = Parts(label, automatic=automatic)
        self.selection = Selection(network, layers, label)
        self.hooked = self.selection.hooked()
        self.settled: Settled | None = None
        self.resting = network
        self.cut = self.shown = 0  # texts longer than the network takes, and inputs at all
        self._exit = ExitStack()

    def __enter__(self) -> Watcher:
        self.resting = self._exit.enter_context(eval_mode(self.network, self.device))
        if self.dtype is not None:
            self._exit.enter_context(in_precision(self.resting, self.dtype))
        return self

    def __exit__(self, *error: object) -> None:
        self._exit.close()
        if self.cut and error[:1] == (None,):
            warn_of_cut_texts(self.network, self.cut, self.shown, self.label)

    @property
    def place(self) -> torch.device | None:
        """Where batches have to be for this network."""
        return next((value.device for value in self.resting.parameters()), self.device)

    @property
    def layers(self) -> list[str]:
        """The calls whose rows are given, as soon as the first batch has settled them."""
        return [] if self.settled is None else list(self.settled.calls)

    def see(self, batch: Batch, number: int) -> Seen:
        """Show the network a batch, in parts where it does not fit in memory."""
        floating = (value.dtype for value in self.resting.parameters() if value.is_floating_point())
        inputs = cast(prepare_inputs(self.resting, batch.inputs), next(floating, None))
        self.cut += cut_texts(self.resting, batch.inputs, inputs) if isinstance(batch.inputs, list) else 0
        self.shown += batch.size
        whole = Batch(inputs, None, batch.start)
        return joined(self.parts.show(self.resting, whole, partial(self._see_part, number)))

    def _see_part(self, number: int, batch: Batch) -> Seen:
        rows = RowMaker(batch, batch.inputs, self.reduce, self.label, unwrapped(self.resting))
        if self.settled is None:
            first = FirstBatch(self, rows, number)
            seen = first.see()
            self.settled = first.settle(seen)
        else:
            seen = self._see(rows, self.settled, number)
        missing = [name for name in self.settled.calls if name not in seen.rows]
        if missing:
            raise InputError(
                f"{missing[0]!r} of {self.label} is not called on batch {number}, though it was on "
                "the first. Leave it out."
            )
        seen.rows = {name: seen.rows[name] for name in self.settled.calls}
        return seen

    def _see(self, rows: RowMaker, settled: Settled, number: int) -> Seen:
        seen = Seen()

        def receive(name: str, _module: nn.Module, output: Any) -> None:
            if name in settled.calls:
                seen.rows[name] = rows.of(name, output, settled.calls[name])

        inside = with_inputs(settled.places, receive)
        with watch(settled.modules, inside, settled.inputs_of):
            answer = answer_to(self.resting, rows.inputs, rows.batch, number, self.label)
        receive_output(self.resting, answer, settled.places, receive)
        seen.answer = rows.logits(settled.places.logits(answer))
        return seen


class FirstBatch:
    """The first batch: everything is watched, and what it shows is settled for those that follow."""

    def __init__(self, watcher: Watcher, rows: RowMaker, number: int) -> None:
        self.watcher, self.rows, self.number = watcher, rows, number
        self.net, self.label, self.selection = watcher.resting, watcher.label, watcher.selection
        self.channels: ChannelAxes | None = None
        self.causal: bool | None = None
        self.facts: dict[str, CallFacts] = {}
        self.left_out: dict[str, NoRowsError] = {}
        self.few_shapes: dict[str, tuple[int, ...]] = {}
        self.inputs_of: dict[str, nn.Module] = {}
        self.places = Places(frozenset({PENULTIMATE, EMBEDDING, LOGITS} & set(self.selection.asked)))

    def see(self) -> Seen:
        """Show the network the batch, after a few inputs of it for what cannot be told from it alone."""
        check_range(self.net, self.rows.inputs, self.label)
        self._look_ahead()
        seen, first = Seen(), {}
        if self.watcher.reduce is not None or EMBEDDING in self.selection.asked:
            self.channels = ChannelAxes(self.rows.inputs)
            parts = self.selection.modules.values()
            open_parts = (part for part in parts if not isinstance(part, torch.jit.ScriptModule))
            first = dict.fromkeys(open_parts, self.channels.after)
        receive = partial(self._receive, seen)
        inside = with_inputs(self.places, receive)
        with watch(self.watcher.hooked, inside, self.inputs_of, first=first):
            answer = self._answer_to(self.rows.inputs)
        self._find_output(answer)
        receive_output(self.net, answer, self.places, receive)
        seen.answer = self.rows.logits(self.places.logits(answer))
        return seen

    def _answer_to(self, inputs: Any) -> Any:
        return answer_to(self.net, inputs, self.rows.batch, self.number, self.label)

    def _few(self) -> Any:
        few = fewer(self.rows.inputs, 2 if self.rows.batch.shown > 2 else 1)
        return self.rows.inputs if few is None else few

    def _look_ahead(self) -> None:
        """Find the calls that answer, and the shapes of fewer inputs where time may come first."""
        few, shown = self._few(), self.rows.batch.shown
        ask = partial(self._answer_to, few)
        if {PENULTIMATE, EMBEDDING} & set(self.selection.asked):
            self._find_classifiers(ask)
        if EMBEDDING in self.selection.asked and self.watcher.reduce is None:
            self.causal = is_causal(self._states, self.rows.inputs)
        time_first = not all(getattr(part, "batch_first", True) for part in self.net.modules())
        if time_first and few is not self.rows.inputs and shown > 1:
            # where this fails, the batch itself will, and says so better
            inside = with_inputs(self.places, self._note_few)
            with suppress(ForwardError), watch(self.watcher.hooked, inside, self.inputs_of):
                ask()

    def _find_classifiers(self, ask: Callable[[], Any]) -> None:
        try:
            calls = declared_classifiers(self.net, self.watcher.head) or (answering_call(self.net, ask),)
        except NoClassifierError as error:
            if PENULTIMATE in self.selection.asked and not self.selection.default:
                raise InputError(
                    f"{self.label} has no classifier that could be found, so nothing is penultimate: {error.reason}. "
                    "Ask for layers='embedding', what it gives to whoever uses it, or name the classifier: head='name'."
                ) from error
            if self.selection.default:
                self.selection.take_embedding()
                self.places = Places(frozenset({EMBEDDING}))
            return
        self.places = replace(self.places, classifiers=calls)
        names = [call.partition("#")[0] for call in calls]
        self.inputs_of = {f"{_GIVEN}{name}": self.selection.modules[name] for name in names}

    def _states(self, inputs: Any) -> Tensor | None:
        output = self._answer_to(inputs)
        return tensor_at(output, embedding_field(self.net, output, None, self.label))

    def _find_output(self, answer: Any) -> None:
        """Find the answer and the embedding among what the network gives."""
        asked, net = self.places.words, unwrapped(self.net)
        is_decided, place = True, None
        try:
            place = answer_field(net, answer, self.label, self.watcher.head)
        except InputError as error:
            calls, whole = record_calls(net, partial(self._answer_to, self._few()))
            try:
                place = answer_field(net, whole, self.label, calls=calls)
            except InputError:
                is_decided = False
                if LOGITS in asked:
                    raise error from None
        embedding = None
        if EMBEDDING in asked and not self.places.classifiers:
            embedding = embedding_field(net, answer, self.watcher.reduce, self.label)
        has_logits = is_decided and gives_logits(net, answer)
        self.places = replace(self.places, answer=place, has_logits=has_logits, embedding=embedding)

    def _note_few(self, name: str, _module: nn.Module, output: Any) -> None:
        """A layer may give as many steps as there are inputs: only the inputs can become fewer."""
        value = first_tensor(output)
        self.few_shapes[name] = () if value is None else tuple(value.shape)

    def _receive(self, seen: Seen, name: str, module: nn.Module, output: Any) -> None:
        try:
            value, few = self.rows.activations(name, output), self.few_shapes.get(name, ())
            facts = CallFacts(
                type(module).__name__,
                str(value.dtype).removeprefix("torch."),
                2,
                input_axis(module, value, self.rows.batch.shown, few) if value.ndim == 3 else 0,
                self.channels.axis(value) if self.channels is not None and value.ndim > 2 else None,
            )
            facts = self._of_embedding(facts, value) if name == EMBEDDING else facts
            self.facts[name] = replace(facts, ndim=self.rows.aligned(name, value, facts).ndim)
            seen.rows[name] = self.rows.of(name, output, facts)
        except NoRowsError as error:
            self.left_out[name] = error

    def _of_embedding(self, facts: CallFacts, value: Tensor) -> CallFacts:
        """What the embedding is made from, and how it becomes rows where nobody chose."""
        place = self.places
        source = str(place.embedding or "output")
        if place.classifiers:
            source = f"input of {', '.join(place.classifiers)}"
        how = self.watcher.reduce
        if how is None and not is_row(value):
            maps = value.ndim > 3 or facts.channel_axis == 1
            how = own_reduction(self.net, value, maps, self.causal)
        return replace(facts, reduce=how, source=source if is_row(value) else f"{source}, {how}")

    def settle(self, seen: Seen) -> Settled:
        """Which calls are meant, and no more hooks than they need."""
        selection = self.selection
        meant = selection.chosen([*seen.rows, *self.left_out])
        lost = [name for name in meant if name in self.left_out]
        if lost:
            if len(lost) == len(meant) or any(name in selection.asked for name in lost):
                raise InputError(str(self.left_out[lost[0]]))
            unfit = [name for name in lost if isinstance(self.left_out[name], UnfitReductionError)]
            if unfit and "blocks" in selection.asked:
                raise InputError(
                    f"reduce={self.watcher.reduce!r} does not fit {len(unfit)} of the {len(meant)} blocks of "
                    f"{self.label}: {self.left_out[unfit[0]]} Or name the layers it fits, as in layers='layers.*'."
                )
            warn(f"{len(lost)} layers of {self.label} are left out, the first because {self.left_out[lost[0]]}")
        calls = {name: self.facts[name] for name in meant if name not in self.left_out}
        layers = {name.partition("#")[0] for name in calls}
        modules = {name: part for name, part in self.watcher.hooked.items() if name in layers}
        return Settled(calls, modules, self.inputs_of, self.places)


Receive = Callable[[str, nn.Module, Any], None]


def with_inputs(places: Places, receive: Receive) -> Receive:
    """Hand on what layers give, and what the classifiers are given as `penultimate` and `embedding`."""
    classifiers, given = places.classifiers, dict[str, Tensor | None]()

    def hand_on(call: str, module: nn.Module, value: Any) -> None:
        if not call.startswith(_GIVEN):
            receive(call, module, value)
            return
        layer = call.removeprefix(_GIVEN)
        if layer not in classifiers:
            return
        if len(classifiers) > 1:
            part = first_tensor(value)
            given[layer] = None if part is None else part.clone()  # it may be overwritten before the last is given its
            if len(given) < len(classifiers):
                return
            parts = [part for part in given.values() if part is not None]
            value = join_inputs(parts) if len(parts) == len(classifiers) else None
        for word in places.words - {LOGITS}:
            receive(word, module, value)

    return hand_on


def receive_output(net: nn.Module, output: Any, places: Places, receive: Receive) -> None:
    """Hand on what the network gives as `logits`, and without a classifier as `embedding`."""
    if LOGITS in places.words:
        receive(LOGITS, net, tensor_at(output, places.answer))
    if EMBEDDING in places.words and not places.classifiers:
        receive(EMBEDDING, net, tensor_at(output, places.embedding))
