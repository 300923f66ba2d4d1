// What `rx-trade-feed log status` and `log verify` show.
import * as fs from 'node:fs';
import { createGunzip } from 'node:zlib';
import { join } from 'node:path';
import { committedIn } from './consume.js';
import { isOther, Lines, type LogPosition, readHeader, readRecord, stamped } from './lines.js';
import { toLogError } from './log-error.js';
import { goneMs } from './records.js';
import { filesOf, headOf, isFile, listSegments, readTip, scanFile, type Segment } from './segments.js';

/** One file of a log. */
export interface SegmentStatus {
  readonly path: string;
  readonly isCompressed: boolean;
  readonly bytes: number;
  /** The first offset, and the one after the last record. */
  readonly offset: number;
  readonly end: number;
  /** The frames in it, and those that its gaps count. */
  readonly frames: number;
  /** The time of its first and of its last record, in epoch ms; `undefined` without a record. */
  readonly from: number | undefined;
  readonly to: number | undefined;
}

/** A consumer of a log, and how far it is behind. */
export interface ConsumerStatus {
  readonly name: string;
  /** `undefined` before its first commit. */
  readonly position: LogPosition | undefined;
  /** How many records are after its cursor, and how far it is behind in the feed's time, in ms. */
  readonly behind: number;
  readonly behindMs: number;
}

/** The last writer of a log. */
export interface LogWriterStatus {
  readonly pid: number;
  /** The next offset. */
  readonly offset: number;
  /** The time that the feed has reached, in epoch ms; 0 if the log has no record yet. */
  readonly at: number;
  /** When it wrote last, in epoch ms. */
  readonly writtenAt: number;
  /** Whether it has ended. */
  readonly closed: boolean;
  readonly isRunning: boolean;
  /** The retention; absent without a limit. */
  readonly maxBytes?: number | undefined;
  readonly maxAgeMs?: number | undefined;
}

/** What {@link inspectLog} returns. */
export interface LogStatus {
  readonly path: string;
  /** The id of the log; `undefined` for a file. */
  readonly log: string | undefined;
  readonly segments: readonly SegmentStatus[];
  /** The first offset, and the next one. */
  readonly offset: number;
  readonly end: number;
  readonly frames: number;
  readonly bytes: number;
  /** The time of the first and of the last record, in epoch ms. */
  readonly from: number | undefined;
  readonly to: number | undefined;
  /** The newest writer; `isRunning`: it has written its tip in the last two seconds. */
  readonly writer: LogWriterStatus | undefined;
  readonly consumers: readonly ConsumerStatus[];
}

/** A line that can't be read, or whose offset is not the next one. */
export interface DamagedLine {
  readonly path: string;
  /** The number of the line in its file; the first one is 1. */
  readonly line: number;
  /** Where it begins in the file, uncompressed, in bytes. */
  readonly lineAt: number;
  readonly problem: string;
}

/** What {@link verifyLog} has read so far. */
export interface LogProgress {
  /** The bytes of the files on the disk. */
  readonly bytes: number;
  readonly totalBytes: number;
  readonly records: number;
  readonly frames: number;
}

/** What {@link verifyLog} returns. */
export interface LogCheck extends LogProgress {
  readonly segments: readonly SegmentStatus[];
  readonly damaged: readonly DamagedLine[];
  /** The bytes after the last newline: a line that is being written, or that a crash has torn. */
  readonly tornBytes: number;
}

/**
 * Reads the segments, the writer and the consumers of a log. It reads the beginning of each segment and the newest one,
 * so that it is fast; a file is read whole.
 *
 * @throws LogError if it can't be read
 */
export const inspectLog = async (path: string): Promise<LogStatus> => {
  const isFolder = !isFile(path);
  const segments = isFolder ? statusOf(path) : (await verifyLog(path)).segments;
  const tip = isFolder ? readTip(fs, path) : undefined;
  const end = segments.at(-1)?.end ?? tip?.offset ?? 0;
  const to = segments.findLast((segment) => segment.to !== undefined)?.to;
  return {
    path,
    log: tip?.log,
    segments,
    offset: segments[0]?.offset ?? end,
    end,
    frames: segments.reduce((sum, { frames }) => sum + frames, 0),
    bytes: segments.reduce((sum, { bytes }) => sum + bytes, 0),
    from: segments.find((segment) => segment.from !== undefined)?.from,
    to,
    writer: tip && { ...tip, isRunning: !tip.closed && Date.now() - tip.writtenAt <= goneMs },
    consumers: isFolder ? consumersOf(path, end, to) : [],
  };
};

