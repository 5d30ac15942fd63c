// Plots of the past: step lines, drawn from /api/v1/history, with a cursor and the same numbers as a table.
import { ask, go, make, setTime, state, timeText } from "./app.js";

const WINDOWS = ["1h", "6h", "24h", "168h", "all"];
const MOST_SHOWN = 8;
const ROWS = 40;
const WIDTH = 1000;
const HEIGHT = 200;

function svg(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

export function numberText(value) {
  if (value === null || value === undefined) return "–";
  return Number.isInteger(value) ? value.toLocaleString("en") : String(+value.toPrecision(4));
}

function clock(seconds) {
  return timeText(new Date(seconds * 1000).toISOString());
}

// The value that holds at a time: that of the last point before it.
function valueAt(line, time) {
  let low = 0;
  let high = line.times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (line.times[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low ? line.values[low - 1] : null;
}

// A step line, broken where no value is known.
function path(line, x, y, end) {
  const parts = [];
  let drawing = false;
  line.times.forEach((time, index) => {
    const value = line.values[index];
    if (drawing) parts.push(`H${x(time)}`);
    if (value !== null) parts.push(drawing ? `V${y(value)}` : `M${x(time)} ${y(value)}`);
    drawing = value !== null;
  });
  if (drawing) parts.push(`H${x(end)}`);
  return parts.join("");
}

// A round number that is no less than the value, so that the scale does not jump with every tick.
function ceiling(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((one) => one * power).find((one) => one >= value * 0.9999);
}

function tableOf(title, lines, since, until) {
  const columns = ["time", ...lines.map((line) => line.label)];
  const rows = Array.from({ length: ROWS + 1 }, (_, index) => until - ((until - since) * index) / ROWS).map((time) =>
    make("tr", {}, make("th", { scope: "row" }, clock(time)), ...lines.map((line) => make("td", { class: "number" }, numberText(valueAt(line, time))))));
  const head = make("tr", {}, ...columns.map((column, index) => make("th", { scope: "col", class: index ? "number" : undefined }, column)));
  const holder = make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": `${title} as a table` });
  const details = make("details", { class: "numbers", "data-key": `numbers of ${title}` }, make("summary", {}, "as a table"), holder);
  const fill = () => details.open && !holder.firstChild && holder.append(make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)));
  details.addEventListener("toggle", fill);
  return details;
}

// One plot of some lines ({label, times, values}); the label of each stands under it with its last value.
export function plot(title, lines, past, { unit = "", key = title } = {}) {
  const since = Date.parse(past.since) / 1000;
  const until = Math.max(Date.parse(past.until) / 1000, since + 1);
  const shown = lines.slice(0, MOST_SHOWN);
  const top = ceiling(Math.max(...shown.flatMap((line) => line.values.map((value) => value ?? 0)), 0));
  const x = (time) => +(((Math.max(time, since) - since) / (until - since)) * WIDTH).toFixed(2);
  const y = (value) => +(HEIGHT - (value / top) * (HEIGHT - 8)).toFixed(2);
  const last = shown.map((line) => `${line.label} ${numberText(valueAt(line, until))}`).join(", ");
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  for (const share of [0, 0.5, 1]) picture.append(svg("line", { class: "grid", x1: 0, x2: WIDTH, y1: y(top * share), y2: y(top * share) }));
  shown.forEach((line, index) => picture.append(svg("path", { class: `line line-${index}`, d: path(line, x, y, until) })));
  const cursor = svg("line", { class: "cursor", x1: -1, x2: -1, y1: 0, y2: HEIGHT });
  picture.append(cursor);
  const legend = shown.map((line, index) => {
    const value = make("b", {}, numberText(valueAt(line, until)));
    const sample = svg("svg", { viewBox: "0 0 24 8", class: "sample", "aria-hidden": "true" });
    sample.append(svg("path", { class: `line line-${index}`, d: "M0 4H24" }));
    return { line, value, entry: make("li", {}, sample, `${line.label} `, value) };
  });
  const when = make("output", { class: "when" }, clock(until));
  const frame = make("div", {
    class: "frame", id: `plot-${key.replaceAll(/[^A-Za-z0-9]+/g, "-")}`, tabindex: "0", role: "slider",
    "aria-label": `${title}: time`, "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": "100", "aria-valuetext": `${clock(until)}: ${last}`,
  }, picture, make("span", { class: "top" }, `${numberText(top)}${unit}`), make("span", { class: "bottom" }, "0"));
  let share = 1;
  const point = (to) => {
    share = Math.min(Math.max(to, 0), 1);
    const time = since + share * (until - since);
    cursor.setAttribute("x1", share * WIDTH);
    cursor.setAttribute("x2", share * WIDTH);
    when.textContent = clock(time);
    for (const { line, value } of legend) value.textContent = numberText(valueAt(line, time));
    frame.setAttribute("aria-valuenow", String(Math.round(share * 100)));
    frame.setAttribute("aria-valuetext", `${clock(time)}: ${shown.map((line) => `${line.label} ${numberText(valueAt(line, time))}`).join(", ")}`);
  };
  const under = (event) => {
    const box = frame.getBoundingClientRect();
    return (event.clientX - box.left) / box.width;
  };
  const choose = () => setTime(new Date((since + share * (until - since)) * 1000).toISOString().slice(0, 19) + "Z");
  frame.addEventListener("pointermove", (event) => point(under(event)));
  frame.addEventListener("pointerleave", () => point(1));
  frame.addEventListener("click", (event) => {
    point(under(event));
    choose();
  });
  frame.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: share - 0.01, ArrowRight: share + 0.01, PageUp: share + 0.1, PageDown: share - 0.1, Home: 0, End: 1 }[event.key];
    if (to !== undefined) point(to);
    else if (event.key === "Enter") choose();
    else return;
    event.preventDefault();
  });
  const more = lines.length > shown.length ? make("p", { class: "none" }, `and ${lines.length - shown.length} more lines in the table`) : null;
  return make("figure", { class: "plot" },
    make("figcaption", {}, make("h3", {}, title), when),
    frame,
    make("div", { class: "ends" }, make("span", {}, clock(since)), make("span", {}, clock(until))),
    make("ul", { class: "legend" }, ...legend.map(({ entry }) => entry)), more, tableOf(title, lines, since, until));
}

