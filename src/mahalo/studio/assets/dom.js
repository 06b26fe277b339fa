// Elements made of text, never of markup: whatever a table holds is shown as it is.

export const $ = (id) => document.getElementById(id);

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Control characters as visible pictures, so that nothing is hidden in a text.
export function visible(text) {
  return String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, (c) => (c === "\u007f" ? "\u2421" : String.fromCharCode(0x2400 + c.charCodeAt(0))))
    .replace(/[\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}

export function say(text) {
  $("status").textContent = text;
}

export function nameOf(row) {
  return visible(row.text ? `${row.id}: ${row.text}` : row.id);
}
