const smallest = 64 * 1024;
/** A buffer that has grown beyond it is not kept, in bytes. */
const largestKept = 1024 * 1024;

/** LineBuffer that wait to be written, as bytes in one buffer that grows. */
export class LineBuffer {
  bytes = Buffer.allocUnsafeSlow(smallest);
  /** How many bytes there are. */
  length = 0;
  /** How many of them are written. */
  done = 0;

  /** Adds a line and says how many bytes it has. */
  add(line: string): number {
    // No character of UTF-16 takes more than three bytes of UTF-8; only a line that may not fit is measured.
    if (this.length + line.length * 3 > this.bytes.length) this.#makeRoom(Buffer.byteLength(line));
    const added = this.bytes.write(line, this.length);
    this.length += added;
    return added;
  }

  /** Takes the last bytes away again. */
  drop(bytes: number): void {
    this.length -= bytes;
  }

  /** Removes all lines. */
  clear(): void {
    this.length = 0;
    this.done = 0;
  }

  /** Gives an empty one to use again. */
  cleared(): LineBuffer {
    if (this.bytes.length > largestKept) return new LineBuffer();
    this.clear();
    return this;
  }

  #makeRoom(more: number): void {
    let size = this.bytes.length;
    while (size < this.length + more) size *= 2;
    if (size === this.bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(size);
    this.bytes.copy(larger, 0, 0, this.length);
    this.bytes = larger;
  }
}
