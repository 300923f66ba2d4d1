import type { Feed } from '../../protocol/feed.js';
import type { Frame } from '../../protocol/frame.js';

/** One problem in a payload. */
export interface DecodeIssue {
  /**
   * Where in the document it is: a JSON Pointer (RFC 6901) such as `/transactions/3/to`, cut to 200 characters; empty
   * for the document itself.
   */
  readonly path: string;
  /** The codec's message, cut to 200 characters. */
  readonly message: string;
}

/** Describes a frame that couldn't be decoded, without its payload. */
export interface DecodeFailure {
  readonly type: 'decode-failure';
  readonly feed: Feed;
  /** The connection that received the frame. */
  readonly connection: number;
  /** When the bytes of the frame were read, in epoch ms. */
  readonly receivedAt: number;
  /** The size of the payload. */
  readonly bytes: number;
  /** The first ten problems. */
  readonly issues: readonly DecodeIssue[];
}

/**
 * The error of `decodeWith` with `onInvalid: 'error'`: the codec refused a frame.
 *
 * @example
 * ```ts
 * import * as t from 'io-ts';
 * import { of } from 'rxjs';
 * import { DecodeError, decodeWith, Frame } from 'rx-trade-feed';
 *
 * of(new Frame('market', Buffer.from('{"n":"x"}'), false, Date.now(), 1))
 *   .pipe(decodeWith(t.type({ n: t.number }), { onInvalid: 'error' }))
 *   // [ { path: '/n', message: 'expected number' } ]
 *   .subscribe({
 *     error: (error) =>
 *       error instanceof DecodeError && console.log(error.failure.issues),
 *   });
 * ```
 */
export class DecodeError extends Error {
  override readonly name = 'DecodeError';
  readonly failure: DecodeFailure;

  constructor(failure: DecodeFailure) {
    const { feed, bytes, issues } = failure;
    const { path, message } = issues[0] ?? { path: '', message: 'refused' };
    super(
      `A frame of ${feed} (${bytes} bytes) doesn't match the codec: ${path || 'the document'}: ${message}. ` +
        "Correct the codec, or set `onInvalid` to 'drop' or to a function: then the stream continues after such a frame.",
    );
    this.failure = failure;
    // V8 formats the stack when it's first read. Until then, the error keeps the objects of the call stack alive.
    this.stack = String(this.stack);
  }
}

/** What a check returns for a document that it refuses. Collects the issues when asked: many frames are dropped. */
export class Refused {
  readonly issues: () => readonly DecodeIssue[];

  constructor(issues: () => readonly DecodeIssue[]) {
    this.issues = issues;
  }
}

/** Checks a document, and returns its value. */
export type Check<A> = (document: unknown) => A | Refused;

const maxIssues = 10;
const maxLength = 200;

export const decodeFailure = (frame: Frame, issues: readonly DecodeIssue[]): DecodeFailure => {
  const { feed, connection, receivedAt, byteLength: bytes } = frame;
  // A path contains keys from the payload, so it can be as long as the payload.
  const first = issues.slice(0, maxIssues);
  const short = first.map(({ path, message }) => ({ path: shortened(path), message: shortened(message) }));
  return { type: 'decode-failure', feed, connection, receivedAt, bytes, issues: short };
};

export const jsonPointer = (keys: readonly PropertyKey[]): string =>
  keys.map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');

const shortened = (text: string): string => (text.length > maxLength ? `${text.slice(0, maxLength - 1)}…` : text);
