// Reads the lines of a folder or a file.
//
// In: a place to begin, and the segments in a folder, or a file. Out: their lines, and then those that follow.
// Never: a line that isn't read, or read twice, while a writer begins segments and retention removes them.
import { constants } from 'node:buffer';
import type { Bell } from './bell.js';
import { Lines } from './lines.js';
import { RecordReader } from './record-reader.js';
import { damageAt, notALog, type ReaderSettings } from './records.js';
import { LogError } from './log-error.js';
import {
  closedAfter,
  type Disk,
  filesOf,
  headOf,
  isInPlace,
  isThere,
  listSegments,
  openSegment,
  readAll,
  readTip,
  type Segment,
  segmentPath,
  type Tip,
} from './segments.js';

/** What a reader uses of its machine. A simulation has another one. */
export interface ReaderMachine {
  readonly disk: Disk;
  readonly now: () => number;
  readonly bell: Bell;
  readonly gunzip: (bytes: Buffer) => Promise<Buffer>;
  /** Resolves in another turn of the event loop. */
  readonly turn: () => Promise<unknown>;
  readonly bufferBytes: number;
}

const listMs = 100;
/** So many listed segments in a row can be gone. More of them can't: a name leads nowhere. */
const maxMisses = 100;
const noBytes = Buffer.alloc(0);
const lineStarts = [...Buffer.from('{\r\n')];

/** An open segment. */
interface Current extends Segment {
  readonly fd: number | undefined;
  /** The content of a compressed segment. */
  readonly bytes: Buffer;
  /** The position of the next line. */
  position: number;
  hasHeader: boolean;
  /** Whether bytes without an end are after the last line. */
  isTorn: boolean;
}

export class LogReader extends RecordReader {
  /** A file is a log without headers and offsets: a recording, or what `listen --json` prints. */
  readonly #isFile: boolean;
  readonly #machine: ReaderMachine;
  #current: Current | undefined;
  #buffer: Buffer = noBytes;
  /** The lines in the buffer that aren't read yet. */
  #lines: Lines | undefined;
  #listedAt = -Infinity;
  #misses = 0;
  /** The offset of the last tip that was ahead of the lines. */
  #ahead: number | undefined;
  #isReading = false;

  constructor(path: string, settings: ReaderSettings, machine: ReaderMachine, isFile = false) {
    super(path, settings, machine.now);
    this.#isFile = isFile;
    this.#machine = machine;
  }

