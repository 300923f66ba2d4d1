import { beforeAll, describe, expect, it } from '@jest/globals';
import { benchModule } from './library.js';

interface Results {
  readonly e2e?: object;
  readonly app?: object;
}

interface Cell {
  readonly way: string;
  readonly heap: number;
  readonly size: number;
}

let openingText: (results: Results) => string;
let openingOf: (of: { ratioOf: (cell: Cell) => number; costOf: (cell: Cell, peer: string) => number | undefined }) => {
  readonly chart: {
    readonly alt: string;
    readonly opens: boolean;
    readonly series: readonly { readonly name: string; readonly points: readonly (readonly [string, number])[] }[];
  };
  readonly table: { readonly columns: readonly string[]; readonly rows: readonly (readonly unknown[])[] };
};
beforeAll(async () => {
  ({ openingText } = (await benchModule('lib/opening.mjs')) as { openingText: typeof openingText });
  ({ openingOf } = (await benchModule('e2e/opening.mjs')) as { openingOf: typeof openingOf });
});

const goal = (place: string, median: number) => ({ id: `e2e/ws/${place}`, median });
const e2e = {
  goals: [
    goal('plain/0/200', 3.04),
    goal('plain/0/65536', 1.96),
    goal('tls/0/200', 2.5),
    goal('tls/0/65536', 1.26),
    goal('plain/200/200', 4),
    goal('tls/200/200', 2.04),
    goal('tls/200/65536', 1.5),
    { id: 'e2e/bun/plain/0/200', median: 99 },
  ],
  charts: [
    { id: 'first', title: 'First', alt: 'Bars: 3', opens: true },
    { id: 'later', title: 'Later' },
  ],
  tables: [
    { title: 'Costs', columns: ['frames', 'ws'], rows: [['200 B', 598]], opens: true },
    { title: 'Later table', columns: [], rows: [] },
  ],
};
const app = { ratios: { 'app/plain/200': { median: 0.94 }, 'app/tls/1024': { median: 1.31 } } };

describe('the opening of the guide', () => {
  it('has the ratios of `ws` to this library in sentences, then the chart, then the table', () => {
    const [sentences = '', chart, title, table, ...rest] = openingText({ e2e, app }).split('\n\n');
    expect(sentences).toContain('`ws` takes 2 to 3 times as much CPU time as this library on a plain connection');
    expect(sentences).toContain('and 1.3 to 2.5 times as much over TLS.');
    expect(sentences).toContain(
      'With 200 MB of live objects in the process, it takes 4 times and 1.5 to 2 times as much',
    );
    expect(sentences).toContain('code written by hand with `ws` takes 0.9 to 1.3 times as much');
    expect(sentences.match(/\. [A-Z]/g)).toHaveLength(2);
    expect([chart, title, rest]).toEqual(['![Bars: 3](performance/first.svg)', 'Costs:', []]);
    expect(table).toMatch(/\| 200 B +\| +598 \|/);
  });

  it('leaves the app out if it was not measured, and says so if nothing was', () => {
    expect(openingText({ e2e })).not.toContain('by hand');
    expect(openingText({ app })).toBe('Not measured yet: `npm run bench -- e2e`.');
  });
});

describe('the chart and the table of the opening', () => {
  const costs: Readonly<Record<string, number>> = { ws: 1_234.5, ours: 400, bun: 500 };
  const opening = (withBun: boolean) =>
    openingOf({
      ratioOf: ({ way, heap, size }) => (way === 'tls' ? 1 : 2) + heap / 1000 + size / 1e6,
      costOf: (_, peer) => (withBun || peer !== 'bun' ? costs[peer] : undefined),
    });

  it('have each connection and size, with and without live objects', () => {
    const { chart, table } = opening(true);
    expect(chart.series.map(({ name }) => name)).toEqual(['0 MB of live objects', '200 MB of live objects']);
    expect(chart.series[1]?.points.map(([place]) => place)).toEqual([
      ...['plain, 200 B', 'plain, 1 KB', 'plain, 4 KB', 'plain, 64 KB'],
      ...['TLS, 200 B', 'TLS, 1 KB', 'TLS, 4 KB', 'TLS, 64 KB'],
    ]);
    expect(chart.series[1]?.points.at(-1)).toEqual(['TLS, 64 KB', 1.27]);
    expect(chart.alt).toContain('200 MB of live objects: plain, 200 B 2.20;');
    expect(table.rows).toHaveLength(8);
    expect(table.rows[0]).toEqual(['plain, 200 B', 1230, 500, 400, 1230, 500, 400]);
  });

  it('have no Bun if it was not measured', () => {
    expect(opening(false).table.columns.join()).not.toMatch(/Bun/);
    expect(opening(false).table.rows[0]).toHaveLength(5);
  });
});
