import { LazyFrame } from '../../protocol/lazy-frame.js';
import { frameOf } from '../items/item.js';
import { isSparse, slackOf, viewOf, withOwnBytes } from './own-bytes.js';

/** A value in a {@link Holding}. */
export interface Held<T> {
  value: T;
  /** How many bytes the value keeps alive in addition to its own: the rest of its buffer. 0 while the value is fresh. */
  slack: number;
  /** Whether the value is held and waits for its copy at the end of the turn. */
  isFresh: boolean;
}

/** How many bytes of read buffers may wait for the end of the turn: about as many as one turn can read. */
const mostUnsettledBytes = 4 * 1024 * 1024;

/** Released values are removed from the list when there are this many more of them than held values. */
const mostReleased = 1_000;

// In Node the task runs after the consumer's synchronous code, its promises and `process.nextTick`. A value that the consumer takes before is not
// copied. A browser has no `setImmediate`, so it uses a microtask.
const { setImmediate: afterTurn = queueMicrotask } = globalThis as { setImmediate?: (task: () => void) => unknown };

/**
 * Holds values that are released one by one, in any order. They keep at most 4/3 of their bytes alive.
 *
 * A frame of the service that was not read gets its payload in separate memory at once, see {@link LazyFrame.own}.
 *
 * Any other frame, and a frame whose `data` was read, is a view of a buffer, and keeps all of that buffer alive. If it is still held after its
 * event-loop turn, it is copied into a buffer of exactly its size. A frame that uses at least 3/4 of its buffer is not copied.
 * Each copy has a separate buffer, so another
 * operator that holds the same frame changes nothing. A frame that is released within its turn is not copied.
 */
export class Holding<T> {
  #fresh: Held<T>[] = [];
  #freshSize = 0;
  #buffer: ArrayBufferLike | undefined;
  #bufferBytes = 0;
  #isScheduled = false;
  #slack = 0;

  /** How many bytes the values keep alive in addition to their own. Fresh values do not count: the read buffers of this turn are alive anyway. */
  get slack(): number {
    return this.#slack;
  }

  /** Holds a value. */
  hold(value: T): Held<T> {
    const held = { value, slack: 0, isFresh: false };
    const frame = frameOf(value);
    if (frame instanceof LazyFrame) frame.own();
    const view = viewOf(value);
    if (view !== undefined && isSparse(view)) this.#holdFresh(held, view.buffer);
    else this.#count(held);
    return held;
  }

  /** Releases a value and returns it. Call it once per value. */
  release(held: Held<T>): T {
    this.#slack -= held.slack;
    if (held.isFresh) {
      held.isFresh = false;
      this.#freshSize -= 1;
    }
    return held.value;
  }

  /** Releases all values. Do not release one of them again. */
  clear(): void {
    this.#forgetFresh();
    this.#slack = 0;
  }

  /** Copies the bytes of this turn's values now. */
  settle(): void {
    const fresh = this.#fresh;
    this.#forgetFresh();
    for (const held of fresh) {
      if (!held.isFresh) continue;
      held.isFresh = false;
      held.value = withOwnBytes(held.value);
      this.#count(held);
    }
  }

  // Counts the buffer that the frame has now: another holder may have copied the frame, or the frame may be frozen.
  #count(held: Held<T>): void {
    held.slack = slackOf(held.value);
    this.#slack += held.slack;
  }

  #holdFresh(held: Held<T>, buffer: ArrayBufferLike): void {
    if (buffer !== this.#buffer) this.#beginBuffer(buffer);
    else if (this.#fresh.length > this.#freshSize * 2 + mostReleased) this.#forgetReleased();
    held.isFresh = true;
    this.#fresh.push(held);
    this.#freshSize += 1;
  }

  #beginBuffer(buffer: ArrayBufferLike): void {
    if (this.#bufferBytes + buffer.byteLength > mostUnsettledBytes) this.settle();
    this.#buffer = buffer;
    this.#bufferBytes += buffer.byteLength;
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    afterTurn(() => {
      this.#isScheduled = false;
      this.settle();
    });
  }

  #forgetReleased(): void {
    this.#fresh = this.#fresh.filter(({ isFresh }) => isFresh);
  }

  #forgetFresh(): void {
    this.#fresh = [];
    this.#freshSize = 0;
    this.#buffer = undefined;
    this.#bufferBytes = 0;
  }
}
