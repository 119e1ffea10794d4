"""Calibrations and intervals in print and in a notebook."""

import likewise
from tests.matrices.helpers import views


def test_calibrations_and_intervals_can_be_read_in_a_notebook() -> None:
    x, y = views()["a"], views()["b"]
    calibration, interval = likewise.calibrate(x, y, "cka", permutations=19), likewise.bootstrap(x, y, "cka", groups=20)
    assert repr(calibration).startswith("Calibration(cka = ")
    assert repr(interval).startswith("Interval(cka = ")
    assert f"{calibration.null_mean:.4g}" in calibration._repr_html_()
    assert f"{interval.low:.4g}" in interval._repr_html_()
    several = likewise.calibrate(views(), "cka", permutations=19)
    assert repr(several) == "Calibration('cka', 4 networks)"
    *rows, note = str(several).splitlines()
    assert len(rows) == 14
    assert note == several.null == "p below 0.55 from the shuffles of all 6 pairs, standardised"
    assert several._repr_html_().endswith(f"<p>{note}</p>")
    assert several._repr_html_().count("<tr>") == 12
