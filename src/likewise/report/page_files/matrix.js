// The matrix, the pair that was picked, and the map.
const widest = DATA.panels.disagreement?.gaps[0];  // the pair to open on: the one that views rank most differently
const chosen = {measure: 0, order: 0, pair: widest ? [widest.a, widest.b] : NETS.length > 1 ? [0, 1] : null, listeners: []};
const pickPair = (i, j) => { if (i !== j) { chosen.pair = [i, j]; chosen.listeners.forEach(listener => listener()); refresh(); } };
const measures = (DATA.panels.matrix?.measures ?? []).map(m => ({...m, grid: Object.fromEntries(
  ["values", "ranks", "null", "q", "low", "high"].map(k => [k, m[k] ? {get pack() { return m[k]; }} : null]))}));
const gridOf = (m, key) => { const held = m.grid[key]; if (!held) return null; return held.full ??= unpack(m[key]); };
const cellOf = (m, key, i, j) => gridOf(m, key)?.at(i, j) ?? NaN;
function orderOf(kind, m) {
  const all = NETS.map((_, i) => i);
  if (kind === 4 && m.tree) return [...m.tree.order];
  if (kind === 1) return all.sort((a, b) => NETS[a].name.localeCompare(NETS[b].name, undefined, {numeric: true}));
  if (kind === 2) return all.sort((a, b) => (NETS[b].accuracy ?? -1) - (NETS[a].accuracy ?? -1));
  if (kind === 3) {
    const mean = i => { let s = 0, c = 0; all.forEach(j => { const r = cellOf(m, "ranks", i, j); if (j !== i && !Number.isNaN(r)) { s += r; c++; } }); return c ? s / c : 0; };
    const means = all.map(mean);
    return all.sort((a, b) => means[b] - means[a]);
  }
  return all;
}
function pairLines(m, i, j) {
  const v = cellOf(m, "values", i, j), lines = [`${NETS[i].name} with ${NETS[j].name}`];
  if (Number.isNaN(v)) {
    const reason = m.reasons.find(r => r[0] === i && r[1] === j);
    return [...lines, i === j ? "a network with itself" : `${m.label}: undefined. ${reason ? reason[2] : "These two were not compared."}`];
  }
  lines.push(`${m.label} = ${num(v, 4)} (larger is ${m.larger_is}; ${m.range})`);
  if (i === j) return lines;
  const low = cellOf(m, "low", i, j), chance = cellOf(m, "null", i, j), q = cellOf(m, "q", i, j), rank = cellOf(m, "ranks", i, j);
  lines.push(Number.isNaN(low) ? "no interval" : `interval ${num(low)} to ${num(cellOf(m, "high", i, j))} (95 %)`);
  lines.push(Number.isNaN(chance) ? "no null recorded" : `chance ${num(chance)}${Number.isNaN(q) ? "" : `, q = ${num(q, 2)}`}`);
  if (!Number.isNaN(rank) && NETS.length > 2) lines.push(`more alike than ${Math.round(100 * rank)} % of pairs`);
  if (m.n) lines.push(`n = ${m.n} inputs`);
  if (m.saturated.some(s => s[0] === i && s[1] === j)) lines.push("saturated: any network of that width would score the same");
  return lines;
}
// Whether an order keeps what the tree joins side by side.
function fits(tree, where) {
  const spans = NETS.map((_, i) => [where.get(i), where.get(i), 1]);
  return tree.merges.every(([a, b]) => { const [p, q] = [spans[a], spans[b]], span = [Math.min(p[0], q[0]), Math.max(p[1], q[1]), p[2] + q[2]]; spans.push(span); return span[1] - span[0] + 1 === span[2]; });
}
const signed = i => (DATA.families.length && familyOf(i) >= 0 ? SIGNS[familyOf(i) % 10] + " " : "") + NETS[i].short;
// What `heat` draws of a measure: numbers in brackets are no more alike than chance; the tree stands beside its own order.
function similarities(m, order, {families = true, tree = true} = {}) {
  const {borders, folded} = familyMarks(order), where = new Map(order.map((i, k) => [i, k]));
  const q = (i, j) => i === j ? NaN : cellOf(m, "q", order[i], order[j]);
  const own = m.tree && fits(m.tree, where);
  return {title: `Similarity by ${m.label}`, rows: order.map(signed), columns: order.map(i => NETS[i].short), range: m.scale, reversed: m.larger_is === "less alike", self: true,
    value: (i, j) => cellOf(m, "values", order[i], order[j]), text: (i, j) => { const t = brief(cellOf(m, "values", order[i], order[j])); return q(i, j) > .05 ? `(${t})` : t; },
    tip: (i, j) => pairLines(m, order[i], order[j]), marks: m.saturated.map(([i, j]) => [where.get(i), where.get(j)]), borders: families ? borders : [], foldedRows: families ? folded : [],
    ...(m.view === "attacks" && !m.symmetric ? {yTitle: "attacks", xTitle: "is attacked"} : {}),
    tree: tree && own ? {leaves: NETS.map((_, i) => where.get(i)), merges: m.tree.merges} : null, pick: (i, j) => pickPair(order[i], order[j])};
}
const described = (m, notes = true) => `${m.label}${m.stands_for ? ` (${m.stands_for})` : ""}: ${[m.summary ? m.summary[0].toLowerCase() + m.summary.slice(1).replace(/\.$/, "") : "",
  notes || !m.summary ? `larger is ${m.larger_is}, range ${m.range}` : "", m.n ? `n = ${m.n} inputs` : ""].filter(part => part).join("; ")}. `
  + (NETS.length <= NUMBERED && (gridOf(m, "q")?.values ?? []).some(q => q > .05) ? "In brackets: no more alike than chance (q > 0.05). " : "") + (notes ? m.notes : []).map(note => note.replace(/\.$/, "") + ".").join(" ");
