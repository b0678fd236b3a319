// What is said in words, and everything together.

function say(at, average) {
  const heads = chosenHeads();
  const who = heads.length === kind().heads && heads.length > 1 ? `all ${heads.length} heads` : heads.length === 1 ? `head ${heads[0] + 1}` : `heads ${heads.map((head) => head + 1).join(", ")}`;
  const where = `Layer ${state.layer + 1}, ${who}`;
  if (!heads.length) return "No head is chosen.";
  if (!at) return `${where}. Point at a word, tap it, or use the arrow keys to see where it looks.`;
  const label = at.side === "queries" ? queries()[at.index] : keys()[at.index];
  if (at.key !== undefined) {
    const place = at.index * keys().length + at.key;
    const each = heads.length > 1 ? ` (${heads.map((head) => `${head + 1}: ${percent(weights(state.layer, head)[place])}`).join(", ")})` : "";
    return `${where}: “${label}” gives “${keys()[at.key]}” ${percent(average[place])}${each}.`;
  }
  const others = at.side === "queries" ? keys() : queries();
  const best = [...shares(average, at)].map((weight, index) => ({ weight, index })).sort((a, b) => b.weight - a.weight);
  const list = best.slice(0, 5).filter((one) => one.weight >= 0.005).map((one) => `${others[one.index]} ${percent(one.weight)}`).join(", ");
  return `${where}: “${label}” ${at.side === "queries" ? "looks at" : "is looked at by"} ${list || "nothing"}.`;
}

function draw() {
  const average = mean();
  const at = focus();
  byId("says").textContent = say(at, average);
  if (state.view === "lines") { markTokens(at, average); drawThreads(at, average); }
  if (state.view === "map") drawMap(at, average);
}

function show() {
  for (const [view] of VIEWS) byId(view).hidden = view !== state.view;
  if (state.view === "lines") {
    showTokens();
    if (state.pin) delete state.pin.key;
  }
  if (state.view === "all") showAll();
  draw();
}

// The keyboard.

function move(down, right) {
  const map = state.view === "map";
  const at = { side: "queries", ...(state.pin ?? { index: down < 0 ? queries().length : -1, ...(map && { key: 0 }) }) };
  if (map) {
    at.side = "queries";
    at.key = clamp((at.key ?? 0) + right, keys().length);
  } else if (right) {
    at.side = right > 0 ? "keys" : "queries";
  }
  at.index = clamp(at.index + down, (at.side === "queries" ? queries() : keys()).length);
  Object.assign(state, { pin: at, hover: null });
  if (map) byId("grid").focus(); else byId(at.side).children[at.index].firstChild.focus({ preventScroll: false });
  refresh();
}

const clamp = (index, count) => Math.max(0, Math.min(count - 1, index));
const nextView = () => VIEWS[(VIEWS.findIndex(([view]) => view === state.view) + 1) % VIEWS.length][0];
const letters = {
  e: () => chooseKind(0), d: () => chooseKind(1), c: () => chooseKind(2),
  n: () => chooseLayer(state.layer + 1), p: () => chooseLayer(state.layer - 1),
  v: () => chooseView(nextView()), w: () => chooseWords(!state.words), 0: () => chooseHeads(everyHead()),
  escape: () => { Object.assign(state, { pin: null, hover: null }); document.activeElement?.blur(); refresh(); },
};
const arrows = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] };

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isChoice = event.target.matches?.("input[type=radio]");
  const key = event.key.toLowerCase();
  if (arrows[event.key] && !isChoice && state.view !== "all") {
    event.preventDefault();
    move(...arrows[event.key]);
  } else if (letters[key]) {
    letters[key]();
  } else if (/^[1-9]$/.test(key) && Number(key) <= kind().heads) {
    chooseHeads([Number(key) - 1]);
  }
});

// The beginning.

byId("title").textContent = data.title;
byId("source").textContent = data.source;
byId("target").textContent = data.target;
byId("join").addEventListener("change", (event) => chooseWords(event.target.checked));
byId("controls").addEventListener("submit", (event) => event.preventDefault());
dark.addEventListener("change", () => { showControls(); show(); });
new ResizeObserver(refresh).observe(document.body);
state.heads = new Set(everyHead());
showControls();
show();
