// Two columns of words, and lines between them.

let shown = "";

function showTokens() {
  const wanted = `${state.kind} ${state.words}`;
  if (wanted === shown) return; // The keyboard's place is kept.
  shown = wanted;
  for (const side of ["queries", "keys"]) {
    const labels = side === "queries" ? queries() : keys();
    byId(side).replaceChildren(...labels.map((label, index) => element("li", {}, token(side, label, index))));
  }
}

function token(side, label, index) {
  const button = element("button", { type: "button", className: "token", tabIndex: index ? -1 : 0, title: label },
    element("span", { className: "word", textContent: label }), element("span", { className: "share" }));
  button.addEventListener("pointerenter", (event) => {
    if (event.pointerType !== "touch") point({ side, index });
  });
  button.addEventListener("pointerleave", () => point(null));
  button.addEventListener("click", () => pin({ side, index }));
  button.addEventListener("focus", () => {
    if (button.matches(":focus-visible")) { state.pin = { side, index }; refresh(); }
  });
  return button;
}

const same = (a, b) => a && b && a.side === b.side && a.index === b.index && a.key === b.key;

function point(at) {
  if (same(at, state.hover) || at === state.hover) return;
  state.hover = at;
  refresh();
}

function pin(at) {
  state.pin = same(at, state.pin) ? null : at;
  state.hover = null;
  refresh();
}

let waiting = false;
function refresh() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; draw(); });
}

function markTokens(at, average) {
  const other = at && (at.side === "queries" ? "keys" : "queries");
  const values = at && shares(average, at);
  for (const side of ["queries", "keys"]) {
    [...byId(side).children].forEach((item, index) => {
      const button = item.firstChild;
      const weight = side === other ? values[index] : 0;
      const isChosen = Boolean(at) && side === at.side && index === at.index;
      button.classList.toggle("chosen", isChosen);
      button.classList.toggle("lit", weight >= 0.005);
      button.classList.toggle("faint", Boolean(at) && !isChosen && weight < 0.005);
      button.setAttribute("aria-pressed", String(same(state.pin, { side, index }) || false));
      button.style.setProperty("--weight", Math.min(1, weight));
      button.lastChild.textContent = weight >= 0.005 ? percent(weight) : "";
      button.tabIndex = (state.pin?.side === side ? state.pin.index : 0) === index ? 0 : -1;
    });
  }
}

function fit(canvas, width, height) {
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.max(1, Math.round(height * scale));
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  return pen;
}

function drawThreads(at, average) {
  const canvas = byId("threads");
  const step = byId("queries").firstChild?.offsetHeight || 26;
  const width = canvas.clientWidth;
  const pen = fit(canvas, width, step * Math.max(queries().length, keys().length));
  pen.lineCap = "round";
  if (!at) {
    const [red, green, blue] = numbers("--thread");
    each(average, LEAST, (row, key, weight) =>
      thread(pen, width, (row + 0.5) * step, (key + 0.5) * step, weight, `rgba(${red}, ${green}, ${blue}, ${0.08 + 0.6 * weight})`));
    return;
  }
  const heads = chosenHeads();
  heads.forEach((head, place) => {
    const offset = (place - (heads.length - 1) / 2) * Math.min(2.4, (step - 8) / heads.length);
    pen.setLineDash(head < 8 ? [] : [5, 5]);
    shares(weights(state.layer, head), at).forEach((weight, index) => {
      if (weight < 0.01) return;
      const [row, key] = at.side === "queries" ? [at.index, index] : [index, at.index];
      pen.globalAlpha = 0.12 + 0.88 * weight;
      thread(pen, width, (row + 0.5) * step + offset, (key + 0.5) * step + offset, weight, color(head));
    });
  });
}

function each(matrix, least, visit) {
  const width = keys().length;
  matrix.forEach((weight, place) => { if (weight >= least) visit(Math.floor(place / width), place % width, weight); });
}

function thread(pen, width, from, to, weight, style) {
  pen.strokeStyle = style;
  pen.lineWidth = 0.6 + 5 * weight;
  pen.beginPath();
  pen.moveTo(4, from);
  pen.bezierCurveTo(width * 0.45, from, width * 0.55, to, width - 4, to);
  pen.stroke();
}
