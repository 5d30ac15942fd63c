// What every page does: its data, tables of cells, the toolbar over the plots.
const DATA = JSON.parse(document.getElementById("kubetide-data").textContent);

function cellsTable(cells) {
  const head = make("tr", {}, ...cells.columns.map((column) => make("th", { scope: "col" }, column)));
  const rows = cells.rows.map(([name, ...values]) =>
    make("tr", {}, make("th", { scope: "row" }, name), ...values.map((value) => make("td", {}, value))));
  return make("div", {}, make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)));
}

function showCursorTime(seconds) {
  document.getElementById("cursor-time").textContent = seconds === null ? "end of the run" : timeText(seconds);
}

function showRange() {
  const whole = wholeRun();
  const isWhole = view.min <= whole.min && view.max >= whole.max;
  document.getElementById("whole-run").disabled = isWhole;
  document.getElementById("hint").hidden = !isWhole;
  document.getElementById("range").textContent = isWhole ? "" : `${timeText(view.min)} to ${timeText(view.max)}`;
}

// Shows a page that has been filled.
function showPage() {
  viewListeners.push(showRange);
  startList();
  showWholeRun();
  pointAt(null);
  document.getElementById("whole-run").addEventListener("click", showWholeRun);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawPlots);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) redrawPlots();
    width = innerWidth;
  });
  addEventListener("scroll", placeTip, { passive: true });
  document.documentElement.dataset.ready = "true";
}
