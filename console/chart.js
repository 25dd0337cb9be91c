// Line charts as SVG. Their legends have the latest values as text.

import { h } from './dom.js';
import { count, rate } from './format.js';

const [WIDTH, HEIGHT, LEFT, BOTTOM] = [480, 140, 44, 24];

/** A rounded value not below `value`: 1, 2 or 5 times a power of ten. */
function ceiling(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}

/**
 * A chart of samples `{at, …}`. Each line is `{name, of}`: its label and the function from a sample to its value, or null where there
 * is none.
 */
export function chart({ title, samples, lines, decimals = false }) {
  const shown = decimals ? rate : count;
  const values = lines.flatMap(({ of }) => samples.map(of)).filter((value) => value !== null);
  const top = ceiling(Math.max(...values, 1));
  const times = samples.map(({ at }) => Date.parse(at));
  const [from, to] = [times[0], Math.max(times.at(-1) ?? 0, (times[0] ?? 0) + 60_000)];
  const x = (time) => LEFT + ((time - from) / (to - from)) * (WIDTH - LEFT - 8);
  const y = (value) => 8 + (1 - value / top) * (HEIGHT - BOTTOM - 8);
  const path = (of) => {
    let text = '';
    let drawn = false;
    samples.forEach((sample, at) => {
      const value = of(sample);
      if (value !== null) text += `${drawn ? 'L' : 'M'}${x(times[at]).toFixed(1)} ${y(value).toFixed(1)}`;
      drawn = value !== null;
    });
    return text;
  };
  const time = (at) => new Date(at).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' });
  const label = (at, anchor, px) => h('text', { x: px, y: HEIGHT - 4, 'text-anchor': anchor }, time(at));
  const last = samples.at(-1);
  return h('figure', { class: 'chart' },
    h('figcaption', {}, h('b', {}, title), lines.map(({ name, of }, at) =>
      h('span', { class: `legend line${at}` }, `${name} ${last ? shown(of(last)) : '–'}`))),
    samples.length < 2
      ? h('p', { class: 'quiet' }, 'The gateway collects samples. The first ones appear in a few seconds.')
      : h('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': `${title}, the last ${Math.round((to - from) / 60_000)} minutes` },
        [0, top / 2, top].map((value) => h('g', { class: 'grid' },
          h('line', { x1: LEFT, x2: WIDTH - 8, y1: y(value), y2: y(value) }),
          h('text', { x: LEFT - 6, y: y(value) + 4, 'text-anchor': 'end' }, shown(value)))),
        label(from, 'start', LEFT), label(to, 'end', WIDTH - 8),
        lines.map(({ of }, at) => h('path', { class: `line${at}`, d: path(of) }))));
}
