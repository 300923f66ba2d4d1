// The lines that wait for the disk. No queue of values: they wait as text, which is turned into bytes in one call.
//
// In: lines, in the order of their offsets. Out: chunks of one segment each; a segment's first one begins with its
// header.
import type { Place } from '../protocol/place.js';
import type { FolderSettings } from './options.js';

const chunkLength = 1024 * 1024;
const maxSegmentAgeMs = 3_600_000;

/** Lines of one segment. */
interface Chunk {
  /** The place before the segment that the chunk begins. */
  readonly begins: Place | undefined;
  readonly of: Newest;
  text: string;
}

/**
 * The newest segment. Its size includes the lines that wait: they count as characters until they're taken, and as bytes
 * from then on.
 */
interface Newest {
  readonly since: number;
  bytes: number;
}

type Limits = Pick<FolderSettings, 'segmentBytes' | 'maxAgeMs'>;

export class LineQueue {
  readonly #limits: Limits;
  readonly #now: () => number;
  readonly #header: (place: Place) => string;
  #chunks: Chunk[] = [];
  #newest: Newest | undefined;
  /** How long the lines are that wait. They are measured in bytes when they are taken: one call for all of them. */
  length = 0;

  /** @param header - returns the first line of a segment that begins at a place */
  constructor(limits: Limits, now: () => number, header: (place: Place) => string) {
    this.#limits = limits;
    this.#now = now;
    this.#header = header;
  }

  get first(): Chunk | undefined {
    return this.#chunks[0];
  }

  /** Drops the first chunk, whose text has so many bytes. Call it while there is one. */
  shift(bytes: number): void {
    const { text, of } = this.#chunks.shift() as Chunk;
    this.length -= text.length;
    of.bytes += bytes - text.length;
  }

  /** Drops all lines. The next one begins a segment. */
  clear(): void {
    this.#chunks = [];
    this.length = 0;
    this.#newest = undefined;
  }

  add(line: string, place: Place): void {
    const isFirst = this.#newest === undefined || this.#isFull(this.#newest, line.length);
    const newest = isFirst ? { since: this.#now(), bytes: 0 } : (this.#newest as Newest);
    const text = isFirst ? this.#header(place) + line : line;
    let chunk = this.#chunks.at(-1);
    if (isFirst || chunk === undefined || chunk.text.length > chunkLength)
      this.#chunks.push((chunk = { begins: isFirst ? place : undefined, of: newest, text: '' }));
    chunk.text += text;
    newest.bytes += text.length;
    this.length += text.length;
    this.#newest = newest;
  }

  #isFull({ since, bytes }: Newest, more: number): boolean {
    const { segmentBytes, maxAgeMs } = this.#limits;
    if (bytes + more > segmentBytes) return true;
    // One look at the clock for each write is enough.
    return this.length === 0 && Math.abs(this.#now() - since) > Math.min(maxAgeMs / 8, maxSegmentAgeMs);
  }
}
