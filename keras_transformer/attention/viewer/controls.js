// The controls above the picture.

function choice(group, label, checked, onChoose, hint) {
  const input = element("input", { type: "radio", name: group, checked });
  input.addEventListener("change", onChoose);
  if (hint) input.title = hint;
  return element("label", {}, input, element("span", { textContent: label }));
}

function showControls() {
  byId("kinds").replaceChildren(...data.kinds.map((one, index) =>
    choice("kind", one.title, index === state.kind, () => chooseKind(index), one.hint)));
  byId("layers").replaceChildren(...Array.from({ length: kind().layers }, (_, index) =>
    choice("layer", String(index + 1), index === state.layer, () => chooseLayer(index))));
  byId("views").replaceChildren(...VIEWS.map(([view, label]) => choice("view", label, view === state.view, () => chooseView(view))));
  const chips = Array.from({ length: kind().heads }, (_, head) => headChip(head));
  const all = element("button", { type: "button", textContent: "All", id: "all-heads" });
  all.addEventListener("click", () => chooseHeads(everyHead()));
  byId("heads").replaceChildren(...chips, ...(chips.length > 1 ? [all] : []));
  byId("pieces").hidden = !hasPieces;
  byId("join").checked = state.words;
  byId("hint").textContent = kind().hint;
}

function headChip(head) {
  const input = element("input", { type: "checkbox", checked: state.heads.has(head), value: head });
  const chip = element("label", { className: "chip", title: "Twice: this head alone" }, input, element("span", { textContent: head + 1 }));
  chip.style.setProperty("--head", color(head));
  input.addEventListener("change", () => {
    if (input.checked) state.heads.add(head); else state.heads.delete(head);
    show();
  });
  chip.addEventListener("dblclick", () => chooseHeads([head]));
  return chip;
}

const everyHead = () => Array.from({ length: kind().heads }, (_, head) => head);

// A new set of buttons must not lose the keyboard's place.
function keepingPlace(change) {
  const { name } = document.activeElement ?? {};
  change();
  showControls();
  if (name) document.querySelector(`input[name="${name}"]:checked`)?.focus();
  show();
}

function chooseKind(index) {
  if (index >= data.kinds.length) return;
  keepingPlace(() => {
    const wereAll = state.heads.size === kind().heads;
    Object.assign(state, { kind: index, hover: null, pin: null });
    state.layer = Math.min(state.layer, kind().layers - 1);
    state.heads = new Set(wereAll ? everyHead() : chosenHeads().filter((head) => head < kind().heads));
    if (!state.heads.size) state.heads = new Set(everyHead());
  });
}

function chooseLayer(index) {
  if (index >= 0 && index < kind().layers) keepingPlace(() => { state.layer = index; });
}

function chooseHeads(heads) {
  keepingPlace(() => { state.heads = new Set(heads); });
}

function chooseView(view) {
  keepingPlace(() => { Object.assign(state, { view, hover: null }); });
}

function chooseWords(words) {
  if (hasPieces) keepingPlace(() => { Object.assign(state, { words, hover: null, pin: null }); });
}
