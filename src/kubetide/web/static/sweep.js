// The settings of a sweep: cost against what was lost, and the cells behind the point that is chosen.
const FRAME = { width: 560, height: 340, left: 56, right: 16, top: 12, bottom: 40 };

// Round steps from below the smallest to above the largest value.
function ticksOf(values) {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const raw = (high - low || Math.abs(high) * 0.1 || 1) / 5;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= raw);
  const first = Math.floor(low / step);
  const last = Math.max(Math.ceil(high / step), first + 1);
  return Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step);
}

function scaleOf(ticks, from, to) {
  const [low, high] = [ticks[0], ticks[ticks.length - 1]];
  return (value) => from + ((value - low) / (high - low)) * (to - from);
}

function scatter(choose) {
  const placed = FILE.points.map((point, index) => ({ ...point, index })).filter((point) => point.cost !== null);
  if (!placed.length) return make("p", {}, "No setting has a result on every seed.");
  const { width, height, left, right, top, bottom } = FRAME;
  const costs = ticksOf(placed.map((point) => point.cost));
  const losses = ticksOf(placed.map((point) => point.lost));
  const x = scaleOf(costs, left, width - right);
  const y = scaleOf(losses, height - bottom, top);
  const middle = (top + height - bottom) / 2;
  const front = placed.filter((point) => point.front).sort((a, b) => a.cost - b.cost || a.lost - b.lost);
  const steps = front.map((point, index) => (index ? `H${x(point.cost)}V${y(point.lost)}` : `M${x(point.cost)} ${y(point.lost)}`));
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `Cost against ${FILE.criterion}, a point a setting` },
    ...costs.flatMap((cost) => [
      svg("line", { x1: x(cost), x2: x(cost), y1: top, y2: height - bottom, class: "grid" }),
      svg("text", { x: x(cost), y: height - bottom + 15, "text-anchor": "middle" }, axisText(cost)),
    ]),
    ...losses.flatMap((lost) => [
      svg("line", { x1: left, x2: width - right, y1: y(lost), y2: y(lost), class: "grid" }),
      svg("text", { x: left - 6, y: y(lost) + 4, "text-anchor": "end" }, axisText(lost)),
    ]),
    svg("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, `cost, ${FILE.currency}`),
    svg("text", { x: 12, y: middle, transform: `rotate(-90 12 ${middle})`, "text-anchor": "middle" }, FILE.criterion),
    svg("path", { d: steps.join(""), class: "front" }),
    ...placed.map((point) => dot(point, x(point.cost), y(point.lost), choose)));
}

function dot(point, cx, cy, choose) {
  const text = `${point.title}: cost ${numberText(point.cost)}, ${numberText(point.lost)} ${FILE.criterion}`;
  const attributes = { cx, cy, r: 5, tabindex: 0, role: "button", "aria-label": text, class: point.front ? "on-front" : "behind", "data-index": point.index };
  const made = svg("circle", attributes, svg("title", {}, text));
  made.addEventListener("click", () => choose(point.index));
  made.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    choose(point.index);
  });
  return made;
}

async function sweepPage() {
  const chosen = make("div", { id: "chosen", "aria-live": "polite" });
  const settings = cellTable("All settings", FILE.settings);
  settings.id = "settings";
  const rows = [...settings.querySelectorAll("tbody tr")];
  const choose = (index) => {
    const cells = cellTable(FILE.points[index].title, FILE.points[index].cells);
    cells.querySelector("h2").className = "name";
    chosen.replaceChildren(cells);
    for (const one of picture.querySelectorAll("circle")) one.classList.toggle("chosen", Number(one.dataset.index) === index);
    rows.forEach((row, at) => row.classList.toggle("at", at === index));
  };
  const picture = scatter(choose);
  rows.forEach((row, at) => row.addEventListener("click", () => choose(at)));
  const first = FILE.points.findIndex((point) => point.front);
  if (FILE.points.length) choose(Math.max(first, 0));
  const failed = FILE.failed.length ? make("section", {}, make("h2", {}, "Cells that failed"), make("ul", { id: "failed" }, ...FILE.failed.map((line) => make("li", {}, line)))) : null;
  const notes = [
    "Each point is the mean of a setting over its seeds; click one, or Tab to it and press Enter, for its cells.",
    `The line is the Pareto front (* in the table): no other setting costs as little and ${FILE.least}.`,
    "What a value does is the mean of all settings that have it. A setting with a failed cell is in neither.",
    "+- is the standard deviation over the seeds.",
  ];
  return {
    title: `sweep · ${FILE.name}`,
    content: [
      make("h1", {}, FILE.name),
      make("p", { class: "period" }, FILE.period),
      make("section", {}, make("h2", {}, `Cost against ${FILE.criterion}`), make("div", { class: "sides" }, make("div", { id: "scatter" }, picture), chosen)),
      cellTable("What each value does", FILE.effects),
      settings,
      failed,
      make("section", { class: "notes" }, make("h2", {}, "How to read this"), make("ul", {}, ...notes.map((note) => make("li", {}, note)))),
    ].filter(Boolean),
  };
}

for (const name of Object.keys(PAGES)) delete PAGES[name];
PAGES[""] = sweepPage;
start();
