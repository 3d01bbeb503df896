// Heat maps: how often ranges of a table were read and written, over time.
'use strict';

import {changed, link} from './address.js';
import {choice, labelled, make, rows, soft} from './dom.js';
import {ask} from './server.js';
import {tableNames, tabs} from './tables.js';
import {count, field, pack, pairs, shown, time} from './text.js';
import {written} from './words.js';

// Viridis, by Smith and van der Walt, in nine steps: also for eyes that tell no red from green.
const VIRIDIS = [[68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142], [31, 158, 137],
  [53, 183, 121], [110, 206, 88], [253, 231, 37]];
const HOURS = [[1, '1 hour'], [6, '6 hours'], [24, '24 hours'], [336, '2 weeks']];
const STEPS = 120;
const METRICS = ['reads', 'writes', 'bytes'];

let begun = null;  // where somebody drags from

function colour(share) {
  const at = Math.max(0, Math.min(1, share)) * (VIRIDIS.length - 1);
  const i = Math.min(VIRIDIS.length - 2, Math.floor(at));
  return VIRIDIS[i].map((low, c) => Math.round(low + (VIRIDIS[i + 1][c] - low) * (at - i)));
}

// Where shareAt gives null nothing is painted: the canvas shows its ground, which is no colour of the scale.
function paint(canvas, width, height, shareAt) {
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext('2d');
  const image = context.createImageData(width, height);
  for (let y = 0; y < height; ++y) {
    for (let x = 0; x < width; ++x) {
      const share = shareAt(x, y);
      if (share === null) continue;
      const [r, g, b] = colour(share);
      image.data.set([r, g, b, 255], 4 * (y * width + x));
    }
  }
  context.putImageData(image, 0, 0);
}

// Labels of some of `total` places along an axis, each where its place begins. `edge` is the side that they are
// measured from.
function axis(name, total, most, edge, textOf) {
  const labels = Math.min(total, most);
  const made = make('div', {class: 'axis ' + name});
  for (let i = 0; i < labels; ++i) {
    const at = Math.floor(i * total / labels);
    const label = make('span', {title: textOf(at)}, textOf(at));
    label.style[edge] = 100 * at / total + '%';
    made.append(label);
  }
  return made;
}

