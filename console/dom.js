// Elements without innerHTML: text from the cluster is never parsed as HTML.

const SVG = 'http://www.w3.org/2000/svg';
const SVG_TAGS = new Set(['svg', 'path', 'line', 'text', 'g', 'rect', 'title', 'circle']);

/** Creates an element. Properties that start with `on` are listeners; `false`, `null` and `undefined` leave an attribute out. */
export function h(tag, properties = {}, ...children) {
  const svg = SVG_TAGS.has(tag);
  const element = svg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith('on') || name === 'value' || name === 'checked') element[name] = value;
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...nodes(children));
  return element;
}

function nodes(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}

/** Replaces the children of `parent`, and keeps each element that is still there: focus, selection and scroll position stay. */
export function update(parent, ...children) {
  const wanted = nodes(children).map((child) => (child instanceof Node ? child : document.createTextNode(String(child))));
  wanted.forEach((child, at) => {
    const present = parent.childNodes[at];
    if (!present) parent.append(child);
    else if (present !== child) merge(parent, present, child);
  });
  while (parent.childNodes.length > wanted.length) parent.lastChild.remove();
}

function merge(parent, present, wanted) {
  const same = present.nodeType === wanted.nodeType && present.nodeName === wanted.nodeName
    && present.dataset?.key === wanted.dataset?.key && !('owned' in (wanted.dataset ?? {}));
  if (!same) return parent.replaceChild(wanted, present);
  if (present.nodeType === Node.TEXT_NODE) {
    if (present.data !== wanted.data) present.data = wanted.data;
    return undefined;
  }
  for (const { name } of [...present.attributes]) if (!wanted.hasAttribute(name)) present.removeAttribute(name);
  for (const { name, value } of wanted.attributes) if (present.getAttribute(name) !== value) present.setAttribute(name, value);
  for (const listener of ['onclick', 'onchange', 'oninput', 'onsubmit', 'onkeydown']) present[listener] = wanted[listener];
  if ('checked' in wanted && present.checked !== wanted.checked) present.checked = wanted.checked;
  update(present, ...wanted.childNodes);
  return undefined;
}

let notices = 0;
let success = null;

/**
 * Shows a message for a few seconds, or until the next one, so that messages of quick changes do not pile up over the page. An error
 * stays until it is closed.
 */
export function notify(text, { error = false } = {}) {
  const notice = h('div', { class: error ? 'notice error' : 'notice', id: `notice-${(notices += 1)}` },
    h('span', {}, text),
    h('button', { type: 'button', 'aria-label': 'Close the message', onclick: () => notice.remove() }, '×'));
  document.getElementById('notices').append(notice);
  if (error) return;
  success?.remove();
  success = notice;
  setTimeout(() => notice.remove(), 6000);
}

/** Asks in a modal dialog; `dismiss` is the name of the button that changes nothing. Resolves to the form's data, or to null if it was cancelled. */
export function ask({ title, body = [], action, danger = false, dismiss = 'Cancel' }) {
  return new Promise((resolve) => {
    const form = h('form', { method: 'dialog' },
      h('h2', {}, title), body,
      h('div', { class: 'row end' },
        h('button', { type: 'submit', value: 'cancel', formnovalidate: true }, dismiss),
        h('button', { type: 'submit', value: 'ok', class: danger ? 'danger' : 'primary' }, action)));
    const dialog = h('dialog', { 'aria-label': title }, form);
    dialog.onclose = () => {
      const data = dialog.returnValue === 'ok' ? Object.fromEntries(new FormData(form)) : null;
      dialog.remove();
      resolve(data);
    };
    document.body.append(dialog);
    dialog.showModal();
  });
}
