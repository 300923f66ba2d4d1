import type { Either, Right } from 'fp-ts/lib/Either.js';

export const isText = (value: unknown): value is string => typeof value === 'string';

/** Returns whether a value is a number, including `NaN`. */
export const isNumber = (value: unknown): value is number => typeof value === 'number';

/** Returns whether a `Date` can hold a time in epoch ms. It can't hold `NaN`, `Infinity` or `1e300`. */
export const isTime = (value: unknown): value is number => isNumber(value) && Math.abs(value) <= 8.64e15;

/** Returns `undefined` if the call throws. The exception is dropped because its text may quote a secret. */
export const tryCall = <T>(call: () => T): T | undefined => {
  try {
    return call();
  } catch {
    return undefined;
  }
};

// `instanceof` knows only the classes of its own realm. A value may come from another one: an iframe, `node:vm`, jest.

export const isBytes = (value: unknown): value is Uint8Array =>
  ArrayBuffer.isView(value) && (value as Partial<Uint8Array>)[Symbol.toStringTag] === 'Uint8Array';

export const isError = (value: unknown): value is Error =>
  value instanceof Error || / (Error|DOMException)]$/.test(tagOf(value));

export const isUrl = (value: unknown): value is URL => tagOf(value) === '[object URL]';

const tagOf = (value: unknown): string => tryCall(() => Object.prototype.toString.call(value)) ?? '';

/** As in fp-ts, which takes half as long to load as RxJS. */
export const isRight = <E, A>(either: Either<E, A>): either is Right<A> => either._tag === 'Right';
