import { describe, expect, it } from '@jest/globals';
import { Conflated } from '../../src/operators/items/conflated.js';
import { Decoded } from '../../src/operators/items/decoded.js';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import { publicJson } from '../../src/relay/public-json.js';
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

/** Has private fields, and a `toJSON` that returns the public part. */
class WithJson {
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

/** The places where an object can be in a value, and the expected JSON. */
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
  ['in the result of a toJSON', (value) => new WithJson({ deep: value }), (json) => ({ deep: json })],
  ['as the result of a toJSON', (value) => new WithJson(decoded(value)), (json) => json],
  ['as the result of a toJSON in a Decoded', (value) => decoded(new WithJson([decoded(value)])), (json) => [json]],
];

describe.each(places)('publicJson of a value %s', (_where, put, expected) => {
  it.each<[string, () => unknown, unknown]>([
    ['a plain object', () => ({ n: 1, none: undefined, list: [null, 'x'] }), { n: 1, list: [null, 'x'] }],
    ['an object with toJSON', () => new WithJson('price 1.5'), 'price 1.5'],
    ['a Date', () => new Date(0), '1970-01-01T00:00:00.000Z'],
    ['a frame', () => frame('a', 7), line],
    ['a Decoded', () => decoded({ n: 1 }), { n: 1 }],
    ['a Conflated', () => new Conflated('k', frame('a', 7), 3), { key: 'k', value: line, count: 3 }],
  ])('writes %s', (_what, make, json) => {
    expect(JSON.parse(publicJson(put(make())))).toEqual(expected(json));
  });

  it.each([
    ['a failure', failure],
    ['a failure that a toJSON returns', new WithJson(failure)],
  ])('writes %s with its public text only', (_what, value) => {
    const text = publicJson(put(value));
    expect(text).not.toContain(mark);
    expect(JSON.parse(text)).toEqual(expected(JSON.parse(JSON.stringify(failure.toPublic()))));
    expect(text).toContain(JSON.stringify(failure.toPublic().message));
  });
});

describe('publicJson', () => {
  it('calls toJSON once, with its key', () => {
    const keys: unknown[] = [];
    const shown = { toJSON: (key: unknown) => keys.push(key) };
    publicJson({ a: shown, b: decoded(shown), c: [shown] });
    expect(keys).toEqual(['a', 'b', '0']);
  });

  it('does not call the toJSON of the result of a toJSON, like JSON.stringify', () => {
    const inner = new WithJson('inner');
    const value = { toJSON: () => inner };
    expect(publicJson(value)).toBe(JSON.stringify(value));
    expect(publicJson(decoded(value))).toBe(JSON.stringify(value));
    expect(inner.calls).toBe(0);
  });

  it.each([
    ['undefined', undefined],
    ['a Decoded of undefined', decoded(undefined)],
    ['a toJSON of undefined', new WithJson(undefined)],
    ['a function', () => 1],
    ['a BigInt', decoded(5n)],
  ])('throws for %s', (_what, value) => {
    expect(() => publicJson(value)).toThrow(TypeError);
  });
});
