import type { Feed } from '../../protocol/feed.js';
import type { Frame } from '../../protocol/frame.js';

/** One thing that is wrong with a payload. */
export interface DecodeIssue {
  /** Where in the document: a JSON Pointer (RFC 6901) such as `/transactions/3/to`, shortened to 200 characters; empty for the document as a whole. */
  readonly path: string;
  /** What is wrong there, in the words of the codec, shortened to 200 characters. */
  readonly message: string;
}

/** Why a frame could not be decoded: which frame, and where in its document. It does not hold the payload. */
export interface DecodeFailure {
  readonly type: 'decode-failure';
  readonly feed: Feed;
  /** Which connection the frame came over. */
  readonly connection: number;
  /** When its bytes were read, in epoch ms. */
  readonly receivedAt: number;
  /** Its size. */
  readonly bytes: number;
  /** The first ten things that are wrong. */
  readonly issues: readonly DecodeIssue[];
}

/**
 * What `decodeWith` errors with when it is asked to: a frame that its codec refuses.
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
      `${wordsOf(failure)} Correct the codec, or take \`onInvalid: 'drop'\` or a function to go on after such frames.`,
    );
    this.failure = failure;
    // Until it is read, a stack keeps every object alive that was on it.
    this.stack = String(this.stack);
  }
}

const maxIssues = 10;
const maxLength = 200;

/** Makes the failure of a frame; later issues and the ends of long paths and messages are left out. */
export const decodeFailure = (frame: Frame, issues: readonly DecodeIssue[]): DecodeFailure => ({
  type: 'decode-failure',
  feed: frame.feed,
  connection: frame.connection,
  receivedAt: frame.receivedAt,
  bytes: frame.data.byteLength,
  // Keys are payload: a path can be as long as that.
  issues: issues
    .slice(0, maxIssues)
    .map(({ path, message }) => ({ path: shortened(path), message: shortened(message) })),
});

/** Writes a path as a JSON Pointer. */
export const jsonPointer = (keys: readonly PropertyKey[]): string =>
  keys.map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');

const shortened = (text: string): string => (text.length > maxLength ? `${text.slice(0, maxLength - 1)}…` : text);

const wordsOf = ({ feed, bytes, issues }: DecodeFailure): string => {
  const [{ path, message } = { path: '', message: 'refused' }] = issues;
  return `A frame of ${feed} (${bytes} bytes) is not what the codec expects: ${path === '' ? 'the document' : path}: ${message}.`;
};