/** The header of a segment tells the end of the one before it. */
const statusOf = (folder: string): readonly SegmentStatus[] => {
  try {
    const segments = listSegments(fs, folder).map((segment) => ({ ...segment, ...headOf(fs, segment) }));
    if (segments.length === 0) fs.readdirSync(folder);
    return segments.map(({ path, isCompressed, offset, header, at: from }, n) => {
      const next = segments[n + 1]?.header;
      const segment = { path, isCompressed, offset };
      const place = next ?? (n === segments.length - 1 ? scanFile(fs, segment)?.place : undefined);
      const frames = header === undefined || place === undefined ? 0 : place.frames - header.frames;
      const end = next?.after ?? place?.offset ?? offset;
      const bytes = fs.statSync(path).size;
      return { path, isCompressed, bytes, offset, end, frames, from, to: from === undefined ? undefined : place?.at };
    });
  } catch (cause) {
    throw toLogError('read', folder, cause);
  }
};

const consumersOf = (path: string, end: number, to: number | undefined): readonly ConsumerStatus[] => {
  const names = fs.existsSync(join(path, 'cursors')) ? fs.readdirSync(join(path, 'cursors')) : [];
  return names
    .filter((file) => file.endsWith('.json'))
    .sort()
    .map((file) => {
      const name = file.slice(0, -'.json'.length);
      const position = committedIn(path, name, fs);
      const [behind, behindMs] = [end - (position?.offset ?? 0), (to ?? 0) - (position?.at ?? to ?? 0)];
      return { name, position, behind: Math.max(0, behind), behindMs: Math.max(0, behindMs) };
    });
};

/**
 * Checks every line of a log, and says which ones can't be read.
 *
 * @param onProgress - called after each segment
 * @throws LogError if a file can't be read
 */
export const verifyLog = async (
  path: string,
  onProgress: (progress: LogProgress) => void = () => undefined,
): Promise<LogCheck> => {
  try {
    const isPlain = isFile(path);
    const files = isPlain ? filesOf(path) : listSegments(fs, path);
    if (files.length === 0) fs.readdirSync(path);
    const totalBytes = files.reduce((sum, file) => sum + fs.statSync(file.path).size, 0);
    const check = { bytes: 0, totalBytes, records: 0, frames: 0, tornBytes: 0 };
    const [segments, damaged]: [SegmentStatus[], DamagedLine[]] = [[], []];
    for (const file of files) {
      const first = isPlain ? (segments.at(-1)?.end ?? 0) : file.offset;
      const { status, records, tornBytes } = await checked({ ...file, offset: first }, isPlain, damaged);
      segments.push(status);
      check.bytes += status.bytes;
      check.records += records;
      check.frames += status.frames;
      check.tornBytes = tornBytes;
      onProgress({ ...check });
    }
    return { ...check, segments, damaged };
  } catch (cause) {
    throw toLogError('read', path, cause);
  }
};

/** @param isPlain - whether its lines have no offsets, and the first one is no header */
const checked = async ({ path, isCompressed, offset }: Segment, isPlain: boolean, damaged: DamagedLine[]) => {
  let [end, frames, records, line] = [offset, 0, 0, 0];
  let [from, to]: (number | undefined)[] = [];
  const problemOf = (text: string | undefined): string | undefined => {
    if (line === 1 && !isPlain)
      return readHeader(text)?.offset === offset ? undefined : 'it is not the header of this segment';
    const record = readRecord(text, isPlain ? end : undefined);
    const expected = end;
    end += 1;
    if (record === undefined) return isPlain && isOther(text) ? undefined : 'it is not a record';
    records += 1;
    frames += record.type === 'frame' ? 1 : record.type === 'gap' ? (record.missed ?? 0) : 0;
    to = stamped(record);
    from ??= to;
    return record.offset === expected ? undefined : `its offset is ${record.offset}, not ${expected}`;
  };
  const file = fs.createReadStream(path);
  let rest: Buffer = Buffer.alloc(0);
  let restAt = 0;
  for await (const bytes of isCompressed ? file.pipe(createGunzip()) : file) {
    const lines = new Lines(Buffer.concat([rest, bytes as Buffer]));
    for (let lineAt = 0; lines.next(); lineAt = lines.position) {
      line += 1;
      const problem = problemOf(lines.line);
      if (problem !== undefined) damaged.push({ path, line, lineAt: restAt + lineAt, problem });
    }
    restAt += lines.end;
    rest = lines.rest;
  }
  const status: SegmentStatus = { path, isCompressed, bytes: fs.statSync(path).size, offset, end, frames, from, to };
  return { status, records, tornBytes: rest.length };
};
