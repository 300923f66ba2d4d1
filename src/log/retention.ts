import type { AppendSettings } from './append.js';
import { toLogError } from './log-error.js';
import { listSegments, type Machine, syncFolder } from './segments.js';

type Limits = Pick<AppendSettings, 'maxBytes' | 'maxAgeMs' | 'compress'>;

/** Removes and compresses segments, never the newest one. Doesn't wait for readers: a dead one would fill the disk. */
export class Retention {
  readonly #folder: string;
  readonly #limits: Limits;
  readonly #machine: Machine;
  #isCompressing = false;
  #hasEnded = false;

  constructor(folder: string, limits: Limits, machine: Machine) {
    this.#folder = folder;
    this.#limits = limits;
    this.#machine = machine;
  }

  /** The next writer does the rest. */
  end(): void {
    this.#hasEnded = true;
  }

  tidy(): void {
    const { maxBytes, maxAgeMs, compress } = this.#limits;
    if (maxBytes !== Infinity || maxAgeMs !== Infinity || compress) this.#orWarn(() => this.#walk());
  }

  // It is tried again in a minute; until then the log is only larger than it should be.
  #orWarn(action: () => void): void {
    try {
      if (!this.#hasEnded) action();
    } catch (cause) {
      // A segment was removed meanwhile, by hand or by retention.
      if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return;
      this.#machine.warn(`Old segments stay for now. ${toLogError('write', this.#folder, cause).message}`);
    }
  }

  /** Removes the oldest segments beyond the limits, and compresses the first of the others. */
  #walk(): void {
    const { disk, now } = this.#machine;
    const { maxBytes, maxAgeMs, compress } = this.#limits;
    if (compress && !this.#isCompressing) this.#removeLeftovers();
    const segments = listSegments(disk, this.#folder).map((each) => ({ ...each, stats: disk.statSync(each.path) }));
    let bytes = segments.reduce((sum, { stats }) => sum + stats.size, 0);
    const closed = segments.slice(0, -1);
    for (let oldest = closed[0]; oldest !== undefined; oldest = closed[0]) {
      if (bytes <= maxBytes && now() - oldest.stats.mtimeMs <= maxAgeMs) break;
      disk.unlinkSync(oldest.path);
      bytes -= oldest.stats.size;
      closed.shift();
    }
    const next = closed.find(({ isCompressed }) => !isCompressed);
    if (compress && !this.#isCompressing && next !== undefined) this.#compress(next.path);
  }

  /** A compression that was killed leaves an unfinished copy, or a finished one next to the plain segment. */
  #removeLeftovers(): void {
    const { disk } = this.#machine;
    const names = new Set(disk.readdirSync(this.#folder));
    for (const name of names)
      if (name.endsWith('.gz.tmp') || names.has(`${name}.gz`)) disk.unlinkSync(`${this.#folder}/${name}`);
  }

  /** Compresses a closed segment in the thread pool, and goes on with the next. */
  #compress(path: string): void {
    const { disk, gzip } = this.#machine;
    const bytes = disk.readFileSync(path);
    this.#isCompressing = true;
    gzip(bytes, (error, compressed) => {
      this.#isCompressing = false;
      this.#orWarn(() => {
        if (error) throw error;
        this.#replace(path, compressed);
        this.#walk();
      });
    });
  }

  /** A reader finds the old name or the new one; a crash leaves one of them, or both. */
  #replace(path: string, compressed: Buffer): void {
    const { disk } = this.#machine;
    // Retention may have removed it meanwhile.
    disk.statSync(path);
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
}
