// Draws the four charts of docs/performance.md from the results. Measures nothing. The same results give the same bytes.
import { writeFileSync } from 'node:fs';
import * as Plot from '@observablehq/plot';
import { DOMParser } from 'linkedom';
import { folderOf } from './lib/root.mjs';
import { readResult } from './lib/write-result.mjs';
import { sizeLabel, sizes } from './support/payloads.mjs';

const tenths = (value) => String(Number(value.toFixed(1)));
const rangeOf = (values) => [...new Set([Math.min(...values), Math.max(...values)].map(tenths))].join(' to ');

const measuredOf = ({ name, goals }, id) => {
  const found = goals.find((goal) => goal.id === id);
  if (found === undefined) throw new Error(`${name} has no goal ${id}.`);
  return found.measured;
};

/** Returns a cell of the table that has the row and the column. */
const cellOf = ({ name, tables }, row, column) => {
  const isRow = (cells) => [row].flat().every((each, n) => cells[n] === each);
  const found = tables.find(({ columns, rows }) => columns.includes(column) && rows.some(isRow));
  if (found === undefined) throw new Error(`${name}: no table has the row ${row} and the column ${column}.`);
  return found.rows.find(isRow)[found.columns.indexOf(column)];
};

const ways = { plain: 'plain', tls: 'TLS' };

const receiving = () => {
  const result = readResult('bench/results/receiving.json');
  const places = Object.keys(ways).flatMap((way) => sizes.map((size) => [way, size]));
  const ratio = (peer, [way, size]) => measuredOf(result, `receiving/${peer}/text/${way}/0/${size}`);
  const of = (peer) => rangeOf(places.map((place) => ratio(peer, place)));
  return {
    title: [
      `Reading a frame: ws takes ${of('ws')} times as much`,
      `CPU time as this library, and Bun ${of('bun')} times`,
    ],
    axis: 'CPU time of a frame, this library = 1',
    isRatio: true,
    groups: places.map(([way, size]) => ({
      name: `${ways[way]}, ${sizeLabel(size)}`,
      bars: [
        { name: 'ws', value: ratio('ws', [way, size]), color: 1 },
        { name: 'Bun', value: ratio('bun', [way, size]), color: 2 },
      ],
    })),
  };
};

const app = () => {
  const result = readResult('bench/results/app.json');
  const tasks = { everything: 'every frame', wallets: 'of 500 wallets', wallet: 'of one wallet' };
  const ratio = (task, way) => measuredOf(result, `app/${task}/${way}/300/1024`);
  const of = (task) => rangeOf(Object.keys(ways).map((way) => ratio(task, way)));
  return {
    title: [
      `An app by hand takes ${of('everything')} times our CPU time if it`,
      `needs every frame, ${of('wallets')} times if it wants a few`,
    ],
    axis: 'CPU time by hand, this library = 1, frames of 1 KB',
    isRatio: true,
    groups: Object.entries(tasks).map(([task, name]) => ({
      name,
      bars: Object.entries(ways).map(([way, title], n) => ({ name: title, value: ratio(task, way), color: n + 1 })),
    })),
  };
};

const pages = () => {
  const result = readResult('bench/results/fanout.json');
  const counts = [10, 100, 1000];
  const ratios = rangeOf(counts.map((count) => measuredOf(result, `fanout/${count}`)));
  return {
    title: [`Pages: Server-Sent Events by hand take ${ratios}`, 'times as much CPU time as the relay'],
    axis: 'CPU time of the server for a frame and a page, µs',
    groups: counts.map((count) => ({
      name: `${count.toLocaleString('en')} pages`,
      bars: [
        { name: 'relay', value: cellOf(result, count, 'ours') / count, color: 0 },
        { name: 'by hand', value: cellOf(result, count, 'by hand') / count, color: 1 },
      ],
    })),
  };
};

const silence = () => {
  const reconnect = readResult('bench/results/reconnect.json');
  const storm = readResult('reliability/results/storm.json');
  const cluster = readResult('reliability/results/cluster.json');
  const closed = (client) => cellOf(reconnect, ['50 ms', client], 'first frame') * 50;
  const half = (column) => cellOf(storm, 'shutdown (1001)', column);
  const replica = (what) => Number(cellOf(cluster, what, 'without frames').split(' / ')[0]);
  const alone = {
    'close frame': closed('ours'),
    '… with standby': closed('ours, standby'),
    'service restart': half('50 %') - half('service was down'),
  };
  const replicas = {
    'owner: SIGTERM': replica('SIGTERM of the owner'),
    'owner: kill -9': replica('kill -9 of the owner'),
    'owner: cut off': replica('the owner is cut off from the engine: refused'),
    'owner: frozen': replica('SIGSTOP of the owner for 6 s, then SIGCONT'),
    'owner: black hole': replica('the owner is cut off from the engine: black hole'),
  };
  const groupsOf = (values, color) =>
    Object.entries(values).map(([name, value]) => ({ name, bars: [{ name: 'ms', value, color }] }));
  const seconds = (ms) => `${tenths(ms / 1_000)} s`;
  return {
    title: [
      `Silence after a failure: ${seconds(alone['close frame'])} for a close frame,`,
      `at most ${seconds(Math.max(...Object.values(replicas)))} when one of three replicas fails`,
    ],
    axis: 'without frames, ms (median)',
    groups: [...groupsOf(alone, 0), ...groupsOf(replicas, 2)],
  };
};

