import { basename } from 'node:path';
import { toLogError } from './log-error.js';
import { listSegments, readAll, segmentPath, syncFolder, type Machine } from './segments.js';

export interface RetentionLimits {
  readonly maxBytes: number;
  readonly maxAgeMs: number;
  readonly compress: boolean;
}

/** Removes and compresses whole segments, never the newest one. It doesn't wait for readers: a dead one would fill the disk. */
export class Retention {
  readonly #folder: string;
  readonly #limits: RetentionLimits;
  readonly #machine: Pick<Machine, 'disk' | 'now' | 'gzip' | 'warn'>;
  #isCompressing = false;
  #hasEnded = false;

  constructor(folder: string, limits: RetentionLimits, machine: Pick<Machine, 'disk' | 'now' | 'gzip' | 'warn'>) {
    this.#folder = folder;
    this.#limits = limits;
    this.#machine = machine;
  }

  /** The next writer does the rest. */
  end(): void {
    this.#hasEnded = true;
  }

  tidy(): void {
    if (this.#hasEnded) return;
    const { maxBytes, maxAgeMs, compress } = this.#limits;
    this.#orWarn(() => {
      if (maxBytes !== Infinity || maxAgeMs !== Infinity) this.#removeOld();
      if (compress && !this.#isCompressing) this.#compress();
    });
  }

  // It is tried again in a minute; until then the log is only larger than it should be.
  #orWarn(action: () => void): void {
    try {
      action();
    } catch (cause) {
      // A segment was removed meanwhile, by hand or by retention.
      if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return;
      this.#machine.warn(`Old segments stay for now. ${toLogError('write', this.#folder, cause).message}`);
    }
  }

  #removeOld(): void {
    const { disk, now } = this.#machine;
    const { maxBytes, maxAgeMs } = this.#limits;
    const segments = listSegments(disk, this.#folder).map(({ path }) => ({ path, ...this.#statsOf(path) }));
    let bytes = segments.reduce((sum, { size }) => sum + size, 0);
    for (const { path, size, mtimeMs } of segments.slice(0, -1)) {
      if (bytes <= maxBytes && now() - mtimeMs <= maxAgeMs) return;
      disk.unlinkSync(path);
      bytes -= size;
    }
  }

  #statsOf(path: string): { readonly size: number; readonly mtimeMs: number } {
    const { disk } = this.#machine;
    const fd = disk.openSync(path, 'r');
    try {
      const { size, mtimeMs } = disk.fstatSync(fd);
      return { size, mtimeMs };
    } finally {
      disk.closeSync(fd);
    }
  }

  /** Compresses one closed segment, in the thread pool, then the next. */
  #compress(): void {
    const { disk, gzip } = this.#machine;
    const closed = listSegments(disk, this.#folder).slice(0, -1);
    this.#removeDoubles(closed);
    const next = closed.find(({ isCompressed }) => !isCompressed);
    if (next === undefined) return;
    const fd = disk.openSync(next.path, 'r');
    const bytes = readAll(disk, fd);
    disk.closeSync(fd);
    this.#isCompressing = true;
    gzip(bytes, (error, compressed) => {
      this.#isCompressing = false;
      if (this.#hasEnded) return;
      this.#orWarn(() => {
        if (error) throw error;
        this.#replace(next.path, compressed);
        this.#compress();
      });
    });
  }

  /** A reader finds the old name or the new one; a crash leaves one of them, or both. */
  #replace(path: string, compressed: Buffer): void {
    const { disk } = this.#machine;
    // Retention may have removed it meanwhile.
    disk.closeSync(disk.openSync(path, 'r'));
    const temporary = `${path}.gz.tmp`;
    const to = disk.openSync(temporary, 'w');
    try {
      if (disk.writeSync(to, compressed, 0, compressed.length, 0) !== compressed.length)
        throw Object.assign(new Error(), { code: 'ENOSPC' });
      disk.fdatasyncSync(to);
    } catch (error) {
      disk.unlinkSync(temporary);
      throw error;
    } finally {
      disk.closeSync(to);
    }
    disk.renameSync(temporary, `${path}.gz`);
    // A power failure must not keep the removal and lose the new name.
    syncFolder(this.#folder, disk);
    disk.unlinkSync(path);
  }

  #removeDoubles(closed: readonly { readonly offset: number; readonly isCompressed: boolean }[]): void {
    const { disk } = this.#machine;
    const names = new Set(disk.readdirSync(this.#folder));
    for (const { offset, isCompressed } of closed) {
      const plain = segmentPath(this.#folder, offset);
      if (isCompressed && names.has(basename(plain))) disk.unlinkSync(plain);
    }
    for (const name of names) if (name.endsWith('.tmp')) disk.unlinkSync(`${this.#folder}/${name}`);
  }
}
