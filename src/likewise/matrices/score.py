"""A score: a float that knows its measure and can be held against chance.

It is the number wherever a number is wanted: in arithmetic, in `str`, f-strings, CSV and JSON files and logs. At a
prompt and inside a list it is one line with its measure and range; nothing is computed for that. A notebook and
`explain()` add the verdict, where shuffling takes a moment; elsewhere they name the call that gives it.
A score keeps numbers only: it looks at the arrays it came from for as long as somebody else holds them.
"""

from __future__ import annotations

import html
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from likewise.comparison.verdict import Origin, against_chance, calibration_sentence

if TYPE_CHECKING:
    import pandas as pd

    from likewise.comparison.significance import Calibration
    from likewise.measures import Info


class Score(float):
    """The value of a measure for two networks.

    measure      the name of the measure, with its variant and options
    info         its facts: direction, range, source
    names        what the two networks are called
    n, widths    inputs, and neurons of either network
    saturated    why any network of these sizes would get this score, if so
    calibration  the score against its null, if it was asked for

    >>> import numpy as np, likewise
    >>> x = np.random.default_rng(0).normal(size=(100, 16))
    >>> likewise.compare(x, x[:, ::-1], "cka")
    cka = 1 (0 … 1, larger is more alike; 1 with itself)
    >>> print(round(likewise.compare(x, x, "cka"), 6))
    1.0
    """

    __slots__ = (
        "_origin",
        "_verdict",
        "calibration",
        "info",
        "measure",
        "n",
        "names",
        "saturated",
        "widths",
    )
    measure: str
    info: Info
    names: tuple[str, str]
    n: int
    widths: tuple[int, int]
    saturated: str
    calibration: Calibration | None
    _origin: Origin | None
    _verdict: str

    def __new__(
        cls,
        value: float,
        *,
        measure: str,
        info: Info,
        names: tuple[str, str] = ("x", "y"),
        n: int = 0,
        widths: tuple[int, int] = (0, 0),
        saturated: str = "",
        calibration: Calibration | None = None,
        origin: Origin | None = None,
    ) -> Score:
        made = super().__new__(cls, value)
        made.measure, made.info, made.names = measure, info, names
        made.n, made.widths, made.saturated = n, widths, saturated
        made.calibration, made._origin = calibration, origin
        made._verdict = ""
        return made

    def __reduce__(self) -> Any:
        facts = {name: getattr(self, name) for name in Score.__slots__ if not name.startswith("_")}
        facts["info"] = _without_functions(self.info)
        return (_restored, (float(self), facts))

    def __repr__(self) -> str:
        from likewise.measures.explain import bounds

        itself = "" if self.info.identity is None else f"; {self.info.identity:g} with itself"
        mark = ", saturated" if self.saturated else ""
        facts = f"{bounds(self.info)}, larger is {self.info.larger_is}{itself}{mark}"
        return f"{self.measure} = {float(self):.4g} ({facts})"

    def __str__(self) -> str:  # what csv.writer and logging write
        return float.__repr__(self)

    def explain(self) -> str:
        """The score, its meaning and its verdict in a few lines."""
        notes = [f"Saturated: {self.saturated}"] if self.saturated else []
        return "\n".join([repr(self), *notes, self.verdict])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython shows: the verdict too, but for a score inside of something else."""
        alone = len(getattr(printer, "stack", ())) <= 1
        printer.text(self.explain() if alone else repr(self))

    def _repr_html_(self) -> str:
        first, *rest = (html.escape(line) for line in self.explain().splitlines())
        return f"<p><b>{first}</b></p>" + "".join(f"<p>{line}</p>" for line in rest)

    @property
    def sizes(self) -> str:
        """Inputs and neurons, in words."""
        a, b = self.widths
        return f"n = {self.n}, d = {a}" + (f" and {b}" if a != b else "")

    @property
    def verdict(self) -> str:
        """What the value says against chance, in a sentence.

        It is found by shuffling inputs where that takes about 0.2 s at most and the arrays are still there.
        """
        if not self.info.paired:
            return "It does not look at single inputs, so shuffling them gives no null."
        if self.calibration is not None:
            return calibration_sentence(self)
        if not self._verdict:
            self._verdict = against_chance(self, self._origin)
        return self._verdict

    def to_frame(self) -> pd.DataFrame:
        """A frame of one row: names, measure, value, and the null where it was asked for."""
        import pandas as pd

        row: dict[str, Any] = {"a": self.names[0], "b": self.names[1], "measure": self.measure}
        row["value"] = float(self)
        if self.calibration is not None:
            row |= {name: float(getattr(self.calibration, name)) for name in _CALIBRATED}
        return pd.DataFrame([row | {"larger_is": self.info.larger_is, "reason": "", "saturated": self.saturated}])


_CALIBRATED = ("null_mean", "null_quantile", "calibrated", "p", "p_less")


def _restored(value: float, facts: dict[str, Any]) -> Score:
    return Score(value, **facts)


def _without_functions(info: Info) -> Info:
    """The facts that can be written down: functions of the options are for the scheduler only."""
    rows = info.rows if isinstance(info.rows, int) else 2
    return replace(info, rows=rows, kernels=None, saturates=None)
