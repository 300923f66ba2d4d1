// What a log has after a place, for the pages of a relay.
//
// In: a reader of the log, which doesn't parse frames. Out: frames as the lines that pages receive, and events.
// Never: missing records without a gap in their place, or more than one read of the disk or the server at a time.
import type { ClusterLifecycleEvent, Gap, LifecycleEvent } from '../protocol/event.js';
import { relayGap, withGapIn } from '../protocol/feed-state.js';
import type { Frame } from '../protocol/frame.js';
import { missedBetween, nextOffset, type Place, type StoredLine } from '../protocol/place.js';
import { type Generation, RawFrame } from './lines.js';
import { LogError } from './log-error.js';
import { newestFrom } from './line-store.js';
import { logHeadOf } from './log-message.js';
import { PageRecords, partBytes } from './page-records.js';
import type { OpenedReader, ReadableLog } from './consume.js';
import { asked, type StoredLog } from './stored-log.js';
import { type Disk, headOf, listSegments, openSegment, piecesOf, readIn } from './segments.js';

/** The parts of a log that its history needs. */
export interface History extends Pick<ReadableLog, 'openReader'> {
  /** Returns the offset at which the newest `bytes` of the log begin; `undefined` if it has no more than that. */
  readonly newestFrom: (bytes: number) => number | undefined | Promise<number | undefined>;
  /** Returns a place of the log that isn't after an offset, or only after a generation that ended before it. */
  readonly placeNear: (offset: number) => Generation | undefined | Promise<Generation | undefined>;
}

type StoredRecord = (Frame | RawFrame | ClusterLifecycleEvent) & {
  readonly offset?: number | undefined;
  readonly position?: Place | undefined;
};

/** Reads what a log has after a place. */
export const storedIn = (log: History): StoredLine['stored'] =>
  async function* (after, { maxBytes, signal, isNext = false }) {
    const isAborted = (): boolean => signal.aborted;
    const newest = await log.newestFrom(maxBytes);
    const later = newest === undefined ? undefined : await log.placeNear(newest);
    const isCut = newest !== undefined && newest > (later ? nextOffset(after, later) : after.offset);
    if (isAborted()) return;
    // An id of a message has no holes. So many are certain.
    const from = isCut ? { offset: newest } : { ...after, holes: after.holes || 0 };
    const reader = log.openReader({ from, follow: false, onDamage: 'gap', isRaw: true });
    const close = (): void => reader.close();
    signal.addEventListener('abort', close);
    try {
      const gathered = new PageRecords();
      let [end, isFirst] = [after, true];
      for (let next = await nextOf(reader); next !== undefined; next = await nextOf(reader)) {
        if (isAborted() || reader.position?.line !== after.line) return;
        gather(gathered, isFirst ? begun(next, isNext, isCut ? await cutBefore(log, after, next) : undefined) : next);
        [end, isFirst] = [reader.position, false];
        if (gathered.bytes < partBytes) continue;
        yield gathered.take(end);
      }
      if (isAborted()) return;
      if (!gathered.isEmpty) yield gathered.take(end);
      // A writer that hasn't written a record yet has a place as well.
      const { position } = reader;
      if (position?.line === after.line && position.gen > end.gen) yield gathered.take(position);
    } finally {
      signal.removeEventListener('abort', close);
      close();
    }
  };

/** Resolves with `undefined` also if there's no log. */
const nextOf = async (reader: OpenedReader): Promise<readonly StoredRecord[] | undefined> => {
  try {
    return await reader.next();
  } catch (error) {
    if (error instanceof LogError && error.code === 'log-missing') return undefined;
    throw error;
  }
};

/** The first records, with the gap that they begin after, and without a status that is known. */
const begun = (records: readonly StoredRecord[], isNext: boolean, cut?: Gap): readonly StoredRecord[] => {
  const first = records.findIndex(({ offset }) => offset !== undefined);
  const count = first < 0 ? records.length : first;
  const added = records.slice(0, count) as LifecycleEvent[];
  const rest = records.slice(count);
  if (cut !== undefined) return [...withGapIn(added, cut), ...rest];
  // A status with a gap is another one.
  return isNext && added.every(({ type }) => type !== 'gap') ? rest : records;
};

/** Returns the gap between a place and the first records. */
const cutBefore = async (log: History, after: Place, records: readonly StoredRecord[]): Promise<Gap> => {
  const begin = beginOf(records[0] as StoredRecord);
  const near = await log.placeNear(Math.max(0, after.offset - 1));
  // Otherwise a reader may have records that the log has lost.
  const isCounted = near?.line === after.line && near.gen === after.gen;
  const missed = isCounted ? missedBetween({ ...after, holes: near.holes }, begin) : undefined;
  return relayGap({ from: after.complete, to: Math.max(after.at, begin.at), frames: missed });
};

