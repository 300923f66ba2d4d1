import { isUtf8 } from 'node:buffer';
import { viewOf, writeJsonString } from '../frames/json-bytes.js';
import { endOfTextLine, startOfTextLine, writeFrame } from '../operators/node/write-frame.js';
import { type AnyFrame, type NodeBuffer, payloadOf } from '../protocol/frame.js';
import { lineField, linePrefix } from './relay-message.js';

/** Lines are in blocks of memory of this size, unless one is longer. */
const blockBytes = 256 * 1024;

/** Longer frames are written as text: as bytes they need room for a payload whose bytes are all escaped. */
const shortBytes = 16 * 1024;

type Block = Buffer & NodeBuffer;

const endOfField = `${endOfTextLine}\n`;

const newBlock = (bytes: number) => Buffer.allocUnsafeSlow(bytes) as Block;

/**
 * Memory for the lines of a log and for the messages of which they are part, outside the heap: the garbage collector
 * would copy strings twice. What is written never changes: a page that's slow still reads it.
 */
export class LineMemory {
  /** What contains the last line. */
  block = newBlock(0);
  /** Where the last line begins and ends. */
  begin = 0;
  end = 0;
  #view = viewOf(this.block);

  /**
   * Adds the line of a frame. Returns whether it has.
   *
   * @param isNext - whether it must be in the same block as the last line
   */
  addFrame(frame: AnyFrame, isNext: boolean): boolean {
    const payload = payloadOf(frame);
    if (!frame.isBinary && payload.length <= shortBytes && isUtf8(payload)) {
      const start = `${linePrefix}${startOfTextLine(frame)}`;
      if (!this.#hasRoom(start.length + 2 * payload.length + endOfField.length, isNext)) return false;
      const from = this.begin + this.block.latin1Write(start, this.begin);
      const to = writeJsonString(viewOf(payload), this.#view, from);
      if (to >= 0) {
        this.end = to + this.block.latin1Write(endOfField, to);
        return true;
      }
    }
    return this.add(writeFrame(frame), isNext);
  }

  /** Adds a line, a `lineField`. Returns whether it has. */
  add(line: string, isNext: boolean): boolean {
    const field = lineField(line);
    const isShort = this.end + 3 * field.length <= this.block.length;
    if (!this.#hasRoom(isShort ? 0 : Buffer.byteLength(field), isNext)) return false;
    this.end += this.block.write(field, this.begin);
    return true;
  }

  /** Joins lines with the ASCII text that ends their message: behind the last line, if they end there, or in a copy. */
  join(fields: readonly Buffer[], last: string): Buffer {
    const [first] = fields;
    const isNewest = fields.length === 1 && first !== undefined && this.#isNewest(first);
    if (isNewest && this.end + last.length <= this.block.length) {
      const begin = this.end - first.length;
      this.begin = this.end += this.block.latin1Write(last, this.end);
      return this.block.subarray(begin, this.end);
    }
    return Buffer.concat([...fields, Buffer.from(last, 'latin1')]);
  }

  #isNewest({ buffer, byteOffset, length }: Buffer): boolean {
    return buffer === this.block.buffer && byteOffset + length === this.end;
  }

  /** Begins a line, in another block if it must. */
  #hasRoom(bytes: number, isNext: boolean): boolean {
    const isInBlock = this.end + bytes <= this.block.length;
    if (!isInBlock && isNext) return false;
    if (!isInBlock) {
      this.block = newBlock(Math.max(bytes, blockBytes));
      this.#view = viewOf(this.block);
      this.end = 0;
    }
    this.begin = this.end;
    return true;
  }
}
