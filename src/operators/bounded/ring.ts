const firstSlots = 16;

/** Queues values, first in, first out, in constant time (amortized). Doesn't keep removed values alive. */
export class Ring<T> {
  // Stryker disable next-line ArrayDeclaration: the ring grows, so its first size has no visible effect.
  #slots: (T | undefined)[] = new Array<T | undefined>(firstSlots).fill(undefined);
  #head = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The next value to shift; `undefined` if the ring is empty. */
  get oldest(): T | undefined {
    return this.#slots[this.#head];
  }

  /** The value that was pushed last; `undefined` if the ring is empty. */
  get newest(): T | undefined {
    return this.#size === 0 ? undefined : this.at(this.#size - 1);
  }

  /** Returns the value at an index, counted from the oldest. `index` must be less than `size`. */
  at(index: number): T {
    return this.#slots[(this.#head + index) & (this.#slots.length - 1)] as T;
  }

  push(value: T): void {
    if (this.#size === this.#slots.length) this.#grow();
    this.#slots[(this.#head + this.#size) & (this.#slots.length - 1)] = value;
    this.#size += 1;
  }

  /** Removes and returns the oldest value; `undefined` if the ring is empty. */
  shift(): T | undefined {
    if (this.#size === 0) return undefined;
    const value = this.#slots[this.#head];
    this.#slots[this.#head] = undefined;
    this.#head = (this.#head + 1) & (this.#slots.length - 1);
    this.#size -= 1;
    return value;
  }

  clear(): void {
    this.#slots = new Array<T | undefined>(firstSlots).fill(undefined);
    this.#head = 0;
    this.#size = 0;
  }

  // The number of slots is always a power of two, so a mask can wrap an index.
  #grow(): void {
    const inOrder = [...this.#slots.slice(this.#head), ...this.#slots.slice(0, this.#head)];
    this.#slots = inOrder.concat(new Array<T | undefined>(inOrder.length).fill(undefined));
    this.#head = 0;
  }
}

/** Queues values with the sum of their bytes: all that waits for somebody slower does so in one of these. */
export class SizedQueue<T extends { readonly bytes: number }> extends Ring<T> {
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  override push(value: T): void {
    super.push(value);
    this.#bytes += value.bytes;
  }

  override shift(): T | undefined {
    const value = super.shift();
    if (value !== undefined) this.#bytes -= value.bytes;
    return value;
  }

  override clear(): void {
    super.clear();
    this.#bytes = 0;
  }
}
