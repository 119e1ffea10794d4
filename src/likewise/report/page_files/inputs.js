// Inputs that two networks see differently, as pictures or texts with both answers.
block("inputs", "inputs", (place, data) => {
  const sets = data.sets.map(set => ({...set, rows: unpack(set.rows), values: unpack(set.values)}));
  const options = sets.flatMap((set, s) => set.measures.map((m, k) => [s, k, m]));
  const now = {option: 0}, cards = el("div", {class: "cards"}), line = el("p", {class: "readout"});
  const names = set => set.networks.map(i => NETS[i].name);
  const picks = [0, 1].map(side => choice(side ? "and" : "Networks", NETS.map(net => net.name), k => {
    const pair = [...chosen.pair]; pair[side] = k; if (pair[0] !== pair[1]) pickPair(...pair); }, side));
  place.append(controls(choice("Measure", options.map(o => o[2].label), k => { now.option = k; draw(); }), ...picks), line, cards);
  const entries = () => {
    const [s, k] = options[now.option], set = sets[s], size = set.networks.length;
    const [a, b] = chosen.pair.map(i => set.networks.indexOf(i));
    if (a < 0 || b < 0 || a === b) return [];
    const at = (k * size + a) * size + b;
    return Array.from({length: set.kept}, (_, r) => [set.rows.at(at, r), set.values.at(at, r)]).filter(e => e[0] >= 0)
      .map(([row, value]) => ({row: Math.round(row), value, truth: set.labels[Math.round(row)], answers: [a, b].map(n => set.answers[Math.round(row)][n]), set}));
  };
  const numbers = table(() => [["input", "value", "true class", NETS[chosen.pair[0]].name, NETS[chosen.pair[1]].name], ...entries().map(e => [e.row, e.value, e.truth, ...e.answers])]);
  const draw = () => {
    picks.forEach((pick, side) => pick.set(chosen.pair[side]));
    const found = entries(), [, , m] = options[now.option];
    line.textContent = found.length ? (m.left_out ? `What ${m.label} gains or loses by each input, the worst first:` : `${m.label} of each input, the lowest first:`)
      : "This pair has no score by this measure.";
    cards.replaceChildren(...found.map(e => {
      const picture = e.set.pictures[e.row], text = e.set.texts[e.row];
      const shown = picture ? [el("img", {src: picture, alt: `input ${e.row}${e.truth ? ", " + e.truth : ""}`})] : text === undefined ? [] : [el("p", {}, text)];
      const answers = e.answers.map((answer, side) => el("div", {}, `${cut(NETS[chosen.pair[side]].short, 24)}: ${answer || "–"}${answer && e.truth ? (answer === e.truth ? " ✓" : " ✗") : ""}`));
      return el("div", {class: text === undefined ? "card" : "card text"}, ...shown, el("b", {}, `input ${e.row}`), e.truth ? ` is ${e.truth}` : "", el("div", {}, num(e.value)), ...answers);
    }));
  };
  chosen.listeners.push(draw);
  place.append(numbers);
  draw();
});
