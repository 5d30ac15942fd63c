// The answers of a page that is a file, out of what stands in it: those of the server, as far as they are there.
function answerOf(path, parameters) {
  const [name, ...rest] = path.split("/").map(decodeURIComponent);
  if (FILE[name]?.error) throw new Error(FILE[name].error);
  if (name === "explain") return explanationOf(rest.join("/"), parameters);
  if (name === "decisions") return decisionsIn(FILE.decisions, parameters);
  if (name === "history") return figuresIn(FILE.history, parameters);
  if (name === "status" && parameters.at) return statusAt(parameters.at);
  if (name === "ahead") return aheadIn(FILE.ahead, parameters);
  return FILE[name];
}

// Why at the end of the run is in the file; of any other time there is what was decided last until then.
function explanationOf(object, { at = "" }) {
  const found = at ? null : FILE.explain[object];
  if (found?.error) throw new Error(found.error);
  const [kind] = object.split("/");
  return found || { lines: lastDecided(kind, object.slice(kind.length + 1), at) };
}

function lastDecided(kind, subject, at) {
  const [last] = decisionsIn(FILE.decisions, { subject, loop: LOOPS[kind], until: at, limit: 1 }).decisions;
  const until = at ? ` until ${timeText(at)}` : "";
  const said = last ? [`Decided last${until}, at ${timeText(last.at)}: ${last.text}`, ...last.why.map((line) => `    ${line}`)] : [`Nothing was decided about it${until}.`];
  const rest = at ? "says in full why at the end of the run alone" : "explains not every object";
  const asked = `kubetide explain ${kind} ${subject}${at ? ` --at ${at}` : ""} --out FOLDER`;
  return ["", ...said, `This page is a file, which ${rest}. Of any time it is said, where the file's folder is, by \`kubetide ui --out FOLDER\`, and by \`${asked}\`.`];
}

// The end of what a time means: a whole second lasts one.
const endOf = (at) => epoch(at) + (at.includes(".") ? 1e-6 : 1);

function decisionsIn(all, { q = "", loop = "", subject = "", until = "", limit, skip = 0 }) {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  const end = until ? endOf(until) : Infinity;
  const found = all.decisions.filter((one) => {
    if ((loop && one.loop !== loop) || (until && epoch(one.at) >= end)) return false;
    const isPart = loop && subject.includes("/") && one.subject.startsWith(`${subject}/`);
    if (subject && one.subject !== subject && !isPart && !one.text.split(/[\s,:]+/).includes(subject)) return false;
    const text = words.length ? [one.text, one.subject, ...one.why].join(" ").toLowerCase() : "";
    return words.every((word) => text.includes(word));
  });
  return { found: found.length, decisions: found.slice(skip, skip + limit) };
}

function figuresIn(all, { kind = "", name = "", figure = "", at = "", window = "" }) {
  const until = at ? Math.min(epoch(at), epoch(all.until)) : epoch(all.until);
  const length = window ? secondsOf(window) : Infinity;
  const since = Math.max(epoch(all.since), until - length);
  const fits = (line) => (!kind || line.kind === kind) && (!figure || line.figure === figure) && (!name || line.name === name || (line.kind === "metric" && line.name.startsWith(`${name}/`)));
  const lines = all.lines.filter(fits).map((line) => between(line, since, until)).filter((line) => line.values.some((value) => value !== null));
  return { since: instant(since), until: instant(until), kept: all.kept, found: lines.length, lines };
}

// The part of a line between two times; what held when it begins is its first point.
function between(line, since, until) {
  const first = Math.max(line.times.findLastIndex((time) => time <= since), 0);
  const last = line.times.findLastIndex((time) => time <= until) + 1;
  const times = line.times.slice(first, last);
  if (times.length) times[0] = Math.max(times[0], since);
  return { ...line, times, values: line.values.slice(first, last) };
}

const UNITS = { s: 1, m: 60, h: 3600 };

function secondsOf(duration) {
  return [...duration.matchAll(/([\d.]+)([smh])/g)].reduce((sum, [, count, unit]) => sum + Number(count) * UNITS[unit], 0);
}

// Tables are of the end of the run; of another time there are its figures and decisions.
function statusAt(at) {
  return { at, answer: [], loops: [], tables: {}, decisions: decisionsIn(FILE.decisions, { until: at, limit: 10 }).decisions.toReversed() };
}

function aheadIn(all, { ahead, at = "" }) {
  if (at) throw new Error("This page is a file, which knows what is to come at its end alone; `kubetide plan` knows it at any time.");
  const until = instant(epoch(all.at) + secondsOf(ahead));
  return { ...all, until, entries: all.entries.filter((one) => epoch(one.at) <= epoch(until)) };
}
