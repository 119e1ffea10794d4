"""A report in a browser: everything can be clicked through without an error or a request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import likewise
from likewise.classes import Inspector
from likewise.comparison.influence import influence
from likewise.data import Data
from likewise.matrices.layers import LayerMatrix
from likewise.report import Runs, report
from tests.report.browser import Browser, installed, until
from tests.report.helpers import EVIL, arrays, many
from tests.zeroshot.helpers import drawn

pytestmark = pytest.mark.skipif(installed() is None, reason="no Chromium is installed: apt-get install chromium")
CLASSES = ("</script>", "<b>cat</b>", "dog", "ship")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Networks and classes with names that look like markup: matrices, inputs and a watched training."""
    folder, draw = tmp_path_factory.mktemp("page"), np.random.default_rng(0)
    given = arrays(6, names=EVIL, n=40)
    labels = np.arange(40) % 4
    views = {
        name: likewise.Activations(values, name=name, outputs=likewise.Outputs(draw.normal(size=(40, 4)), labels))
        for name, values in given.items()
    }
    data = Data("images", "image", draw.random((40, 1, 8, 8)), labels, CLASSES)
    compared = likewise.compare(views, ["cka", "rsa", "disagreement"], calibrate=30, intervals=True, progress=False)
    watch = Inspector(CLASSES)
    for epoch in range(1, 11):
        watch.update(np.eye(4)[labels] + draw.normal(size=(40, 4)) / epoch, labels, given[EVIL[0]])
        watch.report(draw.normal(size=(4, 12)))
    other = Inspector(CLASSES)
    other.update(labels, labels)
    other.report(draw.normal(size=(4, 12)))
    names = list(given)
    layers = [
        LayerMatrix(names[0], b, ["x", "y"], ["y", "z"], draw.random((2, 2)), "cka", larger_is="more alike")
        for b in names[1:3]
    ]
    runs = Runs(
        matrices=list(compared.values()),
        inputs=[influence(views, ["pnka", "cka"], data=data, tried=10, progress=False)],
        inspections={EVIL[0]: watch, "other": other},
        layers=layers,
        zeroshot=[drawn("one"), drawn("two")],
        components=pd.DataFrame({"stem": list("ababab")}, index=names),
    )
    return report(runs, out=folder / "report.html")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as made:
        yield made


@pytest.fixture
def opened(browser: Browser, page: Path) -> Browser:
    browser.errors.clear()
    browser.requests.clear()
    browser.open(page)
    browser.run("blocks.forEach(start)")
    return browser


def choose(browser: Browser, panel: str, label: str, option: int) -> None:
    browser.run(
        f"""(select => {{ select.value = {option}; select.dispatchEvent(new Event("change")); }})(
        document.querySelector('#{panel} select[aria-label="{label}"]'))"""
    )


def test_a_report_is_clicked_through_without_an_error_or_a_request(opened: Browser, page: Path) -> None:
    ticks = "[...document.querySelectorAll('#matrix .xaxislayer-above text')].map(t => t.textContent)"
    title = "document.querySelector('#matrix .caption').textContent"
    before, order = opened.run(title), opened.run(ticks)
    choose(opened, "matrix", "Measure", 1)
    assert opened.run(title) != before
    choose(opened, "matrix", "Order", 1)
    assert opened.run(ticks) != order
    assert sorted(opened.run(ticks)) == sorted(order)
    epoch = "document.querySelector('#classes .wide b').textContent"
    assert opened.run(epoch) == "epoch 10"
    opened.run(
        """(slider => { slider.value = 2; slider.dispatchEvent(new Event("input")); })(
        document.querySelector("#classes input"))"""
    )
    assert opened.run(epoch) == "epoch 3"
    for panel, label, option in [
        ("map", "Map", 1),
        ("map", "Colour", 0),
        ("inputs", "and", 3),
        ("classes", "Alike by", 1),
    ]:
        choose(opened, panel, label, option)
    opened.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    until(lambda: opened.run("document.querySelectorAll('#matrix tbody tr').length > 10"), "the table")
    assert opened.errors == []
    assert [url for url in opened.requests if not url.startswith("data:")] == [page.absolute().as_uri()]


