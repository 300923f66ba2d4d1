// GUARD_RUNS and GUARD_SEED repeat a longer run.
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isRight } from 'fp-ts/lib/Either.js';
import type * as t from 'io-ts';
import { isDeepStrictEqual } from 'node:util';
import { changesNothing } from '../../../../src/operators/decode/io-ts-guard/changes-nothing.js';
import { compiledGuard, type Guard } from '../../../../src/operators/decode/io-ts-guard/compiled-guard.js';
import { ioTsCheck } from '../../../../src/operators/decode/io-ts-guard/io-ts-check.js';
import { cases, documentsFor, plainCases, valuesFor } from './random-codecs.js';
import { cases as caseCount } from '../../../support/cases.js';

const numRuns = Number(process.env['GUARD_RUNS'] ?? caseCount(1_000));
const perCodec = { minLength: 4, maxLength: 4 };
const seed = process.env['GUARD_SEED'];
const options = { numRuns, ...(seed === undefined ? {} : { seed: Number(seed) }) };

const guardOf = (codec: t.Mixed): Guard => {
  const guard = compiledGuard(codec);
  if (guard === undefined) throw new Error('no code generation');
  return guard;
};

/** Returns whether a decoder returns its input. */
const keeps = (codec: t.Mixed, value: unknown): boolean => {
  const result = codec.decode(value);
  return isRight(result) && result.right === value;
};

// io-ts copies a property `__proto__` in a way that gives each copy another prototype.
const isRepeatable = (codec: t.Mixed, value: unknown): boolean =>
  isDeepStrictEqual(codec.decode(value), codec.decode(value));

const outcome = (codec: t.Mixed, document: unknown, compile?: () => undefined) => {
  const result = ioTsCheck(codec as t.Type<unknown>, compile)(document);
  return isRight(result) ? { value: result.right } : { refused: true };
};

const noCode = () => undefined;

describe('a guard, on random codecs', () => {
  it('accepts a document exactly if the decoder returns its input', () => {
    let guarded = 0;
    let yes = 0;
    let all = 0;
    fc.assert(
      fc.property(
        plainCases.chain((one) => fc.tuple(fc.constant(one.codec), fc.array(valuesFor(one), perCodec))),
        ([codec, values]) => {
          all += 1;
          if (!changesNothing(codec)) return;
          guarded += 1;
          const guard = guardOf(codec);
          for (const value of values) {
            const said = guard(value);
            if (said) yes += 1;
            // An intersection may cut an array by one member, and use the whole array of another.
            if (!said && codec.name.includes(' & ')) continue;
            if (said !== keeps(codec, value)) throw new Error(`${codec.name}: the guard says ${String(said)}`);
          }
        },
      ),
      options,
    );
    // Otherwise the test would prove nothing.
    expect(guarded).toBeGreaterThan(all * 0.8);
    expect(yes).toBeGreaterThan(guarded);
  });

  it.each([
    ['compiled', undefined],
    ["the codec's guard, where code generation is disallowed", noCode],
  ])('has the result of the decoder, %s', (_name, compile) => {
    fc.assert(
      fc.property(
        cases.chain((one) => fc.tuple(fc.constant(one.codec), fc.array(documentsFor(one), perCodec))),
        ([codec, documents]) => {
          for (const document of documents) {
            const result = codec.decode(document) as t.Validation<unknown>;
            const expected = isRight(result) ? { value: result.right } : { refused: true };
            const got = outcome(codec, document, compile);
            if (!isDeepStrictEqual(got, expected) && isRepeatable(codec, document)) throw new Error(codec.name);
            const isUnchanged = isRight(result) && result.right === document;
            if (isUnchanged && got.value !== document) throw new Error(`${codec.name}: not the very document`);
          }
        },
      ),
      options,
    );
  });
});
