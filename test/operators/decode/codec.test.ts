import { describe, expect, it, jest } from '@jest/globals';
import { type } from 'arktype';
import type { Either } from 'fp-ts/lib/Either.js';
import * as t from 'io-ts';
import * as v from 'valibot';
import { z } from 'zod';
import { type Codec, documentReader } from '../../../src/operators/decode/codec.js';
import type { DecodeIssue } from '../../../src/operators/decode/decode-failure.js';
import type { DecodeFailure } from '../../../src/operators/decode/decode-failure.js';
import { binaryFrame, frameOf } from '../stream.js';

const read = <A>(codec: Codec<A>, text: string): A | readonly DecodeIssue[] =>
  outcome(documentReader(codec)(frameOf(text)));

const outcome = <A>(result: Either<() => DecodeFailure, A>): A | readonly DecodeIssue[] =>
  result._tag === 'Right' ? result.right : result.left().issues;

// The same document type in each of the four libraries.
const codecs: Readonly<Record<string, Codec<unknown>>> = {
  'io-ts': t.type({ batch: t.number, trades: t.array(t.type({ to: t.string, 'a/b~c': t.string })) }) as t.Mixed,
  zod: z.object({ batch: z.number(), trades: z.array(z.object({ to: z.string(), 'a/b~c': z.string() })) }),
  valibot: v.object({ batch: v.number(), trades: v.array(v.object({ to: v.string(), 'a/b~c': v.string() })) }),
  arktype: type({ batch: 'number', trades: type({ to: 'string', 'a/b~c': 'string' }).array() }),
};
const good = {
  batch: 1,
  trades: [
    { to: 'x', 'a/b~c': 'y' },
    { to: 'z', 'a/b~c': '' },
  ],
};

describe.each(Object.entries(codecs))('a schema of %s', (_name, codec) => {
  it('returns a valid document', () => {
    expect(read(codec, JSON.stringify(good))).toEqual(good);
  });

  it.each<[string, unknown, string]>([
    ['at the top', { ...good, batch: 'one' }, '/batch'],
    ['deep inside', { ...good, trades: [good.trades[0], { to: 5, 'a/b~c': '' }] }, '/trades/1/to'],
    ['below a key that a pointer must escape', { ...good, trades: [{ to: '', 'a/b~c': 1 }] }, '/trades/0/a~1b~0c'],
    ['a missing property', { batch: 1 }, '/trades'],
    ['the whole document', 'text', ''],
  ])('reports the path of a problem: %s', (_place, document, path) => {
    const issues = read(codec, JSON.stringify(document)) as readonly DecodeIssue[];
    expect(issues).toEqual([{ path, message: expect.stringMatching(/number|string|array|object|trades|batch|type/i) }]);
  });

  it('reports all problems, each with its path', () => {
    const issues = read(codec, '{"batch":"1","trades":[{"to":1,"a/b~c":""}]}') as readonly DecodeIssue[];
    expect(issues.map(({ path }) => path).sort()).toEqual(['/batch', '/trades/0/to']);
  });
});

describe('documentReader', () => {
  it('returns the value that a schema creates from the document', () => {
    expect(read(z.string().transform(Number), '"12"')).toBe(12);
    expect(read(v.pipe(v.string(), v.transform(Number)), '"12"')).toBe(12);
    expect(read(type('string.numeric.parse'), '"12"')).toBe(12);
    expect(read(z.object({ a: z.number() }), '{"a":1,"b":2}')).toEqual({ a: 1 });
  });

  it('also reads a document that is not an object', () => {
    expect(read(t.null, 'null')).toBeNull();
    expect(read(z.array(z.number()), '[1,2]')).toEqual([1, 2]);
  });

  it.each(['', '{', '{"n":}', 'nonsense', '"open'])(
    'refuses %j as invalid JSON, without the payload in the issue',
    (text) => {
      const [issue, ...more] = read(t.unknown, text) as readonly DecodeIssue[];
      expect(more).toEqual([]);
      expect(issue?.path).toBe('');
      expect(issue?.message).toMatch(/^invalid JSON( at position \d+)?$/);
    },
  );

  it('reports the position where the JSON ends, if Node reports it', () => {
    const [issue] = read(t.unknown, `{"a":${'1'.repeat(60)},}`) as readonly DecodeIssue[];
    expect(issue?.message).toBe('invalid JSON at position 66');
  });

  it('refuses JSON that is nested too deeply for the engine', () => {
    const frame = frameOf('[]');
    const parse = (): unknown => [parse()];
    jest.spyOn(frame, 'json').mockImplementation(parse);
    expect(outcome(documentReader(t.unknown)(frame))).toEqual([
      { path: '', message: 'nested too deeply for JSON.parse' },
    ]);
  });

  it('reads JSON that is nested a million levels deep, for a codec that reads no level', () => {
    const levels = 1_000_000;
    const text = '['.repeat(levels) + ']'.repeat(levels);
    expect(Array.isArray(read(t.UnknownArray, text))).toBe(true);
  });

  it('refuses a binary frame', () => {
    expect(outcome(documentReader(t.unknown)(binaryFrame(0x31)))).toEqual([
      { path: '', message: 'binary frame; expected JSON text' },
    ]);
  });

  it('refuses a schema that returns a promise, with a clear error', () => {
    const later = z.string().refine(() => Promise.resolve(true));
    const schema = {
      '~standard': { version: 1, vendor: 'test', validate: () => Promise.resolve({ value: 1 }) },
    } as const;
    expect(() => read(schema, '1')).toThrow('`codec` must be synchronous');
    expect(() => read(later, '"x"')).toThrow();
  });

  it('handles the rejection of such a promise', () => {
    const checked = v.pipeAsync(
      v.string(),
      v.checkAsync(() => Promise.reject(new Error('mine'))),
    );
    const schema = {
      '~standard': { version: 1, vendor: 'test', validate: () => Promise.reject(new Error('mine')) },
    } as const;
    for (const codec of [checked as unknown as Codec<string>, schema])
      expect(() => read(codec, '"x"')).toThrow('`codec` must be synchronous');
  });
});
