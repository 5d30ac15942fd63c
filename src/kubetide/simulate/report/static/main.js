// Fills the page from the inline data.
function fillSummary() {
  const { cells } = DATA;
  document.getElementById("name").textContent = cells.name;
  document.getElementById("period").textContent = cells.period;
  document.getElementById("facts").append(
    ...cells.facts.map(([label, value]) => make("div", {}, make("dt", {}, label), make("dd", {}, value))));
  const tables = [cells.services, cells.groups].filter((table) => table.rows.length);
  document.getElementById("tables").append(...tables.map(cellsTable));
  document.getElementById("mark-key").append(
    "Marks:",
    ...[["1", "more"], ["-1", "less"], ["0", "both, or neither"]].flatMap(([sign, text]) => [
      make("b", { class: SIGN_CLASS[sign] }, DATA.arrows[sign]), ` ${text}`]));
}

function fillNotes() {
  const { bucketSteps, cells, stepSeconds, steps, marksLeftOut } = DATA;
  const notes = [
    ...cells.notices,
    bucketSteps === 1
      ? `Every point is one sampling step of ${stepSeconds} s.`
      : `${numberText(steps)} sampling steps of ${stepSeconds} s are drawn as points of ${bucketSteps} steps each: the largest value of load, used CPU and pending pods, the last value of all else. The summary is made from every step.`,
    "Capacity is what the ready pods can serve. A service's plot is shaded where it missed its objective; an SLO minute is lost when at least one step of it did. At the load's own step, each value of the trace is compared with the capacity: a second of a burst counts that the mean of a step hides.",
    "Pod-minutes count pods from their creation. Unserved is the share of requests above the ready capacity; slack is the share of the CPU that ready pods asked for and that no request needed.",
    "Without scaling: every node group at its largest size of the run, all the time. Lower bound: the CPU that pods asked for, at the cheapest price per core; no packing of the same pods costs less.",
    "All times are UTC.",
  ];
  if (marksLeftOut) notes.push(`${numberText(marksLeftOut)} later decisions are not in this page; the decision records hold them.`);
  document.getElementById("notes").append(...notes.map((note) => make("li", {}, note)));
}

fillSummary();
fillNotes();
drawAll();
showPage();
