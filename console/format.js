// Numbers, times and states for people.

import { h } from './dom.js';

const number = new Intl.NumberFormat();
const clock = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

export const count = (value) => (value === null || value === undefined ? '–' : number.format(value));

export function rate(value) {
  if (value === null || value === undefined) return '–';
  return value < 100 ? value.toFixed(1) : number.format(Math.round(value));
}

/** "3 s", "4 min", "2 h 10 min", "5 d" */
export function duration(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return `${Math.floor(hours / 24)} d`;
}

/** "1.500 s", "3 min": the time between two instants, with milliseconds if it is short. */
export function span(from, to) {
  const milliseconds = Date.parse(to) - Date.parse(from);
  return milliseconds < 10_000 ? `${(milliseconds / 1000).toFixed(3)} s` : duration(milliseconds);
}

/** An instant relative to now; local time and UTC are its tooltip. */
export function ago(text) {
  if (!text) return '–';
  const at = Date.parse(text);
  const difference = Date.now() - at;
  const words = difference >= 0 ? `${duration(difference)} ago` : `in ${duration(-difference)}`;
  return h('time', { datetime: text, title: `${clock.format(at)}\n${text} (UTC)` }, words);
}

/** The time since an instant: "3 s"; local time and UTC are its tooltip. */
export function elapsed(text) {
  if (!text) return '–';
  const at = Date.parse(text);
  return h('time', { datetime: text, title: `${clock.format(at)}\n${text} (UTC)` }, duration(Date.now() - at));
}

const UNITS = { ms: 'ms', s: 's', m: 'min', h: 'h', d: 'd' };

/** A duration of the API: "1500ms", "5m". */
export function term(text) {
  const [, value, unit] = /^(\d+)(ms|s|m|h|d)$/.exec(text) ?? [];
  if (!value) return text ?? '–';
  return unit === 'ms' && value >= 1000 ? `${(value / 1000).toFixed(value < 10_000 ? 3 : 1)} s` : `${value} ${UNITS[unit]}`;
}

const UNIT_MILLISECONDS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The milliseconds of a duration of the API. */
export function milliseconds(text) {
  const [, value, unit] = /^(\d+)(ms|s|m|h|d)$/.exec(text);
  return value * UNIT_MILLISECONDS[unit];
}

/** An instant in local time; UTC is its tooltip. */
export function instant(text) {
  return text ? h('time', { datetime: text, title: `${text} (UTC)` }, clock.format(Date.parse(text))) : '–';
}

export function badge(state) {
  return h('span', { class: `badge ${state}` }, state);
}
