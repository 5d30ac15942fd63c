// One plot: a panel with a title, a legend with the values under the cursor, a lane of marks, and a uPlot.
const AXIS_WIDTH = 46;
const PLOT_HEIGHT = 132;
const RIGHT_EDGE = 18;
const PANEL_EDGES = 24;
const plots = [];
const viewListeners = [];
let view = null; // the range shown: {min, max} in seconds

function alpha(colour, share) {
  const value = parseInt(colour.slice(1), 16);
  return `rgba(${value >> 16}, ${(value >> 8) & 255}, ${value & 255}, ${share})`;
}

// How a series is drawn: line, step (a count that holds until the next sample), area, stack.
function uplotSeries(series) {
  const colour = cssColour(series.colour);
  const stepped = series.kind !== "line" && series.kind !== "load";
  const filled = series.kind === "area" || series.kind === "stack" || series.kind === "load";
  return {
    label: series.label,
    stroke: series.kind === "area" ? alpha(colour, 0.8) : colour,
    width: series.kind === "stack" ? 1 : series.kind === "area" ? 1 : 1.5,
    dash: series.dash ? [5, 3] : undefined,
    fill: filled ? alpha(colour, series.kind === "stack" ? 0.62 : 0.16) : undefined,
    paths: stepped ? uPlot.paths.stepped({ align: -1 }) : uPlot.paths.linear(),
    points: { show: false },
  };
}

// What is shown above one another is added up; the legend still shows each series' own value.
function stacked(columns) {
  const sums = [];
  columns.forEach((column, index) => {
    sums.push(index ? column.map((value, at) => value + sums[index - 1][at]) : column);
  });
  return sums;
}

class Plot {
  // spec: {title, unit, series: [{label, values, colour, kind, dash}], marks, violated, whole}
  constructor(spec, times, parent) {
    this.spec = spec;
    this.times = times;
    this.panel = make("article", { class: "chart" });
    this.values = spec.series.map(() => make("b"));
    this.panel.append(this.head());
    this.lane = new MarkLane(spec.marks || [], `${spec.title}, ${spec.unit}`, this);
    this.canvas = make("div");
    this.panel.append(this.lane.element, this.canvas);
    parent.append(this.panel);
    this.draw();
    plots.push(this);
  }

  head() {
    const title = make("h3", {}, this.spec.title);
    if (this.spec.unit) title.append(make("small", {}, ` ${this.spec.unit}`));
    const legend = make("div", { class: "legend" });
    this.spec.series.forEach((series, index) => {
      const swatch = make("i", { class: series.kind === "area" || series.kind === "stack" ? "area" : series.dash ? "dash" : "" });
      const property = swatch.className === "area" ? "background" : "borderColor";
      swatch.style[property] = `var(${series.colour})`;
      legend.append(make("span", {}, swatch, series.label, this.values[index]));
    });
    if (this.spec.violated) legend.prepend(make("span", {}, make("i", { class: "area shade" }), "objective missed"));
    return make("div", { class: "chart-head" }, title, legend);
  }

