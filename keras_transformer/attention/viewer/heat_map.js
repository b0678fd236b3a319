// The heat map of the chosen heads, and all heads as small ones.

const styleOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const numbers = (name) => styleOf(name).split(",").map(Number);
let layout = null;

function shades() {
  const stops = ["--low", "--middle", "--high"].map(numbers);
  return (share) => {
    const [from, to] = share < 0.5 ? [stops[0], stops[1]] : [stops[1], stops[2]];
    const part = share < 0.5 ? 2 * share : 2 * share - 1;
    return from.map((start, index) => Math.round(start + part * (to[index] - start)));
  };
}

function drawMap(at, average) {
  const canvas = byId("grid");
  const pen = canvas.getContext("2d");
  const font = `13px ${getComputedStyle(document.body).fontFamily}`;
  pen.font = font;
  const longest = (labels) => Math.min(130, Math.max(...labels.map((label) => pen.measureText(label).width)) + 14);
  const left = longest(queries());
  const top = longest(keys());
  const room = byId("map").clientWidth - 22;
  const cell = Math.max(15, Math.min(36, Math.floor((room - left) / keys().length)));
  layout = { left, top, cell };
  const [width, height] = [left + cell * keys().length + 2, top + cell * queries().length + 2];
  const again = fit(canvas, width, height);
  canvas.style.width = `${width}px`;
  const most = Math.max(0.01, ...average);
  const shade = shades();
  each(average, 0, (row, key, weight) => {
    again.fillStyle = `rgb(${shade(weight / most).join()})`;
    again.fillRect(left + key * cell, top + row * cell, cell, cell);
  });
  frameMap(again, font, at);
  byId("most").textContent = percent(most);
  canvas.setAttribute("aria-label", `Heat map of ${queries().length} by ${keys().length} words; arrow keys move about in it.`);
}

function frameMap(pen, font, at) {
  const { left, top, cell } = layout;
  const [ink, soft, accent] = ["--ink", "--soft", "--accent"].map(styleOf);
  pen.strokeStyle = styleOf("--edge");
  pen.strokeRect(left - 0.5, top - 0.5, cell * keys().length + 1, cell * queries().length + 1);
  pen.textBaseline = "middle";
  queries().forEach((label, row) => {
    pen.font = at?.index === row ? `bold ${font}` : font;
    pen.fillStyle = at?.index === row ? accent : at ? soft : ink;
    pen.textAlign = "right";
    pen.fillText(shortened(pen, label, left - 10), left - 6, top + (row + 0.5) * cell);
  });
  keys().forEach((label, key) => {
    pen.save();
    pen.font = at?.key === key ? `bold ${font}` : font;
    pen.fillStyle = at?.key === key ? accent : at ? soft : ink;
    pen.translate(left + (key + 0.5) * cell, top - 6);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = "left";
    pen.fillText(shortened(pen, label, top - 10), 0, 0);
    pen.restore();
  });
  if (at?.key === undefined) return;
  pen.strokeStyle = accent;
  pen.lineWidth = 2;
  pen.strokeRect(left + at.key * cell, top + at.index * cell, cell, cell);
}

function shortened(pen, label, width) {
  if (pen.measureText(label).width <= width) return label;
  let end = label.length;
  while (end > 1 && pen.measureText(`${label.slice(0, end)}…`).width > width) end -= 1;
  return `${label.slice(0, end)}…`;
}

function cellAt(event) {
  const box = byId("grid").getBoundingClientRect();
  const key = Math.floor((event.clientX - box.left - layout.left) / layout.cell);
  const index = Math.floor((event.clientY - box.top - layout.top) / layout.cell);
  const isInside = key >= 0 && key < keys().length && index >= 0 && index < queries().length;
  return isInside ? { side: "queries", index, key } : null;
}

byId("grid").addEventListener("pointermove", (event) => { if (event.pointerType !== "touch") point(cellAt(event)); });
byId("grid").addEventListener("pointerleave", () => point(null));
byId("grid").addEventListener("click", (event) => { const at = cellAt(event); if (at) pin(at); });

// All heads, small.

function showAll() {
  const buttons = [];
  for (let layer = 0; layer < kind().layers; layer += 1) for (const head of everyHead()) buttons.push(thumbnail(layer, head));
  byId("all").style.gridTemplateColumns = `repeat(${kind().heads}, minmax(2.4rem, 8.5rem))`;
  byId("all").replaceChildren(...buttons);
}

function thumbnail(layer, head) {
  const canvas = element("canvas", { width: keys().length, height: queries().length });
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(canvas.width, canvas.height);
  const shade = shades();
  weights(layer, head).forEach((weight, place) => image.data.set([...shade(Math.sqrt(weight)), 255], 4 * place));
  pen.putImageData(image, 0, 0);
  const name = `Layer ${layer + 1}, head ${head + 1}`;
  const button = element("button", { type: "button", title: name }, canvas, document.createTextNode(`${layer + 1}.${head + 1}`));
  button.setAttribute("aria-label", name);
  button.classList.toggle("chosen", layer === state.layer && state.heads.has(head));
  button.addEventListener("click", () => keepingPlace(() => Object.assign(state, { layer, heads: new Set([head]), view: "lines" })));
  return button;
}
