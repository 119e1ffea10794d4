// Where the views disagree, and layers.
block("disagreement", "agreement", (place, data) => {
  if (!data.agreement) { place.append(el("p", {class: "readout"}, "Rank agreement needs four networks with scores in both measures.")); return; }
  const grid = Object.fromEntries(Object.entries(data.agreement).map(([k, v]) => [k, unpack(v)]));
  const lines = (i, j) => [`${data.labels[i]} and ${data.labels[j]}`, ...(i === j ? ["a measure with itself"] : Number.isNaN(grid.rho.at(i, j)) ? ["not enough data: too few networks, or all pairs equally alike"] : [
    `rank agreement ${num(grid.rho.at(i, j))} [${num(grid.low.at(i, j))}, ${num(grid.high.at(i, j))}]`,
    `p = ${num(grid.p.at(i, j), 2)}, q = ${num(grid.q.at(i, j), 2)} (Mantel)`, `n = ${grid.networks.at(i, j)} networks`])];
  place.append(el("h3", {}, "Which measures rank pairs alike?"));
  heat(place, () => ({title: "Rank agreement of measures", rows: data.labels.map((l, k) => l), columns: data.labels, range: [-1, 1], diverging: true,
    words: ["opposite", "the same"], self: true, value: (i, j) => grid.rho.at(i, j), tip: lines, borders: data.kinds.flatMap((k, i) => i && k !== data.kinds[i - 1] ? [i] : [])}));
  if (data.stands_for.length) place.append(el("p", {class: "caption"}, data.stands_for.join("; ") + "."));
  place.append(table(() => [["measure", "other", "agreement", "low", "high", "p", "q", "networks"],
    ...data.labels.flatMap((a, i) => data.labels.flatMap((b, j) => i < j ? [[a, b, ...["rho", "low", "high", "p", "q", "networks"].map(k => grid[k].at(i, j))]] : []))]));
});
block("disagreement", "gaps", (place, data) => {
  if (data.views.length < 2 || !data.gaps.length) return;
  const ranks = data.views.map(view => unpack(view.ranks)), picture = el("div", {class: "chart"});
  place.append(el("h3", {}, "The pairs that views rank most differently"));
  const list = el("ol", {class: "gaps"}, ...data.gaps.slice(0, 10).map(gap => el("li", {}, (gap.significant ? "● " : "○ ") + gap.text,
    el("button", {type: "button", onclick: () => { pickPair(gap.a, gap.b); document.getElementById("matrix").scrollIntoView(); }}, "show the pair"))));
  place.append(list, el("p", {class: "readout"}, "● lies outside the intervals, ○ not enough data"), picture);
  chart(() => {
    const shown = data.gaps.slice(0, 12), y = shown.map((_, k) => k), most = Math.min(34, Math.floor(roomOf(place) * .45 / 6.2));
    const name = gap => plain(cut(`${NETS[gap.a].short} – ${NETS[gap.b].short}`, most));
    const lines = shown.map((gap, k) => { const own = ranks.map(r => r.at(gap.a, gap.b)).filter(v => !Number.isNaN(v));
      return {type: "scatter", mode: "lines", x: [Math.min(...own), Math.max(...own)], y: [k, k], line: {color: css("line"), width: 3}, hoverinfo: "skip"}; });
    const wide = roomOf(place);
    Plotly.react(picture, [...lines, ...data.views.map((view, v) => ({type: "scatter", mode: "markers", name: view.name, x: shown.map(gap => { const r = ranks[v].at(gap.a, gap.b); return Number.isNaN(r) ? null : r; }), y,
      hoverinfo: "none", showlegend: true, marker: {size: 11, color: COLOURS[v], symbol: MARKS[v]}}))].map((t, k) => k < lines.length ? {...t, showlegend: false} : t),
    layout({width: wide, height: 110 + 24 * shown.length, showlegend: true, legend: {orientation: "h", y: 1.02, yanchor: "bottom", x: 0}, margin: {l: Math.min(260, wide * .45), r: 20, t: 34, b: 46},
      xaxis: shares(wide, {range: [-.04, 1.04], title: {text: "pairs that are less alike", font: {size: 11}}}),
      yaxis: axis({tickvals: y, ticktext: shown.map(name), range: [shown.length - .5, -.5], tickfont: {size: 10}})}), CONFIG);
    if (!picture.dataset.ready) {
      picture.dataset.ready = "1";
      picture.on("plotly_hover", e => { const gap = shown[e.points[0].y]; say([gap.text, ...data.views.map((view, v) => `${view.name}: ${percent(ranks[v].at(gap.a, gap.b))}`)], e.event.clientX, e.event.clientY); });
      picture.on("plotly_unhover", hush);
    }
  });
  place.append(table(() => [["a", "b", ...data.views.map(v => v.name), "significant"], ...data.gaps.map(gap => [NETS[gap.a].name, NETS[gap.b].name, ...ranks.map(r => r.at(gap.a, gap.b)), gap.significant ? "yes" : "not enough data"])]));
});
block("layers", "layers", (place, data) => {
  let k = 0;
  if (data.layers.length > 1) place.append(controls(choice("Networks", data.layers.map(l => `${l.a} with ${l.b} – ${l.measure}`), i => { k = i; draw(); })));
  const grids = data.layers.map(l => unpack(l.values));
  const head = el("p", {class: "readout"});
  place.append(head);
  const draw = heat(place, () => {
    const one = data.layers[k], grid = grids[k];
    head.textContent = `${one.measure}: ${one.a} upwards, ${one.b} to the right; larger is ${one.larger_is}`;
    return {title: `Layers of ${one.a} and ${one.b}`, rows: one.rows, columns: one.columns, range: one.scale, upwards: true, yTitle: one.a, xTitle: one.b,
      reversed: one.larger_is === "less alike", value: (i, j) => grid.at(i, j), tip: (i, j) => [`${one.rows[i]} of ${one.a}`, `${one.columns[j]} of ${one.b}`, `${one.measure} = ${num(grid.at(i, j), 4)}`]};
  });
  place.append(table(() => { const one = data.layers[k]; return [["", ...one.columns], ...one.rows.map((row, i) => [row, ...one.columns.map((_, j) => grids[k].at(i, j))])]; }));
});
