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

/** How many bytes may wait for a slow reader of stdout. */
const maxWaitingBytes = 1024 * 1024;
/** The longest time of a timer, in ms. */
const maxTimerMs = 2 ** 31 - 1;

/**
 * Replays a recording, but never faster than the output accepts it. When too many bytes wait, the operator unsubscribes from the replay, and later
 * continues from its offset. The recorded intervals are kept across the pause, unless the output was slower.
 *
 * @param write - writes an event to the output
 */
export const pacedReplay$ = (
  file: string,
  options: ReplayOptions,
  output: Output,
  write: (event: Replayed) => void,
): Observable<Replayed> =>
  defer(() => {
    let last: { readonly event: Replayed; readonly writtenAt: number } | undefined;
    let isPaused = false;
    const writeAndCheck = (event: Replayed): boolean => {
      write(event);
      isPaused = output.writableLength > maxWaitingBytes;
      if (isPaused) last = { event, writtenAt: asyncScheduler.now() };
      return !isPaused;
    };
    const { speed = 1 } = options;
    const rest$ = (): Observable<Replayed> => {
      isPaused = false;
      if (last === undefined) return replay$(file, options);
      const { event, writtenAt } = last;
      const { offset } = event;
      const more$ = replay$(file, { ...options, offset });
      if (speed === Infinity) return more$;
      // A replay emits its first event immediately, so the recorded interval before that event is waited for here.
      return replay$(file, { ...options, speed: Infinity, offset }).pipe(
        take(1),
        switchMap((next) => {
          const dueAt = writtenAt + Math.max(0, timeOf(next) - timeOf(event)) / speed;
          return timer(Math.min(Math.max(0, dueAt - asyncScheduler.now()), maxTimerMs));
        }),
        switchMap(() => more$),
      );
    };
    return defer(rest$).pipe(
      takeWhile(writeAndCheck, true),
      repeat({ delay: () => (isPaused ? fromEvent(output, 'drain').pipe(take(1)) : EMPTY) }),
    );
  });

const timeOf = (event: Replayed): number => (event.type === 'frame' ? event.receivedAt : event.to);