block("matrix", "matrix", place => {
  const options = [[0, DATA.families.length ? "by families" : "as clustered"], [4, "by its own tree"], [1, "by names"], ...(NETS.some(net => net.accuracy !== null) ? [[2, "by accuracy"]] : []), [3, "by mean similarity"]];
  const direction = el("p", {class: "caption"});
  place.append(controls(choice("Measure", measures.map(m => `${m.label} – ${m.view}`), k => { chosen.measure = k; draw(); }),
    choice("Order", options.map(o => o[1]), k => { chosen.order = options[k][0]; draw(); })), legend());
  const draw = heat(place, () => {
    const m = measures[chosen.measure];
    direction.textContent = described(m);
    return similarities(m, orderOf(chosen.order, m), {families: chosen.order === 0});
  });
  place.append(direction, table(() => {
    const m = measures[chosen.measure], ranked = NETS.length > 2, rows = [["a", "b", m.label, "chance", "q", "low", "high", ...(ranked ? ["rank"] : [])]];
    NETS.forEach((a, i) => NETS.forEach((b, j) => i < j && rows.push([a.name, b.name, ...["values", "null", "q", "low", "high", ...(ranked ? ["ranks"] : [])].map(k => cellOf(m, k, i, j))])));
    return rows;
  }));
});
block("matrix", "pair", place => {
  if (NETS.length < 2) return;
  const head = el("h3"), box = el("div"), picks = [0, 1].map(side => choice(side ? "and" : "The pair", NETS.map(net => net.name), k => {
    const pair = [...chosen.pair]; pair[side] = k; if (pair[0] !== pair[1]) pickPair(...pair); }, side));
  const picture = el("div", {class: "chart"});
  place.append(head, controls(...picks), picture, box);
  const rows = () => {
    const [i, j] = chosen.pair;
    const columns = ["values", "null", "q", "low", "high", ...(NETS.length > 2 ? ["ranks"] : [])];
    return [["measure", "view", "value", "chance", "q", "low", "high", ...(NETS.length > 2 ? ["rank among pairs"] : [])], ...measures.map(m => [m.label, m.view, ...columns.map(k => cellOf(m, k, i, j))])];
  };
  const numbers = table(rows, "All measures of this pair as a table");
  box.append(numbers);
  const draw = () => {
    const [i, j] = chosen.pair;
    picks.forEach((pick, side) => pick.set(chosen.pair[side]));
    head.textContent = `${NETS[i].name} and ${NETS[j].name}, by all measures`;
    const few = NETS.length < 3, known = measures.map(m => few ? cellOf(m, "values", i, j) : cellOf(m, "ranks", i, j));
    const kinds = [...new Set(measures.map(m => m.view))];
    picture.hidden = few;
    if (few) { numbers.open = true; numbers.refresh(); return; }
    Plotly.react(picture, [{type: "scatter", mode: "markers", x: known, y: measures.map((_, k) => k), hoverinfo: "none",
      marker: {size: 11, symbol: measures.map(m => MARKS[kinds.indexOf(m.view)]), color: measures.map(m => COLOURS[kinds.indexOf(m.view)])}}],
    layout({width: roomOf(place, 900), height: 70 + 20 * measures.length, margin: {l: Math.min(230, roomOf(place) * .45), r: 18, t: 8, b: 46},
      xaxis: shares(roomOf(place, 900), {range: [-.04, 1.04], title: {text: "pairs that are less alike", font: {size: 11}}}),
      yaxis: axis({tickvals: measures.map((_, k) => k), ticktext: measures.map(m => plain(cut(m.label, 24)) + " "), range: [measures.length - .5, -.5], tickfont: {size: 11}})}), CONFIG);
    if (!picture.dataset.ready) {
      picture.dataset.ready = "1";
      picture.on("plotly_hover", e => say(pairLines(measures[e.points[0].y], ...chosen.pair), e.event.clientX, e.event.clientY));
      picture.on("plotly_unhover", hush);
    }
  };
  chosen.listeners.push(draw);
  chart(draw);
});
// The ends of an axis of a map, with room for names.
function spread(xy, k) {
  const all = NETS.map((_, i) => xy.at(i, k)), ends = [Math.min(...all), Math.max(...all)], room = (ends[1] - ends[0] || 1) * (k ? .1 : .15);
  return [ends[0] - room, ends[1] + room];
}
// Names beside their points where they fit without covering another; the rest show on hover.
function placed(xy, width, height, square) {
  const ends = [0, 1].map(k => spread(xy, k));
  let [sx, sy] = [width / (ends[0][1] - ends[0][0]), height / (ends[1][1] - ends[1][0])];
  if (square) sx = sy = Math.min(sx, sy);
  const points = NETS.map((_, i) => [width / 2 + (xy.at(i, 0) - (ends[0][0] + ends[0][1]) / 2) * sx, height / 2 - (xy.at(i, 1) - (ends[1][0] + ends[1][1]) / 2) * sy]), taken = points.map(([x, y]) => [x - 6, y - 6, x + 6, y + 6]);
  const texts = NETS.map(net => cut(net.short, 22)), labels = NETS.map(() => ["", "top center"]);
  const spots = i => {
    const w = texts[i].length * 6.2, [x, y] = points[i];
    return Object.entries({"top center": [x - w / 2, y - 22, x + w / 2, y - 8], "bottom center": [x - w / 2, y + 8, x + w / 2, y + 22], "middle right": [x + 9, y - 7, x + 9 + w, y + 7], "middle left": [x - 9 - w, y - 7, x - 9, y + 7],
      "top right": [x + 5, y - 20, x + 5 + w, y - 6], "bottom right": [x + 5, y + 6, x + 5 + w, y + 20], "top left": [x - 5 - w, y - 20, x - 5, y - 6], "bottom left": [x - 5 - w, y + 6, x - 5, y + 20]})
      .filter(([, box]) => box[0] >= 0 && box[2] <= width && !taken.some((t, k) => k !== i && box[0] < t[2] && box[2] > t[0] && box[1] < t[3] && box[3] > t[1]));
  };
  const order = points.map((_, i) => [spots(i).length, i]).sort((a, b) => a[0] - b[0]);  // those with the fewest places first
  for (const [, i] of order) {
    const [first] = spots(i);
    if (first) { taken.push(first[1]); labels[i] = [plain(texts[i]), first[0]]; }
  }
  return labels;
}
// A map of the networks: marks are families, colours too or something else.
function drawMap(picture, one, {wide, tall, square, marker = null}) {
  const xy = unpack(one.xy), all = NETS.map((_, i) => i), labelled = wide > 300 && NETS.length <= 120;
  const labels = labelled ? placed(xy, wide - 44, tall - 40, square) : [];
  Plotly.react(picture, [{type: "scatter", mode: labelled ? "markers+text" : "markers", x: all.map(i => xy.at(i, 0)), y: all.map(i => xy.at(i, 1)), hoverinfo: "none",
    text: labels.map(label => label[0]), textposition: labels.map(label => label[1]), textfont: {size: 11, color: css("ink")}, cliponaxis: false,
    marker: {size: 11, line: {width: 1, color: css("panel")}, symbol: all.map(i => MARKS[Math.max(0, familyOf(i)) % 10]), color: all.map(i => colourOf(familyOf(i))), ...marker}}],
  layout({width: wide, height: tall, margin: {l: 30, r: 14, t: 10, b: 30},
    xaxis: axis({showticklabels: false, automargin: false, range: spread(xy, 0), title: {text: "first direction of the map", font: {size: 11}, standoff: 6}}),
    yaxis: axis({showticklabels: false, range: spread(xy, 1), scaleanchor: square ? "x" : undefined, title: {text: "second direction", font: {size: 11}, standoff: 6}})}), CONFIG);
  if (picture.dataset.ready) return;
  picture.dataset.ready = "1";
  picture.on("plotly_hover", e => { const i = e.points[0].pointIndex, net = NETS[i];
    say([net.name, ...(net.family < 0 ? [] : [`family ${net.family + 1}`]), ...(net.accuracy === null ? [] : [`accuracy ${percent(net.accuracy)}`]),
      ...Object.entries(net.components).slice(0, 6).map(([k, v]) => `${k}: ${v}`)], e.event.clientX, e.event.clientY); });
  picture.on("plotly_unhover", hush);
}
block("map", "map", (place, data) => {
  const picture = el("div", {class: "chart"}), stress = el("p", {class: "readout"});
  const parts = [...new Set(NETS.flatMap(net => Object.keys(net.components)))];
  const colours = ["families", ...(NETS.some(net => net.accuracy !== null) ? ["accuracy"] : []), ...parts];
  const now = {map: 0, how: "mds", colour: "families"};
  place.append(controls(choice("Measure", data.maps.map(m => m.label), k => { now.map = k; draw(); }),
    choice("Map", ["distances (multidimensional scaling)", "spectral"], k => { now.how = k ? "spectral" : "mds"; draw(); }),
    choice("Colour", colours.map(c => `by ${c}`), k => { now.colour = colours[k]; draw(); })), legend(), picture, stress);
  const draw = () => {
    const one = data.maps[now.map][now.how], wide = roomOf(place);
    const kinds = [...new Set(NETS.map(net => net.components[now.colour] ?? ""))];
    const marker = now.colour === "families" ? null : now.colour === "accuracy" ? {color: NETS.map(net => net.accuracy), colorscale: SCALE.map((c, i) => [i / 9, c]), showscale: true,
      colorbar: {title: {text: "accuracy", font: {size: 11}}, thickness: 10, tickformat: ".0%", len: .8}} : {color: NETS.map(net => COLOURS[kinds.indexOf(net.components[now.colour] ?? "") % 10])};
    stress.textContent = `Stress ${percent(one.stress)}: how far distances on the map are from the true ones. Near is alike; the directions have no meaning of their own.`
      + (now.colour === "families" || now.colour === "accuracy" ? "" : " Colours: " + kinds.filter(k => k).join(", ") + ".");
    drawMap(picture, one, {wide, tall: Math.max(320, Math.min(560, wide * .62)), square: now.how === "mds", marker});
  };
  chart(draw);
  place.append(table(() => { const xy = unpack(data.maps[now.map][now.how].xy);
    return [["network", "family", ...(colours.includes("accuracy") ? ["accuracy"] : []), ...(parts.includes(now.colour) ? [now.colour] : []), "x", "y"],
      ...NETS.map((net, i) => [net.name, net.family < 0 ? "" : net.family + 1, ...(colours.includes("accuracy") ? [net.accuracy ?? NaN] : []), ...(parts.includes(now.colour) ? [net.components[now.colour] ?? ""] : []), xy.at(i, 0), xy.at(i, 1)])]; }));
});