// The picture, and what is said under it of the place that is pointed at. A part that is dragged over is zoomed into.
function picture(area, onZoom) {
  const {table, metric, steps, keys, timeOf} = area;
  const canvas = make('canvas', {id: 'heat', role: 'img', 'aria-label': metric + ' of ' + shown(table) + ', by row key and time'});
  paint(canvas, Math.max(1, steps.length), Math.max(1, keys.length), (x, y) => area.share(steps[x] ? steps[x][y] : 0));
  const label = soft('Point at a place to see its time, its first key and its ' + metric + '; drag over a part to see it alone.');
  label.id = 'under';
  const placeOf = (event) => {
    const box = canvas.getBoundingClientRect();
    const within = (share, length) => Math.max(0, Math.min(length - 1, Math.floor(share * length)));
    return [within((event.clientX - box.left) / box.width, steps.length), within((event.clientY - box.top) / box.height, keys.length)];
  };
  canvas.addEventListener('pointermove', (event) => {
    const [x, y] = placeOf(event);
    if (!steps[x] || keys.length === 0) return;
    label.textContent = timeOf(x) + ' · from ' + shown(keys[y]) + ' · ' +
      (steps[x][y] ? count(steps[x][y]) : 'no') + ' ' + metric;
  });
  canvas.addEventListener('pointerdown', (event) => {
    begun = placeOf(event);
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointercancel', () => { begun = null; });
  canvas.addEventListener('pointerup', (event) => {
    const from = begun;
    begun = null;
    if (from === null) return;
    const to = placeOf(event);
    if (from[0] === to[0] && from[1] === to[1]) return;
    onZoom(Math.min(from[0], to[0]), Math.max(from[0], to[0]), Math.min(from[1], to[1]), Math.max(from[1], to[1]));
  });
  return [canvas, label];
}

function legendOf(metric, least, most) {
  const scale = make('canvas', {'aria-hidden': 'true'});
  paint(scale, 64, 1, (x) => x / 63);
  const legend = make('div', {class: 'legend'}, make('span', {class: 'none'}), 'no ' + metric);
  if (most > 0) legend.append(make('span', {class: 'from'}, count(least)), scale, count(most) + ' ' + metric);
  return legend;
}

// What is asked for: a span of time up to now, or the one that was zoomed into, in at most STEPS steps.
function spanOf(query) {
  const hours = HOURS.some(([n]) => String(n) === query.get('hours')) ? Number(query.get('hours')) : 6;
  const now = Math.floor(Date.now() / 1000);
  const to = Number(query.get('to')) || now;
  const from = Number(query.get('from')) || to - hours * 3600;
  let minutes = Math.max(1, Math.ceil((to - from) / 60 / STEPS));
  // What is older than a day is kept by quarters of an hour.
  if (now - from > 86400) minutes = Math.ceil(minutes / 15) * 15;
  return {hours, from, to, minutes, isZoomed: query.has('from') || query.has('lo')};
}

// The ranges between two first keys, if the table is still divided so.
function within(keys, query) {
  const at = (name) => query.has(name) ? keys.findIndex((key) => pack(key) === query.get(name)) : -1;
  const lo = Math.max(0, at('lo'));
  const hi = at('hi');
  return [lo, hi > lo ? hi : keys.length];
}

// The ranges that most falls on, each a link to its rows.
function hottest(area) {
  const sums = area.keys.map((key, y) => ({key, y, sum: area.steps.reduce((total, step) => total + (step[y] || 0), 0)}))
    .filter(({sum}) => sum > 0).sort((a, b) => b.sum - a.sum).slice(0, 10);
  if (sums.length === 0) return soft('none');
  const all = area.steps.flat().reduce((a, b) => a + (b || 0), 0);
  return rows(['from row', area.metric, 'share'], sums.map(({key, y, sum}) => [
    make('a', {href: link(['table', pack(area.table)], {min: y + area.first === 0 ? '' : '[' + written(key),
      max: area.next(y) === undefined ? '' : '(' + written(area.next(y))})}, shown(key)),
    count(sum), Math.round(100 * sum / all) + ' %']), ['key', 'n', 'n'], 'hottest ranges');
}

// What HOTKEYS has counted of this table, if it counts.
async function hotRows(table) {
  let told;
  try {
    told = await ask('hotkeys');
  } catch (error) {
    if (error.status !== 403 && error.status !== 400) throw error;
    return soft(error.message);
  }
  if (told === null) return soft('None is counted: HOTKEYS START METRICS 2 CPU NET begins that.');
  const [first] = told;
  const known = new Map();
  for (const [what, place] of [['by-cpu-time-us', 0], ['by-net-bytes', 1]]) {
    for (const [name, n] of first.includes(what) ? pairs(field(first, what)) : []) {
      const key = shown(name);
      const begin = [shown(table) + ':', shown(table).replace(/^0\//, '') + ':'].find((start) => key.startsWith(start));
      if (begin === undefined) continue;
      if (!known.has(key)) known.set(key, [key.slice(begin.length), '', '']);
      known.get(key)[place + 1] = count(n);
    }
  }
  return known.size === 0 ? soft('none of this table') : rows(['row', 'µs', 'bytes'], [...known.values()], ['key', 'n', 'n'], 'hot rows');
}

function controls(query, span, metric) {
  const select = (id, options, chosen, more) => {
    const made = choice(options, chosen, {id, onchange: () => { location.hash = changed({...more, [id]: made.value}); }});
    return made;
  };
  const length = span.to - span.from;
  const move = (id, text, from, to) => make('a', {id, class: 'button', href: changed({from: Math.round(from), to: Math.round(to)})}, text);
  return make('div', {class: 'ask'},
    labelled('Count', select('metric', METRICS.map((name) => [name, name]), metric)),
    labelled('Of the last', select('hours', HOURS, span.hours, {from: '', to: ''})),
    make('nav', {class: 'pager', 'aria-label': 'time'}, move('earlier', 'Earlier', span.from - length / 2, span.to - length / 2),
      move('later', 'Later', span.from + length / 2, span.to + length / 2),
      move('in', 'Zoom in', span.from + length / 4, span.to - length / 4),
      make('a', {id: 'whole', class: 'button', href: changed({from: '', to: '', lo: '', hi: ''})}, 'Whole')));
}

export async function showHeat(view, table, query) {
  const metric = METRICS.includes(query.get('metric')) ? query.get('metric') : 'reads';
  const span = spanOf(query);
  const heat = await ask('heat', {table64: pack(table), from: span.from * 1e6, to: span.to * 1e6, minutes: span.minutes,
    ranges: query.has('lo') ? 256 : 64});
  const hot = await hotRows(table);
  if (begun !== null || (document.activeElement && document.activeElement.tagName === 'SELECT')) return;  // somebody is at it
  const allKeys = field(heat, 'keys');
  const [first, last] = within(allKeys, query);
  const keys = allKeys.slice(first, last);
  const steps = field(heat, metric).map((step) => step.slice(first, last));
  const [from, step] = [field(heat, 'from'), field(heat, 'step')];
  const counted = steps.flat().filter((value) => value > 0);
  const most = counted.reduce((a, b) => Math.max(a, b), 0);
  const least = counted.reduce((a, b) => Math.min(a, b), most);
  const timeOf = (x) => time((from + x * step) * 1e6);
  const area = {table, metric, steps, keys, timeOf, first, next: (y) => allKeys[first + y + 1],
    share: (value) => !value ? null : most === least ? 1 : Math.log(value / least) / Math.log(most / least)};
  const [canvas, label] = picture(area, (x0, x1, y0, y1) => {
    location.hash = changed({from: from + x0 * step, to: from + (x1 + 1) * step, lo: pack(keys[y0]),
      hi: area.next(y1) === undefined ? '' : pack(area.next(y1))});
  });
  // Of a day the hour is enough; UTC, as everywhere on this page.
  const short = steps.length * step <= 86400 ? (x) => timeOf(x).slice(11, 16) : (x) => timeOf(x).slice(5, 16);
  view.show('Heat of ' + shown(table), tabs(table, 'heat'), controls(query, span, metric),
    make('div', {class: 'map'}, axis('keys', keys.length, 16, 'top', (y) => shown(keys[y])), canvas,
      axis('times', steps.length, 8, 'left', short), make('div', {class: 'name'}, 'row key ↓'),
      make('div', {class: 'name'}, 'time (UTC) →')),
    legendOf(metric, least, most), label, make('h2', {}, 'Hottest ranges'), hottest(area), make('h2', {}, 'Hot rows'), hot);
}

export function chooseTable(view) {
  view.show('Heat', soft('Of which table?'), make('ul', {}, ...tableNames().map((name) =>
    make('li', {}, make('a', {href: link(['heat', pack(name)])}, name)))));
}
