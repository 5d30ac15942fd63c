// The frame of every page: address, time slider, live updates, and the one way to ask the server.
import { aheadPage, decisionsPage, objectPage, objectsPage, overviewPage } from "./pages.js";

export const state = { span: null, objects: {}, at: "" };

// Makes an element; strings become text, never markup.
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") element.className = value;
    else if (value !== undefined && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export async function ask(path, parameters = {}) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== "" && value !== undefined));
  const response = await fetch(`/api/v1/${path}${query.size ? `?${query}` : ""}`);
  if (response.ok) return response.json();
  const told = (response.headers.get("Content-Type") || "").includes("json") ? (await response.json()).error : await response.text();
  throw new Error(told);
}

// The address of a page at the time that is shown.
export function address(path, parameters = {}) {
  const query = new URLSearchParams(parameters);
  if (state.at) query.set("at", state.at);
  return query.size ? `${path}?${query}` : path;
}

export function link(path, text, attributes = {}) {
  return make("a", { href: address(path), "data-page": "", ...attributes }, text);
}

export function objectPath(kind, name) {
  return `/${kind}/${name.split("/").map(encodeURIComponent).join("/")}`;
}

// The kind of a name, among some kinds or all.
export function kindOf(name, kinds = Object.keys(state.objects)) {
  return kinds.find((kind) => (state.objects[kind] || []).includes(name));
}

export function timeText(at) {
  return at.slice(0, 19).replace("T", " ");
}

// Text in which the names of objects lead to their pages.
export function linked(text) {
  const parts = [];
  for (const piece of text.split(/([A-Za-z0-9][A-Za-z0-9._/-]*[A-Za-z0-9])/)) {
    const kind = piece && (kindOf(piece) || undefined);
    parts.push(kind ? link(objectPath(kind, piece), piece) : piece);
  }
  return parts;
}

function epoch(text) {
  return Date.parse(text);
}

function shownTime() {
  return state.at || state.span.end;
}

function placeSlider() {
  const { start, end } = state.span;
  const slider = document.getElementById("slider");
  const share = (epoch(shownTime()) - epoch(start)) / Math.max(epoch(end) - epoch(start), 1);
  slider.value = state.at ? String(Math.round(share * 1000)) : "1000";
  slider.setAttribute("aria-valuetext", timeText(shownTime()));
  document.getElementById("at").textContent = `${timeText(shownTime())} UTC`;
  const live = document.getElementById("live");
  live.textContent = state.span.running ? "Live" : "End of the run";
  live.disabled = !state.at;
}

function drawHistogram() {
  const loops = Object.values(state.span.decisions);
  const sums = loops.length ? loops[0].map((_, index) => loops.reduce((sum, one) => sum + one[index], 0)) : [];
  const most = Math.max(...sums, 1);
  const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  picture.setAttribute("viewBox", `0 0 ${Math.max(sums.length, 1)} 20`);
  picture.setAttribute("preserveAspectRatio", "none");
  sums.forEach((count, index) => {
    if (!count) return;
    const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const height = 2 + (18 * count) / most;
    for (const [name, value] of Object.entries({ x: index, y: 20 - height, width: 1, height })) bar.setAttribute(name, value);
    picture.append(bar);
  });
  document.getElementById("histogram").replaceChildren(picture);
}

async function refresh() {
  state.span = await ask("span");
  state.objects = await ask("objects", { at: state.at });
  placeSlider();
  drawHistogram();
  const names = Object.entries(state.objects).flatMap(([kind, all]) => all.slice(0, 2000).map((name) => make("option", { value: name }, kind)));
  document.getElementById("names").replaceChildren(...names);
}

