// The frame of every page: address, time slider, live updates.
// By the first part of an address; any other part is the kind of an object.
const PAGES = { "": overviewPage, services: servicesPage, objects: objectsPage, decisions: decisionsPage, ahead: aheadPage, loops: loopsPage };

const shownTime = () => state.at || state.span.end;

function placeSlider() {
  const { start, end } = state.span;
  const slider = document.getElementById("slider");
  const share = (epoch(shownTime()) - epoch(start)) / Math.max(epoch(end) - epoch(start), 1e-3);
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
  const bars = sums.flatMap((count, index) => {
    const height = 2 + (18 * count) / most;
    return count ? [svg("rect", { x: index, y: 20 - height, width: 1, height })] : [];
  });
  const picture = svg("svg", { viewBox: `0 0 ${Math.max(sums.length, 1)} 20`, preserveAspectRatio: "none" }, ...bars);
  document.getElementById("histogram").replaceChildren(picture);
}

async function refresh() {
  const before = state.span;
  state.span = await ask("span");
  if (before && state.span && before.run !== state.span.run) showNewRun();
  if (state.span) state.objects = await ask("objects", { at: state.at });
}

// Another run writes to the folder: the time that was shown is one of a run that is no more.
function showNewRun() {
  const url = here();
  state.at = "";
  state.notice = "A new run has begun in this folder; what you see is that one.";
  history.replaceState(null, "", address(url.pathname, asked(url)));
}

// The frame of the page that is to be shown: its time, and the names that can be found.
function drawFrame(url) {
  document.querySelector(".time").hidden = !state.span;
  if (state.span) {
    placeSlider();
    drawHistogram();
  }
  const names = Object.entries(state.objects).flatMap(([kind, all]) => all.slice(0, 2000).map((name) => make("option", { value: name }, kind)));
  document.getElementById("names").replaceChildren(...names);
  for (const item of document.querySelectorAll("header a")) {
    const { page } = item.dataset;
    if (page === url.pathname && item.className !== "brand") item.setAttribute("aria-current", "page");
    else item.removeAttribute("aria-current");
    item.setAttribute("href", address(page));
  }
}

// Resolved while no button is pressed. A redraw takes away the element under a press, and the text that is being selected.
let released = Promise.resolve();
function followPresses() {
  let release = () => {};
  addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    release();
    released = new Promise((resolve) => {
      release = resolve;
    });
  }, true);
  // The click comes right behind the event. A drag of the scroll bar may end without one; a move tells it then.
  const end = (event) => {
    if (!event.buttons) setTimeout(release);
  };
  for (const kind of ["pointerup", "pointercancel", "pointermove"]) addEventListener(kind, end, true);
}

let shows = 0;
async function show({ quiet = false } = {}) {
  const mine = ++shows;
  const url = here();
  state.at = url.searchParams.get("at") || "";
  if (!quiet) state.notice = "";
  const note = document.getElementById("note");
  try {
    await refresh();
    const [first = "", ...rest] = url.pathname.split("/").filter(Boolean).map(decodeURIComponent);
    const page = await (Object.hasOwn(PAGES, first) ? PAGES[first](url.searchParams) : objectPage(first, rest.join("/"), url.searchParams));
    await released;
    if (mine !== shows) return;
    drawFrame(url);
    document.title = `${page.title} · kubetide`;
    keepFocus(() => document.getElementById("main").replaceChildren(...page.content));
    note.textContent = state.notice;
    if (!quiet) scrollTo(0, 0);
  } catch (error) {
    if (mine !== shows) return;
    drawFrame(url);
    note.textContent = quiet ? error.message : "";
    if (!quiet) document.title = "kubetide";
    if (!quiet) document.getElementById("main").replaceChildren(make("h1", {}, "Nothing to show"), make("p", {}, ...linked(onPage(error.message))));
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

function go(path, parameters) {
  history.pushState(null, "", address(path, parameters));
  show();
}

function setTime(at) {
  const url = here();
  state.at = at;
  history.pushState(null, "", address(url.pathname, { ...asked(url), at }));
  show({ quiet: true });
}

// Whether the folder has another run in it than the one that is shown; unknown while none has begun to record.
async function isAnotherRun() {
  try {
    return state.span && (await ask("span")).run !== state.span.run;
  } catch {
    return false;
  }
}

// Hears of news while the page can be seen: a browser has six connections to a host, and a page in the background or
// left behind would keep one of them.
function listen() {
  let source = null;
  let waiting = null;
  const grown = () => {
    // A page is drawn at most once in two seconds; the past does not change, but for a new run in its place.
    if (waiting) return;
    waiting = setTimeout(async () => {
      waiting = null;
      if (source && (!state.at || (await isAnotherRun()))) show({ quiet: true });
    }, 2000);
  };
  const open = () => {
    if (source || document.hidden) return;
    source = new EventSource("/api/v1/events");
    source.addEventListener("grown", grown);
    source.addEventListener("error", () => {
      document.getElementById("note").textContent = "The server does not answer. Where the run has ended, its folder has this page as report.html.";
    });
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
    // The time may have changed since the header was drawn.
    history.pushState(null, "", anchor.dataset.page ? address(anchor.dataset.page) : anchor.href);
    show();
    document.getElementById("main").focus({ preventScroll: true });
  });
  addEventListener("popstate", () => show());
  const slider = document.getElementById("slider");
  const atSlider = () => {
    const { start: first, end } = state.span;
    return slider.value === "1000" ? "" : instant(epoch(first) + ((epoch(end) - epoch(first)) * Number(slider.value)) / 1000);
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
  for (const item of document.querySelectorAll("nav a")) item.hidden = !Object.hasOwn(PAGES, item.dataset.page.slice(1));
  document.getElementById("find").hidden = !PAGES.objects;
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("main").focus();
  });
  followPresses();
  if (!FILE) listen();
  show();
}
