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
import { clampMs } from '../../protocol/rules.js';
import { recordedEvents } from './recording-events.js';
import type { Replayed } from '../items/replayed.js';
import type { RecordedLines } from './recording-reader.js';

/** How far a replay is. */
export interface ReplayProgress {
  /** How much of the recording is behind it, in bytes. */
  readonly bytes: number;
  /** The length of the recording when it was opened, all files together, in bytes. */
  readonly totalBytes: number;
  /** Frames emitted so far. */
  readonly frames: number;
  /** The recorded time of the last frame or gap, in epoch ms. */
  readonly at: number | undefined;
  /**
   * The last line, when it is torn: where it begins and how many bytes it has. A crash tears a line, so does a full disk, and a line that is
   * still being written looks the same. The frame or gap in it is lost to this replay. Only the last report has it.
   */
  readonly torn: { readonly at: number; readonly bytes: number } | undefined;
}

/** How a replay goes. */
export interface ReplaySettings {
  readonly speed: number;
  readonly offset: number;
  readonly onProgress: (progress: ReplayProgress) => void;
  readonly scheduler: SchedulerLike;
}

/** Where the lines come from. */
export interface LineSource {
  readonly totalBytes: number;
  /** How many bytes follow the last line, at the end. */
  readonly tornBytes: number;
  read(): ObservableInput<RecordedLines | undefined>;
}

/**
 * Replays what a source of lines gives, in rounds: all that is due is emitted, then it waits for the next one or reads on, until there
 * is nothing more.
 */
export const replayRounds = (
  source: LineSource,
  { speed, offset, onProgress, scheduler }: ReplaySettings,
): Observable<Replayed> =>
  defer(() => {
    const events = recordedEvents();
    const dueMs = schedule(speed);
    let isOpen = false;
    let startedAt: number | undefined;
    let next: Replayed | undefined;
    let nextAt = 0;
    let [bytes, frames] = [offset, 0];
    let at: number | undefined;

    // What is not due yet is kept for a later round.
    function* due(): Generator<Replayed> {
      const now = scheduler.now();
      for (;;) {
        if (next === undefined) {
          next = events.next();
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
      const tornAt = events.unreadableAt ?? bytes;
      const tornBytes = bytes + source.tornBytes - tornAt;
      if (tornBytes > 0) report({ at: tornAt, bytes: tornBytes });
    };

    const readOn = defer(() => {
      if (isOpen) report();
      return source.read();
    }).pipe(
      tap((lines) => {
        if (!isOpen) report();
        isOpen = true;
        if (lines === undefined) return reportTorn();
        bytes = lines.offset + lines.bytes.length;
        events.take(lines);
      }),
      filter((lines) => lines !== undefined),
    );

    const wait = (): Observable<unknown> => timer(clampMs(nextAt - scheduler.now()), scheduler);

    return defer(() => from(due())).pipe(repeat({ delay: () => (next === undefined ? readOn : wait()) }));
  });

/** Makes the plan of a replay: when each recorded time is due, in ms after the first one. A clock that was set back adds nothing. */
const schedule = (speed: number): ((time: number) => number) => {
  if (speed === Infinity) return () => -Infinity;
  let [last, recordedMs] = [Infinity, 0];
  return (time) => {
    recordedMs += Math.max(0, time - last);
    last = time;
    return recordedMs / speed;
  };
};
