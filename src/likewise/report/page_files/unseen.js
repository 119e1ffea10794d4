// Unseen classes, and the benchmark.
block("unseen", "unseen", (place, data) => {
  const now = {column: 3}, columns = data.networks[0].columns, shown = [3, 1, 2, 0], picture = el("div", {class: "chart"});
  place.append(controls(choice("Metric", shown.map(k => columns[k]), k => { now.column = shown[k]; draw(); })), picture);
  const draw = () => {
    const wide = roomOf(place), first = data.networks[0].classes;
    Plotly.react(picture, data.networks.map((net, k) => ({type: "bar", name: plain(cut(net.name, 30)), x: net.classes.map((_, i) => i), y: net.rows.map(row => row[now.column]), hoverinfo: "none", marker: {color: COLOURS[k % 10], pattern: {shape: ["", "/", "x", "."][k % 4]}}})),
      layout({width: wide, height: 330, barmode: "group", showlegend: data.networks.length > 1, legend: {orientation: "h", y: 1.02, yanchor: "bottom", x: 0}, margin: {l: 50, r: 10, t: 34, b: first.some(name => name.length > 4) ? 90 : 30},
        xaxis: axis({tickvals: first.map((_, i) => i), ticktext: first.map(name => plain(cut(name, 16))), tickangle: first.some(name => name.length > 4) ? -60 : 0, tickfont: {size: 11}}), yaxis: axis({title: {text: plain(columns[now.column]), font: {size: 12}}, rangemode: "tozero"})}), CONFIG);
    if (picture.dataset.ready) return;
    picture.dataset.ready = "1";
    picture.on("plotly_hover", e => { const net = data.networks[e.points[0].curveNumber], i = e.points[0].x; say([`${net.name} without ${net.classes[i]}`, ...net.columns.map((name, k) => `${name}: ${num(net.rows[i][k])}`)], e.event.clientX, e.event.clientY); });
    picture.on("plotly_unhover", hush);
  };
  chart(draw);
  place.append(table(() => [["network", "class", ...columns], ...data.networks.flatMap(net => net.classes.map((name, i) => [net.name, name, ...net.rows[i].map(v => v ?? NaN)]))]));
});
block("unseen", "soft", (place, data) => {
  const now = {net: 0}, picture = el("div", {class: "chart"});
  place.append(el("h3", {}, "Soft labels of classes that were never seen"));
  if (data.networks.length > 1) place.append(controls(choice("Network", data.networks.map(net => net.name), k => { now.net = k; draw(); })));
  place.append(picture);
  const draw = () => {
    const net = data.networks[now.net], xy = unpack(net.points), wide = roomOf(place, 900);
    Plotly.react(picture, net.classes.slice(0, 20).map((name, c) => { const own = net.owners.flatMap((o, k) => o === c ? [k] : []);
      return {type: "scatter", mode: "markers", name: plain(cut(name, 20)), x: own.map(k => xy.at(k, 0)), y: own.map(k => xy.at(k, 1)), hoverinfo: "none", marker: {size: 6, opacity: .8, color: COLOURS[c % 10], symbol: MARKS[c % 10]}}; }),
    layout({width: wide, height: Math.max(320, wide * .55), showlegend: true, legend: wide < 500 ? {orientation: "h", y: -.05, yanchor: "top"} : {}, margin: {l: 16, r: 10, t: 10, b: 16}, xaxis: axis({showticklabels: false}), yaxis: axis({showticklabels: false})}), CONFIG);
    if (picture.dataset.ready) return;
    picture.dataset.ready = "1";
    picture.on("plotly_hover", e => say([`a sample of ${data.networks[now.net].classes[e.points[0].curveNumber]}, never seen`], e.event.clientX, e.event.clientY));
    picture.on("plotly_unhover", hush);
  };
  chart(draw);
});
block("benchmark", "benchmark", (place, data) => {
  const grid = unpack(data.values), rows = data.measures.map((name, i) => `${name} ${data.ranks[i].toFixed(1)}${data.paper[i] === null ? "" : ` (${data.paper[i].toFixed(1)})`}`);
  place.append(el("p", {class: "readout"}, "Measures with their mean rank, the paper's in brackets; the best first."));
  heat(place, () => ({title: "Measures by grounding", rows, columns: data.groundings, range: [0, 1], square: false, words: ["does not follow it", "follows it"], largest: 70, value: (i, j) => grid.at(i, j),
    tip: (i, j) => [data.measures[i], `${data.groundings[j]}: ${num(grid.at(i, j))}`, `mean rank ${num(data.ranks[i])}${data.paper[i] === null ? ", not in the paper" : `, in the paper ${num(data.paper[i])}`}`]}));
  place.append(table(() => [["measure", ...data.groundings, "mean rank", "paper"], ...data.measures.map((name, i) => [name, ...data.groundings.map((_, j) => grid.at(i, j)), data.ranks[i] ?? NaN, data.paper[i] ?? NaN])]));
});