def test_tables_follow_every_selector(opened: Browser, page: Path) -> None:
    """Each table that stands beside a selector holds other numbers for other options, without being opened anew."""
    opened.run("document.querySelectorAll('details').forEach(d => { d.open = true; }); refresh()")
    found = opened.run(
        """[...document.querySelectorAll('.block')].flatMap(block => {
            const text = () => [...block.querySelectorAll('table')].map(t => t.textContent).join();
            const labels = [...block.querySelectorAll('select')].map(select => select.getAttribute('aria-label'));
            return labels.map(label => {  // a choice may make the selectors beside it anew
                const select = () => block.querySelector(`select[aria-label="${label}"]`);
                const set = value => { select().value = value; select().dispatchEvent(new Event('change')); };
                const first = select().value;
                const options = [...select().options].slice(0, 3).map(option => option.value);
                const texts = options.map(value => {
                    set(value);
                    const shown = text();
                    refresh();
                    return [shown, shown === text()];
                });
                set(first);
                return {where: block.dataset.panel + ' ' + block.dataset.block, label, table: text() !== '',
                        different: new Set(texts.map(t => t[0])).size, fresh: texts.every(t => t[1])};
            });
        })"""
    )
    seen = {(row["where"], row["label"]): row for row in found}
    assert {("matrix matrix", "Measure"), ("map map", "Measure"), ("inputs inputs", "Measure")} <= set(seen)
    assert {("layers layers", "Networks"), ("classes films", "Network"), ("unseen soft", "Network")} <= set(seen)
    unchanged = {("matrix matrix", "Order"), ("classes films", "Alike by")}  # the same pairs; the same epoch
    for key, row in seen.items():
        assert row["fresh"], key
        if row["table"] and key not in unchanged and key[1] not in ("Colour", "Metric"):
            assert row["different"] > 1, key
    assert seen["map map", "Colour"]["different"] >= 2  # a component has a column of its own
    assert opened.errors == []
    assert [url for url in opened.requests if not url.startswith("data:")] == [page.absolute().as_uri()]


def test_a_table_holds_the_numbers_of_the_measure_that_is_shown(opened: Browser) -> None:
    opened.run("document.querySelector('#matrix details').open = true; refresh()")
    for number in (1, 2, 0):
        choose(opened, "matrix", "Measure", number)
        shown = opened.run("[...document.querySelectorAll('#matrix tbody tr')][0].cells[2].textContent")
        assert shown == opened.run(f"num(cellOf(measures[{number}], 'values', 0, 1), 4)")


def test_cells_hold_their_numbers_and_the_diagonal_is_one(opened: Browser) -> None:
    picture = "document.querySelector('#matrix .js-plotly-plot')"
    written = f"{picture}.data.filter(t => t.mode === 'text').flatMap(t => t.text.map((s, k) => [t.y[k], t.x[k], s]))"
    text = {(i, j): number for i, j, number in opened.run(written)}
    assert [text[i, i] for i in range(6)] == ["1"] * 6
    assert len(text) == 36
    values = opened.run(f"{picture}.data[0].z")
    order = opened.run("orderOf(0, measures[0])")
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            assert value == pytest.approx(opened.run(f"cellOf(measures[0], 'values', {order[i]}, {order[j]})"))
            assert float(text[i, j].strip("()†")) == pytest.approx(value, abs=0.0051)
    assert opened.run(f"[{picture}.data[0].zmin, {picture}.data[0].zmax]") == [0, 1]


