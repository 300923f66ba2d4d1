import type { Either } from 'fp-ts/lib/Either.js';
import type { Feed } from '../../protocol/feed.js';
import type { Frame } from '../../protocol/frame.js';

/** One problem of a payload. */
export interface DecodeIssue {
  /** Where in the document: a JSON Pointer (RFC 6901) such as `/transactions/3/to`, shortened to 200 characters; empty for the document itself. */
  readonly path: string;
  /** The codec's message, shortened to 200 characters. */
  readonly message: string;
}

/** Describes a frame that could not be decoded, without its payload. */
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
 *   .subscribe({
 *     error: (error) => {
 *       if (error instanceof DecodeError) console.log(error.failure.issues); // [ { path: '/n', message: 'expected number' } ]
 *     },
 *   });
 * ```
 */
export class DecodeError extends Error {
  override readonly name = 'DecodeError';
  readonly failure: DecodeFailure;

  constructor(failure: DecodeFailure) {
    super(
      `${summaryOf(failure)} Correct the codec, or set \`onInvalid\` to 'drop' or to a function: then the stream continues after such a frame.`,
    );
    this.failure = failure;
    // V8 formats the stack when it is first read. Until then, the error keeps the functions and objects of the call stack alive.
    this.stack = String(this.stack);
  }
}

/** Checks a document. Returns the value, or a function that collects the issues when it is called. */
export type Check<A> = (document: unknown) => Either<() => readonly DecodeIssue[], A>;

const maxIssues = 10;
const maxLength = 200;

/** Creates the failure of a frame, with the first ten issues and shortened paths and messages. */
export const decodeFailure = (frame: Frame, issues: readonly DecodeIssue[]): DecodeFailure => ({
  type: 'decode-failure',
  feed: frame.feed,
  connection: frame.connection,
  receivedAt: frame.receivedAt,
  bytes: frame.byteLength,
  // A path contains keys of the payload, so it can be as long as the payload.
  issues: issues
    .slice(0, maxIssues)
    .map(({ path, message }) => ({ path: shortened(path), message: shortened(message) })),
});

/** Writes a path as a JSON Pointer. */
export const jsonPointer = (keys: readonly PropertyKey[]): string =>
  keys.map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');

const shortened = (text: string): string => (text.length > maxLength ? `${text.slice(0, maxLength - 1)}…` : text);

const summaryOf = ({ feed, bytes, issues }: DecodeFailure): string => {
  const [{ path, message } = { path: '', message: 'refused' }] = issues;
  return `A frame of ${feed} (${bytes} bytes) does not match the codec: ${path === '' ? 'the document' : path}: ${message}.`;
};
