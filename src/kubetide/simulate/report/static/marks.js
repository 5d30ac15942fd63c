// A lane of marks over a plot: one button a decision, or one for several that are too near to part.
const NEAR = 9; // pixels between two marks that can be told apart
const SHOWN_IN_TIP = 6;
let tipAnchor = null;

class MarkLane {
  constructor(marks, title, plot) {
    this.marks = marks;
    this.title = title;
    this.plot = plot;
    this.clusters = [];
    this.focused = 0;
    this.element = make("div", { class: "lane", role: "group", "aria-label": `Decisions: ${title}` });
    this.element.style.marginLeft = `${AXIS_WIDTH}px`;
    this.element.style.marginRight = `${RIGHT_EDGE}px`;
    this.element.addEventListener("keydown", (event) => this.onKey(event));
  }

  place(min, max, width) {
    this.clusters = gather(this.marks, min, max, width);
    this.focused = Math.min(this.focused, Math.max(0, this.clusters.length - 1));
    this.element.replaceChildren(...this.clusters.map((cluster, index) => this.button(cluster, index)));
    if (tipAnchor && !tipAnchor.isConnected) hideTip();
  }

  button(cluster, index) {
    const only = cluster.marks.length === 1;
    const first = cluster.marks[0];
    const label = only ? `${clockText(first.at)} ${first.title}` : `${cluster.marks.length} decisions from ${clockText(first.at)}`;
    const button = make(
      "button",
      {
        type: "button",
        class: `${SIGN_CLASS[cluster.sign]}${only ? "" : " many"}`,
        tabindex: index === this.focused ? "0" : "-1",
        "aria-label": label,
        "aria-describedby": "tip",
      },
      DATA.arrows[cluster.sign],
    );
    button.style.left = `${cluster.share * 100}%`;
    const show = () => {
      this.focused = index;
      pointAt(first.at);
      showTip(button, cluster.marks);
    };
    button.addEventListener("mouseenter", show);
    button.addEventListener("focus", show);
    button.addEventListener("mouseleave", hideTip);
    button.addEventListener("blur", hideTip);
    button.addEventListener("click", () => showInList(first));
    return button;
  }

  onKey(event) {
    const last = this.clusters.length - 1;
    const next = { ArrowRight: this.focused + 1, ArrowLeft: this.focused - 1, Home: 0, End: last }[event.key];
    if (event.key === "Escape") hideTip();
    if (next === undefined || next < 0 || next > last) return;
    event.preventDefault();
    const buttons = this.element.children;
    buttons[this.focused].tabIndex = -1;
    buttons[next].tabIndex = 0;
    buttons[next].focus();
  }
}

// Parts the marks in the range into those that lie apart on the screen.
function gather(marks, min, max, width) {
  const clusters = [];
  for (const mark of marks) {
    if (mark.at < min || mark.at > max) continue;
    const share = max > min ? (mark.at - min) / (max - min) : 0;
    const last = clusters[clusters.length - 1];
    if (last && (share - last.share) * width < NEAR) {
      last.marks.push(mark);
      last.sign = together(last.marks);
    } else {
      clusters.push({ share, sign: mark.sign, marks: [mark] });
    }
  }
  return clusters;
}

// More, less, or 0 where both are among them; what changes no count has no say.
function together(marks) {
  const signs = new Set(marks.map((mark) => mark.sign).filter(Boolean));
  return signs.size === 1 ? [...signs][0] : 0;
}

function whyList(mark) {
  return make("ul", {}, ...mark.why.map((line) => make("li", {}, line)));
}

function showTip(anchor, marks) {
  const tip = document.getElementById("tip");
  const parts = marks.slice(0, SHOWN_IN_TIP).map((mark) =>
    make("div", {}, make("strong", {}, make("time", {}, clockText(mark.at)), mark.title), whyList(mark)));
  if (marks.length > SHOWN_IN_TIP) parts.push(make("div", {}, `and ${marks.length - SHOWN_IN_TIP} more: zoom in to part them`));
  tip.replaceChildren(...parts);
  tip.hidden = false;
  tipAnchor = anchor;
  placeTip();
}

// Keeps the tip beside its mark, also when reaching the mark scrolls the page.
function placeTip() {
  const tip = document.getElementById("tip");
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
  document.getElementById("tip").hidden = true;
  tipAnchor = null;
}
