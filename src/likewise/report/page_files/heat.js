// A matrix with names: square cells with their numbers, names that stay readable, hover and arrow keys, a scale in words.
const NUMBERED = 20;  // names per side up to which numbers are written in
const brief = v => { const a = Math.abs(v); return (a >= 1e4 ? v.toExponential(0) : a >= 100 ? v.toFixed(0) : a >= 10 ? v.toFixed(1) : v.toFixed(2)).replace(/\.0+$/, "").replace(/^(-?)0\./, "$1.").replace(/^-0$/, "0"); };
// Black or white, whichever stands out from a colour of the scale (relative luminance as by the WCAG).
const inkOn = (stops, share) => {
  const at = Math.max(0, Math.min(1, share)) * (stops.length - 1), k = Math.min(stops.length - 2, Math.floor(at));
  const parts = [1, 3, 5].map(c => { const [p, q] = [stops[k], stops[k + 1]].map(stop => parseInt(stop.slice(c, c + 2), 16)); return (p + (q - p) * (at - k)) / 255; })
    .map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
  return .2126 * parts[0] + .7152 * parts[1] + .0722 * parts[2] > .179 ? "#000000" : "#ffffff";
};
function heat(place, get) {
  const picture = el("div", {class: "chart"}), readout = el("p", {class: "readout"});
  const scale = el("div", {class: "scale"}), wide = el("input", {type: "checkbox", onchange: () => draw()});
  const stretch = el("label", {class: "stretch"}, wide, "stretch colours to the values shown");
  const frame = el("div", {tabindex: 0, role: "application", "aria-label": "Matrix. Arrow keys move, Enter opens."}, picture);
  place.append(el("div", {class: "scales"}, scale, stretch), frame, readout);
  let at = [0, 0], now = null;
  const read = (i, j) => now.tip(i, j);
  const draw = () => {
    now = get();
    frame.setAttribute("aria-label", `${now.title}. Arrow keys move over the cells, Enter opens one.`);
    const R = now.rows.length, C = now.columns.length, grid = (f, none) => Array.from({length: R}, (_, i) => Array.from({length: C}, (_, j) => f(i, j) ?? none));
    const plainCell = (i, j) => now.plain?.(i, j) ?? false;
    const z = grid((i, j) => { const v = plainCell(i, j) ? NaN : now.value(i, j); return Number.isNaN(v) ? null : v; }, null);
    const known = z.flatMap((row, i) => row.filter((v, j) => v !== null && !(now.self && i === j)));
    const reach = now.reach ?? (known.length ? [known.reduce((a, b) => Math.min(a, b)), known.reduce((a, b) => Math.max(a, b))] : now.range);
    if (now.stretched && !frame.dataset.ready) wide.checked = true;
    frame.dataset.ready = "1";
    now.undefined = z.some((row, i) => row.some((v, j) => v === null && !plainCell(i, j)));
    stretch.hidden = now.diverging || !(reach[0] < reach[1]) || (reach[1] - reach[0] > .9 * (now.range[1] - now.range[0]));
    now.shown = wide.checked && !stretch.hidden ? reach : now.range;
    gradient(scale, now);
    const marked = new Set((now.marks ?? []).map(m => m.join()));
    const numbers = Math.max(R, C) <= NUMBERED, text = !numbers ? null : grid((i, j) => { const v = now.value(i, j); return Number.isNaN(v) ? "" : (now.text ?? ((i, j) => brief(v)))(i, j) + (marked.has(`${i},${j}`) ? "†" : ""); }, "");
    const size = sizes(place, now, text);
    const colours = (now.diverging ? SPREAD : SCALE).map((c, i, all) => [i / (all.length - 1), c]);
    const ticks = (labels, folded) => size.names ? {tickvals: labels.map((_, i) => i), ticktext: labels.map(text => plain(cut(text, 26)))}
      : {tickvals: folded.map(f => f[0]), ticktext: folded.map(f => plain(f[1]))};
    const rows = ticks(now.rows, now.foldedRows ?? []), columns = ticks(now.columns, now.foldedColumns ?? now.foldedRows ?? []);
    const shapes = (now.borders ?? []).flatMap(b => [{type: "line", x0: b - .5, x1: b - .5, y0: -.5, y1: R - .5}, {type: "line", y0: b - .5, y1: b - .5, x0: -.5, x1: C - .5}])
      .map(line => ({...line, line: {color: css("panel"), width: R > 40 ? 1.5 : 2.5}}));
    const bare = z.flatMap((row, i) => row.flatMap((_, j) => plainCell(i, j) ? [[i, j]] : []));
    shapes.push(...bare.map(([i, j]) => ({type: "rect", x0: j - .5, x1: j + .5, y0: i - .5, y1: i + .5, layer: "below", fillcolor: css("panel"), line: {width: 0}})));
    const traces = [{type: "heatmap", z, colorscale: colours, reversescale: !!now.reversed, zmin: now.shown[0], zmax: now.shown[1],
      showscale: false, hoverinfo: "none", xgap: C <= 40 ? 1 : 0, ygap: R <= 40 ? 1 : 0}];
    if (text) {
      const stops = now.reversed ? [...colours].reverse().map(c => c[1]) : colours.map(c => c[1]), span = now.shown[1] - now.shown[0] || 1;
      const cells = z.flatMap((row, i) => row.map((v, j) => [i, j, v === null ? css(plainCell(i, j) ? "soft" : "ink") : inkOn(stops, (v - now.shown[0]) / span)])).filter(([i, j]) => text[i][j]);
      for (const ink of new Set(cells.map(c => c[2]))) {
        const own = cells.filter(c => c[2] === ink);
        traces.push({type: "scatter", mode: "text", x: own.map(c => c[1]), y: own.map(c => c[0]), text: own.map(c => text[c[0]][c[1]]), hoverinfo: "skip", textfont: {size: size.number, color: ink}});
      }
    }
    if (!text && marked.size) { const marks = now.marks.slice(0, 4000); traces.push({type: "scatter", mode: "markers", x: marks.map(m => m[1]), y: marks.map(m => m[0]), hoverinfo: "skip",
      marker: {symbol: "x-thin", size: Math.max(4, Math.min(9, size.font)), line: {color: "#d62728", width: 1.4}}}); }
    if (size.tree) traces.push(...branches(now.tree).map(b => ({type: "scatter", mode: "lines", x: b[0], y: b[1], xaxis: "x2", hoverinfo: "skip", line: {color: css("soft"), width: 1}})));
    const title = words => words ? {title: {text: plain(words), font: {size: 12}, standoff: 8}, automargin: false} : {};
    const room = size.width - size.margin.l - size.margin.r, share = (room - size.tree) / room;
    // undefined cells are grey; a tree stands on the page beside them
    const ground = {type: "rect", xref: "paper", yref: "paper", x0: 0, x1: share, y0: 0, y1: 1, layer: "below", fillcolor: css("none"), line: {width: 0}};
    Plotly.react(picture, traces, layout({width: size.width, height: size.height, margin: size.margin, shapes: [ground, ...shapes],
      xaxis: axis({...columns, ...title(now.xTitle), domain: [0, share], tickangle: size.turned && size.names ? -60 : 0, tickfont: {size: size.font}, range: [-.5, C - .5], showgrid: false, ticks: "", side: "bottom"}),
      yaxis: axis({...rows, ...title(now.yTitle), tickfont: {size: size.font}, range: now.upwards ? [-.5, R - .5] : [R - .5, -.5], showgrid: false, ticks: ""}),
      ...(size.tree ? {xaxis2: axis({domain: [share + .01, 1], range: [-.02, 1.04], showgrid: false, showticklabels: false, ticks: ""})} : {})}), CONFIG);
    if (!picture.dataset.ready) {
      picture.dataset.ready = "1";
      picture.on("plotly_hover", event => {
        const point = event.points[0], e = event.event ?? {clientX: 0, clientY: 0};
        say(read(point.y, point.x), e.clientX, e.clientY);
        readout.textContent = read(point.y, point.x).join(" · ");
      });
      picture.on("plotly_unhover", hush);
      picture.on("plotly_click", event => { at = [event.points[0].y, event.points[0].x]; now.pick?.(...at); });
    }
  };
  frame.addEventListener("keydown", event => {
    const moves = {ArrowUp: [now.upwards ? 1 : -1, 0], ArrowDown: [now.upwards ? -1 : 1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};
    if (event.key === "Enter") { now.pick?.(...at); return; }
    if (!moves[event.key]) return;
    event.preventDefault();
    at = at.map((v, k) => Math.max(0, Math.min([now.rows.length, now.columns.length][k] - 1, v + moves[event.key][k])));
    const box = picture.querySelector(".nsewdrag")?.getBoundingClientRect();
    const down = now.upwards ? now.rows.length - 1 - at[0] : at[0];
    if (box) say(read(...at), box.left + (at[1] + .5) / now.columns.length * box.width, box.top + (down + .5) / now.rows.length * box.height);
    readout.textContent = read(...at).join(" · ");
  });
  frame.addEventListener("blur", hush);
  return chart(draw);
}
function sizes(place, now, text) {
  const R = now.rows.length, C = now.columns.length, room = roomOf(place, 1100);
  const longest = list => Math.min(26, Math.max(...list.map(text => text.length)));
  const turned = (C > 4 && longest(now.columns) > 3) || longest(now.columns) * 7 > (now.largest ?? 46);
  const letters = text ? Math.max(1, ...text.flat().map(t => [...t].reduce((sum, letter) => sum + (/[().-]/.test(letter) ? .38 : .64), 0))) : 0, needs = size => letters * size + 4;
  const tree = now.tree && now.rows.length > 2 ? (room < 500 ? 36 : 70) : 0, wide = (now.yTitle ? 20 : 0), high = now.xTitle ? 20 : 0;
  let names = true, cell = 0, left = 0, below = 0, font = 12;
  for (font of [12, 11, 10, 9]) {
    const needed = 14 + longest(now.rows) * font * .62;
    left = wide + Math.min(room * .46, needed);
    below = high + 12 + (turned ? 4 + longest(now.columns) * font * .47 : 18);
    cell = Math.min(now.largest ?? 46, (room - left - tree - 8) / C, now.square === false ? 30 : 1e9);
    if (cell >= font + 1.5 && needed < room * .49) break;
  }
  if (cell < 9) { names = false; left = wide + (now.foldedRows?.length ? 74 : 12); below = high + 46; cell = Math.min(46, (room - left - tree - 8) / C); font = 10; }
  if (text) cell = Math.max(cell, needs(8));  // where that does not fit, the picture scrolls by itself
  const number = Math.max(8, Math.min(12, Math.floor((cell - 4) / (letters || 1))));
  const tall = now.square === false ? Math.max(16, Math.min(30, cell)) : cell;
  return {names, font, number, turned, tree, width: left + C * cell + tree + 8, height: 6 + R * tall + below, margin: {l: left, r: 8, t: 6, b: below}};
}
function gradient(place, now) {
  const stops = now.diverging ? SPREAD : SCALE, bar = el("i");
  bar.style.background = `linear-gradient(to right, ${(now.reversed ? [...stops].reverse() : stops).join(",")})`;
  const [low, high] = now.words ?? (now.reversed ? ["alike", "unlike"] : ["unlike", "alike"]);
  const ends = now.shown.map(now.end ?? (v => num(v)));
  place.replaceChildren(`${low} ${ends[0]}`, bar, `${ends[1]} ${high}`, ...(now.undefined ? [el("b"), "undefined"] : []),
    ...(now.marks?.length ? [now.rows.length <= NUMBERED ? " † saturated" : " ✕ saturated"] : []));
}
// The lines of a tree of rows, from its merges: [one, other, height], the leaves by their place.
function branches(tree) {
  const at = tree.leaves.map(place => [place, 0]), most = Math.max(...tree.merges.map(m => m[2])) || 1;
  return tree.merges.map(([a, b, height]) => {
    const [ya, xa] = at[a], [yb, xb] = at[b], x = height / most;
    at.push([(ya + yb) / 2, x]);
    return [[xa, x, x, xb], [ya, ya, yb, yb]];
  });
}
// The borders between families, and where their names stand if networks have no room.
function familyMarks(order) {
  const borders = [], folded = [];
  let first = 0;
  order.forEach((i, k) => {
    if (k + 1 < order.length && familyOf(order[k + 1]) === familyOf(i)) return;
    if (k + 1 < order.length) borders.push(k + 1);
    folded.push([(first + k) / 2, familyOf(i) < 0 ? `${first + 1}–${k + 1}` : `family ${familyOf(i) + 1}`]);
    first = k + 1;
  });
  return {borders: DATA.families.length ? borders : [], folded};
}
