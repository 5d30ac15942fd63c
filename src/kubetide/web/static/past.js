// Which plots a page has: of the cluster, a node group, an HPA, the services of a simulation, forecasts.
const WINDOWS = ["1h", "6h", "24h", "168h", "all"];
const MOST_SERVICES = 24;
const MOST_MARKED = 500;

function chosenWindow() {
  const wanted = here().searchParams.get("window") || "";
  return WINDOWS.includes(wanted) || /^\d+s$/.test(wanted) ? wanted : FILE ? "all" : "24h";
}

function windowChoice() {
  const chosen = chosenWindow();
  const choices = WINDOWS.includes(chosen) ? WINDOWS : [...WINDOWS, chosen];
  const choice = make("select", { id: "window" }, ...choices.map((one) => make("option", { value: one }, one)));
  choice.value = chosen;
  choice.addEventListener("change", () => showSpan(state.at, choice.value));
  const whole = make("button", { type: "button", id: "whole" }, "Whole time");
  whole.addEventListener("click", () => showSpan("", "all"));
  return make("span", { class: "window" }, WINDOWS.includes(chosen) ? null : whole, make("label", { for: "window" }, " Window "), choice);
}

// The page at another time and over another window.
function showSpan(at, window) {
  const url = here();
  state.at = at;
  go(url.pathname, { ...asked(url), at, window });
}

// Of a run that goes on all plots end at the time that the page shows, though they are asked for one after another.
function askPast(parameters) {
  const window = chosenWindow();
  const at = state.at || (state.span.running ? state.span.end : "");
  return ask("history", { ...parameters, at, window: window === "all" ? "" : window });
}

// The decisions to mark on plots, by whether they are about nodes; the newest, where there are many.
async function askMarks(parameters = {}) {
  const { decisions } = await ask("decisions", { ...parameters, until: state.at, limit: FILE ? FILE.decisions.decisions.length : MOST_MARKED });
  return { all: decisions, pods: decisions.filter((one) => one.loop !== "nodes"), nodes: decisions.filter((one) => one.loop === "nodes") };
}

function section(past, plots, title = "The past") {
  const content = past.kept ? make("div", { class: "plots" }, ...plots) : make("p", { class: "none" }, "These records hold no figures: an older version wrote them.");
  return make("section", { class: "past" }, make("h2", {}, title), windowChoice(), content);
}

const named = (past, figure, label = figure) => past.lines.filter((line) => line.figure === figure).map((line) => ({ ...line, label }));
const byName = (past) => past.lines.map((line) => ({ ...line, label: line.name })).sort((one, other) => greatest(other) - greatest(one));
const greatest = (line) => line.values.reduce((most, value) => Math.max(most, value ?? 0), 0);

// The plots of the overview, and the figures of the cluster that they show.
async function clusterPast(currency) {
  const money = currency ? `, ${currency}` : "";
  const [cluster, ready, run, offered, lost, marks] = await Promise.all([
    askPast({ kind: "cluster" }), askPast({ kind: "nodegroup", figure: "ready" }), askPast({ kind: "run" }),
    askPast({ kind: "service", figure: "offered" }), askPast({ kind: "service", figure: "lost" }), askMarks(),
  ]);
  const groups = byName(ready);
  const plots = [
    plot("Pods", named(cluster, "pods"), cluster, { marks: marks.pods }),
    plot("Pods waiting for a node", named(cluster, "pending", "waiting"), cluster, { marks: marks.nodes }),
    plot("Nodes ready by group", groups, ready, { marks: marks.nodes }),
  ];
  const cost = named(cluster, "cost", "cost/h");
  if (cost.length) plots.push(plot(`Cost an hour${money}`, cost, cluster, { key: "Cost an hour", marks: marks.nodes }));
  if (run.lines.length) {
    const hasServices = offered.lines.length > 0;
    plots.push(
      hasServices && plot("Load, requests/s", byName(offered), offered, { marks: marks.pods }),
      plot("CPU cores", [...named(run, "cpuAllocatable", "allocatable"), ...named(run, "cpuRequested", "requested"), ...named(run, "cpuUsed", "used")], run),
      hasServices && plot("SLO minutes lost", byName(lost), lost),
      plot(`Spent since the start${money}`, named(run, "spent"), run, { key: "Spent since the start", marks: marks.nodes }),
    );
  }
  const past = section(cluster, plots.filter(Boolean));
  if (offered.lines.length) past.append(make("p", {}, link("/services", "Each service: its load and what its pods could serve")));
  return { past, cluster, ready, isSimulated: run.lines.length > 0 };
}

