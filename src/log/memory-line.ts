import { Subject } from 'rxjs';
import type { Head } from '../protocol/place.js';
import { misplaced } from './stored-line.js';
import { extentOf, type LineSpec, type LineStore, reaches, retention, type Stored } from './line-store.js';

interface Kept {
  readonly head: Head;
  readonly bytes: Uint8Array;
}

/** What the stores of one line share. */
export interface LineMemory {
  readonly messages: Kept[];
  bytes: number;
  readonly limits: Omit<LineSpec, 'name' | 'headOf'>;
  /** Says from which message on to keep them. */
  oldestKept: ReturnType<typeof retention<Kept>>;
}

/** Stores a line in memory. @param publish - sends a message to the subscribers of the line */
export const memoryLine = (memory: LineMemory, publish: (bytes: Uint8Array) => void): LineStore => {
  const { messages } = memory;
  const stored$ = new Subject<Stored>();
  /** What the next message follows. Another one in its place is of another owner. */
  let last = messages.at(-1);
  let isFenced = false;
  // Like the answer of a server, it comes later.
  const report = (stored: Stored): void => queueMicrotask(() => stored$.next(stored));
  const first = (isFound: (head: Head) => boolean): number => messages.findIndex(({ head }) => isFound(head));

  return {
    stored$: stored$.asObservable(),
    end: () => {
      [last, isFenced] = [messages.at(-1), false];
      return Promise.resolve(last?.head);
    },
    append: (head, bytes, only) => {
      // As with Redis, subscribers don't receive what a replaced owner sends.
      if (isFenced) return;
      if (only === 'live') return publish(bytes);
      const problem = messages.at(-1) === last ? misplaced(last?.head, head) : 'fenced';
      isFenced = problem === 'fenced';
      if (isFenced) return report({ refused: 'fenced', error: new Error('Another replica continues the line') });
      report({ upTo: head.offset + head.count });
      if (problem === 'stored') return;
      // A line that begins anew has other offsets.
      if (last?.head.line !== head.line)
        [messages.length, memory.bytes, memory.oldestKept] = [0, 0, retention(memory.limits)];
      last = { head, bytes };
      messages.push(last);
      memory.bytes += bytes.byteLength;
      const oldest = memory.oldestKept(last, bytes.byteLength);
      const removed = oldest ? messages.splice(0, messages.indexOf(oldest)) : [];
      for (const each of removed) memory.bytes -= each.bytes.byteLength;
      if (only !== 'store') publish(bytes);
    },
    // eslint-disable-next-line @typescript-eslint/require-await -- other stores have to wait
    read: async function* (from, signal) {
      const start = first((head) => reaches(head, from));
      for (const { bytes } of start < 0 ? [] : messages.slice(start)) if (!signal.aborted) yield bytes;
    },
    last: () => Promise.resolve(messages.at(-1)?.head),
    exists: () => Promise.resolve(messages.length > 0),
    since: (at) => Promise.resolve(messages[first((head) => head.at >= at)]?.head.offset),
    extent: () => Promise.resolve(extentOf(messages[0]?.head, messages.at(-1)?.head, memory.bytes)),
  };
};