function chosenWindow() {
  const wanted = new URL(location.href).searchParams.get("window");
  return WINDOWS.includes(wanted) ? wanted : "24h";
}

function windowChoice() {
  const choice = make("select", { id: "window" }, ...WINDOWS.map((one) => make("option", { value: one }, one)));
  choice.value = chosenWindow();
  choice.addEventListener("change", () => {
    const parameters = Object.fromEntries([...new URL(location.href).searchParams].filter(([name]) => name !== "at"));
    go(location.pathname, { ...parameters, window: choice.value });
  });
  return make("span", { class: "window" }, make("label", { for: "window" }, "Window "), choice);
}

function askPast(parameters) {
  const window = chosenWindow();
  return ask("history", { ...parameters, at: state.at, window: window === "all" ? "" : window });
}

function section(past, plots, title = "The past") {
  const content = past.kept ? make("div", { class: "plots" }, ...plots) : make("p", { class: "none" }, "These records hold no figures: an older version wrote them.");
  return make("section", { class: "past" }, make("h2", {}, title), windowChoice(), content);
}

const named = (past, figure, label = figure) => past.lines.filter((line) => line.figure === figure).map((line) => ({ ...line, label }));

export async function clusterPast() {
  const [cluster, ready] = await Promise.all([askPast({ kind: "cluster" }), askPast({ kind: "nodegroup", figure: "ready" })]);
  const groups = ready.lines.map((line) => ({ ...line, label: line.name })).sort((one, other) => Math.max(...other.values) - Math.max(...one.values));
  return section(cluster, [
    plot("Pods", named(cluster, "pods"), cluster),
    plot("Pods waiting for a node", named(cluster, "pending", "waiting"), cluster),
    plot("Nodes ready by group", groups, ready),
    plot("Cost an hour", named(cluster, "cost", "cost/h"), cluster),
  ]);
}

export async function groupPast(name) {
  const [past, cluster] = await Promise.all([askPast({ kind: "nodegroup", name }), askPast({ kind: "cluster", figure: "pending" })]);
  const sizes = [...named(past, "ready"), ...named(past, "target"), ...named(past, "upcoming"), ...named(past, "max"), ...named(past, "min")];
  return section(past, [plot("Nodes", sizes, past), plot("Pods waiting for a node, of the cluster", named(cluster, "pending", "waiting"), cluster)]);
}

export async function hpaPast(name) {
  const kinds = ["hpa", "metric", "forecast"];
  const [past, metrics, forecasts] = await Promise.all(kinds.map((kind) => askPast({ kind, name })));
  const replicas = [...named(past, "ready", "ready pods"), ...named(past, "wanted"), ...named(past, "replicas", "spec.replicas"), ...named(past, "max"), ...named(past, "min")];
  const of = [...new Set(metrics.lines.map((line) => line.name))].map((metric) => {
    const lines = metrics.lines.filter((line) => line.name === metric);
    const both = ["value", "target"].flatMap((figure) => lines.filter((line) => line.figure === figure).map((line) => ({ ...line, label: figure })));
    return plot(metric.slice(name.length + 1), both, metrics, { key: metric });
  });
  const foretold = forecasts.lines.length ? [plot("Load in pods", [...named(forecasts, "came"), ...named(forecasts, "foretold")], forecasts)] : [];
  return section(past, [plot("Replicas", replicas, past), ...of, ...foretold]);
}

// What was foretold, against what came; null where nothing asks for forecasts.
export async function forecastPast() {
  const past = await askPast({ kind: "forecast" });
  const names = [...new Set(past.lines.map((line) => line.name))].slice(0, MOST_SHOWN);
  if (!names.length) return null;
  return section(past, names.map((name) => {
    const lines = past.lines.filter((line) => line.name === name);
    const both = ["came", "foretold"].flatMap((figure) => lines.filter((line) => line.figure === figure).map((line) => ({ ...line, label: figure })));
    return plot(`${name}: load in pods`, both, past);
  }), "What was foretold, and what came");
}

// The plots of a page, where it has any.
export function pastOf(kind, name) {
  if (kind === "hpa") return hpaPast(name);
  if (kind === "nodegroup") return groupPast(name);
  return null;
}
