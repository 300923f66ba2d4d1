// What the benches of receiving share: who takes part, and the tables and charts of what was measured.
import { median } from '../lib/bench.mjs';
import { peers } from '../peers/index.mjs';
import { sizeLabel } from './payloads.mjs';

/** For Node, whose defaults are left as a user has them. */
export const nodeArgs = ['--expose-gc'];

/** A contender: a peer at a size, its frames read as text or left as bytes; `kind` is of the frames: text, unicode, binary. */
export const idOf = ({ peer, size, mode, kind = 'text' }) =>
  [peer, size, mode, ...(kind === 'text' ? [] : [kind])].join(' ');

const operators = ['ours3', 'ours6', 'oursPlain'];

/** Lists contenders: every peer at the sizes that are `small`, those of `few` at the `large` ones, where copying is most of it. */
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

/** Refuses samples of a peer that was not given what the others were. A letter of two bytes is one of a text. */
export const checkUnits = (samples) => {
  for (const each of Object.values(samples).flat()) {
    const whole = each.kind === 'unicode' && each.mode === 'text' ? each.size - 1 : each.size;
    if (each.peer !== 'raw' && each.unitsPerFrame !== whole)
      throw new Error(`${idOf(each)} took ${each.unitsPerFrame} of ${whole} a frame.`);
  }
};

const of = (samples, key) => (peer, size, mode) => {
  const found = samples[idOf({ peer, size, mode })];
  return found && median(found.map((each) => each[key]));
};

/** CPU time and wall rates, a row for each peer. */
export const receivingTables = (samples, sizes) => {
  const made = (title, key, round = (value) => value) => {
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
    made('CPU time a frame, ns', 'ns', (value) => Number(value.toPrecision(3))),
    made('Frames a second of wall time (reported, not judged)', 'framesPerSecond', (value) =>
      Number(value.toPrecision(3)),
    ),
  ];
};

/** The same for frames of another kind, a row for each of `names`. */
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

/** Bars of one size, as text and as bytes; who speaks a protocol of his own is in the table alone. */
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

/** Lines over the sizes. */
export const growthChart = (samples, sizes, names, { id, title }) => {
  const read = of(samples, 'ns');
  const points = (peer) =>
    sizes.flatMap((size) => [[size, read(peer, size, peers[peer].modes[0])]].filter(([, ns]) => ns));
  const series = names.map((peer) => ({ name: peers[peer].title, points: points(peer) }));
  return { id, title, kind: 'lines', x: 'bytes of payload', y: 'ns of CPU a frame', log: true, series };
};
