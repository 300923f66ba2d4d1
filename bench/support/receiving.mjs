// What the benchmarks of receiving share: the contenders, the tables and the charts.
import { median } from '../lib/bench.mjs';
import { figure } from '../lib/table.mjs';
import { peers } from '../peers/index.mjs';
import { sizeLabel } from './payloads.mjs';

/** Arguments of Node. Everything else has the defaults that users have. */
export const nodeArgs = ['--expose-gc'];

/** Returns the id of a contender: a peer, a size, text or bytes, and the kind of the frames (text, unicode, binary). */
export const idOf = ({ peer, size, mode, kind = 'text' }) =>
  [peer, size, mode, ...(kind === 'text' ? [] : [kind])].join(' ');

/** Bare sockets, which have no text. */
export const bare = ['raw', 'onread'];

/** The peers that show what's possible. A control explains a figure. */
const compared = Object.keys(peers).filter((peer) => !peers[peer].isControl);

/** Returns the peers that can be measured here. */
export const installed = (names = compared) => names.filter((peer) => peers[peer].isHere?.() ?? true);

/** Throws if a peer received less than the others. A letter of two bytes has the length 1 in a string. */
export const checkUnits = (samples) => {
  for (const each of Object.values(samples).flat()) {
    const whole = each.kind === 'unicode' && each.mode === 'text' ? each.size - 1 : each.size;
    if (!bare.includes(each.peer) && each.unitsPerFrame !== whole)
      throw new Error(`${idOf(each)} received ${each.unitsPerFrame} of ${whole} for each frame.`);
  }
};

/** How a receiver uses a frame. */
export const modeTitles = { text: 'as text', bytes: 'as bytes', held: 'held, then as text' };

const of = (samples, key) => (peer, size, mode) => {
  const found = samples[idOf({ peer, size, mode })];
  return found && median(found.map((each) => each[key]));
};

/** Returns the table of CPU time, with a row for each peer. */
export const receivingTable = (samples, sizes) => {
  const read = of(samples, 'ns');
  const rows = Object.entries(peers).flatMap(([peer, { title: name, modes }]) =>
    modes.map((mode) => [
      modes.length > 1 || mode !== 'text' ? `${name}, ${modeTitles[mode]}` : name,
      ...sizes.map((size) => {
        const ns = read(peer, size, mode);
        return ns && Number(ns.toPrecision(3));
      }),
    ]),
  );
  const measured = rows.filter((row) => row.slice(1).some((value) => value !== undefined));
  return { title: 'CPU time a frame, ns', columns: ['receiver', ...sizes.map(sizeLabel)], rows: measured };
};

/** Returns the table for frames of another kind, with a row for each of `names`. */
export const kindTable = (samples, sizes, { title, kind, mode, names }) => ({
  title,
  columns: ['receiver', ...sizes.map(sizeLabel)],
  rows: names.map((peer) => [
    peers[peer].title,
    ...sizes.map((size) =>
      Number(median(samples[idOf({ peer, size, mode, kind })].map(({ ns }) => ns)).toPrecision(3)),
    ),
  ]),
});

/** Returns a bar chart of the CPU time for a frame. The alternative text lists the figures. */
export const barChart = ({ id, title, series }) => {
  const figures = ({ name, points }) => `${name}: ${points.map(([peer, ns]) => `${peer} ${figure(ns)}`).join(', ')}`;
  const alt = `Bar chart: ${title}. CPU time in ns. ${series.map(figures).join('. ')}.`;
  return { id, title, alt, kind: 'bars', x: 'receiver', y: 'ns of CPU a frame', log: false, highlight: 'ours', series };
};

/** Returns the bar chart of one size. Peers with a separate protocol are only in the table. */
export const sizeChart = (samples, size, { id, title }) => {
  const read = of(samples, 'ns');
  const points = (mode) =>
    Object.entries(peers).flatMap(([peer, { title: name, protocol }]) => {
      const value = read(peer, size, mode);
      return value === undefined || protocol !== undefined ? [] : [[name, Math.round(value)]];
    });
  const series = [
    { name: 'read as text', points: points('text') },
    { name: 'left as bytes', points: points('bytes') },
  ];
  return barChart({ id, title, series });
};

/** Returns the line chart over the sizes. */
export const growthChart = (samples, sizes, names, { id, title }) => {
  const read = of(samples, 'ns');
  const points = (peer) =>
    sizes.flatMap((size) => [[size, read(peer, size, peers[peer].modes[0])]].filter(([, ns]) => ns));
  const series = names.map((peer) => ({ name: peers[peer].title, points: points(peer) }));
  const last = series.map(({ name, points: all }) => `${name} ${figure(Math.round(all.at(-1)[1]))}`).join(', ');
  const alt = `Line chart: ${title}. CPU time in ns, which grows with the size. At ${sizeLabel(sizes.at(-1))}: ${last}.`;
  return { id, title, alt, kind: 'lines', x: 'bytes of payload', y: 'ns of CPU a frame', log: true, series };
};
