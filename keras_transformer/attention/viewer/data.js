// What is shown, and the numbers behind it.

// Told apart with every kind of colour vision; numbered as well. After eight heads they begin again, dashed.
const COLORS = {
  light: ["#0072b2", "#d55e00", "#00805c", "#b8478f", "#b47b00", "#3a9ad9", "#6b4fbb", "#555555"],
  dark: ["#56b4e9", "#ff8a4c", "#2cc79a", "#e59ac8", "#f0b429", "#a5d8ff", "#b9a4f5", "#bbbbbb"],
};
const VIEWS = [["lines", "Lines"], ["map", "Heat map"], ["all", "All heads"]];
const LEAST = 0.04; // Weights below it are not drawn as long as no word is chosen.

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const state = { kind: data.kinds.length - 1, layer: 0, heads: new Set(), view: "lines", words: false, hover: null, pin: null };
const cached = new Map();

function element(name, options = {}, ...children) {
  const made = Object.assign(document.createElement(name), options);
  made.append(...children);
  return made;
}

for (const kind of data.kinds) {
  kind.bytes = Uint8Array.from(atob(kind.weights), (one) => one.charCodeAt(0));
  kind.hasPieces = [kind.queries, kind.keys].some((side) => side.groups.length < side.labels.length);
}
const hasPieces = data.kinds.some((kind) => kind.hasPieces);

const kind = () => data.kinds[state.kind];
const names = (side) => (state.words ? side.words : side.labels);
const queries = () => names(kind().queries);
const keys = () => names(kind().keys);
const chosenHeads = () => [...state.heads].sort((a, b) => a - b);
const focus = () => state.hover ?? state.pin;
const percent = (weight) => `${Math.round(100 * weight)}%`;
const color = (head) => COLORS[dark.matches ? "dark" : "light"][head % 8];

// The weights of a head as numbers from 0 to 1, row after row; with whole words, summed over keys and averaged over queries.
function weights(layer, head) {
  const name = [state.kind, layer, head, state.words].join();
  if (!cached.has(name)) cached.set(name, state.words ? joined(plain(layer, head)) : plain(layer, head));
  return cached.get(name);
}

function plain(layer, head) {
  const size = kind().queries.labels.length * kind().keys.labels.length;
  const start = (layer * kind().heads + head) * size;
  return Float32Array.from(kind().bytes.subarray(start, start + size), (step) => step / 255);
}

function joined(all) {
  const width = kind().keys.labels.length;
  const rows = kind().queries.groups.map((rowGroup) =>
    kind().keys.groups.map((keyGroup) => {
      let sum = 0;
      for (const row of rowGroup) for (const key of keyGroup) sum += all[row * width + key];
      return sum / rowGroup.length;
    }));
  return Float32Array.from(rows.flat());
}

function mean() {
  const heads = chosenHeads();
  const all = heads.map((head) => weights(state.layer, head));
  const size = queries().length * keys().length;
  return Float32Array.from({ length: size }, (_, place) => all.reduce((sum, one) => sum + one[place], 0) / Math.max(1, heads.length));
}

// What a focused word has to do with each word of the other side, in a matrix.
function shares(matrix, at) {
  const width = keys().length;
  if (at.side === "queries") return matrix.slice(at.index * width, (at.index + 1) * width);
  return Float32Array.from({ length: queries().length }, (_, row) => matrix[row * width + at.index]);
}
