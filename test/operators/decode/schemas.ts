import { scope, type } from 'arktype';
import * as t from 'io-ts';
import * as v from 'valibot';
import { z } from 'zod';
import * as mini from 'zod/mini';
import { z as z3 } from 'zod/v3';
import type { Codec } from '../../../src/operators/decode/codec.js';

/** The codecs of one library. */
export interface Library {
  readonly name: string;
  /** An object with a number `n`, checked by a predicate of the user. */
  readonly checked: (fits: (n: number) => boolean) => Codec<unknown>;
  /** An object with a number `n`, changed by a function of the user. */
  readonly changed: (change: (n: number) => number) => Codec<unknown>;
  /** A linked list: a number `n`, and the rest of the list or null in `next`. */
  readonly list: () => Codec<unknown>;
}

const ioTs: Library = {
  name: 'io-ts, a guard',
  checked: (fits) => t.type({ n: t.refinement(t.number, fits) }) as t.Mixed,
  changed: (change) =>
    t.type({
      n: new t.Type(
        'Changed',
        t.number.is,
        (u, c) => (t.number.is(u) ? t.success(change(u)) : t.failure(u, c)),
        t.identity,
      ),
    }) as t.Mixed,
  list: () => t.recursion('List', (self: t.Mixed): t.Mixed => t.type({ n: t.number, next: t.union([self, t.null]) })),
};

const zod: Library = {
  name: 'zod',
  checked: (fits) => z.object({ n: z.number().refine(fits) }),
  changed: (change) => z.object({ n: z.number().transform(change) }),
  list: () => {
    const List: z.ZodType = z.object({ n: z.number(), next: z.union([z.lazy(() => List), z.null()]) });
    return List;
  },
};

const zodMini: Library = {
  name: 'zod/mini',
  checked: (fits) => mini.object({ n: mini.number().check(mini.refine(fits)) }),
  changed: (change) => mini.object({ n: mini.pipe(mini.number(), mini.transform(change)) }),
  list: () => {
    const List: mini.ZodMiniType = mini.object({
      n: mini.number(),
      next: mini.union([mini.lazy(() => List), mini.null()]),
    });
    return List;
  },
};

const zod3: Library = {
  name: 'zod 3',
  checked: (fits) => z3.object({ n: z3.number().refine(fits) }),
  changed: (change) => z3.object({ n: z3.number().transform(change) }),
  list: () => {
    const List: z3.ZodType = z3.object({ n: z3.number(), next: z3.union([z3.lazy(() => List), z3.null()]) });
    return List;
  },
};

const valibot: Library = {
  name: 'valibot',
  checked: (fits) => v.object({ n: v.pipe(v.number(), v.check(fits)) }),
  changed: (change) => v.object({ n: v.pipe(v.number(), v.transform(change)) }),
  list: () => {
    const List: v.GenericSchema = v.object({ n: v.number(), next: v.union([v.lazy(() => List), v.null()]) });
    return List;
  },
};

const arktype: Library = {
  name: 'arktype',
  checked: (fits) => type({ n: type('number').narrow(fits) }),
  changed: (change) => type({ n: type('number').pipe(change) }),
  list: () => scope({ list: { n: 'number', next: 'list | null' } }).export().list,
};

const ioTsDecoder: Library = {
  ...ioTs,
  name: 'io-ts, the decoder',
  checked: (fits) => t.strict({ n: t.refinement(t.number, fits) }) as t.Mixed,
  list: () => t.recursion('List', (self: t.Mixed): t.Mixed => t.strict({ n: t.number, next: t.union([self, t.null]) })),
};

/** The supported libraries, each in all the ways it can be used. */
export const libraries: readonly Library[] = [ioTs, ioTsDecoder, zod, zodMini, zod3, valibot, arktype];

/** Writes the JSON of a linked list. */
export const listOf = (length: number, end = 'null'): string =>
  `${'{"n":1,"next":'.repeat(length)}${end}${'}'.repeat(length)}`;
