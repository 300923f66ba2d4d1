import type { Observable } from 'rxjs';
import { isText } from '../protocol/type-guards.js';
import { invalidOption } from '../protocol/validate.js';
import { Needle, Needles } from './filter/search.js';
import { wherePayload } from './filter/where-payload.js';

/**
 * Emits the frames whose bytes contain one of the needles, and everything that isn't a frame.
 *
 * It's a cheap filter before {@link decodeWith}: it creates no text and no object. It compares bytes, so `0xAB` doesn't
 * match `0xab`, and what JSON escapes (`"`, `\`, control characters) must be escaped in the needle. A frame also passes
 * if another field contains the needle, so check the decoded value. Completes and errors with the source. Memory: none.
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
  const encoder = new TextEncoder();
  const bytes = needles.map((needle) => (isText(needle) ? encoder.encode(needle) : new Uint8Array(needle)));
  // Search short needles separately, because the shortest one limits how far the search can skip ahead.
  const groups = [bytes.filter(isLong), bytes.filter((each) => !isLong(each))].filter(({ length }) => length > 0);
  const searches = groups.map((group) => (group.length > 1 ? new Needles(group) : new Needle(group[0] as Uint8Array)));
  return wherePayload((payload) => searches.some((search) => search.isIn(payload)));
};

const isLong = ({ length }: Uint8Array): boolean => length >= 8;

const allowed = 'texts or byte arrays to search for, at least one, none of them empty';

const isNeedle = (needle: unknown): boolean => (isText(needle) || needle instanceof Uint8Array) && needle.length > 0;