// As narrow as the column of a phone, so that the text stays legible there. A desktop shows it larger.
const [WIDTH, SHOWN_WIDTH] = [420, 560];
const margins = { marginTop: 52, marginBottom: 44, marginLeft: 126, marginRight: 66 };
const BAR = 14;
const STEP = BAR + 2;
const GAP = 9;

// A chart draws its own background: the page around it may be light while the system of the reader is dark.
const palette = (ink, muted, page, colors) =>
  `svg{color:${ink}}.page{fill:${page}}.label{stroke:${page}}[aria-label*="-axis"]{fill:${muted}}` +
  colors.map((color, n) => `.c${n}{fill:${color}}`).join('');
const style =
  'svg{font:12px system-ui,sans-serif}.title{font-size:13.5px;font-weight:600}.one{stroke-dasharray:3 2}' +
  '.label{paint-order:stroke;stroke-width:3px}' +
  palette('#1f2328', '#656d76', '#ffffff', ['#2a78d6', '#c77c02', '#4a3aa7']) +
  `@media(prefers-color-scheme:dark){${palette('#e6edf3', '#8d96a0', '#0d1117', ['#3987e5', '#c98500', '#9085e9'])}}`;

/** Draws horizontal bars in groups, with the value at the end of each bar. The unit of the y axis is a pixel. */
const draw = ({ title, axis, groups, isRatio = false }) => {
  const rows = [];
  const names = [];
  let bottom = 0;
  for (const { name, bars } of groups) {
    rows.push(...bars.map((bar, n) => ({ ...bar, y: bottom + GAP / 2 + n * STEP })));
    names.push({ name, y: bottom + (bars.length * STEP + GAP) / 2 });
    bottom += bars.length * STEP + GAP;
  }
  const height = margins.marginTop + bottom + margins.marginBottom;
  const valueOf = ({ name, value }) =>
    name === 'ms' ? `${Math.round(value).toLocaleString('en')} ms` : `${name} ${tenths(value)}`;
  const ends = { x1: 0, x2: 'value', y1: 'y', y2: ({ y }) => y + BAR, rx: 2 };
  const barsOf = (color) => Plot.rect(rows, { ...ends, filter: (row) => row.color === color, className: `c${color}` });
  const ticks = { nice: 4, ticks: 4, tickSize: 0, grid: true };
  // linkedom escapes attributes in XML documents only.
  const document = new DOMParser().parseFromString('<svg/>', 'image/svg+xml');
  const svg = Plot.plot({
    ...{ document, width: WIDTH, height, ...margins, className: 'plot', ariaLabel: title.join(' ') },
    x: { ...ticks, zero: true, label: axis, labelAnchor: 'center', labelArrow: 'none', labelOffset: 36 },
    y: { domain: [bottom, 0], axis: null },
    marks: [
      ...[0, 1, 2].map(barsOf),
      Plot.ruleX(isRatio ? [1] : [], { className: 'one' }),
      Plot.text(rows, {
        x: 'value',
        y: ({ y }) => y + BAR / 2,
        text: valueOf,
        textAnchor: 'start',
        dx: 5,
        className: 'label',
      }),
      Plot.text(names, { x: 0, y: 'y', text: 'name', textAnchor: 'end', dx: -8 }),
    ],
  });
  const element = (name, attributes, text = '') => {
    const created = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, String(value));
    created.textContent = text;
    return created;
  };
  svg.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  svg.setAttribute('role', 'img');
  svg.setAttribute('width', SHOWN_WIDTH);
  svg.setAttribute('height', Math.round((height * SHOWN_WIDTH) / WIDTH));
  svg.prepend(
    element('style', {}, style),
    element('rect', { class: 'page', width: '100%', height: '100%', rx: 6 }),
    ...title.map((line, n) => element('text', { class: 'title', x: 14, y: 22 + n * 18, 'text-anchor': 'start' }, line)),
  );
  return `${svg.outerHTML.replaceAll(/\d+\.\d{3,}/g, (number) => tenths(Number(number)))}\n`;
};

for (const [name, chartOf] of Object.entries({ receiving, app, pages, silence })) {
  writeFileSync(new URL(`${name}.svg`, folderOf('docs/performance/')), draw(chartOf()));
  console.log(`docs/performance/${name}.svg`);
}
