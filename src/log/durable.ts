// Makes what a writer has written survive a power failure.
//
// In: files that grow, and complete ones. Out: `fdatasync` in the thread pool, every `syncMs` and before a complete
// file is closed.
// Never: a second attempt after a failure. The kernel may have dropped the bytes, and the next call succeeds.
import { noop } from 'rxjs';
import type { Disk } from './segments.js';

interface Outcomes {
  /** A complete file is closed. */
  readonly closed: () => void;
  /** Bytes may be lost. */
  readonly failed: (error: Error) => void;
}

export class Durable {
  readonly #folder: string;
  readonly #isOff: boolean;
  readonly #disk: Disk;
  readonly #on: Outcomes;
  readonly #complete: number[] = [];
  #isSyncing = false;
  /** Whether something was written since the last `sync`. */
  isDirty = false;

  constructor(folder: string, syncMs: number, disk: Disk, on: Outcomes) {
    this.#folder = folder;
    this.#isOff = syncMs === Infinity;
    this.#disk = disk;
    this.#on = on;
  }

  /** Nothing is written to this file any more, once no write is in flight. */
  complete(fd: number): void {
    this.#complete.push(fd);
  }

  /** Call it while no write is in flight. */
  closeComplete(): void {
    for (const fd of this.#complete.splice(0)) {
      const close = (error: Error | null): void => {
        this.#disk.close(fd, noop);
        if (error) this.#on.failed(error);
        else this.#on.closed();
      };
      if (this.#isOff) close(null);
      else this.#disk.fdatasync(fd, close);
    }
  }

  sync(fd: number): void {
    if (!this.isDirty || this.#isSyncing) return;
    this.isDirty = false;
    this.#isSyncing = true;
    this.#disk.fdatasync(fd, (error) => {
      this.#isSyncing = false;
      if (error) this.#on.failed(error);
    });
  }

  syncNow(fd: number): void {
    if (!this.#isOff) this.#disk.fdatasyncSync(fd);
  }

  /** Makes the name of a new file survive. */
  syncFolder(): void {
    if (this.#isOff) return;
    try {
      const fd = this.#disk.openSync(this.#folder, 'r');
      this.#disk.fsync(fd, () => this.#disk.close(fd, noop));
    } catch {
      // Windows can't open a folder; its file system writes the entry with the file.
    }
  }
}
