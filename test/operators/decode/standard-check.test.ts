import { describe, expect, it } from '@jest/globals';
import { isLeft, right } from 'fp-ts/lib/Either.js';
import * as v from 'valibot';
import { z } from 'zod';
import * as mini from 'zod/mini';
import { z as z3 } from 'zod/v3';
import { standardCheck } from '../../../src/operators/decode/standard-check.js';
import { refusingOverflows } from '../../../src/operators/decode/stack-overflow.js';
import { TradeFeedError } from '../../../src/protocol/failures/trade-feed-error.js';
import { runBundled } from './run-bundled.js';

const later = () => Promise.resolve(true);

type Schema = Parameters<typeof standardCheck>[0];

describe('standardCheck', () => {
  it.each<[string, Schema]>([
    ['zod, refine', z.string().refine(later)],
    ['zod, transform', z.string().transform(later)],
    ['zod, a promise', z.promise(z.string())],
    ['zod, within an object', z.object({ a: z.string().refine(later) }).or(z.string().refine(later))],
    ['zod/mini', mini.string().check(mini.refine(later))],
    ['zod 3, refine', z3.string().refine(later)],
    ['zod 3, transform', z3.string().transform(later)],
    ['valibot', v.pipeAsync(v.string(), v.checkAsync(later))],
    [
      'a schema without a library',
      { '~standard': { version: 1, vendor: 'test', validate: () => Promise.resolve({ value: 1 }) } },
    ],
    [
      'a schema that claims to be of zod',
      { '~standard': { version: 1, vendor: 'zod', validate: () => Promise.resolve({ value: 1 }) } },
    ],
  ])('refuses an asynchronous schema: %s', (_name, schema) => {
    const check = standardCheck(schema);
    expect(() => check('x')).toThrow('`codec` must be synchronous: this schema returned a promise');
    expect(() => check('x')).toThrow(TradeFeedError);
  });

  it('refuses an asynchronous zod schema that a function of another zod schema calls', () => {
    const inner = z.string().refine(later);
    expect(() => standardCheck(z.string().transform((text) => inner.parse(text)))('x')).toThrow('must be synchronous');
  });

  it('throws an error of zod that a function of the user throws', () => {
    const inner = z.string().min(3);
    expect(() => standardCheck(z.string().transform((text) => inner.parse(text)))('x')).toThrow(z.ZodError);
  });

  it.each<[string, Schema]>([
    ['zod', z.string({ error: () => 'mine' })],
    ['zod/mini', mini.string({ error: () => 'mine' })],
    ['zod 3', z3.string({ message: 'mine' })],
  ])('returns the messages of the schema: %s', (_name, schema) => {
    const result = standardCheck(schema)(1);
    expect(isLeft(result) && result.left()).toEqual([{ path: '', message: 'mine' }]);
    expect(standardCheck(schema)('x')).toEqual(right('x'));
  });

  it('refuses a wide document for which zod runs out of stack', () => {
    const document = [Array.from({ length: 200_000 }, () => 'x')];
    const result = refusingOverflows(standardCheck(z.array(z.array(z.number()))))(document);
    expect(isLeft(result) && result.left()).toEqual([
      { path: '', message: 'more than 10000 values: the codec ran out of stack' },
    ]);
  });

  it('leaves no unhandled rejection for any error of a function in a schema', async () => {
    const program = `
      import { decodeWith } from './src/operators/decode-with.js';
      import { decodeEither } from './src/operators/decode-either.js';
      import { Frame } from './src/protocol/frame.js';
      import { libraries, listOf } from './test/operators/decode/schemas.js';
      import { of } from 'rxjs';

      const bug = new Error('a bug');
      const fail = () => { throw bug; };
      const frames = (text) => of(new Frame('raw', Buffer.from(text), false, 0, 1));
      const errors = [];
      const onInvalid = () => errors.push('invalid');
      const error = (error) => errors.push(error === bug);
      for (const { checked, changed, list } of libraries) {
        for (const codec of [checked(fail), changed(fail)])
          for (const operator of [decodeWith(codec), decodeWith(codec, { onInvalid: 'error' }), decodeEither(codec)])
            frames('{"n":1}').pipe(operator).subscribe({ error });
        frames(listOf(20_000)).pipe(decodeWith(list(), { onInvalid })).subscribe({ error });
      }
      process.on('exit', () => console.log(JSON.stringify(errors)));`;
    const each = [...Array.from({ length: 6 }, () => true), 'invalid'];
    expect(await runBundled(program)).toEqual(Array.from({ length: 7 }, () => each).flat());
  }, 30_000);
});
