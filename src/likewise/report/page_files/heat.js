// A matrix with names: square cells, names that stay readable, hover and arrow keys, a scale in words.
function heat(place, get) {
  const picture = el("div", {class: "chart"}), readout = el("p", {class: "readout"});
  const scale = el("div", {class: "scale"});
  const frame = el("div", {tabindex: 0, role: "application", "aria-label": "Matrix. Arrow keys move, Enter opens."}, picture);
  place.append(scale, frame, readout);
  let at = [0, 0], now = null;
  const read = (i, j) => now.tip(i, j);
  const draw = () => {
    now = get();
    frame.setAttribute("aria-label", `${now.title}. Arrow keys move over the cells, Enter opens one.`);
    gradient(scale, now);
    const {R, C, width, height, margin, names, font, turned} = sizes(place, now);
    const z = Array.from({length: R}, (_, i) => Array.from({length: C}, (_, j) => { const v = now.value(i, j); return Number.isNaN(v) ? null : v; }));
    const stops = now.diverging ? SPREAD : SCALE;
    const colours = stops.map((c, i) => [i / (stops.length - 1), c]);
    const ticks = (labels, folded) => names ? {tickvals: labels.map((_, i) => i), ticktext: labels.map(text => plain(cut(text, 26)))}
      : {tickvals: folded.map(f => f[0]), ticktext: folded.map(f => plain(f[1]))};
    const rows = ticks(now.rows, now.foldedRows ?? []), columns = ticks(now.columns, now.foldedColumns ?? now.foldedRows ?? []);
    const shapes = (now.borders ?? []).flatMap(b => [{type: "line", x0: b - .5, x1: b - .5, y0: -.5, y1: R - .5}, {type: "line", y0: b - .5, y1: b - .5, x0: -.5, x1: C - .5}])
      .map(line => ({...line, line: {color: css("panel"), width: R > 40 ? 1.5 : 2.5}}));
    const marks = (now.marks ?? []).slice(0, 4000);
    const traces = [{type: "heatmap", z, colorscale: colours, reversescale: !!now.reversed, zmin: now.range[0], zmax: now.range[1],
      showscale: false, hoverinfo: "none", xgap: C <= 40 ? 1 : 0, ygap: R <= 40 ? 1 : 0}];
    if (marks.length) traces.push({type: "scatter", mode: "markers", x: marks.map(m => m[1]), y: marks.map(m => m[0]), hoverinfo: "skip",
      marker: {symbol: "x-thin", size: Math.max(4, Math.min(9, font)), line: {color: "#d62728", width: 1.4}}});
    Plotly.react(picture, traces, layout({width, height, margin, plot_bgcolor: css("none"), shapes,
      xaxis: axis({...columns, tickangle: turned && names ? -60 : 0, tickfont: {size: font}, range: [-.5, C - .5], showgrid: false, ticks: "", side: "bottom"}),
      yaxis: axis({...rows, tickfont: {size: font}, range: now.upwards ? [-.5, R - .5] : [R - .5, -.5], showgrid: false, ticks: ""})}), CONFIG);
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
function sizes(place, now) {
  const R = now.rows.length, C = now.columns.length, wide = Math.max(260, place.clientWidth || 600), print = document.body.classList.contains("print");
  const room = Math.min(wide, print ? 640 : 1100);
  const longest = list => Math.min(26, Math.max(...list.map(text => text.length)));
  const turned = (C > 4 && longest(now.columns) > 3) || longest(now.columns) * 7 > (now.largest ?? 46);
  let names = true, cell = 0, left = 0, below = 0, font = 12;
  for (font of [12, 11, 10, 9]) {
    left = Math.min(room * .42, 14 + longest(now.rows) * font * .62);
    below = 12 + (turned ? 4 + longest(now.columns) * font * .5 : 18);
    cell = Math.min(now.largest ?? 46, (room - left - 8) / C, now.square === false ? 30 : 1e9);
    if (cell >= font + 1.5) break;
  }
  if (cell < 9) { names = false; left = now.foldedRows?.length ? 74 : 12; below = 46; cell = Math.min(46, (room - left - 8) / C); font = 10; }
  const high = now.square === false ? Math.max(16, Math.min(30, cell)) : cell;
  return {R, C, names, font, turned, width: left + C * cell + 8, height: 6 + R * high + below, margin: {l: left, r: 8, t: 6, b: below}};
}
function gradient(place, now) {
  const stops = now.diverging ? SPREAD : SCALE, bar = el("i");
  bar.style.background = `linear-gradient(to right, ${(now.reversed ? [...stops].reverse() : stops).join(",")})`;
  const [low, high] = now.words ?? (now.reversed ? ["alike", "unlike"] : ["unlike", "alike"]);
  place.replaceChildren(`${low} ${num(now.range[0])}`, bar, `${num(now.range[1])} ${high}`, el("b"), "undefined",
    ...(now.marks?.length ? [" ✕ saturated"] : []));
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
