import { describe, expect, it } from '@jest/globals';
import { Conflated } from '../../src/operators/stream/conflated.js';
import { Decoded } from '../../src/operators/stream/decoded.js';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import { valueJson } from '../../src/relay/topic-value.js';
import { frame } from './support.js';
import { copyFailure } from '../../src/protocol/failures/trade-feed-error.js';

const mark = 'private text';
const previous = createTradeFeedError({ stage: 'stream', closeCode: 1006, reason: mark });
const failure = copyFailure(
  createTradeFeedError({
    ...{ stage: 'ticket', code: 'api-key-unavailable', detail: mark, cause: new Error(mark), endedAt: 5 },
  }),
  { previous },
);
const line = {
  type: 'frame',
  feed: 'market',
  connection: 1,
  receivedAt: 7,
  isBinary: false,
  encoding: 'utf8',
  data: 'a',
};

/** Has private fields, and says what may be seen of it. */
class Shown {
  readonly internal = mark;
  readonly #json: unknown;
  calls = 0;

  constructor(json: unknown) {
    this.#json = json;
  }

  toJSON(): unknown {
    this.calls += 1;
    return this.#json;
  }
}

const decoded = (value: unknown): Decoded<unknown> => new Decoded(value, frame(mark));

/** The ways in which something can be in a value, and what the JSON has there. */
const places: readonly (readonly [string, (value: unknown) => unknown, (json: unknown) => unknown])[] = [
  ['alone', (value) => value, (json) => json],
  ['in an object', (value) => ({ deep: [value] }), (json) => ({ deep: [json] })],
  ['in a Decoded', decoded, (json) => json],
  ['in a Decoded in a Decoded', (value) => decoded(decoded(value)), (json) => json],
  ['in an object in a Decoded', (value) => decoded({ deep: [value] }), (json) => ({ deep: [json] })],
  [
    'in a Conflated of a Decoded',
    (value) => new Conflated('k', decoded(value), 2),
    (json) => ({ key: 'k', value: json, count: 2 }),
  ],
  ['in the result of a toJSON', (value) => new Shown({ deep: value }), (json) => ({ deep: json })],
  ['as the result of a toJSON', (value) => new Shown(decoded(value)), (json) => json],
  ['as the result of a toJSON in a Decoded', (value) => decoded(new Shown([decoded(value)])), (json) => [json]],
];

describe.each(places)('valueJson of what stands %s', (_where, put, expected) => {
  it.each<[string, () => unknown, unknown]>([
    ['a plain object', () => ({ n: 1, none: undefined, list: [null, 'x'] }), { n: 1, list: [null, 'x'] }],
    ['an object with toJSON', () => new Shown('price 1.5'), 'price 1.5'],
    ['a Date', () => new Date(0), '1970-01-01T00:00:00.000Z'],
    ['a frame', () => frame('a', 7), line],
    ['a Decoded', () => decoded({ n: 1 }), { n: 1 }],
    ['a Conflated', () => new Conflated('k', frame('a', 7), 3), { key: 'k', value: line, count: 3 }],
  ])('writes %s', (_what, make, json) => {
    expect(JSON.parse(valueJson(put(make())))).toEqual(expected(json));
  });

  it.each([
    ['a failure', failure],
    ['a failure that a toJSON gives', new Shown(failure)],
  ])('writes %s with its public words, and nothing private', (_what, value) => {
    const text = valueJson(put(value));
    expect(text).not.toContain(mark);
    expect(JSON.parse(text)).toEqual(expected(JSON.parse(JSON.stringify(failure.toPublic()))));
    expect(text).toContain(JSON.stringify(failure.toPublic().message));
  });
});

describe('valueJson', () => {
  it('calls toJSON once, with its key', () => {
    const keys: unknown[] = [];
    const shown = { toJSON: (key: unknown) => keys.push(key) };
    valueJson({ a: shown, b: decoded(shown), c: [shown] });
    expect(keys).toEqual(['a', 'b', '0']);
  });

  it('does not call the toJSON of what a toJSON gives, as JSON.stringify', () => {
    const inner = new Shown('inner');
    const value = { toJSON: () => inner };
    expect(valueJson(value)).toBe(JSON.stringify(value));
    expect(valueJson(decoded(value))).toBe(JSON.stringify(value));
    expect(inner.calls).toBe(0);
  });

  it.each([
    ['undefined', undefined],
    ['a Decoded of undefined', decoded(undefined)],
    ['a toJSON of undefined', new Shown(undefined)],
    ['a function', () => 1],
    ['a BigInt', decoded(5n)],
  ])('throws for %s', (_what, value) => {
    expect(() => valueJson(value)).toThrow(TypeError);
  });
});
