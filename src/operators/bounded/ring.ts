/** The slots that a ring begins with. */
const firstSlots = 16;

/**
 * Holds values first in, first out: a circular array, which doubles when it is full.
 *
 * `push`, `shift` and `oldest` take constant time (amortized). A slot that was left is cleared, so the ring keeps nothing alive.
 */
export class Ring<T> {
  #slots: (T | undefined)[] = new Array<T | undefined>(firstSlots).fill(undefined);
  #head = 0;
  #size = 0;

  /** How many values it holds. */
  get size(): number {
    return this.#size;
  }

  /** The value that would be shifted next; `undefined` when there is none. */
  get oldest(): T | undefined {
    return this.#slots[this.#head];
  }

  /** The value that has `index` others before it; ask for the `size` first. */
  at(index: number): T {
    return this.#slots[(this.#head + index) & (this.#slots.length - 1)] as T;
  }

  /** Puts a value at the end. */
  push(value: T): void {
    if (this.#size === this.#slots.length) this.#grow();
    this.#slots[(this.#head + this.#size) & (this.#slots.length - 1)] = value;
    this.#size += 1;
  }

  /** Takes the first value out; gives `undefined` when there is none, so ask for the `size` if values can be `undefined`. */
  shift(): T | undefined {
    if (this.#size === 0) return undefined;
    const value = this.#slots[this.#head];
    this.#slots[this.#head] = undefined;
    this.#head = (this.#head + 1) & (this.#slots.length - 1);
    this.#size -= 1;
    return value;
  }

  /** Forgets everything. */
  clear(): void {
    this.#slots = new Array<T | undefined>(firstSlots).fill(undefined);
    this.#head = 0;
    this.#size = 0;
  }

  // The number of slots stays a power of two, so that a mask wraps an index.
  #grow(): void {
    const inOrder = [...this.#slots.slice(this.#head), ...this.#slots.slice(0, this.#head)];
    this.#slots = inOrder.concat(new Array<T | undefined>(inOrder.length).fill(undefined));
    this.#head = 0;
  }
}
