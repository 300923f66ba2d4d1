import { writeFrame } from '../operators/node/write-frame.js';
import { type ClusterEvent, type FeedEvent, isClusterEvent, type LifecycleEvent } from '../protocol/event.js';
import type { Place, StoredRecords } from '../protocol/place.js';

/** Records are gathered up to this size, or up to what is read at once. */
export const partBytes = 128 * 1024;

/** Gathers records of a line as the pages of a relay receive them: frames as fields of Server-Sent Events. */
export class PageRecords {
  #parts: (Buffer | LifecycleEvent)[] = [];
  #lines: string[] = [];
  #frames = 0;
  bytes = 0;

  get isEmpty(): boolean {
    return this.#parts.length === 0 && this.#lines.length === 0;
  }

  add(...events: readonly (FeedEvent | ClusterEvent)[]): void {
    for (const event of events) {
      if (event.type === 'watermark' || isClusterEvent(event)) continue;
      if (event.type === 'frame') this.#addLine(`data: ${writeFrame(event)}\n`);
      else {
        this.#endLines();
        this.#parts.push(event);
      }
    }
  }

  /** Adds frames that are fields already. */
  addFields(fields: Buffer, frames: number): void {
    this.#endLines();
    this.#parts.push(fields);
    this.#frames += frames;
    this.bytes += fields.length;
  }

  /** Returns what was gathered, and begins anew. @param end - the place after it */
  take(end: Place): StoredRecords {
    this.#endLines();
    const records = { parts: this.#parts, frames: this.#frames, end };
    [this.#parts, this.#frames, this.bytes] = [[], 0, 0];
    return records;
  }

  #addLine(line: string): void {
    this.#lines.push(line);
    this.#frames += 1;
    this.bytes += line.length;
  }

  #endLines(): void {
    if (this.#lines.length > 0) this.#parts.push(Buffer.from(this.#lines.join('')));
    this.#lines = [];
  }
}
