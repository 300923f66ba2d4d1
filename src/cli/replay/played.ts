import { defer, EMPTY, fromEvent, type Observable, repeat, take, takeWhile } from 'rxjs';
import { type Replayed, replay$, type ReplayOptions } from '../../index.js';
import type { Output } from '../context.js';

/** How much may wait for a slow reader of stdout, in bytes. */
const mostWaitingBytes = 1024 * 1024;

/**
 * Replays a recording no faster than its output takes it: while too much waits there the replay is left, and gone on with from its offset.
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
    let { offset } = options;
    let isHeld = false;
    const passOn = (event: Replayed): boolean => {
      write(event);
      ({ offset } = event);
      isHeld = output.writableLength > mostWaitingBytes;
      return !isHeld;
    };
    return defer(() => {
      isHeld = false;
      return replay$(file, { ...options, offset });
    }).pipe(takeWhile(passOn, true), repeat({ delay: () => (isHeld ? released$(output) : EMPTY) }));
  });

const released$ = (output: Output): Observable<unknown> => fromEvent(output, 'drain').pipe(take(1));
