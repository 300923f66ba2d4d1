// The lines that wait for the disk.
//
// In: lines, in the order of their offsets. Out: chunks of them, each of one segment, whose first chunk begins with its header.
import type { Place } from './lines.js';

const chunkLength = 1024 * 1024;
const maxSegmentAgeMs = 3_600_000;

/** Lines of one segment. */
interface Chunk {
  /** The place before the segment that the chunk begins. */
  readonly begins: Place | undefined;
  text: string;
}

interface Limits {
  readonly segmentBytes: number;
  readonly maxAgeMs: number;
}

export class LineQueue {
  readonly #limits: Limits;
  readonly #now: () => number;
  readonly #header: (place: Place) => string;
  #chunks: Chunk[] = [];
  /** The newest segment, with what waits. Its size is exact as soon as that is taken. */
  #newest: { readonly offset: number; readonly since: number; bytes: number } | undefined;
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

  /** Takes the first chunk. */
  shift(): Buffer {
    const { text = '' } = this.#chunks.shift() ?? {};
    this.length -= text.length;
    const bytes = Buffer.from(text);
    if (this.#newest !== undefined && this.#chunks.length === 0) this.#newest.bytes += bytes.length - text.length;
    return bytes;
  }

  /** Drops all lines. The next one begins a segment. */
  clear(): void {
    this.#chunks = [];
    this.length = 0;
    this.#newest = undefined;
  }

  add(line: string, place: Place): void {
    const last = this.#chunks.at(-1);
    if (this.#newest === undefined || this.#isFull(this.#newest, line.length, place)) {
      this.#newest = { offset: place.offset, since: this.#now(), bytes: 0 };
      this.#append({ begins: place, text: '' }, this.#header(place) + line);
    } else if (last === undefined || last.text.length > chunkLength)
      this.#append({ begins: undefined, text: '' }, line);
    else this.#lengthen(last, line);
  }

  #append(chunk: Chunk, text: string): void {
    this.#chunks.push(chunk);
    this.#lengthen(chunk, text);
  }

  #lengthen(chunk: Chunk, text: string): void {
    chunk.text += text;
    this.length += text.length;
    (this.#newest as { bytes: number }).bytes += text.length;
  }

  #isFull({ offset, since, bytes }: { offset: number; since: number; bytes: number }, more: number, place: Place) {
    if (place.offset === offset) return false;
    const { segmentBytes, maxAgeMs } = this.#limits;
    if (bytes + more > segmentBytes) return true;
    // One look at the clock for each write is enough.
    return this.length === 0 && Math.abs(this.#now() - since) > Math.min(maxAgeMs / 8, maxSegmentAgeMs);
  }
}
