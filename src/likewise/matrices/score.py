"""A score: a float that knows its measure and can be compared with chance.

It is the number wherever a number is needed: in arithmetic, in `str`, f-strings, CSV and JSON files and logs. At a
prompt and inside a list it is one line with its measure and range; nothing is computed for that. A notebook and
`explain()` add the verdict, where shuffling is little work; elsewhere they name the call that gives it.
A score holds numbers and words only. The function that finds the verdict is passed in, and is not pickled.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from likewise._base.names import visible
from likewise.matrices.tables import escape_latex
from likewise.matrices.uncertainty import Calibration, Interval

if TYPE_CHECKING:
    import pandas as pd

Bounds = tuple[float | None, float | None]
LEVEL = 0.05  # a verdict is two-sided: "more" and "less" share the 5 % of unrelated pairs that may be misjudged
CALIBRATED = ("null_mean", "null_quantile", "calibrated", "p", "p_less")


class Score(float):
    """The value of a measure for two networks.

    Attributes:
        measure: The name of the measure, with its variant and options.
        larger_is: What a larger value says: "more alike" or "less alike".
        bounds: The range of the measure, None where it has no end.
        identity: The value of a network with itself, None where that depends on the network.
        paired: Whether the measure looks at single inputs, so that shuffling them gives a null.
        names: What the two networks are called.
        n: How many inputs they were shown.
        widths: Neurons of either network.
        saturated: Why any network of these sizes would get this score, if so.
        calibration: The score compared with its null, if that was computed.
        interval: How far it would move with other inputs, or why that is not known; None where it was not asked for.
        call: What to call for a null.
        untrained: Names of those of the two that have no trained weights.
        precision: What it was computed in: "double", or "single" where the views ask for that.

    Example:
        >>> import numpy as np, likewise
        >>> x = np.random.default_rng(0).normal(size=(100, 16))
        >>> likewise.compare(x, x[:, ::-1], "cka")
        cka = 1 (0 … 1, larger is more alike; 1 with itself)
        >>> print(round(likewise.compare(x, x, "cka"), 6))
        1.0
    """

    measure: str
    larger_is: str
    bounds: Bounds
    identity: float | None
    paired: bool
    names: tuple[str, str]
    n: int
    widths: tuple[int, int]
    saturated: str
    calibration: Calibration | None
    interval: Interval | str | None
    call: str
    untrained: tuple[str, ...]
    precision: str
    _judge: Callable[[Score], str] | None
    _verdict: str

    def __new__(
        cls,
        value: float,
        *,
        measure: str,
        larger_is: str = "more alike",
        bounds: Bounds = (None, None),
        identity: float | None = None,
        paired: bool = True,
        names: tuple[str, str] = ("x", "y"),
        n: int = 0,
        widths: tuple[int, int] = (0, 0),
        saturated: str = "",
        calibration: Calibration | None = None,
        interval: Interval | str | None = None,
        call: str = "The same call with calibrate=True",
        untrained: tuple[str, ...] = (),
        precision: str = "double",
        judge: Callable[[Score], str] | None = None,
    ) -> Score:
        score = super().__new__(cls, value)
        score.measure, score.larger_is, score.bounds = measure, larger_is, bounds
        score.identity, score.paired = identity, paired
        score.names, score.n, score.widths = names, n, widths
        score.saturated, score.calibration, score.call = saturated, calibration, call
        score.interval = interval
        score.untrained, score.precision = tuple(untrained), precision
        score._judge, score._verdict = judge, ""
        return score

    def __reduce__(self) -> Any:
        facts = {name: fact for name, fact in vars(self).items() if not name.startswith("_")}
        return (_rebuild, (float(self), facts))

    def __repr__(self) -> str:
        itself = "" if self.identity is None else f"; {self.identity:g} with itself"
        mark = ", saturated" if self.saturated else ""
        mark += ", untrained" if self.untrained else ""
        mark += f", {self.precision} precision" if self.precision != "double" else ""
        facts = f"{range_text(self.bounds)}, larger is {self.larger_is}{itself}{mark}"
        return f"{self.measure} = {float(self):.4g} ({facts})"

    def __str__(self) -> str:  # what csv.writer and logging write
        return float.__repr__(self)

    def explain(self) -> str:
        """The score, its meaning and its verdict in a few lines."""
        notes = [f"Saturated: {self.saturated}"] if self.saturated else []
        notes += [untrained_note(", ".join(self.untrained))] if self.untrained else []
        if isinstance(self.interval, Interval):
            low, high = (f"{end:.4g}" for end in (self.interval.low, self.interval.high))
            notes.append(
                f"With other inputs it would be between {low} and {high} ({self.interval.level:.0%} interval)."
            )
        elif self.interval:
            notes.append(self.interval)
        return "\n".join(map(visible, [repr(self), *notes, self.verdict]))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython shows: the verdict too, but for a score inside of something else."""
        alone = len(getattr(printer, "stack", ())) <= 1
        printer.text(self.explain() if alone else repr(self))

    def _repr_html_(self) -> str:
        first, *rest = (html.escape(line) for line in self.explain().splitlines())
        a, b = (html.escape(visible(name)) for name in self.names)
        return f"<p>{a} and {b}: <b>{first}</b>{self._bar()}</p>" + "".join(f"<p>{line}</p>" for line in rest)

    def _bar(self) -> str:
        """Where the score lies in the range of its measure, if that has two ends."""
        low, high = self.bounds
        if low is None or high is None or not low < high:
            return ""
        return f' <meter min="{low:g}" max="{high:g}" value="{float(self):.4g}">{float(self):.4g}</meter>'

    def to_latex(self) -> str:
        """The score as a formula of LaTeX: the name of the measure, and the number.

        Example:
            >>> print(Score(0.5, measure="cka_x").to_latex())
            $\\mathrm{cka\\_x} = 0.500$
        """
        return f"$\\mathrm{{{escape_latex(self.measure)}}} = {float(self):.3f}$"

    @property
    def sizes(self) -> str:
        """Inputs and neurons, in words."""
        a, b = self.widths
        return f"n = {self.n}, d = {a}" + (f" and {b}" if a != b else "")

    @property
    def verdict(self) -> str:
        """What the value says compared with chance, in a sentence.

        It is computed by shuffling inputs where that is little work, by the sizes of the arrays and the cost that the
        measure declares, and the arrays are still there. A measure of one's own declares none.
        """
        if not self.paired:
            return "It does not look at single inputs, so shuffling them gives no null."
        if self.calibration is not None:
            null = self.calibration
            return verdict_sentence(
                self, null.p, null.p_less, null.null_mean, null.permutations, null.groups, null.units
            )
        if not self._verdict:
            verdict = "" if self._judge is None else self._judge(self)
            self._verdict = verdict or f"{self.call} tells it from noise."
        return self._verdict

    def to_frame(self) -> pd.DataFrame:
        """A frame of one row: names, measure, value, and the null if it was computed."""
        import pandas as pd

        row: dict[str, Any] = {"a": self.names[0], "b": self.names[1], "measure": self.measure}
        row["value"] = float(self)
        row |= {"precision": self.precision} if self.precision != "double" else {}
        if self.calibration is not None:
            row |= {name: float(getattr(self.calibration, name)) for name in CALIBRATED}
        if isinstance(self.interval, Interval):
            row |= {"low": float(self.interval.low), "high": float(self.interval.high)}
        return pd.DataFrame([row | {"larger_is": self.larger_is, "reason": "", "saturated": self.saturated}])


