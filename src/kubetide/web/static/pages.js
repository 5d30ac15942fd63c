// The pages: each asks the server and returns its title and its content.

const MOST_ROWS = 200;

function cellText(value) {
  if (value === null || value === undefined || value === "") return "–";
  return typeof value === "number" ? numberText(value) : String(value);
}

const NUMBER = /^[<+-]?[\d,]*\d(\.\d+)?%?([-–][\d,.]+)?( \([+-][\d,.]+%\))?$|^[-–]?$/;
const isNumber = (value) => value === null || typeof value === "number" || (typeof value === "string" && NUMBER.test(value));

// Whether a column is one of numbers, of which it has at least one.
const areNumbers = (values) => values.every(isNumber) && values.some((value) => /\d/.test(String(value)));

// A table of rows as maps.
function table(title, rows) {
  const columns = Object.keys(rows[0] || {});
  return cellTable(title, { columns, rows: rows.map((row) => columns.map((column) => row[column])) });
}

const TITLES = { hpas: "HPAs", vpas: "VPAs" };

// A table of cells. A column that is named as a kind leads to the pages of that kind.
function cellTable(title, { columns, rows }) {
  const heading = make("h2", {}, TITLES[title] || title, make("small", {}, ` ${rows.length}`));
  if (!rows.length) return make("section", {}, heading, make("p", { class: "none" }, "None"));
  const numbers = columns.map((_, index) => index > 0 && areNumbers(rows.map((row) => row[index])));
  const cell = (value, index) => {
    const kind = columns[index].replaceAll(" ", "");
    const text = cellText(value);
    const leads = state.span && kind in state.span.kinds && (!FILE || kindOf(text, [kind]));
    const content = columns[index] === "pods of" ? link("/objects", text, {}, { q: text }) : leads ? link(objectPath(kind, text), text) : typeof value === "string" ? make("span", {}, ...linked(text)) : text;
    const sort = numbers[index] ? "number" : value === null || value === undefined || value === "" ? "empty" : undefined;
    return make(index ? "td" : "th", { class: sort, scope: index ? undefined : "row", "data-column": columns[index] }, content);
  };
  const hasText = numbers.includes(false, 1);
  const head = make("tr", {}, ...columns.map((column, index) => make("th", { scope: "col", class: numbers[index] ? "number" : undefined }, KIND_WORDS[column] || column)));
  const body = rows.slice(0, MOST_ROWS).map((row) => make("tr", {}, ...row.map(cell)));
  const more = rows.length > MOST_ROWS ? make("p", { class: "none" }, `and ${rows.length - MOST_ROWS} more: find them by name`) : null;
  return make("section", {}, heading, make("div", { class: hasText ? "wide texts" : "wide", tabindex: "0", role: "region", "aria-label": title }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...body))), more);
}

function decisionItem(decision, open = "") {
  const head = [make("time", { datetime: decision.at }, atLink(decision.at)), make("span", { class: "loop" }, decision.loop)];
  const text = make("span", { class: "said" }, ...linked(decision.text), decision.inVain ? make("em", {}, " in vain") : null);
  if (!decision.why.length) return make("li", {}, make("div", { class: "plain" }, ...head, text));
  const why = make("ul", {}, ...decision.why.map((line) => make("li", {}, ...linked(line))));
  return make("li", {}, make("details", { "data-key": `${decision.at} ${decision.text}`, open: decision.at === open ? "" : undefined }, make("summary", {}, ...head, text), why));
}

function decisionList(decisions, open) {
  if (!decisions.length) return make("p", { class: "none" }, "None");
  return make("ol", { class: "decisions" }, ...decisions.map((one) => decisionItem(one, open)));
}

function fact(label, value, path) {
  return make("div", {}, make("dt", {}, label), make("dd", {}, path ? link(path, value) : value));
}

