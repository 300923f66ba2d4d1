import { Writable } from 'node:stream';
import { waitFor } from '../../support/wait-for.js';

/** A stdout or stderr that keeps what is written; a terminal when it is given a size. */
export class FakeOutput extends Writable {
  text = '';
  readonly isTTY: boolean;
  columns: number | undefined;
  rows: number | undefined;
  /** Set to hold the writes back, as a reader that does not read. */
  #blocked: (() => void) | undefined;
  #isBlocked = false;

  constructor(size?: { readonly columns?: number; readonly rows?: number }) {
    super({ decodeStrings: true, highWaterMark: 1_024 });
    this.isTTY = size !== undefined;
    this.columns = size?.columns;
    this.rows = size?.rows;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.text += chunk.toString();
    if (this.#isBlocked) this.#blocked = done;
    else done();
  }

  /** Stops taking more after the next write. */
  block(): void {
    this.#isBlocked = true;
  }

  /** Takes more again. */
  unblock(): void {
    this.#isBlocked = false;
    this.#blocked?.();
  }

  /** Waits until the text matches. */
  until(pattern: RegExp): Promise<RegExpExecArray> {
    return waitFor(() => pattern.exec(this.text), { what: () => `${pattern} in: ${this.text}` });
  }
}