def _rebuild(value: float, facts: dict[str, Any]) -> Score:
    return Score(value, **facts)


def untrained_note(names: str) -> str:
    """What a reader should know of networks without trained weights."""
    return f"Untrained, with random weights: {names}."


def range_text(bounds: Bounds) -> str:
    """A range in words.

    >>> range_text((0, None))
    '0 … ∞'
    """
    low, high = (("-∞", "∞")[i] if end is None else f"{end:.4g}" for i, end in enumerate(bounds))
    return f"{low} … {high}"


def verdict_sentence(
    score: Score, more: float, less: float, null: float, permutations: int, groups: int, units: str = "inputs"
) -> str:
    """More, less, or as alike as chance, with p, the number of shuffles and what they leave in place.

    `more` and `less` are the shares of shuffles that are at least as alike and at least as unlike.
    """
    p = min(1.0, 2 * min(more, less))
    shared = f"the {groups} classes" if groups else ""
    shuffled = f"the {units}{' within classes' * bool(groups)}"
    if "confounder=" in score.measure:
        shared = f"{shared} and the confounder" if shared else "the confounder"
        shuffled = f"what the confounder leaves of {shuffled}"
    evidence = f"at {score.sizes} (p = {p:.2g} from {permutations} shuffles of {shuffled})."
    gives = "give" if groups else "gives"
    if p > LEVEL:
        return f"{float(score):.2g} is what {f'{shared} alone' if shared else 'noise'} {gives} {evidence}"
    word = "More" if more < less else "Less"
    chance = f"{shared} alone would make them, which" if shared else "noise, which"
    return f"{word} alike than {chance} {gives} {null:.2g} {evidence}"
