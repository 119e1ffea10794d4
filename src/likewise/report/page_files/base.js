"use strict";
const DATA = JSON.parse(document.getElementById("data").textContent);
const NETS = DATA.networks, SCALE = ["#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"];
const SPREAD = ["#8c510a", "#d8b365", "#f6e8c3", "#f5f5f5", "#c7eae5", "#5ab4ac", "#01665e"];
const COLOURS = DATA.colours, SIGNS = [...DATA.signs];  // of families
const MARKS = ["circle", "square", "diamond", "triangle-up", "cross", "star", "pentagon", "hexagon", "triangle-down", "x"];

// Names become text nodes, or pass `plain` on their way into Plotly, which reads tags in labels: never markup.
const plain = text => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const el = (tag, facts = {}, ...inner) => {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(facts))
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "class") made.className = value;
    else if (value !== false && value !== null) made.setAttribute(key, value);
  made.append(...inner.map(part => part instanceof Node ? part : document.createTextNode(part)));
  return made;
};
const unpack = pack => {
  if (!pack) return null;
  const bytes = Uint8Array.from(atob(pack.u2 ?? pack.f4), letter => letter.charCodeAt(0));
  const whole = pack.u2 === undefined ? new Float32Array(bytes.buffer) : new Uint16Array(bytes.buffer);
  const values = pack.u2 === undefined ? Float64Array.from(whole)
    : Float64Array.from(whole, v => v === 65535 ? NaN : pack.low + v / 65534 * (pack.high - pack.low));
  const [rows, columns = 1] = pack.shape;
  return {values, rows, columns, at: (i, j) => values[i * columns + j]};
};
const num = (value, digits = 3) => value === null || value === undefined || Number.isNaN(value) ? "–"
  : Math.abs(value) >= 1e5 || (value !== 0 && Math.abs(value) < 1e-4) ? value.toExponential(2) : String(Number(value.toPrecision(digits)));
const percent = value => value === null || Number.isNaN(value) ? "–" : num(100 * value) + " %";
const cut = (text, most) => text.length <= most ? text : text.slice(0, Math.ceil(most * .6) - 1) + "…" + text.slice(text.length - Math.floor(most * .4));
const css = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const familyOf = i => NETS[i].family;
const colourOf = label => label < 0 ? "#888888" : COLOURS[label % COLOURS.length];

// Blocks are drawn when they come into sight, and again where the width or the colours change.
const blocks = [];
const drawn = new Map();
function block(panel, name, draw) {
  const place = document.querySelector(`[data-panel="${panel}"][data-block="${name}"]`);
  const data = panel === "summary" ? DATA.summary : DATA.panels[panel];
  if (!place || !data) return;
  blocks.push(place);
  drawn.set(place, {draw, width: 0, start: () => { draw(place, data); }});
}
// Tables follow every selector: whatever is changed on the page, those that are open are written anew.
const tables = [];
const refresh = () => tables.forEach(made => made.refresh());
const printing = () => document.body.classList.contains("print");
const roomOf = (place, most = 1000) => Math.max(200, Math.min(place.clientWidth || 600, printing() ? (place.parentElement?.classList.contains("pictures") && place.parentElement.childElementCount > 1 ? 312 : 640) : most));
const watch = new IntersectionObserver(seen => seen.forEach(each => each.isIntersecting && start(each.target)), {rootMargin: "600px"});
function start(place) {
  const known = drawn.get(place);
  if (known.begun) return;
  known.begun = true;
  known.start();
  if (place.querySelector(".chart:not([hidden])") && place.dataset.panel !== "summary") place.append(saveButton(place));
}
// Pictures for a paper: every chart of a block as a file of vectors, black on white whatever the page looks like.
function saveButton(place) {
  const done = el("span", {role: "status"});
  const save = async () => {
    const shown = [...place.querySelectorAll(".js-plotly-plot")].filter(picture => !picture.hidden);
    for (const [k, picture] of shown.entries()) {
      const link = el("a", {href: await asSvg(picture), download: `${place.dataset.panel}-${place.dataset.block}${shown.length > 1 ? `-${k + 1}` : ""}.svg`});
      document.body.append(link); link.click(); link.remove();
    }
    done.textContent = ` saved ${shown.length === 1 ? "one file" : shown.length + " files"}`;
  };
  return el("p", {class: "save"}, el("button", {type: "button", onclick: save}, "Save as SVG"), done);
}
const asSvg = picture => Plotly.toImage({data: picture.data, layout: {...picture.layout, paper_bgcolor: "#ffffff", font: {...picture.layout.font, color: "#000000"}}, config: CONFIG},
  {format: "svg", width: picture.layout.width, height: picture.layout.height});
