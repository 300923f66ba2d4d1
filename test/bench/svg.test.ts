import { beforeAll, describe, expect, it } from '@jest/globals';
import { benchModule } from './library.js';

type Point = readonly [number | string, number];
interface Chart {
  readonly title: string;
  readonly kind: string;
  readonly highlight?: string;
  readonly log?: boolean | 'x' | 'y';
  readonly x?: string;
  readonly y?: string;
  readonly series: readonly { readonly name: string; readonly points: readonly Point[] }[];
}

let svg: (chart: Chart) => string;
beforeAll(async () => {
  ({ svg } = (await benchModule('lib/svg.mjs')) as { svg: typeof svg });
});

/** Returns the attribute of every mark of a series. The class is on the group of the marks. */
const numbers = (drawn: string, tag: string, attribute: string) =>
  [...drawn.matchAll(/<g(?=[^>]* class="s\d")[^>]*>(.*?)<\/g>/gs)].flatMap(([, marks = '']) =>
    [...marks.matchAll(new RegExp(`<${tag} [^>]*\\b${attribute}="([\\d.]+)"`, 'g'))].map(([, n]) => Number(n)),
  );

/** Returns the elements that are open at the end: none in well-formed XML. */
const openElements = (drawn: string) =>
  [...drawn.matchAll(/<(\/?)(\w+)((?:\s+[\w-]+="[^"<&]*(?:&\w+;[^"<&]*)*")*)\s*(\/?)>|[<>]/g)].reduce<string[]>(
    (open, [all, closes, tag = all, , isEmpty]) =>
      isEmpty ? open : closes && open.at(-1) === tag ? open.slice(0, -1) : [...open, tag],
    [],
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

  it('draws no length for zeros', () => {
    expect(numbers(svg(chart('bars', [['a', 0], ['b', 0]])), 'rect', 'width')).toEqual([0, 0]); // prettier-ignore
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

describe('every kind of chart', () => {
  const kinds = ['bars', 'lines', 'columns'];
  const drawn = (kind: string) =>
    svg(chart(kind, kind === 'bars' ? [['a & b', 1], ['c', 2]] : [[1000, 1], [2000, 1500]], { title: 'A "title"', x: 'bytes', y: 'ns a frame' })); // prettier-ignore

  it.each(kinds)('%s is one well-formed SVG element with a size', (kind) => {
    expect(drawn(kind)).toMatch(/^<svg (?=[^>]*xmlns="http:\/\/www\.w3\.org\/2000\/svg")[^>]*viewBox="0 0 800 \d+"/);
    expect(drawn(kind).match(/<svg/g)).toHaveLength(1);
    expect(openElements(drawn(kind))).toEqual([]);
  });

  it.each(kinds)('%s has a title and the units of its axes', (kind) => {
    expect(drawn(kind)).toMatch(/<text [^>]*class="title"[^>]*>A "title"<\/text>/);
    expect(drawn(kind)).toMatch(/>ns a frame<\/text>/);
    if (kind !== 'bars') for (const label of ['bytes', '1.5K']) expect(drawn(kind)).toContain(`>${label}</text>`);
  });

  it.each(kinds)('%s has the same bytes each time', (kind) => {
    expect(drawn(kind)).toBe(drawn(kind));
  });

  it.each(kinds)('%s has text, a background and marks with colours for light and dark pages', (kind) => {
    const [light = '', dark = ''] = drawn(kind).split('@media(prefers-color-scheme:dark)');
    for (const style of [light, dark])
      for (const rule of ['svg{color:#', '.page{fill:#', '.muted', '.s0{fill:#', '.l0{stroke:#'])
        expect(style).toContain(rule);
    // No text or group has a fixed colour.
    expect(drawn(kind)).not.toMatch(/<(text|g) [^>]*fill="(?!currentColor|none)/);
  });
});

it('draws only the names that begin with the highlight in bold', () => {
  const drawn = svg(chart('bars', [['ours', 1], ['others', 2]], { highlight: 'ours' })); // prettier-ignore
  expect(drawn).toMatch(/<g [^>]*class="strong"[^>]*><text [^>]*>ours<\/text><\/g>/);
  expect(drawn.match(/class="strong"/g)).toHaveLength(1);
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
