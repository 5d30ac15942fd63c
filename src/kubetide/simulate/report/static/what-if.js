// Two runs under one cursor, their figures, and where they part.
function drawPairs() {
  view = wholeRun();
  const parent = document.getElementById("charts");
  let heading = null;
  for (const pair of DATA.pairs) {
    if (pair.heading !== heading) parent.append(make("h2", {}, pair.heading));
    heading = pair.heading;
    new Plot(
      {
        title: pair.title,
        unit: pair.unit,
        whole: pair.whole,
        series: [
          { label: DATA.sides[0], values: pair.before, colour: "--c6", kind: "area" },
          { label: DATA.sides[1], values: pair.after, colour: "--c1", kind: "step" },
        ],
        marks: DATA.marks.filter((mark) => pair.loops.some((loop) => mark.loop.endsWith(loop)) && (!pair.subject || mark.subject === pair.subject || mark.subject.endsWith(`/${pair.subject}`))),
      },
      DATA.time,
      parent,
    );
  }
}

function fillFigures() {
  document.getElementById("name").textContent = DATA.name;
  document.getElementById("period").textContent = DATA.period;
  document.getElementById("changes").append(...DATA.changes.map((change) => make("li", {}, make("code", {}, change))));
  document.getElementById("tables").append(cellsTable(DATA.figures));
  document.getElementById("mark-key").append("Marks: decisions of either run");
  const notes = [
    ...DATA.notes,
    "Both runs have the same seed: load, boot times and faults are the same until a decision makes them differ.",
    "All times are UTC.",
  ];
  document.getElementById("notes").append(...notes.map((note) => make("li", {}, note)));
}

function fillParting() {
  const { parting } = DATA;
  document.getElementById("parting-time").textContent = parting ? timeText(parting.at) : "None: both runs took the same decisions.";
  if (!parting) return;
  document.getElementById("sides").append(
    ...[parting.before, parting.after].map((side, index) => make("div", {}, make("h3", {}, DATA.sides[index]), ...sideLines(side))));
}

function sideLines(side) {
  if (side.decided.length) return side.decided.map((mark) => make("div", {}, make("p", {}, mark.title), whyList(mark)));
  const told = side.instead.map((line) => make("li", {}, line));
  return [make("p", {}, "decided nothing"), make("ul", {}, ...told)];
}

fillFigures();
fillParting();
drawPairs();
showPage();
