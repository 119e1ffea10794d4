// Attacks: directed rates, robustness, and what to pick.
block("attacks", "rates", (place, data) => {
  const rates = unpack(data.rates), counts = unpack(data.counts), same = unpack(data.mistakes), who = data.networks;
  const {borders, folded} = familyMarks(who);
  const lines = (i, j) => [i === j ? `${NETS[who[i]].name}, by its own examples` : `examples made from ${NETS[who[i]].name}, shown to ${NETS[who[j]].name}`,
    Number.isNaN(rates.at(i, j)) ? "undefined: no input that both classify correctly" : `fooled on ${percent(rates.at(i, j))} of ${Math.round(counts.at(i, j))} inputs`, `the same wrong class in ${percent(same.at(i, j))}`];
  place.append(el("h3", {}, "Of 100 inputs that both classify correctly, on how many does an example made from the row fool the column?"), legend());
  heat(place, () => ({title: "Directed success rates", rows: who.map(i => NETS[i].short), columns: who.map(i => NETS[i].short), range: [0, 1], words: ["fools nobody", "fools on all inputs"], end: v => percent(v), yTitle: "attacks", xTitle: "is attacked", borders, foldedRows: folded,
    text: (i, j) => String(Math.round(100 * rates.at(i, j))),
    value: (i, j) => rates.at(i, j), tip: lines, pick: (i, j) => pickPair(who[i], who[j])}));
  place.append(table(() => [["made from", "shown to", "rate", "inputs", "same wrong class"], ...who.flatMap((a, i) => who.map((b, j) => [NETS[a].name, NETS[b].name, rates.at(i, j), counts.at(i, j), same.at(i, j)]))]));
});
block("attacks", "own", (place, data) => {
  const picture = el("div", {class: "chart"}), order = data.own.map((_, k) => k).filter(k => data.own[k].rate !== null).sort((a, b) => data.own[a].rate - data.own[b].rate);
  place.append(el("h3", {}, "How often each is fooled by its own examples"), picture);
  chart(() => {
    const y = order.map((_, k) => k), own = order.map(k => data.own[k]), wide = roomOf(place);
    Plotly.react(picture, [{type: "scatter", mode: "markers", x: own.map(o => o.rate), y, hoverinfo: "none", marker: {size: 10, color: order.map(k => colourOf(familyOf(data.networks[k]))), symbol: order.map(k => MARKS[Math.max(0, familyOf(data.networks[k])) % 10])},
      error_x: {type: "data", symmetric: false, array: own.map(o => o.high - o.rate), arrayminus: own.map(o => o.rate - o.low), thickness: 1.5, color: css("soft")}}],
    layout({width: wide, height: 80 + Math.max(16, Math.min(24, 900 / order.length)) * order.length, margin: {l: Math.min(220, wide * .42), r: 18, t: 8, b: 46}, xaxis: shares(wide, {range: [-.02, 1.04], title: {text: "share of inputs on which it is fooled", font: {size: 11}}}),
      yaxis: axis({tickvals: y, ticktext: order.map(k => plain(cut(NETS[data.networks[k]].short, 24)) + " "), range: [order.length - .5, -.5], tickfont: {size: order.length > 40 ? 9 : 11}})}), CONFIG);
    if (picture.dataset.ready) return;
    picture.dataset.ready = "1";
    picture.on("plotly_hover", e => { const o = own[e.points[0].y]; say([NETS[data.networks[order[e.points[0].y]]].name, `fooled on ${percent(o.rate)} [${percent(o.low)}, ${percent(o.high)}]`, `n = ${o.count} inputs it classifies correctly`, `accuracy ${percent(o.accuracy)}`], e.event.clientX, e.event.clientY); });
    picture.on("plotly_unhover", hush);
  });
  place.append(table(() => [["network", "rate", "low", "high", "inputs", "accuracy"], ...order.map(k => { const o = data.own[k]; return [NETS[data.networks[k]].name, o.rate, o.low, o.high, o.count, o.accuracy]; })]));
});
const listed = (title, lines, rows) => el("div", {}, el("h3", {}, title), el("ul", {class: "gaps"}, ...lines.map(line => el("li", {}, line))), table(() => rows.map(row => row.map(cell => cell === null ? NaN : cell))));
block("attacks", "picks", (place, data) => {
  const box = el("div", {class: "row"});
  if (data.ensemble) box.append(listed((data.ensemble.sure ? "An ensemble to pick: " : "An ensemble to try (not enough data to say that it beats random members): ") + data.ensemble.members.join(", "), data.ensemble.reasons, [["choice", ...data.ensemble.columns], ...data.ensemble.rows]));
  if (data.teacher) box.append(listed(`A teacher to try for ${data.teacher.student}: ${data.teacher.teacher}`, data.teacher.reasons, [["teacher", "similarity", "same family", "accuracy", "considered"], ...data.teacher.rows]));
  if (data.importance) box.append(listed("Which components explain attack transfer", [`R² ${num(data.importance.r2)}, on held-out pairs ${num(data.importance.r2_held_out)}`,
    ...data.importance.rows.slice(0, 5).map(row => `${row[0]}: R² drops by ${num(row[1])} if it is shuffled, on held-out pairs by ${num(row[2])}`)], [["component", "all pairs", "held out"], ...data.importance.rows]));
  place.append(box);
});