async function overviewPage() {
  const outcome = await outcomeOf();
  if (!state.span) return { title: outcome.title, content: [make("h1", {}, outcome.title), ...outcome.content] };
  const [status, { past, cluster, ready, isSimulated }, coming] = await Promise.all([ask("status", { at: state.at }), clusterPast(outcome.currency), comingSoon()]);
  const groups = status.tables["node groups"] || [];
  const waiting = status.tables["waiting pods"] || [];
  const blocked = status.tables["nodes that go or are blocked"];
  const until = epoch(cluster.until);
  const figure = (name) => named(cluster, name).map((line) => valueAt(line, until))[0] ?? null;
  const hourly = figure("cost") ?? groups.reduce((sum, group) => sum + (group["price/h"] || 0) * (group.size || 0), 0);
  const counts = ready.lines.length ? ready.lines.map((line) => valueAt(line, until)) : groups.map((group) => group.ready);
  const currency = outcome.currency ? ` ${outcome.currency}` : "";
  const facts = [
    fact("nodes ready", numberText(counts.reduce((sum, count) => sum + (count || 0), 0))),
    fact("pods waiting", numberText(figure("pending") ?? waiting.reduce((sum, row) => sum + row.count, 0))),
    fact("nodes blocked or going", blocked ? numberText(blocked.length) : "–"),
    fact("cost an hour", hourly ? `${hourly.toFixed(3)}${currency}` : "–"),
    fact("cost a month (730 h)", hourly ? `${numberText(Math.round(hourly * 730))}${currency}` : "–"),
  ];
  const loops = loopRows(status);
  const atEnd = FILE && state.at ? make("p", { class: "none" }, ...linked("This page is a file: its tables are of the end of the run alone. `kubetide ui` has them at any time.")) : null;
  return {
    title: outcome.title,
    content: [
      make("h1", {}, outcome.title),
      ...outcome.content,
      make("section", {}, make("h2", {}, state.at ? `At ${timeText(state.at)} UTC` : state.span.running ? "Now" : "At the end"), make("ul", { class: "answer" }, ...status.answer.map((one) => make("li", {}, ...linked(one)))), make("dl", { class: "facts" }, ...facts)),
      coming,
      past,
      atEnd,
      ...Object.entries(status.tables).map(([title, rows]) => table(title, rows)),
      loops.length ? table("loops", loops) : null,
      loops.length && !isSimulated ? make("p", {}, link("/loops", "How long their ticks take, and what they ask of the API server")) : null,
      make("section", {}, make("h2", {}, "Last decisions"), decisionList([...status.decisions].reverse()), make("p", {}, link("/decisions", "All decisions"))),
      ...outcome.notes,
    ].filter(Boolean),
  };
}

function loopRows(status) {
  return status.loops.map((loop) => ({
    loop: loop.name,
    "last tick": timeText(loop.lastTick),
    tick: loop.tick,
    run: loop.state,
    "decisions/h": loop.decisions,
    "in vain/h": loop.failures,
    "takes nothing away because": loop.holds.join("; "),
    "last in vain": loop.lastFailure && `${timeText(loop.lastFailureAt)} ${loop.lastFailure}`,
  }));
}

const MOST_COMING = 5;

// What is to come within the hour; null where nothing is known, as in a file of any time but its end.
async function comingSoon() {
  // The page of what is to come says why it is not known.
  const { entries } = await ask("ahead", { ahead: "1h", at: state.at }).catch(() => ({ entries: [] }));
  if (!entries.length) return null;
  const more = entries.length - MOST_COMING;
  const all = link("/ahead", more > 0 ? `and ${numberText(more)} more` : "All that is to come");
  return make("section", { id: "coming" }, make("h2", {}, "In the next hour"), comingList(entries.slice(0, MOST_COMING)), make("p", {}, all));
}

function comingList(entries) {
  return make("ol", { class: "decisions" }, ...entries.map((entry) =>
    decisionItem({ at: entry.at, loop: entry.loop, text: `${entry.subject}: ${entry.text}`, why: entry.why ? [entry.why] : [], inVain: false })));
}

// What a simulation came to, once it has ended.
async function outcomeOf() {
  const { cells, summary } = await ask("summary");
  const currency = summary?.currency || "";
  if (!cells) return { title: "Overview", content: [], notes: [] };
  const notices = cells.notices.length ? make("section", {}, make("h2", {}, "notices"), make("ul", { class: "notices" }, ...cells.notices.map((one) => make("li", {}, ...linked(one))))) : null;
  const tables = [["services", cells.services], ["node groups over the run", cells.groups]].filter(([, one]) => one.rows.length);
  return {
    title: cells.name,
    currency,
    content: [
      make("p", { class: "period" }, cells.period),
      make("h2", {}, "The whole run"),
      make("dl", { class: "facts outcome" }, ...cells.facts.flat().map(([label, value]) => fact(label, MONEY.has(label) ? `${value} ${currency}` : value))),
      make("div", { class: "outcome" }, ...tables.map(([title, one]) => cellTable(title, one))),
      notices,
    ].filter(Boolean),
    notes: [make("section", { class: "notes" }, make("h2", {}, "How to read this"), make("ul", {}, ...NOTES.map((one) => make("li", {}, one))))],
  };
}