  override close(): void {
    if (this.isClosed) return;
    super.close();
    this.#machine.bell.close();
    // Whoever keeps the iterator doesn't keep these.
    this.#lines = undefined;
    this.#buffer = noBytes;
    // A read in progress closes the file when it's back.
    if (!this.#isReading) this.#closeFile();
  }

  protected async read(): Promise<boolean> {
    this.#machine.bell.listen();
    if (await this.#readBytes()) return true;
    return !this.isClosed && ((await this.#advance()) || this.#isCut());
  }

  protected woken(): Promise<void> {
    return this.#machine.bell.heard();
  }

  protected tip(): Tip | undefined {
    return this.#isFile ? undefined : readTip(this.#machine.disk, this.path);
  }

  /** A writer writes its tip after the lines. If another look finds none up to there, somebody has cut them off. */
  #isCut(): boolean {
    const [tip, current] = [this.tip(), this.#current];
    if (this.isClosed || !tip || !current || !this.records.isBehind(tip)) return false;
    if (this.#ahead === tip.offset) return this.records.cut(tip, current);
    this.#ahead = tip.offset;
    this.#listedAt = -Infinity;
    return true;
  }

  #closeFile(): void {
    const fd = this.#current?.fd;
    this.#current = undefined;
    if (fd !== undefined) this.#machine.disk.closeSync(fd);
  }

  /**
   * Reads bytes after the last line; `false` at the end of the segment.
   *
   * @param size - of the buffer, which grows for one line only: many readers would keep what the largest one needed
   */
  async #readBytes(size = this.#machine.bufferBytes): Promise<boolean> {
    const current = this.#current;
    if (current === undefined) return false;
    if (this.#buffer.length !== size) this.#buffer = Buffer.allocUnsafe(size);
    this.#isReading = true;
    // Bytes after the last newline are read again: another writer may have cut them off.
    const bytes = await this.#bytesAt(current).finally(() => {
      this.#isReading = false;
      if (this.isClosed) this.#closeFile();
    });
    current.isTorn = bytes.length > 0;
    if (this.isClosed || bytes.length === 0) return false;
    // A file of another format may have no newline. Without this check, all of it would be read to find the first one.
    if (this.#isFile && current.position === 0 && !lineStarts.includes(bytes[0] as number)) throw notALog(current.path);
    const lines = new Lines(bytes, !this.#isFile);
    if (lines.end > 0) {
      this.#lines = lines;
      return true;
    }
    if (bytes.length < size) return false;
    if (bytes.length >= constants.MAX_STRING_LENGTH) throw damageAt(current);
    return this.#readBytes(bytes.length * 2);
  }

  async #bytesAt({ fd, bytes, position }: Current): Promise<Buffer> {
    const { disk, turn } = this.#machine;
    const buffer = this.#buffer;
    if (fd === undefined) {
      await turn();
      return bytes.subarray(position, position + buffer.length);
    }
    return new Promise((done, fail) => {
      disk.read(fd, buffer, 0, buffer.length, position, (error, read) => {
        if (error) fail(error);
        else done(buffer.subarray(0, read));
      });
    });
  }

  /** Enters the next segment; `false` if there is none. */
  async #advance(): Promise<boolean> {
    const current = this.#current;
    const found = this.#next(current);
    if (found === undefined) return false;
    // The writer creates a segment after the last line of the one before it. So a second read finds that line.
    if (current !== undefined && (await this.#readBytes())) return true;
    if (!this.isClosed) await this.#enter(found);
    return true;
  }

  /** Whether the segment whose name is the next offset exists. It is created after the last line of this one. */
  #hasNext(current: Current): boolean {
    const offset = this.position?.offset;
    if (this.#isFile || offset === undefined || offset <= current.offset) return false;
    return isThere(this.#machine.disk, segmentPath(this.path, offset));
  }

  #next(current: Current | undefined): Segment | undefined {
    const { now, disk } = this.#machine;
    const { follow } = this.settings;
    // Listing is slow in a large folder. A ring at most 100 ms later finds the segment. An empty one isn't large.
    const isListed = follow && current !== undefined && Math.abs(now() - this.#listedAt) < listMs;
    if (isListed && !this.#hasNext(current)) return undefined;
    this.#listedAt = now();
    const segments = this.#isFile ? filesOf(this.path) : listSegments(disk, this.path);
    // Fails if there is no such folder. A reader that follows may start before the first writer.
    if (segments.length === 0 && (this.#isFile || !follow)) disk.closeSync(disk.openSync(this.path, 'r'));
    if (current === undefined || this.#isReplaced(current)) return this.#first(segments);
    return segments.find(({ offset }) => offset > current.offset);
  }

  #first(segments: readonly Segment[]): Segment | undefined {
    const from = this.position ?? this.settings.from;
    if (from === 'earliest' || this.#isFile) return segments[0];
    if (from === 'latest') return segments.at(-1);
    const { disk } = this.#machine;
    // A damaged one, or one that is gone by now, may begin at any time: reading begins before it.
    const isBefore = (segment: Segment): boolean => {
      if ('offset' in from && segment.offset > from.offset) return false;
      if ('offset' in from && !from.gen) return true;
      const header = headOf(disk, segment)?.header;
      if (header === undefined) return false;
      // A later generation may have the same offsets.
      return 'offset' in from ? header.gen <= (from.gen as number) : header.at < from.time;
    };
    return segments.toReversed().find(isBefore) ?? segments[0];
  }

  /** Retention has removed the file; or a new writer, because it has no record; or somebody has. */
  #isReplaced({ fd, path }: Current): boolean {
    return !this.#isFile && fd !== undefined && !isInPlace(this.#machine.disk, fd, path);
  }

  async #enter(listed: Segment): Promise<void> {
    const { disk, gunzip } = this.#machine;
    this.#listedAt = -Infinity;
    const segment = openSegment(disk, listed);
    if (segment === undefined) {
      // Retention was faster: the next listing has other names.
      this.#misses += 1;
      if (this.#misses <= maxMisses) return;
      throw new LogError('log-corrupt', `${listed.path} can't be opened: it leads nowhere.`, { path: listed.path });
    }
    this.#misses = 0;
    if (this.#current?.isTorn === true) this.records.torn(this.#current);
    this.#closeFile();
    const { path, isCompressed } = segment;
    let [fd, bytes]: [number | undefined, Buffer] = [segment.fd, noBytes];
    if (isCompressed) {
      fd = undefined;
      const compressed = closedAfter(disk, segment.fd, () => readAll(disk, segment.fd));
      // A damaged file is a gap, or an error with `onDamage`: `header` says so.
      bytes = await gunzip(compressed).catch(() => {
        this.records.header(undefined, segment.offset, { path, position: 0 });
        return noBytes;
      });
      if (this.isClosed) return;
    }
    const state = { position: 0, hasHeader: this.#isFile, isTorn: false };
    this.#current = { ...segment, ...state, fd, bytes };
    this.#lines = undefined;
    if (this.#isFile) this.records.beginFile();
  }

  protected take(max: number): void {
    const [current, lines, records] = [this.#current, this.#lines, this.records];
    if (current === undefined || lines === undefined) return;
    for (let from = lines.position; records.length < max && lines.next(); from = lines.position) {
      if (!current.hasHeader) records.header(lines.line, current.offset, current);
      else if (this.#isFile) records.fileLine(lines.line, current);
      else records.line(lines, current);
      current.hasHeader = true;
      current.position += lines.position - from;
    }
    if (lines.position === lines.end) this.#lines = undefined;
  }
}
