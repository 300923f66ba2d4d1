import {
  asyncScheduler,
  defer,
  EMPTY,
  fromEvent,
  type Observable,
  repeat,
  switchMap,
  take,
  takeWhile,
  timer,
} from 'rxjs';
import { type Replayed, replay$, type ReplayOptions } from '../../index.js';
import type { Output } from '../context.js';

/** How much may wait for a slow reader of stdout, in bytes. */
const mostWaitingBytes = 1024 * 1024;
/** A timer keeps no more, in ms. */
const longestMs = 2 ** 31 - 1;

/**
 * Replays a recording no faster than its output takes it: while too much waits there the replay is left, and gone on with from its
 * offset. The recorded spacing is kept across that, as far as the output was not slower.
 *
 * @param write - writes an event to the output
 */
export const played$ = (
  file: string,
  options: ReplayOptions,
  output: Output,
  write: (event: Replayed) => void,
): Observable<Replayed> =>
  defer(() => {
    let last: { readonly event: Replayed; readonly writtenAt: number } | undefined;
    let isHeld = false;
    const passOn = (event: Replayed): boolean => {
      write(event);
      isHeld = output.writableLength > mostWaitingBytes;
      if (isHeld) last = { event, writtenAt: asyncScheduler.now() };
      return !isHeld;
    };
    const { speed = 1 } = options;
    const rest$ = (): Observable<Replayed> => {
      isHeld = false;
      if (last === undefined) return replay$(file, options);
      const { event, writtenAt } = last;
      const { offset } = event;
      const more$ = replay$(file, { ...options, offset });
      if (speed === Infinity) return more$;
      // A replay begins with its first event at once: what the spacing before that says is waited for here.
      return replay$(file, { ...options, speed: Infinity, offset }).pipe(
        take(1),
        switchMap((next) => {
          const dueAt = writtenAt + Math.max(0, timeOf(next) - timeOf(event)) / speed;
          return timer(Math.min(Math.max(0, dueAt - asyncScheduler.now()), longestMs));
        }),
        switchMap(() => more$),
      );
    };
    return defer(rest$).pipe(takeWhile(passOn, true), repeat({ delay: () => (isHeld ? released$(output) : EMPTY) }));
  });

const timeOf = (event: Replayed): number => (event.type === 'frame' ? event.receivedAt : event.to);

const released$ = (output: Output): Observable<unknown> => fromEvent(output, 'drain').pipe(take(1));
