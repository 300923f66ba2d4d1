// The figures in the sentences of docs/performance.md, from the results of the benchmarks.

/** Returns the range of some ratios, such as `1.5 to 2.4`. */
export const rangeOf = (ratios) => {
  const [least, most] = [Math.min(...ratios), Math.max(...ratios)].map((ratio) => String(Number(ratio.toFixed(1))));
  return least === most ? least : `${least} to ${most}`;
};

/** Returns the medians of the goals whose id begins with a text. */
export const mediansOf = (goals, start) => goals.filter(({ id }) => id.startsWith(start)).map(({ median }) => median);

/** Returns a whole number with commas: 41,883. */
export const grouped = (number) => String(number).replaceAll(/\B(?=(\d{3})+$)/g, ',');

/** Returns a cell of the first table that has the row and the column. */
export const cellOf = ({ tables }, row, column) => {
  const names = [row].flat();
  for (const { columns, rows } of tables) {
    const at = columns.indexOf(column);
    const found = rows.find((cells) => names.every((name, n) => cells[n] === name));
    if (at !== -1 && found !== undefined) return found[at];
  }
  throw new Error(`No table has the row ${names.join(' | ')} and the column ${column}.`);
};

const tenths = (number) => Number(number).toFixed(1);
const microseconds = (ns) => `${(ns / 1_000).toFixed(2)} µs`;
const ms = (value) => `${Math.round(value)} ms`;

const titled = ({ tables }, start) => tables.find(({ title }) => title.startsWith(start)).rows;
const roundTrips = ({ reconnect }, client) => cellOf(reconnect, ['50 ms', client], 'first frame');

/** Returns functions of the figures by name, from the results by name. Each throws if its result is missing. */
export const performanceFigures = (results) => {
  const { app, e2e, fanout, filter, growth, held, micro, memory, reconnect, stall, cluster, import: start } = results;
  const ratios = (peer) => (way, heap) => () => rangeOf(mediansOf(e2e.goals, `e2e/${peer}/${way}/${heap}/`));
  const [ws, bun] = [ratios('ws'), ratios('bun')];
  const goals = () => Object.values(results).flatMap((result) => result?.goals ?? []);
  return {
    'goals-met': () => `${goals().filter(({ met }) => met).length} of ${goals().length}`,
    rounds: () => e2e.rounds,
    'ws-plain': ws('plain', 0),
    'ws-tls': ws('tls', 0),
    'ws-plain-live': ws('plain', 200),
    'ws-tls-live': ws('tls', 200),
    'bun-plain': bun('plain', 0),
    'bun-tls': bun('tls', 0),
    'ws-200': () => tenths(cellOf(e2e, 'plain, 200 B', '`ws`, 0 MB') / cellOf(e2e, 'plain, 200 B', 'ours, 0 MB')),
    'frame-plain': () => microseconds(cellOf(e2e, 'plain, 200 B', 'ours, 0 MB')),
    'frame-tls': () => microseconds(cellOf(e2e, 'TLS, 200 B', 'ours, 0 MB')),
    'held-bytes': () => rangeOf(mediansOf(held.goals, 'held/bytes/')),
    'held-text': () => rangeOf(mediansOf(held.goals, 'held/held/')),
    parse: () => microseconds(cellOf(micro, 'JSON.parse', '200 B')),
    'decode-is': () => `${Math.round(cellOf(micro, 'io-ts, codec.is', 'of JSON.parse') * 100)} %`,
    'app-wallets': () => rangeOf(mediansOf(app.goals, 'app/wallets/')),
    'app-everything': () => rangeOf(mediansOf(app.goals, 'app/everything/')),
    'filter-field': () => rangeOf(mediansOf(filter.goals, 'filter/one value/').map((ratio) => ratio * 100)),
    fanout: () => rangeOf(mediansOf(fanout.goals, 'fanout/')),
    'core-10000': () => `${cellOf(growth, 10_000, 'share of a core, %')} %`,
    'core-200000': () => `${cellOf(growth, 200_000, 'share of a core, %')} %`,
    'heap-held': () => {
      const bytes = titled(memory, 'Additional heap').filter(([holder]) => holder !== 'control');
      return rangeOf(bytes.flatMap(([, ...sizes]) => sizes));
    },
    'trips-naive': () => tenths(roundTrips({ reconnect }, 'naive')),
    'trips-ours': () => tenths(roundTrips({ reconnect }, 'ours')),
    'trips-standby': () => tenths(roundTrips({ reconnect }, 'ours, standby')),
    'stall-main': () => grouped(cellOf(stall, 'main', 'frames in this time')),
    'stall-worker': () => grouped(cellOf(stall, 'worker', 'frames in this time')),
    'stall-cut-main': () => cellOf(stall, 'main', 'disconnects'),
    'stall-cut-worker': () => cellOf(stall, 'worker', 'disconnects'),
    'stall-free': () => rangeOf(mediansOf(stall.goals, 'stall/free/')),
    'stall-latency': () => `${mediansOf(stall.goals, 'stall/latency')[0]} µs`,
    'import-ours': () => ms(cellOf(start, 'ours', 'wall')),
    'import-dependencies': () => ms(cellOf(start, 'the dependencies', 'wall')),
    'first-frame': () => ms(cellOf(start, 'a feed', 'wall')),
    'cluster-p50': () => `${mediansOf(cluster.goals, 'cluster/p50')[0].toFixed(2)} ms`,
    'cluster-p99': () => `${tenths(mediansOf(cluster.goals, 'cluster/p99')[0])} ms`,
  };
};