// Of a summary, beside its cost: amounts in its currency.
const MONEY = new Set(["minimum sizes", "without scaling", "lower bound"]);

const NOTES = [
  "Capacity is what the ready pods can serve. A service's plot is shaded where it missed its objective; an SLO minute is lost when at least one step of it did. At the load's own step, each value of the trace is compared with the capacity: a second of a burst counts that the mean of a step hides.",
  "Pod-minutes count pods from their creation. Unserved is the share of requests above the ready capacity; slack is the share of the CPU that ready pods asked for and that no request needed.",
  "Without scaling: every node group at its largest size of the run, all the time. Lower bound: at each step the dearest of CPU, memory, GPUs and places for pods, as pods asked for them, at the cheapest price of any group; no packing of the same pods costs less. Cost over bound: the cost, divided by that bound.",
  "Plots have the figures that the records keep, tick by tick; the summary is made from every step. Marks over a plot are decisions: ▲ more, ▼ less, ◆ both, or neither. All times are UTC.",
];

async function decisionsPage(parameters) {
  const q = parameters.get("q") || "";
  const loop = parameters.get("loop") || "";
  const skip = Number(parameters.get("skip")) || 0;
  const found = await ask("decisions", { q, loop, until: state.at, limit: MOST_ROWS, skip });
  const words = make("input", { id: "words", type: "search", value: q, placeholder: "name or reason", autocomplete: "off" });
  const loops = make("select", { id: "of-loop" }, make("option", { value: "" }, "all loops"), ...Object.keys(state.span.decisions).map((name) => make("option", { value: name }, name)));
  loops.value = loop;
  const form = make("form", { class: "filters" }, make("label", { for: "words" }, "Words "), words, make("label", { for: "of-loop" }, "Loop "), loops, make("button", {}, "Show"));
  const chosen = () => ({ q: words.value.trim(), loop: loops.value });
  const again = (event) => {
    event?.preventDefault();
    go("/decisions", chosen());
  };
  form.addEventListener("submit", again);
  loops.addEventListener("change", again);
  const { length } = found.decisions;
  const left = found.found - skip - length;
  const which = skip ? `${numberText(skip + 1)} to ${numberText(skip + length)}, newest first, of` : `the newest ${numberText(length)} of`;
  const all = `${numberText(found.found)} ${found.found === 1 ? "decision" : "decisions"}`;
  const shown = left > 0 || skip ? `${which} ${all}` : all;
  const older = left > 0 ? make("p", {}, link("/decisions", "Older ones", { id: "older" }, { ...chosen(), ...olderThan(found.decisions, skip) })) : null;
  const without = FILE?.leftOut ? make("p", { class: "none" }, `${numberText(FILE.leftOut)} earlier decisions are not in this page; the decision records hold them.`) : null;
  return { title: "Decisions", content: [make("h1", {}, "Decisions"), form, make("p", { class: "none", id: "found" }, shown), decisionList(found.decisions, parameters.get("open")), older, without].filter(Boolean) };
}

// The place behind these decisions: the second of the last one, and how many of that second were shown.
function olderThan(decisions, skip) {
  const { at } = decisions.at(-1);
  const there = decisions.filter((one) => one.at === at).length;
  return { at, skip: there === decisions.length && at === state.at ? there + skip : there };
}

async function aheadPage(parameters) {
  const ahead = parameters.get("ahead") || "1h";
  const [found, past] = await Promise.all([ask("ahead", { ahead, at: state.at }), forecastPast()]);
  const choice = make("select", { id: "ahead" }, ...["15m", "1h", "6h", "24h", "168h"].map((one) => make("option", { value: one }, one)));
  choice.value = ahead;
  choice.addEventListener("change", () => go("/ahead", { ahead: choice.value }));
  const list = found.entries.length ? comingList(found.entries) : make("p", { class: "none" }, `Nothing is known to come until ${timeText(found.until)} UTC. Changes of time tables, forecast load and nodes that were asked for would stand here, as far as these loops know of them: ${found.loops.join(", ")}.`);
  return { title: "Ahead", content: [make("h1", {}, "What is to come"), make("form", { class: "filters" }, make("label", { for: "ahead" }, "Look ahead "), choice), list, past].filter(Boolean) };
}