/** The place before a record. A status has the place that it's about. */
const beginOf = (record: StoredRecord): Place => {
  const { position, offset } = record as { readonly position: Place; readonly offset?: number };
  if (offset === undefined) return position;
  const { frames, holes } = position;
  if (record.type !== 'gap') return { ...position, frames: frames - (record.type === 'frame' ? 1 : 0) };
  return { ...position, frames: frames - (record.missed ?? 0), holes: holes - (record.missed === undefined ? 1 : 0) };
};

/** Gathers records. The bytes of frames are copied, because a reader uses its buffer again. */
const gather = (gathered: PageRecords, records: readonly StoredRecord[]): void => {
  for (let n = 0; n < records.length; n += 1) {
    const record = records[n] as StoredRecord;
    if (!(record instanceof RawFrame)) {
      gathered.add(record);
      continue;
    }
    const from = n;
    while (records[n + 1] instanceof RawFrame) n += 1;
    const frames = (from === 0 && n === records.length - 1 ? records : records.slice(from, n + 1)) as RawFrame[];
    gathered.addFields(fieldsOf(frames), frames.length);
  }
};

const fieldStart = Buffer.from('data: {');
const fieldEnd = Buffer.from('}\n');

const fieldsOf = (frames: readonly RawFrame[]): Buffer => {
  let size = frames.length * (fieldStart.length + fieldEnd.length);
  for (const { from, to } of frames) size += to - from;
  const fields = Buffer.allocUnsafe(size);
  let used = 0;
  for (const { bytes, from, to } of frames) {
    used += fieldStart.copy(fields, used);
    used += bytes.copy(fields, used, from, to);
    used += fieldEnd.copy(fields, used);
  }
  return fields;
};

/** The history of a folder. */
export const historyOfFolder = (disk: Disk, folder: string): Omit<History, 'openReader'> => ({
  newestFrom: (bytes) => {
    let [left, later]: [number, number | undefined] = [bytes, undefined];
    for (const segment of listSegments(disk, folder).toReversed()) {
      const found = openSegment(disk, segment);
      // Retention was faster.
      if (found === undefined) return later;
      const { fd, isCompressed, offset } = found;
      try {
        const size = contentSize(disk, fd, isCompressed);
        if (size > left) {
          const first = isCompressed ? undefined : offsetsAfter(disk, fd, size - left).next().value;
          return first ?? later ?? lastOffset(disk, fd, size) ?? offset;
        }
        [left, later] = [left - size, offset];
      } finally {
        disk.closeSync(fd);
      }
    }
    return undefined;
  },
  placeNear: (offset) => {
    const segment = listSegments(disk, folder).findLast((each) => each.offset <= offset);
    return segment && headOf(disk, segment)?.header;
  },
});

/** The size of the lines, which a compressed file has at its end. */
const contentSize = (disk: Disk, fd: number, isCompressed: boolean): number => {
  const { size } = disk.fstatSync(fd);
  if (!isCompressed || size < 4) return size;
  const last = Buffer.alloc(4);
  disk.readSync(fd, last, 0, 4, size - 4);
  return last.readUInt32LE();
};

const searchBytes = 64 * 1024;

/** The offsets of the records behind the line in which a position of a file is. */
function* offsetsAfter(disk: Disk, fd: number, position: number): Generator<number, undefined> {
  let isBehind = false;
  for (const lines of piecesOf(readIn(disk, fd), position, searchBytes))
    for (; lines.next(); isBehind = true) {
      const scanned = isBehind ? lines.scan() : undefined;
      if (scanned !== undefined) yield scanned.offset;
    }
}

/** Returns the offset of the last record of a file; `undefined` if it has none. */
const lastOffset = (disk: Disk, fd: number, size: number): number | undefined => {
  for (let length = searchBytes; ; length *= 2) {
    const last = [...offsetsAfter(disk, fd, Math.max(0, size - length))].at(-1);
    if (last !== undefined || length >= size) return last;
  }
};

/** The history of a log in a store. */
export const historyOfStore = (log: StoredLog): Omit<History, 'openReader'> => ({
  newestFrom: (maxBytes) => asked(log, () => newestFrom(log.engine.line(log.spec), maxBytes)),
  placeNear: (offset) =>
    asked(log, async () => {
      const { signal } = new AbortController();
      for await (const bytes of log.engine.line(log.spec).read(offset, signal)) return logHeadOf(bytes);
      return undefined;
    }),
});
