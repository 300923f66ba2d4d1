import { type Cluster, clustersOf, isSparse, movedTo, packed, viewOf } from './own-bytes.js';

/** A value that is held. */
export interface Held<T> {
  value: T;
  /** The bytes that it is a view of. */
  readonly bytes: number;
  /** What its buffer keeps alive beyond them, if it needs most of that for itself. */
  readonly slack: number;
  /** Those that it shares its buffer with. */
  group: Group<T> | undefined;
}

/** What shares a buffer. Those that were let go are no longer of the group, and their bytes not among its `bytes`. */
interface Group<T> {
  readonly held: readonly Held<T>[];
  readonly bufferBytes: number;
  bytes: number;
  size: number;
}

/** What came out of the buffer that is being read: its group, and those that have left it. */
interface Reading<T> {
  readonly buffer: ArrayBufferLike;
  readonly group: Group<T>;
  readonly held: Held<T>[];
}

/** How many may have left what is being read before it is looked through, besides as many as are there. */
const mostLeft = 1_000;

/**
 * Holds values that are let go one by one, in any order. What they keep alive is at most one and a third times their bytes.
 *
 * Frames are views of the buffer that they were read into, and a single one keeps all of it alive. Behind the turn in which they came, those
 * move to a buffer of their own that are less than three quarters of theirs; and so do those that are left of a buffer when others have
 * gone, once there is too much of it. Each step takes constant time (amortized).
 */
export class Holding<T> {
  #reading: Reading<T> | undefined;
  #isScheduled = false;
  readonly #sparse = new Set<Group<T>>();
  #bytes = 0;
  #slack = 0;

  /** How many bytes the values keep alive beyond their own. The buffer that is being read is alive without them. */
  get slack(): number {
    return this.#slack;
  }

  /** Begins to hold a value. */
  hold(value: T): Held<T> {
    const view = viewOf(value);
    if (view === undefined) return { value, bytes: 0, slack: 0, group: undefined };
    const { buffer, byteLength: bytes } = view;
    this.#bytes += bytes;
    if (isSparse(bytes, buffer.byteLength)) return this.#holdRead(value, bytes, buffer);
    const slack = buffer.byteLength - bytes;
    this.#slack += slack;
    return { value, bytes, slack, group: undefined };
  }

  /** Lets a value go, and gives it. */
  release(held: Held<T>): T {
    const { value, bytes, slack, group } = held;
    this.#bytes -= bytes;
    this.#slack -= slack;
    if (group !== undefined) {
      this.#leave(group, bytes);
      held.group = undefined;
      // The others of the group know it still.
      (held as Held<T | undefined>).value = undefined;
    }
    return value;
  }

  /** Lets everything go. */
  clear(): void {
    this.#reading = undefined;
    this.#sparse.clear();
    this.#bytes = 0;
    this.#slack = 0;
  }

  /** Takes what was read as it is: nothing else comes out of that buffer. */
  settle(): void {
    if (this.#reading === undefined) return;
    const { group, held } = this.#reading;
    this.#reading = undefined;
    for (const cluster of clustersOf(ofGroup(held, group), viewIn)) {
      if (isSparse(cluster.bytes, cluster.bufferBytes)) this.#move(cluster.values);
      else this.#keep(cluster);
    }
    this.tidy();
  }

  /** Moves what is left of buffers that are needed no more, if there is too much of it. */
  tidy(): void {
    for (const group of this.#sparse) {
      if (!isSparse(this.#bytes, this.#bytes + this.#slack)) return;
      this.#sparse.delete(group);
      this.#slack -= group.bufferBytes - group.bytes;
      this.#move(ofGroup(group.held, group));
    }
  }

  #holdRead(value: T, bytes: number, buffer: ArrayBufferLike): Held<T> {
    const { group, held } = this.#readingOf(buffer);
    const one: Held<T> = { value, bytes, slack: 0, group };
    held.push(one);
    group.size += 1;
    return one;
  }

  #readingOf(buffer: ArrayBufferLike): Reading<T> {
    const reading = this.#reading;
    if (reading?.buffer === buffer && reading.held.length <= reading.group.size * 2 + mostLeft) return reading;
    this.settle();
    this.#schedule();
    const held: Held<T>[] = [];
    this.#reading = { buffer, held, group: { held, bufferBytes: 0, bytes: 0, size: 0 } };
    return this.#reading;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      this.settle();
    });
  }

  #keep({ values, bytes, bufferBytes }: Cluster<Held<T>>): void {
    const group: Group<T> = { held: values, bufferBytes, bytes, size: values.length };
    for (const held of values) held.group = group;
    this.#slack += bufferBytes - bytes;
  }

  #move(held: readonly Held<T>[]): void {
    for (const cluster of packed(held, viewIn, put)) this.#keep(cluster);
  }

  #leave(group: Group<T>, bytes: number): void {
    group.size -= 1;
    if (group === this.#reading?.group) return;
    group.bytes -= bytes;
    this.#slack += bytes;
    if (group.size === 0) {
      this.#slack -= group.bufferBytes;
      this.#sparse.delete(group);
    } else if (isSparse(group.bytes, group.bufferBytes)) this.#sparse.add(group);
  }
}

const ofGroup = <T>(held: readonly Held<T>[], group: Group<T>): Held<T>[] =>
  held.filter((each) => each.group === group);

const viewIn = <T>({ value }: Held<T>): Uint8Array => viewOf(value) as Uint8Array;

const put = <T>(held: Held<T>, view: Uint8Array): void => {
  held.value = movedTo(held.value, view);
};
