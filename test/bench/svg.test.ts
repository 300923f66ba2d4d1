import { beforeAll, describe, expect, it } from '@jest/globals';
import { benchModule } from './library.js';

type Point = readonly [number | string, number];
interface Chart {
  readonly title: string;
  readonly kind: string;
  readonly log?: boolean | 'x' | 'y';
  readonly x?: string;
  readonly y?: string;
  readonly series: readonly { readonly name: string; readonly points: readonly Point[] }[];
}

let svg: (chart: Chart) => string;
beforeAll(async () => {
  ({ svg } = (await benchModule('lib/svg.mjs')) as { svg: typeof svg });
});

const numbers = (drawn: string, tag: string, attribute: string) =>
  [...drawn.matchAll(new RegExp(`<${tag} class="[sl]\\d"[^>]* ${attribute}="([\\d.]+)"`, 'g'))].map(([, n]) =>
    Number(n),
  );

const chart = (kind: string, points: readonly Point[], more: Partial<Chart> = {}): Chart => ({
  title: 'A chart',
  kind,
  series: [{ name: 'one', points }],
  ...more,
});

describe('a bar chart', () => {
  it('draws bars with lengths proportional to their values', () => {
    const [short = 0, long = 0] = numbers(svg(chart('bars', [['a', 10], ['b', 40]])), 'rect', 'width'); // prettier-ignore
    expect(long / short).toBeCloseTo(4, 1);
  });

  it('draws the name and the value of every bar', () => {
    const drawn = svg(chart('bars', [['ws', 318], ['rxjs over ws', 485]])); // prettier-ignore
    for (const word of ['ws', '318', 'rxjs over ws', '485']) expect(drawn).toContain(`>${word}<`);
  });
});

describe('a line chart', () => {
  const points: readonly Point[] = [[1, 10], [10, 100], [100, 1000]]; // prettier-ignore

  it('has equal steps on logarithmic axes for a value that grows with x', () => {
    const drawn = svg(chart('lines', points, { log: true }));
    const [x0 = 0, x1 = 0, x2 = 0] = numbers(drawn, 'circle', 'cx');
    const [y0 = 0, y1 = 0, y2 = 0] = numbers(drawn, 'circle', 'cy');
    expect(x1 - x0).toBeCloseTo(x2 - x1, 0);
    expect(y0 - y1).toBeCloseTo(y1 - y2, 0);
    expect(y0).toBeGreaterThan(y1);
  });

  it('has unequal steps on linear axes', () => {
    const [x0 = 0, x1 = 0, x2 = 0] = numbers(svg(chart('lines', points)), 'circle', 'cx');
    expect((x2 - x1) / (x1 - x0)).toBeCloseTo(10, 0);
  });
});

it('escapes names', () => {
  const drawn = svg({ ...chart('bars', [['<b>&', 1]]), title: 'x < y & "z"' });
  expect(drawn).toContain('&lt;b&gt;&amp;');
  expect(drawn).toContain('aria-label="x &lt; y &amp; &quot;z&quot;"');
});

it('has separate colours for a dark page', () => {
  expect(svg(chart('bars', [['a', 1]]))).toContain('@media(prefers-color-scheme:dark)');
});

it('throws for an unknown kind', () => {
  expect(() => svg(chart('pie', []))).toThrow('Unknown kind of chart: pie');
});
