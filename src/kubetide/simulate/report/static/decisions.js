// The list of decisions: filtered by text, loop and range; a row opens to its reasons.
const PAGE = 200;
let shownRows = PAGE;
let rowOfMark = new Map();

function fillLoops() {
  const loops = [...new Set(DATA.marks.map((mark) => mark.loop))].sort();
  document.getElementById("loop").append(...loops.map((loop) => make("option", { value: loop }, loop)));
}

function foundMarks() {
  const words = document.getElementById("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  const loop = document.getElementById("loop").value;
  const inView = document.getElementById("in-view").checked;
  return DATA.marks.filter((mark) => {
    if (loop && mark.loop !== loop) return false;
    if (inView && (mark.at < view.min || mark.at > view.max)) return false;
    const text = [mark.title, mark.subject, ...mark.why].join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

function listDecisions() {
  const found = foundMarks();
  rowOfMark = new Map();
  const rows = found.slice(0, shownRows).map(decisionRow);
  document.getElementById("decisions").replaceChildren(...rows);
  document.getElementById("found").textContent =
    found.length === DATA.marks.length ? `${numberText(found.length)}` : `${numberText(found.length)} of ${numberText(DATA.marks.length)}`;
  document.getElementById("more").hidden = found.length <= shownRows;
}

function decisionRow(mark) {
  const sign = make("span", { class: `sign ${SIGN_CLASS[mark.sign]}`, "aria-hidden": "true" }, DATA.arrows[mark.sign]);
  const button = make("button", { type: "button", "aria-expanded": "false" }, sign, mark.title);
  const why = whyList(mark);
  why.hidden = true;
  button.disabled = !mark.why.length;
  const open = (opened) => {
    button.setAttribute("aria-expanded", String(opened));
    why.hidden = !opened;
  };
  button.addEventListener("click", () => open(why.hidden));
  const row = make("tr", {}, make("td", {}, timeText(mark.at)), make("td", {}, mark.loop), make("td", {}, button, why));
  button.addEventListener("focus", () => pointAt(mark.at));
  row.addEventListener("mouseenter", () => pointAt(mark.at));
  rowOfMark.set(mark, { row, button, open });
  return row;
}

// Opens a decision in the list, clearing the filters if they hide it.
function showInList(mark) {
  let at = foundMarks().indexOf(mark);
  if (at < 0) {
    document.getElementById("find").value = "";
    document.getElementById("loop").value = "";
    document.getElementById("in-view").checked = false;
    at = DATA.marks.indexOf(mark);
  }
  shownRows = Math.max(shownRows, at + 1);
  listDecisions();
  const { row, button, open } = rowOfMark.get(mark);
  open(true);
  row.classList.add("at");
  row.scrollIntoView({ block: "center" });
  button.focus({ preventScroll: true });
}

function startList() {
  fillLoops();
  const again = () => {
    shownRows = PAGE;
    listDecisions();
  };
  for (const [id, event] of [["find", "input"], ["loop", "change"], ["in-view", "change"]]) {
    document.getElementById(id).addEventListener(event, again);
  }
  document.getElementById("more").addEventListener("click", () => {
    shownRows += PAGE;
    listDecisions();
  });
  viewListeners.push(() => {
    if (document.getElementById("in-view").checked) again();
  });
  listDecisions();
}
