import type { Writable } from 'node:stream';
import {
  firstValueFrom,
  fromEvent,
  merge,
  NEVER,
  type Observable,
  type ObservableInput,
  of,
  Subject,
  switchMap,
  timer,
} from 'rxjs';

/** Writes lines to a stream that may be slow. */
export interface LineWriter {
  /** Writes a line, or stores it until the stream accepts more. Never waits. */
  write(line: OutputLine): void;
  /** The number of lines that were dropped because the stream was too slow. */
  readonly dropped: number;
  /**
   * Resolves when all lines are written or the stream is broken. If the time is over before, the remaining lines are dropped.
   *
   * @param withinMs - how long to wait @defaultValue without limit
   */
  flush(withinMs?: number): Promise<void>;
}

/** A line with its newline. */
export type OutputLine = string | Uint8Array;

/** The behaviour of a line writer when its stream is slow. */
export interface LineWriterOptions {
  /** How many bytes may wait for the stream. When more wait, the oldest lines are dropped. */
  readonly maxBytes: number;
  /** Called when the writer begins to drop lines. */
  readonly onDropping: () => void;
  /** Called with the number of dropped lines when the stream accepts more. The returned line is written in their place. */
  readonly onDropped: (lines: number) => string | undefined;
}

/**
 * Creates a writer that stores lines in a bounded queue. Without a queue, a slow reader of stdout would slow down reading from the socket, and
 * the service closes slow clients with 1013. Without a bound, the queue would fill the memory.
 */
export const lineWriter = (stream: Writable, { maxBytes, onDropping, onDropped }: LineWriterOptions): LineWriter => {
  const queue = lineQueue();
  const emptied = new Subject<void>();
  // A reader can exit while lines are queued. Then there is neither `drain` nor another `error`.
  const broken = firstValueFrom(brokenOf(stream), { defaultValue: undefined });
  let dropped = 0;
  let droppedHere = 0;

  const drop = (): void => {
    if (droppedHere === 0) onDropping();
    droppedHere += 1;
    dropped += 1;
  };
  const reportDropped = (): void => {
    if (droppedHere === 0) return;
    const marker = onDropped(droppedHere);
    droppedHere = 0;
    if (marker !== undefined) stream.write(marker);
  };
  const drain = (): void => {
    reportDropped();
    while (queue.length > 0 && !stream.writableNeedDrain) stream.write(queue.shift());
    if (queue.length === 0) emptied.next();
  };
  stream.on('drain', drain);

  return {
    write: (line) => {
      if (queue.length === 0 && !stream.writableNeedDrain) {
        stream.write(line);
        return;
      }
      queue.push(line);
      while (queue.bytes > maxBytes) {
        queue.shift();
        drop();
      }
    },
    get dropped() {
      return dropped;
    },
    flush: async (withinMs) => {
      await written(stream, queue.length === 0 ? of(undefined) : emptied, withinMs, broken);
      stream.off('drain', drain);
      while (queue.shift() !== undefined) drop();
      reportDropped();
    },
  };
};

/**
 * Resolves when all data of a stream is written, the stream is broken, or the time is over.
 *
 * @param complete$ - emits when the last data was passed to the stream
 * @param withinMs - how long to wait @defaultValue without limit
 * @param broken$ - emits when the stream is broken, or was before
 */
export const written = async (
  stream: Writable,
  complete$: Observable<unknown>,
  withinMs?: number,
  broken$: ObservableInput<unknown> = brokenOf(stream),
): Promise<void> => {
  const written$ = complete$.pipe(switchMap(() => new Promise<void>((done) => stream.write('', () => done()))));
  await firstValueFrom(merge(broken$, written$, withinMs === undefined ? NEVER : timer(withinMs)));
};

const brokenOf = (stream: Writable): Observable<unknown> =>
  stream.destroyed ? of(undefined) : merge(fromEvent(stream, 'error'), fromEvent(stream, 'close'));

/** A queue of lines that knows its size in bytes. */
export interface LineQueue {
  readonly bytes: number;
  readonly length: number;
  push(line: OutputLine): void;
  /** Removes and returns the oldest line. */
  shift(): OutputLine | undefined;
}

/** How many removed lines stay at the start of the array. `Array.shift` of a long array would be slow. */
const maxRemoved = 1_024;

/** Creates an empty queue. */
export const lineQueue = (): LineQueue => {
  let lines: OutputLine[] = [];
  let head = 0;
  let bytes = 0;
  return {
    get bytes() {
      return bytes;
    },
    get length() {
      return lines.length - head;
    },
    push: (line) => {
      lines.push(line);
      bytes += Buffer.byteLength(line);
    },
    shift: () => {
      const line = lines[head];
      if (line === undefined) return undefined;
      head += 1;
      bytes -= Buffer.byteLength(line);
      if (head > maxRemoved && head * 2 > lines.length) {
        lines = lines.slice(head);
        head = 0;
      }
      return line;
    },
  };
};
