// Graphs over hours, of what cellar-web has sampled since it was started.
'use strict';

import {changed} from './address.js';
import {choice, draw, labelled, make, soft} from './dom.js';
import {ask} from './server.js';
import {count, size, time} from './text.js';

const HOURS = [[1, '1 hour'], [3, '3 hours'], [6, '6 hours'], [12, '12 hours'], [24, '24 hours']];
// Of the drawing, in its own units.
const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [480, 190, 62, 22, 8];

const plain = (n) => count(n >= 100 ? Math.round(n) : Number(n.toPrecision(3)));
const GRAPHS = [
  ['commands', 'Commands a second', plain], ['memory', 'Memory', size], ['clients', 'Clients', plain],
  ['cpu', 'Processors busy', plain], ['input', 'Received a second', size], ['output', 'Sent a second', size],
  ['errors', 'Errors a second', plain], ['log', 'Log', size],
];

// The step of a scale with few marks: 1, 2 or 5 times a power of ten, or of two for bytes.
function stepOf(most, format) {
  if (most <= 0) return 1;
  if (format === size) return 2 ** Math.ceil(Math.log2(most / 4));
  const power = 10 ** Math.floor(Math.log10(most / 4));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step * 4 >= most) || 10 * power;
}

const x = (i, points) => LEFT + (WIDTH - LEFT - 4) * i / Math.max(1, points - 1);
const y = (value, top) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top);

function yAxis(top, step, format) {
  const marks = [];
  for (let value = 0; value <= top * 1.0001; value += step) {
    marks.push(draw('line', {class: 'grid', x1: LEFT, x2: WIDTH - 4, y1: y(value, top), y2: y(value, top)}),
      draw('text', {x: LEFT - 6, y: y(value, top) + 4, 'text-anchor': 'end'}, format(value)));
  }
  return marks;
}

// Full hours, or parts of one, at most seven.
function xAxis(told, points) {
  const span = points * told.step;
  const every = [300, 600, 1800, 3600, 7200, 14400].find((seconds) => span / seconds <= 7) || 14400;
  const marks = [];
  for (let at = Math.ceil(told.from / every) * every; at < told.from + span; at += every) {
    const place = x((at - told.from) / told.step, points);
    if (place > WIDTH - 20) break;
    marks.push(draw('line', {class: 'grid', x1: place, x2: place, y1: TOP, y2: HEIGHT - BOTTOM}),
      draw('text', {x: place, y: HEIGHT - 6, 'text-anchor': 'middle'}, time(at * 1e6).slice(11, 16)));
  }
  return marks;
}

// A line for each stretch without a gap.
function lines(values, top) {
  const stretches = [[]];
  values.forEach((value, i) => {
    if (value === null) stretches.push([]);
    else stretches[stretches.length - 1].push(x(i, values.length).toFixed(1) + ',' + y(value, top).toFixed(1));
  });
  return stretches.filter((stretch) => stretch.length > 0).map((stretch) =>
    draw('polyline', {points: stretch.length === 1 ? stretch[0] + ' ' + stretch[0] : stretch.join(' ')}));
}

function graph([name, title, format], told) {
  const values = told.figures[name];
  const known = values.filter((value) => value !== null);
  const most = known.reduce((a, b) => Math.max(a, b), 0);
  const least = known.reduce((a, b) => Math.min(a, b), most);
  const step = stepOf(most, format);
  const top = Math.max(step, Math.ceil(most / step) * step);
  const last = known.length === 0 ? 'nothing yet' : format(known[known.length - 1]);
  const label = make('span', {class: 'soft'}, known.length === 0 ? '' : 'from ' + format(least) + ' to ' + format(most));
  const svg = draw('svg', {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img',
    'aria-label': `${title}: now ${last}, ${label.textContent}`}, ...yAxis(top, step, format), ...xAxis(told, values.length),
  ...lines(values, top));
  svg.addEventListener('mousemove', (event) => {
    const box = svg.getBoundingClientRect();
    const place = (event.clientX - box.left) / box.width * WIDTH;
    const i = Math.round((place - LEFT) / (WIDTH - LEFT - 4) * (values.length - 1));
    if (i < 0 || i >= values.length) return;
    label.textContent = time((told.from + i * told.step) * 1e6).slice(11) + ': ' + (values[i] === null ? 'nothing' : format(values[i]));
  });
  return make('figure', {class: 'graph', 'data-name': name}, make('figcaption', {}, make('b', {}, title), ' ', make('span', {}, last), ' ', label), svg);
}

export async function showGraphs(view, query) {
  const hours = HOURS.some(([n]) => String(n) === query.get('hours')) ? query.get('hours') : 1;
  const told = await ask('past', {hours});
  const select = choice(HOURS, hours, {id: 'hours', onchange: () => { location.hash = changed({hours: select.value}); }});
  if (document.activeElement && document.activeElement.id === 'hours') return;  // it is being chosen from
  view.show('Graphs', make('div', {class: 'ask'}, labelled('Of the last', select)),
    told.trouble === null ? null : make('p', {class: 'bad', role: 'status'}, 'There is no newest figure: ' + told.trouble + ' (cellar-web --graph-user)'),
    make('div', {class: 'graphs'}, ...GRAPHS.map((one) => graph(one, told))),
    soft('Times are UTC. cellar-web keeps a day of these, since it was started.'));
}