// What the load of a simulation did to each service.
async function servicesPage(parameters) {
  const figures = ["offered", "capacity", "missed", "existing", "ready", "desired"];
  const [marks, ...pasts] = await Promise.all([askMarks(), ...figures.map((figure) => askPast({ kind: "service", figure }))]);
  const q = (parameters.get("q") || "").toLowerCase();
  const names = pasts[0].lines.map((line) => line.name).filter((name) => name.toLowerCase().includes(q));
  const plots = names.slice(0, MOST_SERVICES).flatMap((name) => servicePlots(name, pasts, marks.pods));
  const more = names.length > MOST_SERVICES ? make("p", { class: "none" }, `and ${names.length - MOST_SERVICES} more: find them by name`) : null;
  const none = names.length ? null : make("p", { class: "none" }, "The load of services is known of simulations alone.");
  const words = make("input", { id: "words", type: "search", value: q, placeholder: "name", autocomplete: "off" });
  const form = make("form", { class: "filters" }, make("label", { for: "words" }, "Services "), words, make("button", {}, "Show"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    go("/services", { q: words.value.trim() });
  });
  return { title: "Services", content: [make("h1", {}, "Services"), form, none, plots.length ? section(pasts[0], plots) : null, more].filter(Boolean) };
}

function servicePlots(name, pasts, marks) {
  const mine = marks.filter((one) => one.subject === name || one.subject.endsWith(`/${name}`));
  const line = (index, label) => pasts[index].lines.filter((one) => one.name === name).map((one) => ({ ...one, label }));
  return [
    plot(`${name}: requests/s`, [...line(0, "offered"), ...line(1, "capacity")], pasts[0], { marks: mine, missed: line(2)[0] || null }),
    plot(`${name}: replicas`, [...line(3, "existing"), ...line(4, "ready"), ...line(5, "desired")], pasts[0], { marks: mine }),
  ];
}

async function groupPast(name) {
  const [past, cluster, marks] = await Promise.all([askPast({ kind: "nodegroup", name }), askPast({ kind: "cluster", figure: "pending" }), askMarks({ subject: name })]);
  const sizes = [...named(past, "ready"), ...named(past, "target"), ...named(past, "upcoming"), ...named(past, "max"), ...named(past, "min")];
  return section(past, [plot("Nodes", sizes, past, { marks: marks.nodes }), plot("Pods waiting for a node, of the cluster", named(cluster, "pending", "waiting"), cluster)]);
}

async function hpaPast(name) {
  const kinds = ["hpa", "metric", "forecast"];
  const [marks, past, metrics, forecasts] = await Promise.all([askMarks({ subject: name }), ...kinds.map((kind) => askPast({ kind, name }))]);
  const replicas = [...named(past, "ready", "ready pods"), ...named(past, "desired"), ...named(past, "replicas", "spec.replicas"), ...named(past, "max"), ...named(past, "min")];
  const of = [...new Set(metrics.lines.map((line) => line.name))].map((metric) => {
    const lines = metrics.lines.filter((line) => line.name === metric);
    const both = ["value", "target"].flatMap((figure) => lines.filter((line) => line.figure === figure).map((line) => ({ ...line, label: figure })));
    const title = metric.slice(name.length + 1);
    return plot(title.endsWith("utilization") ? `${title}, % (once a minute)` : `${title} (once a minute)`, both, metrics, { key: metric });
  });
  const forecast = forecasts.lines.length ? [plot("Load in pods", [...named(forecasts, "came"), ...named(forecasts, "forecast")], forecasts)] : [];
  return section(past, [plot("Replicas", replicas, past, { marks: marks.all }), ...of, ...forecast]);
}

// What was forecast, against what came; null where nothing asks for forecasts.
async function forecastPast() {
  const past = await askPast({ kind: "forecast" });
  const names = [...new Set(past.lines.map((line) => line.name))].slice(0, MOST_SHOWN);
  if (!names.length) return null;
  return section(past, names.map((name) => {
    const lines = past.lines.filter((line) => line.name === name);
    const both = ["came", "forecast"].flatMap((figure) => lines.filter((line) => line.figure === figure).map((line) => ({ ...line, label: figure })));
    return plot(`${name}: load in pods`, both, past);
  }), "What was forecast, and what came");
}

// How the loops of a process on a cluster are.
async function loopsPage() {
  const [status, loops, process] = await Promise.all([ask("status", { at: state.at }), askPast({ kind: "loop" }), askPast({ kind: "process" })]);
  const line = (figure) => byName({ lines: loops.lines.filter((one) => one.figure === figure) });
  const plots = [
    plot("How long a tick takes, s", line("seconds"), loops),
    plot("Ticks that failed, since the start", line("failures"), loops),
    plot("Requests to API servers a second", named(process, "requests"), process),
    plot("Longest silence of the API server about a kind, s", named(process, "cacheAge", "silence"), process),
  ];
  const none = make("p", { class: "none" }, ...linked("How long ticks take is recorded by `kubetide run` alone."));
  const rows = loopRows(status);
  return { title: "Loops", content: [make("h1", {}, "How the loops are"), rows.length ? table("loops", rows) : null, loops.lines.length ? section(loops, plots) : none].filter(Boolean) };
}

// The plots of a page, where it has any.
function pastOf(kind, name) {
  if (kind === "hpa") return hpaPast(name);
  if (kind === "nodegroup") return groupPast(name);
  return null;
}
