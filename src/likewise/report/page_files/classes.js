// Classes: matrices with a slider over epochs, curves, and confusion matrices.
block("classes", "films", (place, data) => {
  if (!data.films.length) return;
  const now = {film: 0, kind: 0, frame: 0};
  const film = () => data.films[now.film], kinds = () => film().kinds.map(kind => kind.title);
  const slider = el("input", {type: "range", min: 0, "aria-label": "epoch", oninput: () => { now.frame = Number(slider.value); draw(); refresh(); }});
  const epoch = el("b"), bar = el("label", {class: "wide"}, epoch, slider), head = controls(), curves = el("div", {class: "row curves"});
  const packs = new Map(), gridOf = kind => { if (!packs.has(kind)) packs.set(kind, unpack(kind.frames)); return packs.get(kind); };
  const setup = () => {
    now.kind = Math.min(now.kind, kinds().length - 1); now.frame = film().epochs.length - 1;
    slider.max = film().epochs.length - 1; slider.value = now.frame; bar.hidden = film().epochs.length < 2;
    head.replaceChildren(...(data.films.length > 1 ? [choice("Network", data.films.map(f => f.name), k => { now.film = k; setup(); draw(); }, now.film)] : []),
      ...(kinds().length > 1 ? [choice("Alike by", kinds(), k => { now.kind = k; draw(); }, now.kind)] : []), bar);
    drawCurves();
  };
  const matrix = el("div");
  place.append(head, el("div", {class: "row"}, matrix), curves);
  const at = (i, j) => { const f = film(), grid = gridOf(f.kinds[now.kind]); return grid.at(now.frame * f.classes.length + i, j); };
  const drawCurves = () => {
    const f = film();
    const wide = Math.min(340, Math.max(220, roomOf(place, 1100) / 3 - 30)), shown = f.curves.slice(0, 6), pictures = shown.map(() => el("div", {class: "chart"}));
    curves.replaceChildren(...pictures);
    shown.forEach((curve, k) => {  // at once: what is drawn later is missing in print
      const picture = pictures[k];
      const shapes = f.phases.map(end => ({type: "line", x0: end, x1: end, yref: "paper", y0: 0, y1: 1, line: {color: css("soft"), width: 1, dash: "dot"}}));
      if (curve.chance !== null) shapes.push({type: "line", xref: "paper", x0: 0, x1: 1, y0: curve.chance, y1: curve.chance, line: {color: css("soft"), width: 1.5, dash: "dash"}});
      Plotly.newPlot(picture, [{type: "scatter", mode: "lines+markers", x: f.all, y: curve.values, hoverinfo: "none", line: {color: COLOURS[0], width: 2}, marker: {size: 4}}],
          layout({width: wide, height: 190, margin: {l: 42, r: 8, t: 26, b: 34}, shapes, title: {text: plain(curve.title), font: {size: 12}, x: 0, xanchor: "left"},
            xaxis: axis({title: {text: "epoch", font: {size: 11}}, tickfont: {size: 10}, nticks: 6}), yaxis: axis({tickfont: {size: 10}, nticks: 5})}), CONFIG);
      picture.on("plotly_hover", e => say([curve.title, `epoch ${e.points[0].x}: ${num(e.points[0].y)}`, ...(curve.chance === null ? [] : [`chance ${num(curve.chance)}`])], e.event.clientX, e.event.clientY));
      picture.on("plotly_unhover", hush);
    });
  };
  setup();
  const draw = heat(matrix, () => {
    const f = film();
    epoch.textContent = `epoch ${f.epochs[now.frame]}`;
    return {title: `Classes by ${f.kinds[now.kind].title}`, rows: f.classes, columns: f.classes, range: f.kinds[now.kind].scale, reach: f.kinds[now.kind].reach, stretched: true, self: true, value: at, largest: 34,
      tip: (i, j) => [i === j ? f.classes[i] : `${f.classes[i]} and ${f.classes[j]}`, `${f.kinds[now.kind].title}: ${num(at(i, j))}`, ...(bar.hidden ? [] : [`epoch ${f.epochs[now.frame]}`])]};
  });
  charts.push(drawCurves);
  place.append(el("p", {class: "caption"}, data.short_names));
  place.append(table(() => { const f = film(); return [["", ...f.classes], ...f.classes.map((name, i) => [name, ...f.classes.map((_, j) => at(i, j))])]; }));
});
block("classes", "confusion", (place, data) => {
  const found = data.confusion;
  if (!found) return;
  const tables = found.tables.map(unpack), now = {net: -1, other: -1};
  const at = (i, j) => { const v = k => k < 0 ? tables.reduce((s, t) => s + t.at(i, j), 0) : tables[k].at(i, j); return now.other < 0 ? v(now.net) : v(now.net) - v(now.other); };
  place.append(el("h3", {}, "Confusion matrix"), controls(choice("Network", ["all networks", ...found.networks.map(i => NETS[i].name)], k => { now.net = k - 1; draw(); }),
    choice("minus", ["nothing", ...found.networks.map(i => NETS[i].name)], k => { now.other = k - 1; draw(); })));
  const draw = heat(place, () => {
    let most = 1;
    found.classes.forEach((_, i) => found.classes.forEach((_, j) => { if (i !== j) most = Math.max(most, Math.abs(at(i, j))); }));
    const differ = now.other >= 0;
    return {title: "Mistakes", rows: found.classes, columns: found.classes, range: differ ? [-most, most] : [0, most], diverging: differ, words: differ ? ["the second more", "the first more"] : ["mistakes", "mistakes; no colour: right answers"], largest: 34,
      yTitle: "true class", xTitle: "answer", plain: (i, j) => i === j && !differ, text: (i, j) => String(Math.round(at(i, j))),
      value: at, tip: (i, j) => [i === j ? `${found.classes[i]} is right` : `${found.classes[i]} taken for ${found.classes[j]}`, `${differ ? "difference " : ""}${Math.round(at(i, j))} inputs`]};
  });
  place.append(table(() => [["true class", ...found.classes], ...found.classes.map((name, i) => [name, ...found.classes.map((_, j) => Math.round(at(i, j)))])]));
});
