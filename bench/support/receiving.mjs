// What the benchmarks of receiving share: the contenders, the tables and the charts.
import { median } from '../lib/bench.mjs';
import { peers } from '../peers/index.mjs';
import { sizeLabel } from './payloads.mjs';

/** Arguments of Node. Everything else has the defaults that users have. */
export const nodeArgs = ['--expose-gc'];

/** Returns the id of a contender: a peer, a size, text or bytes, and the kind of the frames (text, unicode, binary). */
export const idOf = ({ peer, size, mode, kind = 'text' }) =>
  [peer, size, mode, ...(kind === 'text' ? [] : [kind])].join(' ');

const operators = ['ours3', 'ours6', 'oursPlain'];

/** Returns the contenders: every peer at the `small` sizes, and those of `few` at the `large` sizes, where copying dominates. */
export const contendersAt = ({ small, large, few, withBytes = true }) =>
  [...small.map((size) => [size, Object.keys(peers)]), ...large.map((size) => [size, few])].flatMap(([size, names]) =>
    names
      .filter((peer) => peers[peer].isHere?.() ?? true)
      .flatMap((peer) => peers[peer].modes.map((mode) => ({ peer, size, mode })))
      .filter(({ peer, mode }) => {
        const isMore = withBytes && small.includes(size) && !operators.includes(peer);
        return mode === 'text' || peer === 'raw' || isMore;
      }),
  );

/** Throws if a peer received less than the others. A letter of two bytes has the length 1 in a string. */
export const checkUnits = (samples) => {
  for (const each of Object.values(samples).flat()) {
    const whole = each.kind === 'unicode' && each.mode === 'text' ? each.size - 1 : each.size;
    if (each.peer !== 'raw' && each.unitsPerFrame !== whole)
      throw new Error(`${idOf(each)} received ${each.unitsPerFrame} of ${whole} for each frame.`);
  }
};

const of = (samples, key) => (peer, size, mode) => {
  const found = samples[idOf({ peer, size, mode })];
  return found && median(found.map((each) => each[key]));
};

/** Returns the tables of CPU time and of frames a second, with a row for each peer. */
export const receivingTables = (samples, sizes) => {
  const tableOf = (title, key, round = (value) => value) => {
    const read = of(samples, key);
    const rows = Object.entries(peers).flatMap(([peer, { title: name, modes }]) =>
      modes.map((mode) => [
        modes.length > 1 || mode === 'bytes' ? `${name}, ${mode === 'text' ? 'as text' : 'as bytes'}` : name,
        ...sizes.map((size) => {
          const value = read(peer, size, mode);
          return value === undefined ? undefined : round(value);
        }),
      ]),
    );
    const measured = rows.filter((row) => row.slice(1).some((value) => value !== undefined));
    return { title, columns: ['receiver', ...sizes.map(sizeLabel)], rows: measured };
  };
  return [
    tableOf('CPU time a frame, ns', 'ns', (value) => Number(value.toPrecision(3))),
    tableOf('Frames a second of wall time (has no goal)', 'framesPerSecond', (value) => Number(value.toPrecision(3))),
  ];
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
  return { id, title, kind: 'bars', x: 'receiver', y: 'ns of CPU a frame', log: false, highlight: 'ours', series };
};

/** Returns the line chart over the sizes. */
export const growthChart = (samples, sizes, names, { id, title }) => {
  const read = of(samples, 'ns');
  const points = (peer) =>
    sizes.flatMap((size) => [[size, read(peer, size, peers[peer].modes[0])]].filter(([, ns]) => ns));
  const series = names.map((peer) => ({ name: peers[peer].title, points: points(peer) }));
  return { id, title, kind: 'lines', x: 'bytes of payload', y: 'ns of CPU a frame', log: true, series };
};