let asked = 0;
async function show({ quiet = false } = {}) {
  const mine = ++asked;
  const url = new URL(location.href);
  state.at = url.searchParams.get("at") || "";
  const note = document.getElementById("note");
  try {
    await refresh();
    const [first, ...rest] = url.pathname.split("/").filter(Boolean).map(decodeURIComponent);
    let page;
    if (!first) page = await overviewPage();
    else if (first === "decisions") page = await decisionsPage(url.searchParams);
    else if (first === "ahead") page = await aheadPage(url.searchParams);
    else if (first === "objects") page = await objectsPage(url.searchParams);
    else page = await objectPage(first, rest.join("/"), url.searchParams);
    if (mine !== asked) return;
    document.title = `${page.title} · kubetide`;
    keepFocus(() => document.getElementById("main").replaceChildren(...page.content));
    note.textContent = "";
    for (const item of document.querySelectorAll("nav a")) {
      if (item.pathname === url.pathname) item.setAttribute("aria-current", "page");
      else item.removeAttribute("aria-current");
      item.setAttribute("href", address(item.pathname));
    }
    if (!quiet) scrollTo(0, 0);
  } catch (error) {
    if (mine !== asked) return;
    note.textContent = error.message;
    if (!quiet) document.getElementById("main").replaceChildren(make("h1", {}, "Nothing to show"), make("p", {}, error.message));
  }
  document.documentElement.dataset.ready = String(mine);
}

// Redraws without taking the place of who types or tabs.
function keepFocus(draw) {
  const { id } = document.activeElement || {};
  const open = new Set([...document.querySelectorAll("details[open]")].map((one) => one.dataset.key));
  draw();
  for (const one of document.querySelectorAll("details")) if (open.has(one.dataset.key)) one.open = true;
  if (id) document.getElementById(id)?.focus();
}

export function go(path, parameters) {
  history.pushState(null, "", address(path, parameters));
  show();
}

export function setTime(at, { replace = false } = {}) {
  const url = new URL(location.href);
  if (at) url.searchParams.set("at", at);
  else url.searchParams.delete("at");
  history[replace ? "replaceState" : "pushState"](null, "", url);
  show({ quiet: true });
}

// Hears of news while the page can be seen: a browser has six connections to a host, and a page in the background or
// left behind would keep one of them.
function listen() {
  let source = null;
  let waiting = null;
  const grown = () => {
    // The past does not change; and a page is drawn at most once in two seconds.
    if (state.at || waiting) return;
    waiting = setTimeout(() => {
      waiting = null;
      if (!state.at && source) show({ quiet: true });
    }, 2000);
  };
  const open = () => {
    if (source || document.hidden) return;
    source = new EventSource("/api/v1/events");
    source.addEventListener("grown", grown);
  };
  const close = () => {
    source?.close();
    source = null;
  };
  const back = () => {
    open();
    grown();
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : back()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => event.persisted && back());
  open();
}

function start() {
  document.addEventListener("click", (event) => {
    const anchor = event.target.closest("a[data-page]");
    if (!anchor || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    history.pushState(null, "", anchor.href);
    show();
    document.getElementById("main").focus({ preventScroll: true });
  });
  addEventListener("popstate", () => show());
  const slider = document.getElementById("slider");
  const atSlider = () => {
    const { start: first, end } = state.span;
    const time = epoch(first) + ((epoch(end) - epoch(first)) * Number(slider.value)) / 1000;
    return slider.value === "1000" ? "" : `${new Date(time).toISOString().slice(0, 19)}Z`;
  };
  slider.addEventListener("input", () => {
    document.getElementById("at").textContent = `${timeText(atSlider() || state.span.end)} UTC`;
  });
  slider.addEventListener("change", () => setTime(atSlider()));
  document.getElementById("live").addEventListener("click", () => setTime(""));
  document.getElementById("find").addEventListener("submit", (event) => {
    event.preventDefault();
    const wanted = document.getElementById("name").value.trim();
    const kind = kindOf(wanted) || kindOf(`default/${wanted}`);
    if (kind) go(objectPath(kind, kindOf(wanted) ? wanted : `default/${wanted}`));
    else if (wanted) go("/objects", { q: wanted });
  });
  listen();
  show();
}

start();
