"""Record one network over many batches: rows of the layers asked for, and its answers.

The first batch shows which layers there are, how often each is called, and which axes of their outputs are the inputs
and the channels; from then on only the layers that were asked for are hooked. Rows are reduced as they come and own
their memory, so that an in-place operation further on in the network cannot change them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from likewise._base.progress import warn
from likewise.errors import ForwardError, InputError, NoClassifierError
from likewise.networks.anatomy.calls import join_inputs, record_calls
from likewise.networks.anatomy.channel_axis import ChannelAxes, input_axis
from likewise.networks.anatomy.classifier import answer_field, answering_call, declared_classifiers, gives_logits
from likewise.networks.anatomy.embedding import embedding_field, is_causal, own_reduction, predicts_words
from likewise.networks.anatomy.layers import watch
from likewise.networks.anatomy.outputs import first_tensor, tensor_at
from likewise.networks.forward import device_of, eval_mode, in_precision, prepare_inputs
from likewise.networks.inputs.normalisation import check_range, unwrapped
from likewise.networks.inputs.tokenizers import cut_texts, warn_of_cut_texts
from likewise.views.batches import Batch, BatchSplitter, answer_to, first_inputs
from likewise.views.hooks import (
    EMBEDDING,
    LOGITS,
    PENULTIMATE,
    CallFacts,
    NoRowsError,
    RowMaker,
    Selection,
    UnfitReductionError,
    is_row,
)
from likewise.views.randomness import answers_at_random, run_from_seed
from likewise.views.reduction import BY_POSITION, check_reduction
from likewise.views.show import Show

_INPUT_OF = "input of "


@dataclass
class BatchRows:
    """Rows of some inputs by layer, and the answer `(n, c)` where the network gives one.

    `total` is how many inputs there are; `counts` how many rows each has in layers that give tokens or positions;
    `positions` which inputs they are, where they are not in the order of the data.
    """

    rows: dict[str, Tensor] = field(default_factory=dict)
    answer: Tensor | None = None
    counts: dict[str, Tensor] = field(default_factory=dict)
    total: int = 0
    positions: Tensor | None = None

    @property
    def tensors(self) -> list[Tensor]:
        """All of them."""
        return [*self.rows.values(), *([] if self.answer is None else [self.answer])]


def join_rows(chunks: Sequence[BatchRows]) -> BatchRows:
    """The rows of all chunks of a batch in its order; they are emptied. An answer only where all have one."""
    if len(chunks) == 1 and chunks[0].positions is None:
        return chunks[0]
    order = batch_order(chunks)

    def joined(pieces: list[Tensor]) -> Tensor:
        values = torch.cat(pieces)
        return values if order is None else values[order.to(values.device)]

    # layer by layer, so that no more than one of them is held twice
    rows = {name: joined([chunk.rows.pop(name) for chunk in chunks]) for name in list(chunks[0].rows)}
    counts = {name: torch.cat([chunk.counts[name] for chunk in chunks]) for name in chunks[0].counts}
    answers = [chunk.answer for chunk in chunks if chunk.answer is not None]
    answer = joined(answers) if len(answers) == len(chunks) else None
    return BatchRows(rows, answer, counts, sum(chunk.total for chunk in chunks))


def batch_order(chunks: Sequence[BatchRows]) -> Tensor | None:
    """Which rows of all chunks, one after another, come first, second and so on in the batch; None where all do."""
    positions = [chunk.positions for chunk in chunks if chunk.positions is not None]
    return torch.cat(positions).argsort() if positions else None


@dataclass(frozen=True)
class OutputFields:
    """The fields of a network's output that hold the answer and the embedding, and the calls of the classifiers.

    `words` are those of `penultimate`, `embedding` and `logits` that are asked for.
    """

    words: frozenset[str] = frozenset()
    classifiers: tuple[str, ...] = ()
    answer: Any = None
    has_logits: bool = True
    embedding: Any = None

    def logits(self, output: Any) -> Tensor | None:
        """The answer in the output of the network; None where it has none."""
        return tensor_at(output, self.answer) if self.has_logits else None


@dataclass(frozen=True)
class HookPlan:
    """The calls that are asked for, in order, and the modules that are hooked for them.

    `inputs_of` holds the classifiers whose inputs are asked for.
    """

    calls: Mapping[str, CallFacts]
    modules: Mapping[str, nn.Module]
    inputs_of: Mapping[str, nn.Module]
    fields: OutputFields


class Recorder:
    """Record a network batch by batch, as a context, in chunks of at most `room` bytes; then it is as it was."""

    def __init__(
        self, network: nn.Module, name: str, show: Show, *, automatic: bool = True, room: int | None = None
    ) -> None:
        if show.reduce is not None:
            check_reduction(show.reduce)
        # past a normalisation of its own, where images are shown by another transform
        self.network = network if show.transform is None else unwrapped(network)
        self.label, self.show = repr(name), show
        layers: Any = show.layers
        self.selection = Selection(self.network, layers, self.label)
        self.hooked = self.selection.hooked()
        # rows that are tokens stream out as they come, and a row of all tokens needs texts of one length
        by_length = automatic and show.reduce not in (*BY_POSITION, "flatten")
        self.splitter = BatchSplitter(
            self.label, automatic=automatic, hooked=self.hooked, room=room, by_length=by_length
        )
        self.plan: HookPlan | None = None
        self.net = self.network
        self.cut = self.inputs = 0  # texts longer than the network takes, and inputs at all
        self.seeded = False  # whether it answers at random, and so is run from a seed
        self._exit = ExitStack()

    def __enter__(self) -> Recorder:
        self.net = self._exit.enter_context(eval_mode(self.network, self.show.device))
        if self.show.dtype is not None:
            self._exit.enter_context(in_precision(self.net, self.show.dtype))
        return self

    def __exit__(self, *error: object) -> None:
        self._exit.close()
        if self.cut and error[:1] == (None,):
            warn_of_cut_texts(self.network, self.cut, self.inputs, self.label)

    @property
    def input_device(self) -> torch.device | None:
        """The device that batches have to be on for this network."""
        return device_of(self.net, self.show.device)

    @property
    def layers(self) -> list[str]:
        """The calls whose rows are recorded, known after the first batch."""
        return [] if self.plan is None else list(self.plan.calls)

    def forward(self, batch: Batch, number: int) -> BatchRows:
        """The rows of a batch, which the network is shown in chunks where it does not fit in memory."""
        return join_rows(list(self.chunks(self.prepare(batch), number)))

    def ordered_chunks(self, batch: Batch, number: int) -> Iterator[BatchRows]:
        """The rows of a prepared batch in its order: chunk by chunk, or at once where texts came by their length."""
        by_length = []
        for chunk in self.chunks(batch, number):
            if chunk.positions is None:
                yield chunk
            else:
                by_length.append(chunk)
        if by_length:
            yield join_rows(by_length)

    def prepare(self, batch: Batch) -> Batch:
        """A batch as the network takes it."""
        inputs = prepare_inputs(self.net, batch.inputs)
        self.cut += cut_texts(self.net, batch.inputs, inputs) if isinstance(batch.inputs, list) else 0
        self.inputs += batch.size
        return Batch(inputs, None, batch.start)

    def chunks(self, batch: Batch, number: int) -> Iterator[BatchRows]:
        """The rows of a prepared batch, as many inputs at a time as fit in memory, texts of similar length together."""
        return self.splitter.run(self.net, batch, partial(self._forward_chunk, number))

    def _is_random(self, batch: Batch, plan: HookPlan, number: int) -> bool:
        """Whether a few inputs, passed twice, give other rows."""
        few = first_inputs(batch.inputs, 2)
        few = batch if few is None else Batch(few, None, batch.start)
        maker = RowMaker(few, few.inputs, self.show.reduce, self.label, unwrapped(self.net))
        ask = partial(self._forward_planned, maker, plan, number)
        return answers_at_random(lambda: ask().tensors, self.net, self.input_device, self.label)

    def _forward_chunk(self, number: int, batch: Batch) -> BatchRows:
        maker = RowMaker(batch, batch.inputs, self.show.reduce, self.label, unwrapped(self.net))
        if self.plan is None:
            first = FirstBatch(self, maker, number)
            with run_from_seed(batch.start, self.input_device):  # the first inputs show whether it has to be
                recorded = first.forward()
            self.plan = first.make_plan(recorded)
            self.seeded = self._is_random(batch, self.plan, number)
            recorded = self._forward_planned(maker, self.plan, number) if self.seeded else recorded
        else:
            recorded = self._forward_planned(maker, self.plan, number)
        missing = [name for name in self.plan.calls if name not in recorded.rows]
        if missing:
            raise InputError(
                f"{missing[0]!r} of {self.label} is not called on batch {number}, though it was on "
                "the first. Leave it out."
            )
        recorded.rows = {name: recorded.rows[name] for name in self.plan.calls}
        recorded.counts = {name: maker.counts[name] for name in self.plan.calls if name in maker.counts}
        recorded.total, recorded.positions = batch.total, batch.positions
        return recorded

    def _forward_planned(self, maker: RowMaker, plan: HookPlan, number: int) -> BatchRows:
        recorded = BatchRows()

        def receive(name: str, _module: nn.Module, output: Any) -> None:
            if name in plan.calls:
                recorded.rows[name] = maker.of(name, output, plan.calls[name])

        inside = with_classifier_inputs(plan.fields, receive)
        # a chunk that is shown again gives the same
        draws = run_from_seed(maker.batch.start, self.input_device) if self.seeded else nullcontext()
        with draws, watch(plan.modules, inside, plan.inputs_of):
            answer = answer_to(self.net, maker.inputs, maker.batch, number, self.label)
        receive_output(self.net, answer, plan.fields, receive)
        recorded.answer = maker.logits(plan.fields.logits(answer))
        return recorded


class FirstBatch:
    """The first batch, in which everything is hooked to find out what the following ones need."""

    def __init__(self, recorder: Recorder, maker: RowMaker, number: int) -> None:
        self.recorder, self.maker, self.number, self.show = recorder, maker, number, recorder.show
        self.net, self.label, self.selection = recorder.net, recorder.label, recorder.selection
        self.head: Any = self.show.head
        self.channels: ChannelAxes | None = None
        self.causal: bool | None = None
        self.facts: dict[str, CallFacts] = {}
        self.left_out: dict[str, NoRowsError] = {}
        self.few_shapes: dict[str, tuple[int, ...]] = {}
        self.inputs_of: dict[str, nn.Module] = {}
        self.fields = OutputFields(frozenset({PENULTIMATE, EMBEDDING, LOGITS} & set(self.selection.asked)))

    def forward(self) -> BatchRows:
        """The rows of the batch, after a few inputs of it for what it does not show alone."""
        check_range(self.net, self.maker.inputs, self.label)
        self._look_ahead()
        recorded, first = BatchRows(), {}
        if self.show.reduce is not None or EMBEDDING in self.selection.asked:
            self.channels = ChannelAxes(self.maker.inputs)
            modules = self.selection.modules.values()
            scripted = torch.jit.ScriptModule
            first = {module: self.channels.after for module in modules if not isinstance(module, scripted)}
        receive = partial(self._receive, recorded)
        inside = with_classifier_inputs(self.fields, receive)
        with watch(self.recorder.hooked, inside, self.inputs_of, first=first):
            answer = self._answer_to(self.maker.inputs)
        self._find_output(answer)
        receive_output(self.net, answer, self.fields, receive)
        recorded.answer = self.maker.logits(self.fields.logits(answer))
        return recorded

    def _answer_to(self, inputs: Any) -> Any:
        return answer_to(self.net, inputs, self.maker.batch, self.number, self.label)

    def _few(self) -> Any:
        few = first_inputs(self.maker.inputs, 2 if self.maker.batch.total > 2 else 1)
        return self.maker.inputs if few is None else few

    def _look_ahead(self) -> None:
        """Find the calls that answer, and the shapes of fewer inputs where time may come first."""
        few = self._few()
        ask = partial(self._answer_to, few)
        if {PENULTIMATE, EMBEDDING} & set(self.selection.asked):
            self._find_classifiers(ask)
        if EMBEDDING in self.selection.asked and self.show.reduce is None:
            self.causal = is_causal(self._states, self.maker.inputs)
        time_first = not all(getattr(module, "batch_first", True) for module in self.net.modules())
        if time_first and few is not self.maker.inputs and self.maker.batch.total > 1:
            # where this fails, the batch itself will, and says so better
            inside = with_classifier_inputs(self.fields, self._note_few)
            with suppress(ForwardError), watch(self.recorder.hooked, inside, self.inputs_of):
                ask()

    def _find_classifiers(self, ask: Callable[[], Any]) -> None:
        try:
            calls = declared_classifiers(self.net, self.head) or (answering_call(self.net, ask),)
        except NoClassifierError as error:
            if PENULTIMATE in self.selection.asked and not self.selection.default:
                raise InputError(
                    f"{self.label} has no classifier that could be found, so nothing is penultimate: {error.reason}. "
                    "Ask for layers='embedding', its representation, or name the classifier: head='name'."
                ) from error
            if self.selection.default:
                self.selection.take_embedding()
                self.fields = OutputFields(frozenset({EMBEDDING}))
            return
        if self.selection.default and predicts_words(self.net, calls):  # its input is states, one per token
            self.selection.take_embedding()
            self.fields = OutputFields(frozenset({EMBEDDING}))
        self.fields = replace(self.fields, classifiers=calls)
        names = [call.partition("#")[0] for call in calls]
        self.inputs_of = {f"{_INPUT_OF}{name}": self.selection.modules[name] for name in names}

    def _states(self, inputs: Any) -> Tensor | None:
        output = self._answer_to(inputs)
        return tensor_at(output, embedding_field(self.net, output, None, self.label))

    def _find_output(self, answer: Any) -> None:
        """Find the fields of the answer and of the embedding in the output of the network."""
        asked, net = self.fields.words, unwrapped(self.net)
        is_decided, logits = True, None
        try:
            logits = answer_field(net, answer, self.label, self.head)
        except InputError as error:
            calls, whole = record_calls(net, partial(self._answer_to, self._few()))
            try:
                logits = answer_field(net, whole, self.label, calls=calls)
            except InputError:
                is_decided = False
                if LOGITS in asked:
                    raise error from None
        embedding = None
        if EMBEDDING in asked and not self.fields.classifiers:
            embedding = embedding_field(net, answer, self.show.reduce, self.label)
        has_logits = is_decided and gives_logits(net, answer)
        self.fields = replace(self.fields, answer=logits, has_logits=has_logits, embedding=embedding)

    def _note_few(self, name: str, _module: nn.Module, output: Any) -> None:
        """Note shapes for fewer inputs: a layer may give as many steps as there are inputs, and steps stay as many."""
        value = first_tensor(output)
        self.few_shapes[name] = () if value is None else tuple(value.shape)

    def _receive(self, recorded: BatchRows, name: str, module: nn.Module, output: Any) -> None:
        try:
            value = self.maker.activations(name, output)
            facts = facts_of(module, value, self.maker.batch.total, self.channels, self.few_shapes.get(name, ()))
            facts = self._of_embedding(facts, value) if name == EMBEDDING else facts
            self.facts[name] = replace(facts, ndim=self.maker.aligned(name, value, facts).ndim)
            recorded.rows[name] = self.maker.of(name, output, facts)
        except NoRowsError as error:
            self.left_out[name] = error

    def _of_embedding(self, facts: CallFacts, value: Tensor) -> CallFacts:
        """What the embedding is made from, and how it becomes rows by default."""
        classifiers = self.fields.classifiers
        source = f"input of {', '.join(classifiers)}" if classifiers else str(self.fields.embedding or "output")
        reduction = self.show.reduce
        if reduction is None and not is_row(value):
            maps = value.ndim > 3 or facts.channel_axis == 1
            reduction = own_reduction(self.net, value, maps, self.causal)
        return replace(facts, reduce=reduction, source=source if is_row(value) else f"{source}, {reduction}")

    def make_plan(self, recorded: BatchRows) -> HookPlan:
        """The calls that are asked for, with no more hooks than they need."""
        selection = self.selection
        meant = selection.select([*recorded.rows, *self.left_out])
        lost = [name for name in meant if name in self.left_out]
        if lost:
            if len(lost) == len(meant) or any(name in selection.asked for name in lost):
                raise InputError(str(self.left_out[lost[0]]))
            unfit = [name for name in lost if isinstance(self.left_out[name], UnfitReductionError)]
            if unfit and "blocks" in selection.asked:
                raise InputError(
                    f"reduce={self.show.reduce!r} does not fit {len(unfit)} of the {len(meant)} blocks of "
                    f"{self.label}: {self.left_out[unfit[0]]} Or name the layers it fits, as in layers=['layers.0', "
                    "'layers.1']."
                )
            warn(f"{len(lost)} layers of {self.label} are left out, the first because {self.left_out[lost[0]]}")
        calls = {name: self.facts[name] for name in meant if name not in self.left_out}
        layers = {name.partition("#")[0] for name in calls}
        modules = {name: module for name, module in self.recorder.hooked.items() if name in layers}
        return HookPlan(calls, modules, self.inputs_of, self.fields)


def facts_of(
    module: nn.Module, value: Tensor, count: int, channels: ChannelAxes | None, few: Sequence[int] = ()
) -> CallFacts:
    """What one call shows of a layer that gives `value` for `count` inputs; `few` is the shape for fewer, or ()."""
    return CallFacts(
        type(module).__name__,
        str(value.dtype).removeprefix("torch."),
        2,
        input_axis(module, value, count, few) if value.ndim == 3 else 0,
        channels.axis(value) if channels is not None and value.ndim > 2 else None,
    )


Receive = Callable[[str, nn.Module, Any], None]


def with_classifier_inputs(fields: OutputFields, receive: Receive) -> Receive:
    """Pass on the outputs of layers, and the inputs of the classifiers as `penultimate` and `embedding`."""
    classifiers, inputs = fields.classifiers, dict[str, Tensor | None]()

    def pass_on(call: str, module: nn.Module, value: Any) -> None:
        if not call.startswith(_INPUT_OF):
            receive(call, module, value)
            return
        layer = call.removeprefix(_INPUT_OF)
        if layer not in classifiers:
            return
        if len(classifiers) > 1:
            tensor = first_tensor(value)
            inputs[layer] = None if tensor is None else tensor.clone()  # may be overwritten before the last has its own
            if len(inputs) < len(classifiers):
                return
            tensors = [tensor for tensor in inputs.values() if tensor is not None]
            value = join_inputs(tensors) if len(tensors) == len(classifiers) else None
        for word in fields.words - {LOGITS}:
            receive(word, module, value)

    return pass_on


def receive_output(net: nn.Module, output: Any, fields: OutputFields, receive: Receive) -> None:
    """Pass on the output of the network as `logits`, and without a classifier as `embedding`."""
    if LOGITS in fields.words:
        receive(LOGITS, net, tensor_at(output, fields.answer))
    if EMBEDDING in fields.words and not fields.classifiers:
        receive(EMBEDDING, net, tensor_at(output, fields.embedding))
