export const newline = 0x0a;
// An editor may write it before a newline.
export const carriageReturn = 0x0d;

const initialBytes = 64 * 1024;
/** The largest buffer that is reused, in bytes. */
const maxReusedBytes = 1024 * 1024;

/** Stores lines that are not written yet, as bytes in one buffer that grows. */
export class LineBuffer {
  bytes = Buffer.allocUnsafeSlow(initialBytes);
  length = 0;
  /** The number of bytes that are written. */
  written = 0;

  /** Adds a line and returns its length in bytes. */
  add(line: string): number {
    // A UTF-16 code unit takes at most 3 bytes of UTF-8, so only a line that may not fit is measured.
    if (this.length + line.length * 3 > this.bytes.length) this.#reserve(Buffer.byteLength(line));
    const added = this.bytes.write(line, this.length);
    this.length += added;
    return added;
  }

  drop(bytes: number): void {
    this.length -= bytes;
  }

  clear(): void {
    this.length = 0;
    this.written = 0;
  }

  /** Returns an empty buffer: this one, or a new one if this one has grown too large. */
  recycle(): LineBuffer {
    if (this.bytes.length > maxReusedBytes) return new LineBuffer();
    this.clear();
    return this;
  }

  #reserve(more: number): void {
    let size = this.bytes.length;
    while (size < this.length + more) size *= 2;
    if (size === this.bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(size);
    this.bytes.copy(larger, 0, 0, this.length);
    this.bytes = larger;
  }
}
