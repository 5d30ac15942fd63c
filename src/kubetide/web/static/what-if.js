// Two runs under one cursor, their figures, and where they part.
async function whatIfPage() {
  const { decisions } = await ask("decisions", { until: state.at, limit: FILE.decisions.decisions.length });
  const { history, sides } = FILE;
  const past = figuresIn({ ...history, lines: [] }, { at: state.at, window: chosenWindow() === "all" ? "" : chosenWindow() });
  const sections = [...new Set(history.pairs.map((pair) => pair.heading))].map((heading) =>
    section({ ...past, kept: true }, history.pairs.filter((pair) => pair.heading === heading).map((pair) => pairPlot(pair, past, decisions)), heading));
  return {
    title: `what if · ${FILE.name}`,
    content: [
      make("h1", {}, FILE.name),
      make("p", { class: "period" }, FILE.period),
      make("ul", { class: "changes", "aria-label": "Changes" }, ...FILE.changes.map((change) => make("li", {}, make("code", {}, change)))),
      cellTable("figures", FILE.figures),
      make("section", {}, make("h2", {}, "The first decision that differs"), ...partingOf(FILE.parting, sides)),
      ...sections,
      make("p", {}, link("/decisions", "All decisions of both runs")),
      make("section", { class: "notes" }, make("h2", {}, "How to read this"), make("ul", {},
        ...["Marks over a plot are decisions of either run.", "Both runs have the same seed: load, boot times and faults are the same until a decision makes them differ.", "All times are UTC."].map((one) => make("li", {}, one)))),
    ],
  };
}

function pairPlot(pair, past, decisions) {
  const lines = [pair.before, pair.after].map((values, index) => between({ label: FILE.sides[index], times: FILE.history.times.slice(0, values.length), values }, epoch(past.since), epoch(past.until)));
  const isMine = (one) => !pair.subject || one.subject === pair.subject || one.subject.endsWith(`/${pair.subject}`);
  return plot(pair.title, lines, past, { marks: decisions.filter((one) => pair.loops.some((loop) => one.loop.endsWith(loop)) && isMine(one)) });
}

function partingOf(parting, sides) {
  if (!parting) return [make("p", {}, "None: both runs took the same decisions.")];
  const decisions = (side) => side.decided.length
    ? side.decided.map((one) => make("div", {}, make("p", {}, one.text), whyList(one.why)))
    : [make("p", {}, "decided nothing"), whyList(side.instead)];
  const columns = [parting.before, parting.after].map((side, index) => make("div", {}, make("h3", {}, sides[index]), ...decisions(side)));
  return [make("p", {}, timeText(parting.at)), make("div", { class: "sides" }, ...columns)];
}

delete PAGES.objects;
delete PAGES.ahead;
delete PAGES.services;
PAGES[""] = whatIfPage;
start();
