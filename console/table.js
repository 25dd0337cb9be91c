// A table that draws only the rows in view, so that ten thousand rows cost as much as thirty.

import { h, update } from './dom.js';

/** A cell. Its text may be cut, so it is also the tooltip. */
function data({ cell, class: name }, row) {
  const content = cell(row);
  return h('td', { class: name, title: typeof content === 'string' && content.length > 30 ? content : null }, content);
}

const ROW = 40;
const SPARE = 10;

/**
 * `columns` are `{title, cell(row), class}`; `key(row)` identifies a row. `more()` is called when the end comes into view. Returns the
 * element and `show(rows)`.
 */
export function virtualTable({ caption, columns, key, more = () => {} }) {
  let rows = [];
  const head = h('tr', {}, columns.map(({ title, class: name }) => h('th', { scope: 'col', class: name }, title)));
  const body = h('tbody', {});
  const table = h('table', { 'aria-label': caption }, h('thead', {}, head), body);
  const element = h('div', { class: 'scroll', 'data-owned': true, tabindex: 0, role: 'region', 'aria-label': caption }, table);
  const spacer = (name, height) => h('tr', { 'data-key': name, class: 'spacer', 'aria-hidden': 'true' }, h('td', { colspan: columns.length, 'data-height': height }));

  function draw() {
    const first = Math.max(0, Math.floor(element.scrollTop / ROW) - SPARE);
    const last = Math.min(rows.length, Math.ceil((element.scrollTop + (element.clientHeight || 800)) / ROW) + SPARE);
    table.setAttribute('aria-rowcount', rows.length + 1);
    update(body, spacer('above', first * ROW),
      rows.slice(first, last).map((row, at) => h('tr', { 'data-key': key(row), 'aria-rowindex': first + at + 2 },
        columns.map((column) => data(column, row)))),
      spacer('below', (rows.length - last) * ROW));
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

/** A small table. */
export function table({ caption, columns, rows, key }) {
  return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': caption }, h('table', { 'aria-label': caption },
    h('thead', {}, h('tr', {}, columns.map(({ title, class: name }) => h('th', { scope: 'col', class: name }, title)))),
    h('tbody', {}, rows.map((row) => h('tr', { 'data-key': key(row) }, columns.map((column) => data(column, row)))))));
}