def test_numbers_stand_out_from_every_colour(opened: Browser) -> None:
    """Black or white on each colour of both scales, whichever has the contrast of 4.5 that the WCAG ask of text."""
    shares = """(function* () { for (const scale of [SCALE, SPREAD]) for (let k = 0; k <= 100; k++) {
        const at = k / 100 * (scale.length - 1), low = Math.min(scale.length - 2, Math.floor(at));
        yield [[low, low + 1].map(i => scale[i]), at - low, inkOn(scale, k / 100)]; } })()"""

    def light(colour: str) -> np.ndarray:
        return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255

    def luminance(rgb: np.ndarray) -> float:
        linear = np.where(rgb <= 0.03928, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    seen = set()
    for (low, high), share, ink in opened.run(f"[...{shares}]"):
        ground, letter = luminance(light(low) + share * (light(high) - light(low))), luminance(light(ink))
        assert (max(ground, letter) + 0.05) / (min(ground, letter) + 0.05) > 4.5
        seen.add(ink)
    assert seen == {"#000000", "#ffffff"}


def test_every_chart_is_saved_as_svg(opened: Browser) -> None:
    count = opened.run("document.querySelectorAll('.js-plotly-plot').length")
    saved = opened.run(
        "Promise.all([...document.querySelectorAll('.js-plotly-plot')].filter(p => p.layout).map(asSvg))"
        ".then(all => all.map(text => decodeURIComponent(text).slice(0, 60)))"
    )
    assert len(saved) == count > 5
    assert all(text.startswith("data:image/svg+xml,<svg") for text in saved)
    assert opened.errors == []


def test_hover_and_arrow_keys_tell_value_chance_interval_and_inputs(opened: Browser) -> None:
    opened.run("document.querySelector('#matrix .nsewdrag').scrollIntoView({block: 'center', behavior: 'instant'})")
    box = opened.run(
        "(r => [r.x, r.y, r.width, r.height])(document.querySelector('#matrix .nsewdrag').getBoundingClientRect())"
    )
    tip = "document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent"

    seen = []

    def told() -> bool:
        opened.mouse(box[0] + 5, box[1] + 5)
        opened.mouse(box[0] + box[2] * 1.5 / 6, box[1] + box[3] * 0.5 / 6)
        seen.append(str(opened.run(tip)))
        return "n = 40 inputs" in seen[-1]

    until(told, "the tip")
    text = seen[-1]
    for part in ("cka = ", "interval ", "chance ", "q = ", "of pairs"):
        assert part in text, text
    opened.run("document.querySelector('#matrix [role=application]').focus()")
    opened.key("ArrowRight")
    assert opened.run(tip) == text  # the second cell of the first row
    opened.key("ArrowDown")
    assert opened.run(tip) != text
    opened.key("Escape")
    assert opened.run(tip) == ""


def test_a_click_on_a_cell_shows_the_pair(opened: Browser) -> None:
    head = "document.querySelector('#matrix [data-block=pair] h3').textContent"
    names = opened.run("NETS.map(net => net.name)")
    opened.run("pickPair(2, 4)")
    assert opened.run(head) == f"{names[2]} and {names[4]}, by all measures"
    assert opened.run("document.querySelectorAll('#inputs .card').length") == 8


def test_names_are_text_in_every_chart_and_table(opened: Browser) -> None:
    opened.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    until(lambda: opened.run("document.querySelectorAll('#matrix tbody tr').length > 10"), "the table")
    pictures = "[...document.querySelectorAll('img')].filter(i => !i.src.startsWith('data:image/png')).length"
    assert opened.run(pictures) == 0
    assert opened.run("document.querySelectorAll('b b, svg b, svg a, svg img, td b, li b').length") == 0
    shown = opened.run("document.body.textContent")
    for name in (*EVIL, *CLASSES):
        assert name in shown, name
    ticks = opened.run("[...document.querySelectorAll('.xtick text, .ytick text')].map(t => t.textContent.trim())")
    for name in ("</script>", "<b>bold</b>", "<b>cat</b>", "'\"&amp;", "%{x}"):
        assert any(tick.endswith(name) for tick in ticks), (name, ticks)
    assert opened.errors == []


@pytest.mark.parametrize("width", [360, 1200])
def test_nothing_sticks_out_of_the_page(opened: Browser, width: int) -> None:
    opened.size(width, 900)
    try:
        until(lambda: opened.run("innerWidth") == width, "the width")
        opened.run("redraw()")
        assert opened.run("document.documentElement.scrollWidth") <= width
    finally:
        opened.size(1200, 900)


def test_everything_is_drawn_before_it_is_printed(opened: Browser) -> None:
    """A browser prints as soon as the page has heard of it: what a chart draws later is missing on paper."""
    drawn = "[...document.querySelectorAll('.chart')].filter(c => !c.hidden && !c.querySelector('.main-svg')).length"
    assert opened.run(f"dispatchEvent(new Event('beforeprint')), {drawn}") == 0
    assert opened.run("document.querySelectorAll('#classes [data-block=films] .main-svg').length") > 4
    opened.run("dispatchEvent(new Event('afterprint'))")


def test_words_stay_whole_on_a_narrow_screen(opened: Browser) -> None:
    """The table of networks scrolls by itself rather than breaking its words; an interval has a line of its own."""
    opened.size(360, 900)
    try:
        until(lambda: opened.run("innerWidth") == 360, "the width")
        lines = opened.run(
            """[...document.querySelectorAll('.networks th, .networks .short')].map(cell => {
                const rows = new Set(), texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
                while (texts.nextNode()) {
                    const range = document.createRange();
                    range.selectNodeContents(texts.currentNode);
                    for (const box of range.getClientRects()) if (box.width > 1) rows.add(Math.round(box.bottom));
                }
                return [cell.textContent, cell.className, rows.size]; })"""
        )
    finally:
        opened.size(1200, 900)
    assert {"network", "accuracy (95 % interval)", "family"} & {text for text, *_ in lines}
    for text, kind, rows in lines:
        assert rows <= (1 + text.count("[") if kind == "short" else len(re.split(r"[\s-]+", text))), text


def test_dark_and_light_follow_the_reader(opened: Browser) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    ink = "document.querySelector('#matrix .xtick text').style.fill"
    found = {}
    for scheme in ("light", "dark"):
        opened.scheme(scheme)
        opened.run("redraw()")
        found[scheme] = opened.run(colour), opened.run(ink)
    opened.scheme("light")
    assert found["light"][0] != found["dark"][0]
    assert found["light"][1] != found["dark"][1]


def test_seventy_networks_by_twenty_measures_are_ready_within_seconds(browser: Browser, tmp_path: Path) -> None:
    given = many(70, 20)
    plain = [replace(matrix, values=np.round(matrix.values, 3)) for matrix in given]
    path = report(Runs(matrices=plain[:20]), out=tmp_path / "many.html")
    assert path.stat().st_size < 15e6
    browser.send("Performance.enable", timeDomain="threadTicks")  # seconds of work, whatever else the machine does
    browser.open(path)
    ticks = "document.querySelectorAll('#matrix .ytick text').length"
    until(lambda: browser.run(ticks) >= 70, "the matrix")
    spent = {metric["name"]: metric["value"] for metric in browser.send("Performance.getMetrics")["metrics"]}
    assert spent["TaskDuration"] < 20  # about one on a quiet machine
    sizes = browser.run("[...document.querySelectorAll('#matrix .ytick text')].map(t => parseFloat(t.style.fontSize))")
    assert min(sizes[:70]) >= 9
    shown = browser.run("[...document.querySelectorAll('#matrix .ytick text')].slice(0, 70).map(t => t.textContent)")
    assert len(set(shown)) == 70
