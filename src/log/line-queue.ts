// The lines that wait for the disk.
//
// In: lines, in the order of their offsets. Out: chunks of them, each of one segment, whose first chunk begins with its header.
import type { Place } from './lines.js';

const chunkBytes = 1024 * 1024;
const maxSegmentAgeMs = 3_600_000;

/** Lines of one segment. */
interface Chunk {
  /** The place before the segment that the chunk begins. */
  readonly begins: Place | undefined;
  text: string;
  bytes: number;
}

/** The newest segment, with what waits. */
interface Newest {
  readonly offset: number;
  readonly since: number;
  bytes: number;
}

interface Limits {
  readonly segmentBytes: number;
  readonly maxAgeMs: number;
}

export class LineQueue {
  readonly #limits: Limits;
  readonly #now: () => number;
  #chunks: Chunk[] = [];
  #newest: Newest | undefined;
  #bytes = 0;

  constructor(limits: Limits, now: () => number) {
    this.#limits = limits;
    this.#now = now;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get first(): Chunk | undefined {
    return this.#chunks[0];
  }

  shift(): void {
    this.#bytes -= this.#chunks.shift()?.bytes ?? 0;
  }

  /** Drops all lines. The next one begins a segment. */
  clear(): void {
    this.#chunks = [];
    this.#bytes = 0;
    this.#newest = undefined;
  }

  /** @param header - returns the first line of a segment that begins at `place` */
  add(line: string, place: Place, header: () => string): void {
    const bytes = Buffer.byteLength(line);
    if (this.#newest === undefined || this.#isFull(this.#newest, bytes, place)) {
      this.#newest = { offset: place.offset, since: this.#now(), bytes: 0 };
      this.#chunks.push({ begins: place, text: '', bytes: 0 });
      const first = header();
      this.#append(first, Buffer.byteLength(first));
    } else if ((this.#chunks.at(-1)?.bytes ?? Infinity) > chunkBytes)
      this.#chunks.push({ begins: undefined, text: '', bytes: 0 });
    this.#append(line, bytes);
  }

  #append(text: string, bytes: number): void {
    const chunk = this.#chunks.at(-1) as Chunk;
    chunk.text += text;
    chunk.bytes += bytes;
    (this.#newest as Newest).bytes += bytes;
    this.#bytes += bytes;
  }

  #isFull({ offset, since, bytes }: Newest, more: number, place: Place) {
    const { segmentBytes, maxAgeMs } = this.#limits;
    const age = Math.abs(this.#now() - since);
    const isOld = age > Math.min(maxAgeMs / 8, maxSegmentAgeMs);
    return place.offset > offset && (bytes + more > segmentBytes || isOld);
  }
}
