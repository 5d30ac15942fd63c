// The pages: each asks the server and returns its title and its content.
import { address, ask, go, link, linked, make, objectPath, state, timeText } from "./app.js";
import { clusterPast, forecastPast, pastOf } from "./plots.js";

const MOST_ROWS = 200;

function cellText(value) {
  if (value === null || value === undefined || value === "") return "–";
  if (typeof value === "number") return Number.isInteger(value) ? value.toLocaleString("en") : String(+value.toPrecision(4));
  return String(value);
}

// A table of rows as maps. A column that is named as a kind leads to the pages of that kind.
function table(title, rows) {
  const heading = make("h2", {}, title, make("small", {}, ` ${rows.length}`));
  if (!rows.length) return make("section", {}, heading, make("p", { class: "none" }, "none"));
  const columns = Object.keys(rows[0]);
  const cell = (row, column, index) => {
    const kind = column.replaceAll(" ", "");
    const text = cellText(row[column]);
    const content = kind in state.span.kinds ? link(objectPath(kind, text), text) : typeof row[column] === "string" ? make("span", {}, ...linked(text)) : text;
    return make(index ? "td" : "th", { class: typeof row[column] === "number" ? "number" : undefined, scope: index ? undefined : "row" }, content);
  };
  const isNumber = (column) => rows.every((row) => row[column] === null || typeof row[column] === "number");
  const head = make("tr", {}, ...columns.map((column) => make("th", { scope: "col", class: isNumber(column) ? "number" : undefined }, column)));
  const body = rows.slice(0, MOST_ROWS).map((row) => make("tr", {}, ...columns.map((column, index) => cell(row, column, index))));
  const more = rows.length > MOST_ROWS ? make("p", { class: "none" }, `and ${rows.length - MOST_ROWS} more: find them by name`) : null;
  return make("section", {}, heading, make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": title }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...body))), more);
}

function decisionItem(decision) {
  const head = [make("time", { datetime: decision.at }, timeText(decision.at)), make("span", { class: "loop" }, decision.loop)];
  const text = make("span", {}, ...linked(decision.text), decision.inVain ? make("em", {}, " in vain") : null);
  if (!decision.why.length) return make("li", {}, make("div", { class: "plain" }, ...head, text));
  const why = make("ul", {}, ...decision.why.map((line) => make("li", {}, ...linked(line))));
  return make("li", {}, make("details", { "data-key": `${decision.at} ${decision.text}` }, make("summary", {}, ...head, text), why));
}

function decisionList(decisions) {
  if (!decisions.length) return make("p", { class: "none" }, "none");
  return make("ol", { class: "decisions" }, ...decisions.map(decisionItem));
}

function fact(label, value, path) {
  return make("div", {}, make("dt", {}, label), make("dd", {}, path ? link(path, value) : value));
}

export async function overviewPage() {
  const [status, past] = await Promise.all([ask("status", { at: state.at }), clusterPast()]);
  const groups = status.tables["node groups"] || [];
  const waiting = status.tables["waiting pods"] || [];
  const blocked = status.tables["nodes that go or are blocked"] || [];
  const hourly = groups.reduce((sum, group) => sum + (group["price/h"] || 0) * (group.size || 0), 0);
  const nodes = groups.reduce((sum, group) => sum + (group.ready || 0), 0);
  const facts = [
    fact("nodes ready", cellText(nodes)),
    fact("pods waiting", cellText(waiting.length)),
    fact("nodes blocked or going", cellText(blocked.length)),
    fact("cost an hour", hourly ? hourly.toFixed(3) : "–"),
    fact("cost a month (730 h)", hourly ? (hourly * 730).toFixed(0) : "–"),
  ];
  const loops = status.loops.map((loop) => ({
    loop: loop.name,
    "last tick": timeText(loop.lastTick),
    tick: loop.tick,
    run: loop.state,
    "decisions/h": loop.decisions,
    "in vain/h": loop.failures,
    "takes nothing away because": loop.holds.join("; "),
    "last in vain": loop.lastFailure,
  }));
  return {
    title: "Overview",
    content: [
      make("h1", {}, "Overview"),
      make("dl", { class: "facts" }, ...facts),
      past,
      ...Object.entries(status.tables).map(([title, rows]) => table(title, rows)),
      table("loops", loops),
      make("section", {}, make("h2", {}, "last decisions"), decisionList([...status.decisions].reverse()), make("p", {}, link("/decisions", "All decisions"))),
    ],
  };
}

export async function decisionsPage(parameters) {
  const q = parameters.get("q") || "";
  const loop = parameters.get("loop") || "";
  const found = await ask("decisions", { q, loop, until: state.at, limit: 200 });
  const words = make("input", { id: "words", type: "search", value: q, placeholder: "name or reason", autocomplete: "off" });
  const loops = make("select", { id: "of-loop" }, make("option", { value: "" }, "all loops"), ...Object.keys(state.span.decisions).map((name) => make("option", { value: name }, name)));
  loops.value = loop;
  const form = make("form", { class: "filters" }, make("label", { for: "words" }, "Words "), words, make("label", { for: "of-loop" }, "Loop "), loops, make("button", {}, "Show"));
  const again = (event) => {
    event?.preventDefault();
    go("/decisions", Object.fromEntries(Object.entries({ q: words.value.trim(), loop: loops.value }).filter(([, value]) => value)));
  };
  form.addEventListener("submit", again);
  loops.addEventListener("change", again);
  const shown = found.decisions.length < found.found ? `the newest ${found.decisions.length} of ${found.found}` : `${found.found}`;
  return { title: "Decisions", content: [make("h1", {}, "Decisions"), form, make("p", { class: "none" }, shown), decisionList(found.decisions)] };
}

export async function aheadPage(parameters) {
  const ahead = parameters.get("ahead") || "1h";
  const [found, past] = await Promise.all([ask("ahead", { ahead, at: state.at }), forecastPast()]);
  const choice = make("select", { id: "ahead" }, ...["15m", "1h", "6h", "24h", "168h"].map((one) => make("option", { value: one }, one)));
  choice.value = ahead;
  choice.addEventListener("change", () => go("/ahead", { ahead: choice.value }));
  const items = found.entries.map((entry) =>
    decisionItem({ at: entry.at, loop: entry.loop, text: `${entry.subject}: ${entry.text}`, why: entry.why ? [entry.why] : [], inVain: false }));
  const list = items.length ? make("ol", { class: "decisions" }, ...items) : make("p", { class: "none" }, `nothing until ${timeText(found.until)} UTC, as far as ${found.loops.join(", ")} know`);
  return { title: "Ahead", content: [make("h1", {}, "What is to come"), make("form", { class: "filters" }, make("label", { for: "ahead" }, "Look ahead "), choice), list, past].filter(Boolean) };
}

export async function objectsPage(parameters) {
  const q = (parameters.get("q") || "").toLowerCase();
  const sections = Object.entries(state.objects).map(([kind, names]) => {
    const found = names.filter((name) => name.toLowerCase().includes(q));
    const items = found.slice(0, MOST_ROWS).map((name) => make("li", {}, link(objectPath(kind, name), name)));
    const more = found.length > MOST_ROWS ? make("p", { class: "none" }, `and ${found.length - MOST_ROWS} more: find them by name`) : null;
    return make("section", {}, make("h2", {}, kind, make("small", {}, ` ${found.length}`)), make("ul", { class: "names" }, ...items), more);
  });
  return { title: "Objects", content: [make("h1", {}, q ? `Objects with “${q}”` : "Objects"), ...sections] };
}

export async function objectPage(kind, name, parameters) {
  const view = parameters.get("view") || "";
  const views = state.span.kinds[kind] || [];
  const [answer, decided, past] = await Promise.all([
    ask(`explain/${encodeURIComponent(kind)}/${name.split("/").map(encodeURIComponent).join("/")}`, { at: state.at, view }).catch((error) => ({ lines: [error.message] })),
    ask("decisions", { subject: name, until: state.at, limit: 50 }),
    view ? null : pastOf(kind, name),
  ]);
  const toggles = ["", ...views].map((one) => {
    const href = address(objectPath(kind, name), one ? { view: one } : {});
    return make("a", { href, "data-page": "", "aria-current": one === view ? "true" : undefined }, one || "why");
  });
  return {
    title: `${kind} ${name}`,
    content: [
      make("h1", {}, `${kind} `, make("b", {}, name)),
      views.length ? make("p", { class: "views" }, ...toggles) : null,
      make("section", {}, make("h2", {}, "Why"), explained(answer.lines)),
      past,
      make("section", {}, make("h2", {}, "Decisions about it", make("small", {}, ` ${decided.found}`)), decisionList(decided.decisions)),
    ].filter(Boolean),
  };
}

// The lines of an explanation, each as far to the right as it was written; its heading is the page's, and what was
// decided before stands in a list of its own.
function explained(lines) {
  const end = lines.indexOf("What was decided before:");
  const rows = lines.slice(lines.length > 1 ? 1 : 0, end < 0 ? undefined : end).filter((line) => line.trim()).map((line) => {
    const depth = Math.min(Math.floor(line.search(/\S|$/) / 2), 6);
    return make("div", { class: `depth-${depth}` }, ...linked(line.trim()));
  });
  return make("div", { class: "why" }, ...rows);
}
