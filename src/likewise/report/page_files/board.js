"use strict";
const { facts, tables } = JSON.parse(document.getElementById("data").textContent);
const get = (id) => document.getElementById(id);
const number = (value, digits) => (value === null ? "–" : value.toFixed(digits));
const COLUMNS = [
  ["#", (r) => r.place], ["measure", (r) => r.label.toLowerCase()], ["rank", (r) => r.rank], ["value", (r) => -(r.value ?? -9)],
  ["cells", (r) => -r.cells], ["undefined", (r) => r.undefined], ["cost (× CKA)", (r) => r.cost],
  ["ignores", (r) => r.ignores.join(" ")], ["symmetric", (r) => (r.symmetric ? 0 : 1)], ["family", (r) => r.family],
];
let sorted = 2, down = false;

function rows() {
  const table = tables[`${get("question").value} ${get("domain").value}`] || [];
  return table.map(([fact, label, rank, low, high, value, least, most, cells, undefined_], place) => (
    { ...facts[fact], place: place + 1, label, rank, low, high, value, least, most, cells, undefined: undefined_ }));
}

function cell(row, text, kind) {
  const td = row.insertCell();
  td.textContent = text;
  if (kind) td.className = kind;
  return td;
}

function add(parent, tag, text, kind) {
  const node = parent.appendChild(document.createElement(tag));
  node.textContent = text;
  if (kind) node.className = kind;
  return node;
}

function draw() {
  const all = rows(), last = all.length, words = get("filter").value.trim().toLowerCase();
  const shown = all.filter((r) => (!words || `${r.label} ${r.measure} ${r.family} ${r.submitter}`.toLowerCase().includes(words))
    && (!get("ignores").value || r.ignores.includes(get("ignores").value)) && (!get("submitted").checked || r.submitter));
  const key = COLUMNS[sorted][1];
  shown.sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : a.place - b.place) * (down ? -1 : 1));
  get("count").textContent = last ? `${shown.length} of ${last} measures` : "No measure has cells of this question in this domain.";
  const body = get("body");
  body.replaceChildren();
  for (const r of shown) {
    const row = body.insertRow();
    if (r.submitter) row.className = "own";
    cell(row, r.place, "number");
    const name = cell(row, r.label);
    name.title = `${r.source}; larger is ${r.direction}`;
    if (r.submitter) add(name, "span", `submitted by ${r.submitter}`, "badge");
    const rank = cell(row, number(r.rank, 1));
    add(rank, "span", ` [${number(r.low, 1)}, ${number(r.high, 1)}]`, "range");
    const bar = add(rank, "span", "", "bar"), across = (value) => `${(100 * (value - 1)) / Math.max(1, last - 1)}%`;
    const box = add(bar, "i", ""), line = add(bar, "b", "");
    box.style.left = across(r.low);
    box.style.width = `calc(${across(r.high)} - ${across(r.low)})`;
    line.style.left = across(r.rank);
    const value = cell(row, number(r.value, 2), "number");
    add(value, "span", ` [${number(r.least, 2)}, ${number(r.most, 2)}]`, "range");
    cell(row, r.cells, "number");
    cell(row, r.undefined, "number");
    cell(row, number(r.cost, 1), "number");
    cell(row, r.ignores.join(", ") || "–");
    cell(row, r.symmetric ? "yes" : "no");
    cell(row, r.family);
  }
  [...get("head").children].forEach((th, i) => th.setAttribute("aria-sort", i !== sorted ? "none" : down ? "descending" : "ascending"));
}

COLUMNS.forEach(([title], i) => {
  const th = add(get("head"), "th", "");
  add(th, "button", title).addEventListener("click", () => {
    down = sorted === i && !down;
    sorted = i;
    draw();
  });
});
for (const id of ["question", "domain", "ignores", "submitted"]) get(id).addEventListener("change", draw);
get("filter").addEventListener("input", draw);
draw();
