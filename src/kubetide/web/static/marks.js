// A lane of marks over a plot: one button a decision, or one for several that are too near to part.
const NEAR = 9; // pixels between two marks that can be told apart
const SHOWN_IN_TIP = 6;
const ARROWS = { "1": "▲", "0": "◆", "-1": "▼" };
const SIGN_CLASS = { "1": "up", "0": "other", "-1": "down" };
const tip = make("div", { id: "tip", role: "tooltip", hidden: "" });
let tipAnchor = null;

// The lane of decisions ({at, text, why, change}) between two times; ``point`` takes the time of one that is looked at.
function markLane(title, decisions, since, until, point) {
  const lane = make("div", { class: "lane", role: "group", "aria-label": `Decisions: ${title}` });
  const marks = decisions.map((one) => ({ ...one, time: epoch(one.at) })).filter((one) => one.time >= since && one.time <= until);
  marks.sort((one, other) => one.time - other.time);
  let buttons = [];
  const focusOn = (index) => buttons.forEach((button, at) => { button.tabIndex = at === index ? 0 : -1; });
  const place = () => {
    buttons = gathered(marks, since, until, lane.clientWidth).map((cluster, index) => markButton(cluster, () => {
      focusOn(index);
      point(cluster.marks[0].time);
    }));
    focusOn(0);
    lane.replaceChildren(...buttons);
    if (tipAnchor && !tipAnchor.isConnected) hideTip();
  };
  lane.addEventListener("keydown", (event) => {
    const at = buttons.indexOf(document.activeElement);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (event.key === "Escape") hideTip();
    if (next === undefined || !buttons[next]) return;
    event.preventDefault();
    buttons[next].focus();
  });
  if (marks.length) new ResizeObserver(place).observe(lane);
  return lane;
}

function markButton(cluster, lookedAt) {
  const [first] = cluster.marks;
  const only = cluster.marks.length === 1;
  const label = only ? `${timeText(first.at)} ${first.text}` : `${cluster.marks.length} decisions from ${timeText(first.at)}`;
  const button = make("button", { type: "button", class: `${SIGN_CLASS[cluster.sign]}${only ? "" : " many"}`, "aria-label": label, "aria-describedby": "tip" }, ARROWS[cluster.sign]);
  button.style.left = `${cluster.share * 100}%`;
  const show = () => {
    lookedAt();
    showTip(button, cluster.marks);
  };
  for (const event of ["mouseenter", "focus"]) button.addEventListener(event, show);
  for (const event of ["mouseleave", "blur"]) button.addEventListener(event, hideTip);
  button.addEventListener("click", () => {
    hideTip();
    go("/decisions", { at: first.at, open: first.at });
  });
  return button;
}

// Parts the marks into those that lie apart on the screen.
function gathered(marks, since, until, width) {
  const clusters = [];
  for (const mark of marks) {
    const share = (mark.time - since) / Math.max(until - since, 1);
    const last = clusters[clusters.length - 1];
    if (last && (share - last.share) * width < NEAR) last.marks.push(mark);
    else clusters.push({ share, marks: [mark] });
  }
  for (const cluster of clusters) cluster.sign = together(cluster.marks);
  return clusters;
}

// More, less, or 0 where both are among them; what changes no count has no say.
function together(marks) {
  const signs = new Set(marks.map((mark) => Math.sign(mark.change)).filter(Boolean));
  return signs.size === 1 ? [...signs][0] : 0;
}

function whyList(lines) {
  return make("ul", {}, ...lines.map((line) => make("li", {}, line)));
}

function showTip(anchor, marks) {
  const parts = marks.slice(0, SHOWN_IN_TIP).map((mark) =>
    make("div", {}, make("strong", {}, make("time", {}, timeText(mark.at)), ` ${mark.text}`), whyList(mark.why)));
  if (marks.length > SHOWN_IN_TIP) parts.push(make("div", {}, `and ${marks.length - SHOWN_IN_TIP} more: drag over the plot to part them`));
  tip.replaceChildren(...parts);
  if (!tip.isConnected) document.body.append(tip);
  tip.hidden = false;
  tipAnchor = anchor;
  placeTip();
}

// Keeps the tip beside its mark, also when reaching the mark scrolls the page.
function placeTip() {
  if (tip.hidden || !tipAnchor) return;
  const spot = tipAnchor.getBoundingClientRect();
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.min(Math.max(12, spot.left + spot.width / 2 - width / 2), innerWidth - width - 12);
  const below = spot.bottom + 10;
  const above = spot.top - height - 8;
  tip.style.left = `${left}px`;
  tip.style.top = `${below + height < innerHeight || above < 0 ? below : above}px`;
}

function hideTip() {
  tip.hidden = true;
  tipAnchor = null;
}

addEventListener("scroll", placeTip, { passive: true });
