// Plots: step lines over time under one cursor, with marks of decisions over them and the same numbers as a table.
const MOST_SHOWN = 8;
const ROWS = 40;
const WIDTH = 1000;
const HEIGHT = 200;
const DRAG = 0.02; // of the width: less is a click
const pointers = new WeakMap(); // of each plot's frame: its span, and what moves its cursor

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

// Where a line is above 0, as rectangles of the plot's height.
function shades(line, x, end) {
  return line.times.flatMap((time, index) => {
    const width = x(line.times[index + 1] ?? end) - x(time);
    return line.values[index] > 0 ? [svg("rect", { class: "missed", x: x(time), y: 0, width: Math.max(width, 1), height: HEIGHT })] : [];
  });
}

// A round number that is no less than the value, so that the scale does not jump with every tick.
function ceiling(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((one) => one * power).find((one) => one >= value * 0.9999);
}

function numbersOf(title, lines, since, until) {
  const columns = ["time", ...lines.map((line) => line.label)];
  const rows = () => Array.from({ length: ROWS + 1 }, (_, index) => until - ((until - since) * index) / ROWS).map((time) =>
    make("tr", {}, make("th", { scope: "row" }, atLink(instant(time))), ...lines.map((line) => make("td", { class: "number" }, numberText(valueAt(line, time))))));
  const head = make("tr", {}, ...columns.map((column, index) => make("th", { scope: "col", class: index ? "number" : undefined }, column)));
  const holder = make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": `${title} as a table` });
  const details = make("details", { class: "numbers", "data-key": `numbers of ${title}` }, make("summary", {}, "as a table"), holder);
  details.addEventListener("toggle", () => details.open && !holder.firstChild && holder.append(make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows()))));
  return details;
}

// The end of a time, without its day where that is the day of its beginning.
const endText = (since, until) => (clock(since).slice(0, 10) === clock(until).slice(0, 10) ? clock(until).slice(11) : clock(until));

// A time that leads to itself: the page as it was then.
function atLink(at) {
  const url = here();
  return link(url.pathname, timeText(at), { class: "at" }, { ...asked(url), at });
}

// One plot of some lines ({label, times, values}); the label of each stands under it with its last value.
// ``marks`` are decisions, ``missed`` is a line that shades the plot where it is above 0.
function plot(title, lines, past, { key = title, marks = [], missed = null } = {}) {
  const since = epoch(past.since);
  const until = Math.max(epoch(past.until), since + 1);
  const shown = lines.slice(0, MOST_SHOWN);
  const top = ceiling(shown.reduce((most, line) => line.values.reduce((one, value) => Math.max(one, value ?? 0), most), 0));
  const x = (time) => +(((Math.min(Math.max(time, since), until) - since) / (until - since)) * WIDTH).toFixed(1);
  const y = (value) => +(HEIGHT - 1 - (Math.max(value, 0) / top) * (HEIGHT - 2)).toFixed(1);
  const cursor = svg("line", { class: "cursor", x1: -1, x2: -1, y1: 0, y2: HEIGHT });
  const chosen = svg("rect", { class: "chosen", x: 0, y: 0, width: 0, height: HEIGHT });
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    ...(missed ? shades(missed, x, until) : []),
    ...[0, 0.5, 1].map((share) => svg("line", { class: "grid", x1: 0, x2: WIDTH, y1: y(top * share), y2: y(top * share) })),
    ...shown.map((line, index) => svg("path", { class: `line line-${index}`, d: path(line, x, y, until) })), chosen, cursor);
  const legend = shown.map((line, index) => {
    const value = make("b", {}, numberText(valueAt(line, until)));
    const sample = svg("svg", { viewBox: "0 0 24 8", class: "sample", "aria-hidden": "true" }, svg("path", { class: `line line-${index}`, d: "M0 4H24" }));
    return { line, value, entry: make("li", {}, sample, `${line.label} `, value) };
  });
  const when = make("output", { class: "when" }, clock(until));
  const valuesAt = (time) => shown.map((line) => `${line.label} ${numberText(valueAt(line, time))}`).join(", ");
  const frame = make("div", {
    class: "frame", id: `plot-${key.replaceAll(/[^A-Za-z0-9]+/g, "-")}`, tabindex: "0", role: "slider",
    "aria-label": `${title}: time`, "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": "100", "aria-valuetext": `${clock(until)}: ${valuesAt(until)}`,
  }, picture, make("span", { class: "top" }, axisText(top)), make("span", { class: "bottom" }, "0"));
  let share = 1;
  const point = (to) => {
    share = Math.min(Math.max(to, 0), 1);
    const time = since + share * (until - since);
    for (const name of ["x1", "x2"]) cursor.setAttribute(name, share * WIDTH);
    when.textContent = clock(time);
    for (const { line, value } of legend) value.textContent = numberText(valueAt(line, time));
    frame.setAttribute("aria-valuenow", String(Math.round(share * 100)));
    frame.setAttribute("aria-valuetext", `${clock(time)}: ${valuesAt(time)}`);
  };
  pointers.set(frame, { since, until, point });
  chosenByPointer(frame, chosen, since, until);
  frame.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: share - 0.01, ArrowRight: share + 0.01, PageUp: share + 0.1, PageDown: share - 0.1, Home: 0, End: 1 }[event.key];
    if (to !== undefined) pointAll(since, until, to);
    else if (event.key === "Enter") setTime(instant(since + share * (until - since)));
    else return;
    event.preventDefault();
  });
  const more = lines.length > shown.length ? make("p", { class: "none" }, `and ${lines.length - shown.length} more lines in the table`) : null;
  return make("figure", { class: "plot" },
    make("figcaption", {}, make("h3", {}, title), when),
    markLane(title, marks, since, until, (time) => pointAll(since, until, (time - since) / (until - since))), frame,
    make("div", { class: "ends" }, make("time", { datetime: instant(since) }, clock(since)), make("time", { datetime: instant(until) }, endText(since, until))),
    make("ul", { class: "legend" }, ...legend.map(({ entry }) => entry), missed ? make("li", {}, make("i", { class: "missed" }), "objective missed") : null),
    more, numbersOf(title, lines, since, until));
}

// Moves the cursors of all plots of the same time.
function pointAll(since, until, share) {
  for (const frame of document.querySelectorAll(".frame")) {
    const one = pointers.get(frame);
    if (one.since === since && one.until === until) one.point(share);
  }
}

// A click takes the page to a time; a drag shows the time between its ends.
function chosenByPointer(frame, chosen, since, until) {
  let from = null;
  const under = (event) => {
    const box = frame.getBoundingClientRect();
    return Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
  };
  const select = (one, other) => {
    chosen.setAttribute("x", Math.min(one, other) * WIDTH);
    chosen.setAttribute("width", Math.abs(one - other) * WIDTH);
  };
  frame.addEventListener("pointerdown", (event) => {
    from = under(event);
    frame.setPointerCapture(event.pointerId);
  });
  frame.addEventListener("pointermove", (event) => {
    pointAll(since, until, under(event));
    if (from !== null) select(from, under(event));
  });
  frame.addEventListener("pointerup", (event) => {
    if (from === null) return;
    const [begin, end] = [from, under(event)].sort((one, other) => one - other);
    from = null;
    select(0, 0);
    const length = Math.round((end - begin) * (until - since));
    if (end - begin < DRAG || length < 1) setTime(instant(since + end * (until - since)));
    else showSpan(instant(since + end * (until - since)), `${length}s`);
  });
  frame.addEventListener("pointercancel", () => {
    from = null;
    select(0, 0);
  });
  frame.addEventListener("pointerleave", () => pointAll(since, until, 1));
}
