import {
  defer,
  filter,
  from,
  type Observable,
  type ObservableInput,
  repeat,
  type SchedulerLike,
  tap,
  timer,
} from 'rxjs';
import { clampMs } from '../../../protocol/validate.js';
import type { Replayed } from '../../items/item.js';
import { createEventReader } from './event-reader.js';
import type { RecordedLines } from './recording-reader.js';

/** The progress of a replay. */
export interface ReplayProgress {
  /** The position of the replay in the recording, in bytes. It includes the bytes before the option `offset`. */
  readonly bytes: number;
  /** The length of the recording when it was opened, all files together, in bytes. */
  readonly totalBytes: number;
  /** The number of emitted frames. */
  readonly frames: number;
  /** The recorded time of the last frame or gap, in epoch ms. */
  readonly at: number | undefined;
  /**
   * The last line, if it is torn: its position and its length in bytes. A crash or a full disk tears a line, and a line
   * that is still being written looks the same. The replay does not emit its frame or gap. Only the last report
   * contains this.
   */
  readonly torn: { readonly at: number; readonly bytes: number } | undefined;
}

export interface ReplaySettings {
  readonly speed: number;
  readonly offset: number;
  readonly onProgress: (progress: ReplayProgress) => void;
  readonly scheduler: SchedulerLike;
}

export interface LineSource {
  readonly totalBytes: number;
  /** The number of bytes after the last line, once `read` has reached the end. */
  readonly tornBytes: number;
  read(): ObservableInput<RecordedLines | undefined>;
}

/** Replays in rounds: each emits all events that are due, then waits for the next event or reads more lines. */
export const replayRounds = (
  source: LineSource,
  { speed, offset, onProgress, scheduler }: ReplaySettings,
): Observable<Replayed> =>
  defer(() => {
    const reader = createEventReader();
    const dueMs = schedule(speed);
    let isOpen = false;
    let startedAt: number | undefined;
    let next: Replayed | undefined;
    let nextAt = 0;
    let [bytes, frames] = [offset, 0];
    let at: number | undefined;

    // An event that is not due yet stays in `next` for a later round.
    function* due(): Generator<Replayed> {
      const now = scheduler.now();
      for (;;) {
        if (next === undefined) {
          next = reader.next();
          if (next === undefined) return;
          startedAt ??= now;
          at = next.type === 'gap' ? next.to : next.receivedAt;
          nextAt = startedAt + dueMs(at);
        }
        if (nextAt > now) return;
        const event = next;
        next = undefined;
        if (event.type === 'frame') frames += 1;
        yield event;
      }
    }

    const report = (torn?: ReplayProgress['torn']): void =>
      onProgress({ bytes, totalBytes: source.totalBytes, frames, at, torn });

    const reportTorn = (): void => {
      const tornAt = reader.invalidAt ?? bytes;
      const tornBytes = bytes + source.tornBytes - tornAt;
      if (tornBytes > 0) report({ at: tornAt, bytes: tornBytes });
    };

    const readMore = defer(() => {
      if (isOpen) report();
      return source.read();
    }).pipe(
      tap((lines) => {
        if (!isOpen) report();
        isOpen = true;
        if (lines === undefined) return reportTorn();
        bytes = lines.offset + lines.bytes.length;
        reader.push(lines);
      }),
      filter((lines) => lines !== undefined),
    );

    const waitForNext = (): Observable<unknown> => timer(clampMs(nextAt - scheduler.now()), scheduler);

    return defer(() => from(due())).pipe(repeat({ delay: () => (next === undefined ? readMore : waitForNext()) }));
  });

/** Returns when a recorded time is due, in ms after the first one. A clock that was set back adds no delay. */
const schedule = (speed: number): ((time: number) => number) => {
  if (speed === Infinity) return () => -Infinity;
  let [last, recordedMs] = [Infinity, 0];
  return (time) => {
    recordedMs += Math.max(0, time - last);
    last = time;
    return recordedMs / speed;
  };
};
