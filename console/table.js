// A table that draws only the rows in view, so that ten thousand rows cost as much as thirty.

import { h, update } from './dom.js';

/** A cell. Its text may be cut, so it is also the tooltip. */
function data({ title: column, cell, class: name }, row) {
  const content = cell(row);
  return h('td', { role: 'cell', class: name, 'data-title': typeof column === 'string' ? column : null, title: typeof content === 'string' && content.length > 30 ? content : null }, content);
}

/** The header. The roles of all parts are explicit, because a style that is not that of a table removes them. */
const head = (columns) => h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' },
  columns.map(({ title, class: name }) => h('th', { role: 'columnheader', scope: 'col', class: name }, title))));

/** Height of a row, as in the style sheet: a row of a narrow screen has two lines. */
const narrow = matchMedia('(max-width: 640px)');
const ROW = () => (narrow.matches ? 72 : 40);
const SPARE = 10;

/**
 * `columns` are `{title, cell(row), class}`; `key(row)` identifies a row. `more()` is called when the end comes into view. Returns the
 * element and `show(rows)`.
 */
export function virtualTable({ caption, columns, key, more = () => {} }) {
  let rows = [];
  const body = h('tbody', { role: 'rowgroup' });
  const table = h('table', { role: 'table', 'aria-label': caption }, head(columns), body);
  const element = h('div', { class: 'scroll virtual', 'data-owned': true, tabindex: 0, role: 'region', 'aria-label': caption }, table);
  const spacer = (name, height) => h('tr', { 'data-key': name, class: 'spacer', 'aria-hidden': 'true' }, h('td', { colspan: columns.length, 'data-height': height }));

  function draw() {
    const height = ROW();
    const first = Math.max(0, Math.floor(element.scrollTop / height) - SPARE);
    const last = Math.min(rows.length, Math.ceil((element.scrollTop + (element.clientHeight || 800)) / height) + SPARE);
    table.setAttribute('aria-rowcount', rows.length + 1);
    update(body, spacer('above', first * height),
      rows.slice(first, last).map((row, at) => h('tr', { role: 'row', 'data-key': key(row), 'aria-rowindex': first + at + 2 },
        columns.map((column) => data(column, row)))),
      spacer('below', (rows.length - last) * height));
    for (const cell of body.querySelectorAll('[data-height]')) cell.style.height = `${cell.dataset.height}px`;
    if (last >= rows.length - SPARE) more();
  }

  new ResizeObserver(() => rows.length > 0 && draw()).observe(element);
  let drawn = false;
  element.addEventListener('scroll', () => {
    if (drawn) return;
    drawn = true;
    requestAnimationFrame(() => {
      drawn = false;
      draw();
    });
  });
  return {
    element,
    show(given) {
      rows = given;
      draw();
    },
  };
}

/** A small table. On a narrow screen the style sheet makes a list of its rows. */
export function table({ caption, columns, rows, key }) {
  return h('div', { class: 'scroll stack', tabindex: 0, role: 'region', 'aria-label': caption }, h('table', { role: 'table', 'aria-label': caption }, head(columns),
    h('tbody', { role: 'rowgroup' }, rows.map((row) => h('tr', { role: 'row', 'data-key': key(row) }, columns.map((column) => data(column, row)))))));
}
