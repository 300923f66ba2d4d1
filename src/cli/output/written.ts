import type { Writable } from 'node:stream';
import { firstValueFrom, fromEvent, merge, NEVER, type Observable, of, switchMap, timer } from 'rxjs';

/**
 * Resolves when all that was given to a stream is written, the stream is broken, or the time is over.
 *
 * @param given$ - emits when all was given
 * @param withinMs - how long to wait @defaultValue as long as it takes
 */
export const written = async (stream: Writable, given$: Observable<unknown>, withinMs?: number): Promise<void> => {
  const written$ = given$.pipe(switchMap(() => new Promise<void>((done) => stream.write('', () => done()))));
  const broken$ = stream.destroyed ? of(undefined) : merge(fromEvent(stream, 'error'), fromEvent(stream, 'close'));
  await firstValueFrom(merge(broken$, written$, withinMs === undefined ? NEVER : timer(withinMs)));
};