async function objectsPage(parameters) {
  const q = (parameters.get("q") || "").toLowerCase();
  const sections = Object.entries(state.objects).map(([kind, names]) => {
    const found = names.filter((name) => name.toLowerCase().includes(q));
    const items = found.slice(0, MOST_ROWS).map((name) => make("li", {}, link(objectPath(kind, name), name)));
    const more = found.length > MOST_ROWS ? make("p", { class: "none" }, `and ${found.length - MOST_ROWS} more: find them by name`) : null;
    return found.length ? make("section", {}, make("h2", {}, kindsText(kind), make("small", {}, ` ${numberText(found.length)}`)), make("ul", { class: "names" }, ...items), more) : null;
  }).filter(Boolean);
  const none = q ? `No name has “${q}” in it at this time.` : "There are no objects at this time.";
  return { title: "Objects", content: [make("h1", {}, q ? `Objects with “${q}”` : "Objects"), ...(sections.length ? sections : [make("p", { class: "none" }, none)])] };
}

async function objectPage(kind, name, parameters) {
  const view = parameters.get("view") || "";
  const views = (!FILE && state.span.kinds[kind]) || [];
  const [answer, decided, past] = await Promise.all([
    ask(`explain/${encodeURIComponent(kind)}/${name.split("/").map(encodeURIComponent).join("/")}`, { at: state.at, view }).catch((error) => ({ lines: [onPage(error.message)] })),
    ask("decisions", { subject: name, loop: LOOPS[kind], until: state.at, limit: 50 }),
    view ? null : pastOf(kind, name),
  ]);
  const toggles = ["", ...views].map((one) => {
    const href = address(objectPath(kind, name), one ? { view: one } : {});
    return make("a", { href, "data-page": "", "aria-current": one === view ? "true" : undefined }, VIEWS[one] || one);
  });
  return {
    title: `${kindText(kind)} ${name}`,
    content: [
      make("h1", { class: "object" }, `${kindText(kind)} `, make("b", {}, name)),
      views.length ? make("p", { class: "views" }, ...toggles) : null,
      make("section", {}, make("h2", {}, VIEWS[view] || view), explained(answer.lines)),
      past,
      make("section", {}, make("h2", {}, "Decisions about it", make("small", {}, ` ${decided.found}`)), decisionList(decided.decisions)),
    ].filter(Boolean),
  };
}

// An error that names an option of the command line, in words of the page.
const onPage = (text) => text.replace("--at chooses another time", "the slider chooses another time").replace("with --at", "with the slider");

const VIEWS = { "": "Why", nodes: "By node" };

const BAR_WIDTH = 40;

// A bucket of a histogram, which the text draws with characters.
function barLine(end, share, marks, percentiles) {
  const picture = svg("svg", { viewBox: `0 0 ${BAR_WIDTH} 1`, preserveAspectRatio: "none", "aria-hidden": "true" }, svg("rect", { width: marks.length, height: 1 }));
  return make("div", { class: "bar" }, make("span", {}, `up to ${end}`), make("span", { class: "number" }, share), picture, make("span", {}, percentiles.replace("<- ", "")));
}

// The lines of an explanation, each as far to the right as it was written; its heading is the page's, and what was
// decided before stands in a list of its own.
function explained(lines) {
  const end = lines.indexOf("What was decided before:");
  const rows = lines.slice(lines.length > 1 ? 1 : 0, end < 0 ? undefined : end).filter((line) => line.trim()).map((line) => {
    const depth = Math.min(Math.floor(line.search(/\S|$/) / 2), 6);
    const bar = /^ +up to +(\S+) +([\d.]+%) (#*) *(.*)$/.exec(line);
    return bar ? barLine(...bar.slice(1)) : make("div", { class: `depth-${depth}` }, ...linked(line.trim()));
  });
  return make("div", { class: "why" }, ...rows);
}
