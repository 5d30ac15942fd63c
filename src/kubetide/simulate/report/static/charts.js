// Which plots there are, and which decisions each of them shows.
const COLOURS = ["--c0", "--c1", "--c2", "--c3", "--c4", "--c5", "--c6"];

function ofMany(items, kind, values) {
  return items.map((item, index) => ({
    label: item.name,
    values: values(item),
    colour: COLOURS[index % COLOURS.length],
    kind,
    dash: kind === "line" && index >= COLOURS.length,
  }));
}

function drawAll() {
  view = wholeRun();
  const parent = document.getElementById("charts");
  const pods = DATA.marks.filter((mark) => mark.loop !== "nodes");
  const nodes = DATA.marks.filter((mark) => mark.loop === "nodes");
  const add = (spec) => new Plot(spec, DATA.time, parent);
  parent.append(make("h2", {}, "Cluster"));
  add({ title: "Load", unit: "requests/s", series: ofMany(DATA.services, "line", (service) => service.offered), marks: pods });
  add({ title: "Nodes", unit: "ready, by group", series: ofMany(DATA.groups, "stack", (group) => group.nodes), marks: nodes, whole: true });
  add({ title: "Pending pods", unit: "without a node", series: [{ label: "pending", values: DATA.pending, colour: "--c1", kind: "area" }], marks: nodes, whole: true });
  add({
    title: "CPU", unit: "cores",
    series: [
      { label: "allocatable", values: DATA.cpu.allocatable, colour: "--c6", kind: "area" },
      { label: "requested", values: DATA.cpu.requested, colour: "--c0", kind: "step" },
      { label: "used", values: DATA.cpu.used, colour: "--c1", kind: "line" },
    ],
  });
  add({ title: "SLO minutes lost", unit: "since the start", series: ofMany(DATA.services, "step", (service) => service.lost), whole: true });
  if (DATA.services.some((service) => service.lostOwnStep.some((lost, at) => lost !== service.lost[at]))) {
    add({ title: "SLO minutes lost at the load's own step", unit: "since the start", series: ofMany(DATA.services, "step", (service) => service.lostOwnStep), whole: true });
  }
  add({ title: "Cost", unit: `${DATA.currency} since the start`, series: [{ label: "spent", values: DATA.cost, colour: "--c2", kind: "load" }], marks: nodes });
  if (DATA.forecasts.length) parent.append(make("h2", {}, "Forecasts"));
  for (const one of DATA.forecasts) {
    add({
      title: one.name, unit: "load in pods",
      series: [
        { label: "came", values: one.came, colour: "--c0", kind: "load" },
        { label: "foretold", values: one.foretold, colour: "--c1", kind: "step", dash: true },
      ],
      marks: pods.filter((mark) => mark.subject === one.name),
    });
  }
  if (DATA.services.length) parent.append(make("h2", {}, "Services"));
  for (const service of DATA.services) addService(service, add, pods);
}

function addService(service, add, pods) {
  const marks = pods.filter((mark) => mark.subject === service.name || mark.subject.endsWith(`/${service.name}`));
  add({
    title: service.name, unit: "requests/s",
    series: [
      { label: "offered", values: service.offered, colour: "--c0", kind: "load" },
      { label: "capacity", values: service.capacity, colour: "--c2", kind: "step" },
    ],
    violated: service.violated,
    marks,
  });
  add({
    title: service.name, unit: "replicas", whole: true,
    series: [
      { label: "existing", values: service.existing, colour: "--c6", kind: "area" },
      { label: "ready", values: service.ready, colour: "--c0", kind: "step" },
      { label: "wanted", values: service.wanted, colour: "--c1", kind: "step", dash: true },
    ],
    marks,
  });
}
