// Keeps a log within its limits.
//
// In: the segments in a folder, and what the clocks say. Out: the oldest ones are removed, and complete ones compressed.
// Never: the newest segment, anything by its age because a clock has jumped or at the first look. It doesn't wait for
// readers: a dead one would fill the disk.
import { join } from 'node:path';
import { type FolderSettings, maxSegmentBytes } from './options.js';
import { toLogError } from './log-error.js';
import {
  headOf,
  inPlaceBytes,
  listSegments,
  type Machine,
  namesIn,
  readFile,
  type Segment,
  syncFolder,
} from './segments.js';

type Limits = Pick<FolderSettings, 'maxBytes' | 'maxAgeMs' | 'compress' | 'segmentBytes'>;

/** What the clock of the wall and one that nobody sets say, in ms. */
export interface Clocks {
  readonly wall: number;
  readonly monotonic: number;
  /** Since when the two agree, by the second one. */
  readonly since: number;
}

const driftMs = 1_000;
/** Less than the minute between two looks. */
const stayMs = 50_000;

/** Looks at the clocks. A jump of the wall clock, in either direction, begins their agreement again. */
export const looked = (before: Clocks | undefined, wall: number, monotonic: number): Clocks => {
  const jumpedMs = before === undefined ? Infinity : wall - before.wall - (monotonic - before.monotonic);
  return { wall, monotonic, since: Math.abs(jumpedMs) <= driftMs ? (before as Clocks).since : monotonic };
};

/**
 * Whether the wall clock has stayed where it is for long enough to remove something by it. What is older than a jump
 * that has stayed for `maxAgeMs` is too old by any clock.
 */
export const isBelieved = ({ monotonic, since }: Clocks, maxAgeMs: number): boolean =>
  monotonic - since >= Math.min(stayMs, maxAgeMs);

export class Retention {
  readonly #folder: string;
  readonly #limits: Limits;
  readonly #machine: Machine;
  #clocks: Clocks | undefined;
  #isCompressing = false;
  #hasEnded = false;

  constructor(folder: string, limits: Limits, machine: Machine) {
    this.#folder = folder;
    this.#limits = limits;
    this.#machine = machine;
    this.#look();
  }

  /** The next writer does the rest. */
  end(): void {
    this.#hasEnded = true;
  }

  /** @param begins - how long the first lines of a segment are that is about to be created, in bytes */
  tidy(begins?: number): void {
    const { maxBytes, maxAgeMs, compress } = this.#limits;
    if (maxBytes !== Infinity || maxAgeMs !== Infinity || compress) this.#orWarn(() => this.#walk(begins));
  }

  #look(): Clocks {
    return (this.#clocks = looked(this.#clocks, this.#machine.now(), this.#machine.monotonic()));
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
  #walk(begins?: number): void {
    const { disk } = this.#machine;
    const { maxBytes, compress } = this.#limits;
    if (compress && !this.#isCompressing) this.#removeLeftovers();
    const segments = listSegments(disk, this.#folder);
    const files = this.#files();
    const bytesOf = (offset: number) =>
      files.reduce((sum, file) => (file.offset === offset ? sum + file.bytes : sum), 0);
    let bytes = this.#reserve(begins ?? -bytesOf(segments.at(-1)?.offset ?? 0));
    for (const file of files) bytes += file.bytes;
    const closed = segments.slice(0, -1);
    const isOld = this.#isOld(segments);
    for (let oldest = closed[0]; oldest !== undefined; oldest = closed[0]) {
      const { offset } = oldest;
      if (bytes <= maxBytes && !isOld(offset)) break;
      bytes -= bytesOf(offset);
      for (const { path } of files.filter((file) => file.offset === offset)) disk.unlinkSync(path);
      closed.shift();
    }
    const next = closed.find(({ isCompressed, offset }) => !isCompressed && bytesOf(offset) <= maxSegmentBytes);
    if (compress && !this.#isCompressing && next !== undefined) this.#compress(next.path);
  }

  /** The files of segments. While one is being compressed, or after a crash, it has several. */
  #files() {
    const { disk } = this.#machine;
    return namesIn(disk, this.#folder).flatMap((name) => {
      const [, offset] = /^(\d{16})\.ndjson(?:\.gz(?:\.tmp)?)?$/.exec(name) ?? [];
      const path = join(this.#folder, name);
      const stats = offset === undefined ? undefined : disk.statSync(path, { throwIfNoEntry: false });
      return stats === undefined ? [] : { offset: Number(offset), path, bytes: stats.size };
    });
  }

  /**
   * What else needs room: the rest of the newest segment, the copy that compression makes, the tip and the cursors.
   *
   * @param bytes - what a new segment begins with; below 0: what the newest one has
   */
  #reserve(bytes: number): number {
    const { segmentBytes, compress } = this.#limits;
    const growth = bytes < 0 ? Math.max(0, segmentBytes + bytes) : Math.max(segmentBytes, bytes);
    const inPlace = 1 + namesIn(this.#machine.disk, join(this.#folder, 'cursors')).length;
    return growth + (compress ? segmentBytes : 0) + inPlace * inPlaceBytes;
  }

  /** Returns whether a segment is too old. Its end has a time in the segments after it; times in the future are wrong. */
  #isOld(segments: readonly Segment[]): (offset: number) => boolean {
    const { maxAgeMs } = this.#limits;
    const clocks = this.#look();
    if (maxAgeMs === Infinity || !isBelieved(clocks, maxAgeMs)) return () => false;
    const { disk } = this.#machine;
    return (offset) => {
      for (const segment of segments.filter((each) => each.offset > offset)) {
        // The log time never goes back. After a jump of the clock it is ahead, but not the own time of a record.
        const head = headOf(disk, segment);
        const end = [head?.header?.at, head?.time].find((at = 0) => at > 0 && at <= clocks.wall);
        if (end !== undefined) return clocks.wall - end > maxAgeMs;
      }
      return false;
    };
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
    const bytes = readFile(disk, path);
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
