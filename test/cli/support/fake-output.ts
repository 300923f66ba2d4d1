import { Writable } from 'node:stream';
import { waitFor } from '../../support/wait-for.js';

/** A stdout or stderr that stores its text. It is a terminal if it has a size. */
export class FakeOutput extends Writable {
  text = '';
  readonly isTTY: boolean;
  columns: number | undefined;
  rows: number | undefined;
  /** The callback of a blocked write. */
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

  /** Blocks after the next write. */
  block(): void {
    this.#isBlocked = true;
  }

  /** Accepts writes again. */
  unblock(): void {
    this.#isBlocked = false;
    this.#blocked?.();
  }

  /** Waits until the text matches. */
  until(pattern: RegExp): Promise<RegExpExecArray> {
    return waitFor(() => pattern.exec(this.text), { what: () => `${pattern} in: ${this.text}` });
  }
}
