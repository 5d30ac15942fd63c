// The settings of a sweep: cost against SLO minutes, and the cells behind the point that is chosen.
const SVG = "http://www.w3.org/2000/svg";
const FRAME = { width: 560, height: 340, left: 56, right: 16, top: 12, bottom: 40 };

function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

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

function drawScatter() {
  const placed = DATA.points.map((point, index) => ({ ...point, index })).filter((point) => point.cost !== null);
  const parent = document.getElementById("scatter");
  if (!placed.length) {
    parent.append(make("p", {}, "No setting has a result on every seed."));
    return;
  }
  const { width, height, left, right, top, bottom } = FRAME;
  const costs = ticksOf(placed.map((point) => point.cost));
  const losses = ticksOf(placed.map((point) => point.lost));
  const x = scaleOf(costs, left, width - right);
  const y = scaleOf(losses, height - bottom, top);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Cost against SLO minutes, a point a setting" });
  for (const cost of costs) {
    svg.append(draw("line", { x1: x(cost), x2: x(cost), y1: top, y2: height - bottom, class: "grid" }));
    svg.append(draw("text", { x: x(cost), y: height - bottom + 15, "text-anchor": "middle" }, axisText(cost)));
  }
  for (const lost of losses) {
    svg.append(draw("line", { x1: left, x2: width - right, y1: y(lost), y2: y(lost), class: "grid" }));
    svg.append(draw("text", { x: left - 6, y: y(lost) + 4, "text-anchor": "end" }, axisText(lost)));
  }
  svg.append(draw("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, `cost, ${DATA.currency}`));
  svg.append(draw("text", { x: 12, y: (top + height - bottom) / 2, transform: `rotate(-90 12 ${(top + height - bottom) / 2})`, "text-anchor": "middle" }, "SLO minutes lost"));
  const front = placed.filter((point) => point.front).sort((a, b) => a.cost - b.cost || a.lost - b.lost);
  const path = front.map((point, index) => (index ? `H${x(point.cost)}V${y(point.lost)}` : `M${x(point.cost)} ${y(point.lost)}`));
  svg.append(draw("path", { d: path.join(""), class: "front" }));
  for (const point of placed) {
    const text = `${point.title}: cost ${numberText(point.cost)}, ${numberText(point.lost)} SLO minutes`;
    const dot = draw("circle", { cx: x(point.cost), cy: y(point.lost), r: 5, tabindex: 0, role: "button", "aria-label": text, class: point.front ? "on-front" : "behind", "data-index": point.index }, draw("title", {}, text));
    dot.addEventListener("click", () => choose(point.index));
    dot.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose(point.index);
    });
    svg.append(dot);
  }
  parent.append(svg);
}

function choose(index) {
  const point = DATA.points[index];
  document.getElementById("chosen-title").textContent = point.title;
  document.getElementById("chosen").replaceChildren(cellsTable(point.cells));
  for (const dot of document.querySelectorAll("#scatter circle")) dot.classList.toggle("chosen", Number(dot.dataset.index) === index);
  document.querySelectorAll("#settings tbody tr").forEach((row, at) => row.classList.toggle("at", at === index));
}

function fillSweep() {
  document.getElementById("name").textContent = DATA.name;
  document.getElementById("period").textContent = DATA.period;
  document.getElementById("settings").append(cellsTable(DATA.settings));
  document.getElementById("effects").append(cellsTable(DATA.effects));
  document.querySelectorAll("#settings tbody tr").forEach((row, at) => row.addEventListener("click", () => choose(at)));
  document.getElementById("failed-section").hidden = !DATA.failed.length;
  document.getElementById("failed").append(...DATA.failed.map((line) => make("li", {}, line)));
  const notes = [
    "Each point is the mean of a setting over its seeds; click one, or Tab to it and press Enter, for its cells.",
    "The line is the Pareto front (* in the table): no other setting costs as little and loses as few SLO minutes.",
    "What a value does is the mean of all settings that have it. A setting with a failed cell is in neither.",
    "+- is the standard deviation over the seeds.",
  ];
  document.getElementById("notes").append(...notes.map((note) => make("li", {}, note)));
  const first = DATA.points.findIndex((point) => point.front);
  if (DATA.points.length) choose(Math.max(first, 0));
}

drawScatter();
fillSweep();
document.documentElement.dataset.ready = "true";
