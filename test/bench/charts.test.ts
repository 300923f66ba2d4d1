import { describe, expect, it } from '@jest/globals';
import { benchModule } from './library.js';

type Points = readonly (readonly [number, number])[];
const { svg } = (await benchModule('lib/svg.mjs')) as { svg: (chart: object) => string };
const drawn = (kind: string, ...series: readonly Points[]) =>
  svg({ title: 'T', kind, x: 's', y: 'n', series: series.map((points, n) => ({ name: `series ${n}`, points })) });
const numbers = (text: string, tag: string, attribute: string) =>
  // The columns, without the square of the legend.
  [...text.matchAll(new RegExp(`<${tag} (?=[^>]*><title)[^>]*?\\b${attribute}="([\\d.]+)"`, 'g'))].map(([, n]) =>
    Number(n),
  );

describe('columns', () => {
  it('have heights proportional to their values, and are adjacent', () => {
    const chart = drawn('columns', [[0, 10], [50, 40], [100, 0]]); // prettier-ignore
    const [low = 0, high = 0, none] = numbers(chart, 'rect', 'height');
    expect(high / low).toBeCloseTo(4, 1);
    expect(none).toBe(0);
    const [x0 = 0, x1 = 0] = numbers(chart, 'rect', 'x');
    const [width = 0] = numbers(chart, 'rect', 'width');
    expect(x0 + width).toBeLessThan(x1);
    expect(x0 + width).toBeGreaterThan(x1 - 1);
  });

  it('have the prediction as a line', () => {
    const chart = drawn('columns', [[0, 1], [50, 4]], [[0, 2], [50, 2]]); // prettier-ignore
    expect(chart).toMatch(/<g [^>]*class="line l1"[^>]*><path /);
  });
});

describe('lines', () => {
  const points = (count: number): Points => Array.from({ length: count }, (_, n) => [n, n]);

  it('have circles if there are few points', () => {
    expect(drawn('lines', points(20), points(20)).match(/<circle/g)).toHaveLength(40);
    expect(drawn('lines', points(500), points(500)).match(/<(circle|path)/g)).toEqual(['<path', '<path']);
  });
});
