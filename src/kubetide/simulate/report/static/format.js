// Numbers and times for people; all times are UTC.
const pad = (value) => String(value).padStart(2, "0");

function timeText(seconds) {
  const date = new Date(seconds * 1000);
  const day = `${date.getUTCFullYear()}-${pad(date.getUTCMonth() + 1)}-${pad(date.getUTCDate())}`;
  return `${day} ${clockText(seconds)}`;
}

function clockText(seconds) {
  const date = new Date(seconds * 1000);
  return `${pad(date.getUTCHours())}:${pad(date.getUTCMinutes())}:${pad(date.getUTCSeconds())}`;
}

function numberText(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  const digits = Number.isInteger(value) || size >= 100 ? 0 : size >= 1 ? 1 : 2;
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

// Short numbers for axes: 1.5k, 2M.
function axisText(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${+(value / 1e6).toFixed(2)}M`;
  if (size >= 1e4) return `${+(value / 1e3).toFixed(1)}k`;
  return String(+value.toFixed(4));
}

// Makes an element; strings become text, never markup.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") element.className = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const SIGN_CLASS = { "1": "up", "0": "other", "-1": "down" };