const charts = [];  // functions that draw a chart anew
let charted = 0;
const redraw = () => charts.forEach(chart => chart());
function chart(draw) { charts.push(draw); draw(); return draw; }
addEventListener("resize", () => { clearTimeout(charted); charted = setTimeout(redraw, 150); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
addEventListener("beforeprint", () => { blocks.forEach(start); document.body.classList.add("print"); redraw(); });
addEventListener("afterprint", () => { document.body.classList.remove("print"); redraw(); });

const tip = document.getElementById("tip");
function say(lines, x, y) {
  tip.textContent = lines.join("\n");
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 8)) + "px";
  tip.style.top = Math.max(4, y + 18 + box.height > innerHeight ? y - box.height - 12 : y + 18) + "px";
}
const hush = () => { tip.hidden = true; };
addEventListener("scroll", hush, {passive: true});
addEventListener("keydown", event => event.key === "Escape" && hush());

function choice(label, options, change, chosen = 0) {
  const select = el("select", {onchange: () => { change(Number(select.value)); refresh(); }, "aria-label": label},
    ...options.map((text, i) => el("option", i === chosen ? {value: i, selected: ""} : {value: i}, text)));
  const made = el("label", {}, label, select);
  made.set = i => { select.value = i; };
  return made;
}
const controls = (...parts) => el("div", {class: "controls"}, ...parts);

// A table behind a toggle, made when it is opened, that can be copied as CSV.
function table(rows, summary = "The numbers as a table") {
  const box = el("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": summary});
  const done = el("span", {role: "status"});
  const quote = cell => /[",\n]/.test(cell) ? '"' + cell.replaceAll('"', '""') + '"' : cell;
  const text = () => rows().map(row => row.map(cell => quote(typeof cell === "number" ? (Number.isNaN(cell) ? "" : String(cell)) : String(cell))).join(",")).join("\n");
  const copy = el("button", {type: "button", onclick: async () => {
    const area = el("textarea", {"aria-hidden": "true"});
    area.value = text(); document.body.append(area); area.select();
    let copied = document.execCommand("copy");
    area.remove();
    if (!copied && navigator.clipboard) copied = await navigator.clipboard.writeText(text()).then(() => true, () => false);
    done.textContent = copied ? " copied" : " could not be copied";
  }}, "Copy as CSV");
  const fill = () => {
    const [head, ...body] = rows();
    box.replaceChildren(el("table", {}, el("thead", {}, el("tr", {}, ...head.map(cell => el("th", {scope: "col"}, String(cell))))),
      el("tbody", {}, ...body.slice(0, 3000).map(row => el("tr", {}, ...row.map(cell =>
        typeof cell === "number" ? el("td", {class: "number"}, num(cell, 4)) : el("td", {}, cell)))))));
  };
  const made = el("details", {ontoggle: () => made.open && fill()}, el("summary", {}, summary), copy, done, box);
  made.refresh = () => made.open && fill();
  tables.push(made);
  return made;
}
const legend = () => !DATA.families.length ? el("span") : el("div", {class: "legend", "aria-label": "Families"},
  ...DATA.families.map((family, i) => {
    const sign = el("span", {"aria-hidden": "true"}, SIGNS[i % 10] + " ");
    sign.style.color = colourOf(i);
    const words = family.keywords.length && family.members > 1 ? ": " + family.keywords.slice(0, 3).join(", ") : "";
    const title = family.members > 1 ? `family ${i + 1} (${family.members})` : `${NETS.find(net => net.family === i).short} alone`;
    return el("span", {}, sign, title + words);
  }));
const layout = more => ({paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: {color: css("ink"), size: 12,
  family: "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"}, showlegend: false, dragmode: false, hovermode: "closest", ...more});
const axis = more => ({fixedrange: true, zeroline: false, gridcolor: css("line"), linecolor: css("line"), tickcolor: css("line"), ...more});
// An axis of shares: as many ticks as stay level.
const shares = (wide, more) => axis({tickformat: ".0%", tickangle: 0, tickvals: wide < 420 ? [0, .5, 1] : [0, .2, .4, .6, .8, 1], ...more});
const CONFIG = {displayModeBar: false, responsive: false};
