import { filter, type Observable } from 'rxjs';
import { type IsWanted, payloadOf } from '../../protocol/frame.js';
import { isFrame } from './item.js';

export const wherePayload =
  (isWanted: IsWanted) =>
  <E>(source: Observable<E>): Observable<E> =>
    (source as Partial<Selective<E>>)[select]?.(isWanted) ??
    source.pipe(filter((event) => !isFrame(event) || isWanted(payloadOf(event), event.isBinary, false)));

/**
 * Creates an Observable that applies the filter directly after it to the payload, before it creates a frame. So a
 * refused frame costs no object, no operator, and no copy of its bytes (a frame needs one, because any operator could
 * have stored it).
 *
 * @param create - creates the Observable; if you omit `isWanted`, it emits all frames
 */
export const selective = <T>(create: (isWanted?: IsWanted) => Observable<T>, isWanted?: IsWanted): Observable<T> =>
  Object.assign(create(isWanted), {
    [select]: (next: IsWanted) => selective(create, isWanted ? both(isWanted, next) : next),
  });

const both =
  (first: IsWanted, second: IsWanted): IsWanted =>
  (payload, isBinary) =>
    first(payload, isBinary, false) && second(payload, isBinary, false);

const select = Symbol('select');

interface Selective<T> {
  readonly [select]: (isWanted: IsWanted) => Observable<T>;
}
