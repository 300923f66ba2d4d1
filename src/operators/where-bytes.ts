import { filter, type Observable } from 'rxjs';
import type { Frame } from '../protocol/frame.js';
import { payloadOf } from '../protocol/lazy-frame.js';
import { invalidOption } from '../protocol/rules.js';
import { isFrame } from './items/item.js';

/**
 * Emits the frames whose bytes contain one of the needles, and all values that are not frames.
 *
 * A cheap filter before {@link decodeWith}: it searches the bytes of the payload and creates no text and no object. It compares bytes: `0xAB` does
 * not match `0xab`, and characters that JSON escapes (`"`, `\`, control characters) must be escaped in the needle. A frame that contains a
 * needle in another field is emitted, too, so check the decoded value.
 * Completes and errors with the source. Memory: none.
 *
 * ```ts
 * // source               --{"to":"a"}--{"to":"b"}--opened--{"to":"a"}--|
 * // whereBytes('"a"')    --{"to":"a"}--------------opened--{"to":"a"}--|
 * ```
 *
 * @param needles - texts, encoded as UTF-8, or bytes; at least one, and none empty
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { from } from 'rxjs';
 * import { Frame, whereBytes } from 'rx-trade-feed';
 *
 * const frame = (text: string) => new Frame('raw', Buffer.from(text), false, Date.now(), 1);
 *
 * from([frame('{"to":"0xa1"}'), frame('{"to":"0xb2"}')])
 *   .pipe(whereBytes('"0xb2"', '"0xc3"'))
 *   .subscribe((each) => console.log(each.text())); // {"to":"0xb2"}
 * ```
 */
export const whereBytes = (
  ...needles: readonly (string | Uint8Array)[]
): (<E>(source: Observable<E>) => Observable<E>) => {
  if (needles.length === 0 || !needles.every(isNeedle)) throw invalidOption('needles', allowed);
  const [first = Buffer.alloc(0), ...rest] = needles.map((needle) => Buffer.from(needle as string));
  const isMatch = rest.length === 0 ? contains(first) : containsAny([first, ...rest]);
  return (source) => source.pipe(filter((event) => !isFrame(event) || isMatch(event)));
};

const allowed = 'texts or byte arrays to search for, at least one, none of them empty';

const isNeedle = (needle: unknown): boolean =>
  (typeof needle === 'string' || needle instanceof Uint8Array) && needle.length > 0;

const contains =
  (needle: Buffer) =>
  (frame: Frame): boolean =>
    asBuffer(payloadOf(frame)).includes(needle);

const containsAny =
  (needles: readonly Buffer[]) =>
  (frame: Frame): boolean => {
    const bytes = asBuffer(payloadOf(frame));
    return needles.some((needle) => bytes.includes(needle));
  };

// The frames of a relay have plain byte arrays, whose `includes` searches for a single byte.
const asBuffer = (data: Uint8Array): Buffer =>
  Buffer.isBuffer(data) ? data : Buffer.from(data.buffer, data.byteOffset, data.byteLength);
