// Small functions that change the document. Text from the daemon becomes text nodes, never markup.

/** Returns the element with this id. */
export const element = (id) => document.getElementById(id);

/** Sets the text of an element, if it differs. */
export function setText(node, text) {
  const wanted = String(text);
  if (node.textContent !== wanted) node.textContent = wanted;
}

/** Sets the text of the element with this id. */
export const text = (id, value) => setText(element(id), value);

/** Sets an attribute, if it differs. */
export function attribute(node, name, value) {
  if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

/** Shows or hides the element with this id. */
export function show(id, isShown) {
  const node = element(id);
  if (node.hidden === isShown) node.hidden = !isShown;
}

/** Makes an element of SVG. */
export const svg = (name) => document.createElementNS("http://www.w3.org/2000/svg", name);

/**
 * Fills the body of a table. A row is a list of cells, and a cell is a text, or an object with
 * `text` and `kind` (a class). The first cell of a row becomes its heading.
 */
export function rows(id, lines) {
  const body = element(id);
  while (body.rows.length > lines.length) body.deleteRow(-1);
  lines.forEach((cells, number) => {
    const row = body.rows[number] ?? body.insertRow();
    cells.forEach((value, column) => {
      const name = column === 0 ? "th" : "td";
      const cell = row.cells[column] ?? row.appendChild(document.createElement(name));
      if (column === 0) cell.scope = "row";
      fill(cell, value);
    });
  });
}

/** Makes the heading of a column. */
export function heading(value) {
  const cell = document.createElement("th");
  cell.scope = "col";
  return fill(cell, value);
}

function fill(cell, value) {
  const { text: words, kind = "" } = typeof value === "object" ? value : { text: value };
  if (cell.className !== kind) cell.className = kind;
  setText(cell, words);
  return cell;
}

/** Makes a cell with a number. */
export const number = (text, kind = "") => ({ text, kind: `number ${kind}`.trim() });
