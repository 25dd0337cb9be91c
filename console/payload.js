// Stored bytes as JSON, text or hex. JSON is formatted as it is written, because parsing would round its numbers.

import { open } from './api.js';
import { h, notify } from './dom.js';
import { count } from './format.js';

const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/** Indents JSON. Numbers and texts stay as they are written. */
export function indented(text) {
  let out = '';
  let depth = 0;
  let last = '';
  const line = () => `\n${'  '.repeat(depth)}`;
  for (const [token] of text.matchAll(TOKENS)) {
    if (token === '}' || token === ']') {
      depth -= 1;
      out += last === '{' || last === '[' ? token : line() + token;
    } else {
      out += (last === '{' || last === '[' || last === ',' ? line() : '') + token + (token === ':' ? ' ' : '');
      if (token === '{' || token === '[') depth += 1;
    }
    last = token;
  }
  return out;
}

/** Rows of offset, bytes and printable characters. */
function dump(bytes, width) {
  const rows = [];
  for (let at = 0; at < bytes.length; at += width) {
    const row = [...bytes.subarray(at, at + width)];
    const hex = row.map((byte) => byte.toString(16).padStart(2, '0')).join(' ').padEnd(3 * width - 1);
    const printable = row.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '.')).join('');
    rows.push(`${at.toString(16).padStart(4, '0')} ${hex} ${printable}`);
  }
  return rows.join('\n');
}

function parses(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Reads stored bytes: `{bytes, type, text, json}`. `text` is null if they are not UTF-8, `json` if they are not JSON. */
export async function stored(path, signal) {
  const answer = await open('GET', path, { signal });
  const bytes = new Uint8Array(await answer.arrayBuffer());
  let text = null;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch { /* They are not text. */ }
  return { bytes, type: answer.headers.get('bellwether-content-type'), text, json: text !== null && parses(text) ? indented(text) : null };
}

/** A section that shows stored bytes in a form, `json`, `text` or `hex`; `choose(form)` is called for another one. */
export function view(title, { bytes, type, text, json }, form, choose) {
  const forms = {
    json: () => json,
    text: () => text,
    hex: () => dump(bytes, matchMedia('(max-width: 640px)').matches ? 8 : 16),
  };
  const possible = { json: json !== null, text: text !== null, hex: true };
  const shown = [form, 'json', 'text', 'hex'].find((name) => possible[name]);
  const content = forms[shown]();
  // What is copied is what is stored, not its indented form.
  const copied = shown === 'hex' ? content : text;
  const copy = () => navigator.clipboard.writeText(copied).then(() => notify(`${title} copied.`), ({ message }) => notify(message, { error: true }));
  return h('section', {},
    h('div', { class: 'row' }, h('h2', { class: 'grow' }, title),
      h('span', { class: 'quiet' }, type && `${type}, `, bytes.length === 1 ? '1 byte' : `${count(bytes.length)} bytes`),
      Object.keys(forms).map((name) => h('button', {
        type: 'button', 'aria-pressed': String(name === shown), 'aria-label': `${title} as ${name}`, disabled: !possible[name],
        title: possible[name] ? null : `the bytes are not ${name === 'json' ? 'JSON' : 'UTF-8'}`, onclick: () => choose(name),
      }, name)),
      h('button', { type: 'button', 'aria-label': `Copy ${title}`, disabled: !navigator.clipboard, onclick: copy }, 'Copy')),
    h('pre', { class: shown === 'hex' ? 'hex' : null, tabindex: 0, 'aria-label': title }, content));
}
