import { isSparse, slackOf, viewOf, withOwnBytes } from './own-bytes.js';

/** A value that is held. */
export interface Held<T> {
  value: T;
  /** How many bytes its buffer keeps alive in addition to its own; 0 until the value is settled. */
  slack: number;
  /** Whether it is held and not settled. */
  isFresh: boolean;
}

/** How many bytes of read buffers may wait for the end of the turn: about what a turn can bring. */
const mostUnsettledBytes = 4 * 1024 * 1024;

/** How many released values the list may hold besides as many as are held, before they are removed from it. */
const mostReleased = 1_000;

// In Node this runs after what a consumer does at once, also in promises and in `process.nextTick`: what it takes then need not be copied.
// A browser has no `setImmediate`.
const { setImmediate: afterTurn = queueMicrotask } = globalThis as { setImmediate?: (task: () => void) => unknown };

/**
 * Holds values that are released one by one, in any order. They keep at most 4/3 of their bytes alive.
 *
 * Frames are views of the buffer that they were read into, and one frame keeps all of that buffer alive. A frame that is still held after its
 * event-loop turn gets a buffer of exactly its size, unless it uses at least 3/4 of its read buffer. No two frames share the new buffer, so
 * it does not matter which of them another operator holds as well. A frame that is released within its turn is not copied.
 */
export class Holding<T> {
  #fresh: Held<T>[] = [];
  #freshSize = 0;
  #buffer: ArrayBufferLike | undefined;
  #bufferBytes = 0;
  #isScheduled = false;
  #slack = 0;

  /** How many bytes the settled values keep alive besides their own. The buffers of this turn are alive without them. */
  get slack(): number {
    return this.#slack;
  }

  /** Begins to hold a value. */
  hold(value: T): Held<T> {
    const held = { value, slack: 0, isFresh: false };
    const view = viewOf(value);
    if (view === undefined) return held;
    if (isSparse(view)) this.#holdFresh(held, view.buffer);
    else this.#count(held);
    return held;
  }

  /** Releases a value, once, and returns it. */
  release(held: Held<T>): T {
    this.#slack -= held.slack;
    if (held.isFresh) {
      held.isFresh = false;
      this.#freshSize -= 1;
    }
    return held.value;
  }

  /** Releases everything. What was held must not be released again. */
  clear(): void {
    this.#forgetFresh();
    this.#slack = 0;
  }

  /** Copies the bytes of the values of this turn now. */
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

  // Another holder may have copied the frame, or the frame may be frozen. Count the buffer that it has now: it is final.
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
