// The first screen: the map and the matrix that families were found in, side by side.
block("summary", "map", (place, data) => {
  const one = DATA.panels.map.maps[data.map], picture = el("div", {class: "chart"});
  place.append(picture);
  chart(() => drawMap(picture, one.mds, {wide: roomOf(place, 620), tall: Math.max(260, Math.min(380, roomOf(place, 620) * .75)), square: true}));
  place.append(el("p", {class: "caption"}, `Near is alike. Distances on the map differ from the true ones by ${percent(one.mds.stress)} (stress). `, described(measures[data.matrix], false)));
});
block("summary", "matrix", (place, data) => {
  const m = measures[data.matrix];
  heat(place, () => ({...similarities(m, orderOf(0, m), {tree: roomOf(place) > 420}), largest: 31}));
  if (data.map === null) place.append(el("p", {class: "caption"}, described(m, false)));
});
