// What every page is made of: elements, numbers, times, addresses, and the one way to ask.
// All scripts are put into one, in the order of web/front.py; a page that is a file has its answers in it.
const FILE = JSON.parse(document.getElementById("kubetide-data")?.textContent ?? "null");
const state = { span: null, objects: {}, at: "", notice: "" };

// Makes an element; strings become text, never markup.
function make(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined && value !== null) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function numberText(value) {
  if (value === null || value === undefined) return "–";
  return Number.isInteger(value) ? value.toLocaleString("en") : String(+value.toPrecision(4));
}

// Short numbers for axes: 1.5k, 2M.
function axisText(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${+(value / 1e6).toFixed(2)}M`;
  if (size >= 1e4) return `${+(value / 1e3).toFixed(1)}k`;
  return String(+value.toFixed(4));
}

// Times are UTC: RFC 3339 in addresses and answers, seconds since 1970 in figures.
const timeText = (at) => at.slice(0, 19).replace("T", " ");
const epoch = (at) => Date.parse(at) / 1000;
const instant = (seconds) => `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z`;
const clock = (seconds) => timeText(instant(seconds));

async function ask(path, parameters = {}) {
  if (FILE) return answerOf(path, parameters);
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== "" && value !== undefined));
  const response = await fetch(`/api/v1/${path}${query.size ? `?${query}` : ""}`);
  if (response.ok) return response.json();
  const error = (response.headers.get("Content-Type") || "").includes("json") ? (await response.json()).error : await response.text();
  throw new Error(error);
}

// The page that is shown; a file has it behind the #.
function here() {
  return new URL(FILE ? location.hash.slice(1) || "/" : location.pathname + location.search, "page:/");
}

// What the shown address asks for beside its time and a place in a list, which belong together.
function asked(url) {
  const { at, skip, open, ...others } = Object.fromEntries(url.searchParams);
  return others;
}

// The address of a page at the time that is shown.
function address(path, parameters = {}) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== "" && value !== undefined));
  if (state.at && !query.has("at")) query.set("at", state.at);
  return `${FILE ? "#" : ""}${path}${query.size ? `?${query}` : ""}`;
}

function link(path, text, attributes = {}, parameters = {}) {
  return make("a", { href: address(path, parameters), "data-page": "", ...attributes }, text);
}

function objectPath(kind, name) {
  return `/${kind}/${name.split("/").map(encodeURIComponent).join("/")}`;
}

// What kinds are called on a page.
const KIND_WORDS = { hpa: "HPA", vpa: "VPA", nodegroup: "node group", provisioningrequest: "provisioning request", capacitybuffer: "capacity buffer", elasticworkload: "ElasticWorkload", scaledobject: "ScaledObject" };
// The loops of kinds whose objects are named as those of other loops.
const LOOPS = { vpa: "recommender", update: "updater", schedule: "schedules", elasticworkload: "elastic", scaledobject: "scaledobjects" };
const kindText = (kind) => KIND_WORDS[kind] || kind;
const kindsText = (kind) => `${kindText(kind)}s`;

// The kind of a name, among some kinds or all.
function kindOf(name, kinds = Object.keys(state.objects)) {
  return kinds.find((kind) => (state.objects[kind] || []).includes(name));
}

// Text in which the names of objects lead to their pages, and commands between backticks stand out.
function linked(text) {
  const parts = text.split("`");
  if (parts.length > 1 && parts.length % 2) return parts.flatMap((part, index) => (index % 2 ? make("code", {}, part) : linked(part)));
  return text.split(/([A-Za-z0-9][A-Za-z0-9._/-]*[A-Za-z0-9])/).map((piece, index, pieces) => {
    const kind = piece && kindOf(piece);
    const isAmount = RESOURCES.has(piece) && pieces[index - 2] !== "group";
    return kind && !isAmount ? link(objectPath(kind, piece), piece) : piece;
  });
}

// Words for amounts, which node groups are named with too.
const RESOURCES = new Set(["cpu", "memory", "pods", "nodes", "storage"]);