  draw() {
    if (this.plot) this.plot.destroy();
    const { spec } = this;
    const isStack = spec.series.some((series) => series.kind === "stack");
    const columns = spec.series.map((series) => series.values);
    const axis = {
      stroke: cssColour("--muted"),
      font: "11px system-ui, sans-serif",
      grid: { stroke: cssColour("--grid"), width: 1 },
      ticks: { show: false },
    };
    this.plot = new uPlot(
      {
        width: this.panel.clientWidth - PANEL_EDGES,
        height: PLOT_HEIGHT,
        padding: [4, RIGHT_EDGE, 0, 0],
        tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
        legend: { show: false },
        scales: { x: { time: true }, y: { range: (_, low, high) => [Math.min(0, low || 0), high > 0 ? high * 1.08 : 1] } },
        axes: [
          { ...axis, size: 24, gap: 4, space: 70, values: (_, splits, _axis, _space, step) => splits.map((at) => axisTimes(at, step)) },
          { ...axis, size: AXIS_WIDTH, gap: 6, space: 28, incrs: spec.whole ? WHOLE_STEPS : undefined, values: (_, splits) => splits.map(axisText) },
        ],
        series: [{}, ...spec.series.map(uplotSeries)],
        bands: isStack ? columns.slice(1).map((_, index) => ({ series: [index + 2, index + 1] })) : undefined,
        cursor: {
          y: false,
          points: { show: false },
          drag: { x: true, y: false, setScale: false },
          sync: { key: "kubetide", filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } },
          bind: { dblclick: () => () => showWholeRun() },
        },
        hooks: {
          setCursor: [(u) => this.showValues(u.cursor.idx)],
          setSelect: [(u) => this.selected(u)],
          drawClear: [(u) => this.shadeViolations(u)],
          draw: [(u) => this.drawMarkLines(u)],
        },
      },
      [this.times, ...(isStack ? stacked(columns) : columns)],
      this.canvas,
    );
    this.place();
  }

  // Puts the marks where the axis is, for the range shown.
  place() {
    // The width is worked out: the plot itself lays itself out later.
    this.lane.place(view.min, view.max, this.panel.clientWidth - PANEL_EDGES - AXIS_WIDTH - RIGHT_EDGE);
  }

  showValues(index) {
    const last = this.times.length - 1;
    const at = index === null || index === undefined ? last : index;
    this.spec.series.forEach((series, number) => {
      this.values[number].textContent = last < 0 || series.values[at] === null ? "–" : numberText(series.values[at]);
    });
    if (plots[0] === this) showCursorTime(index === null || index === undefined ? null : this.times[at]);
  }

  selected(u) {
    if (u.select.width > 3) {
      setView(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
    }
    if (u.select.width) u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  }

  shadeViolations(u) {
    const { violated } = this.spec;
    if (!violated) return;
    const { ctx } = u;
    const { left, top, width, height } = u.bbox;
    const gap = this.times.length > 1 ? this.times[1] - this.times[0] : DATA.stepSeconds;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, width, height);
    ctx.clip();
    ctx.fillStyle = cssColour("--shade");
    for (let at = 0; at < violated.length; at++) {
      if (!violated[at]) continue;
      const first = at;
      while (at + 1 < violated.length && violated[at + 1]) at++;
      const from = u.valToPos(this.times[first] - gap, "x", true);
      ctx.fillRect(from, top, Math.max(u.valToPos(this.times[at], "x", true) - from, 1), height);
    }
    ctx.restore();
  }

  drawMarkLines(u) {
    const clusters = this.lane.clusters;
    if (clusters.length > 60) return;
    const { ctx } = u;
    const { left, top, width, height } = u.bbox;
    ctx.save();
    ctx.lineWidth = devicePixelRatio;
    ctx.globalAlpha = 0.35;
    ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
    for (const cluster of clusters) {
      const at = left + Math.round(cluster.share * width);
      ctx.strokeStyle = cssColour(`--${SIGN_CLASS[cluster.sign]}`);
      ctx.beginPath();
      ctx.moveTo(at, top);
      ctx.lineTo(at, top + height);
      ctx.stroke();
    }
    ctx.restore();
  }
}

const WHOLE_STEPS = [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 5000, 10000, 50000, 100000];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

// The time of day, and the date where a day begins.
function axisTimes(seconds, step) {
  const date = new Date(seconds * 1000);
  if (seconds % 86400 === 0) return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
  return clockText(seconds).slice(0, step < 60 ? 8 : 5);
}

function wholeRun() {
  const { time, stepSeconds } = DATA;
  return time.length ? { min: time[0] - stepSeconds, max: time[time.length - 1] } : { min: 0, max: 1 };
}

function setView(min, max) {
  const whole = wholeRun();
  const least = 4 * DATA.stepSeconds;
  if (max - min < least) [min, max] = [(min + max - least) / 2, (min + max + least) / 2];
  view = { min: Math.max(min, whole.min), max: Math.min(max, whole.max) };
  for (const plot of plots) {
    // The marks first: drawing the plot draws their lines too.
    plot.place();
    plot.plot.setScale("x", view);
  }
  for (const listener of viewListeners) listener();
}

function showWholeRun() {
  const { min, max } = wholeRun();
  setView(min, max);
}

// Moves the cursor of all plots to a time; null takes it away.
function pointAt(seconds) {
  for (const plot of plots) {
    const u = plot.plot;
    const left = seconds === null ? -10 : u.valToPos(seconds, "x");
    u.setCursor({ left, top: seconds === null ? -10 : 1 }, true, false);
  }
}

function redrawPlots() {
  for (const plot of plots) plot.draw();
  setView(view.min, view.max);
}
