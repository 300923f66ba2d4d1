import { isUtf8 } from 'node:buffer';
import { writeFrame, writeFrameBytes } from '../operators/node/write-frame.js';
import { type AnyFrame, isNodeBuffer, type NodeBuffer, payloadOf } from '../protocol/frame.js';
import { lineField } from './relay-message.js';

/** Lines are in blocks of memory of this size, unless one is longer. After its last line is removed, one is used again. */
const blockBytes = 256 * 1024;

type Block = Buffer & NodeBuffer;

const newBlock = (bytes: number) => Buffer.allocUnsafeSlow(bytes) as Block;

/** Memory for the lines of a log, outside the heap: the garbage collector would copy strings twice. */
export class LineMemory {
  /** What contains the last line. */
  block = newBlock(0);
  /** Where the last line begins and ends. */
  begin = 0;
  end = 0;
  /** A block without lines: what's new to the process costs more than to write the lines. */
  #spare: Block | undefined;

  /**
   * Adds the line of a frame. Returns whether it has.
   *
   * @param isNext - whether it must be in the same block as the last line
   */
  addFrame(frame: AnyFrame, isNext: boolean): boolean {
    const payload = payloadOf(frame);
    if (frame.isBinary || !isNodeBuffer(payload) || !isUtf8(payload)) return this.add(writeFrame(frame), isNext);
    const field = lineField(writeFrameBytes(frame, payload));
    if (!this.#hasRoom(field.length, isNext)) return false;
    this.end += this.block.latin1Write(field, this.begin);
    return true;
  }

  /** Adds a line, a `lineField`. Returns whether it has. */
  add(line: string, isNext: boolean): boolean {
    const field = lineField(line);
    const isShort = this.end + 3 * field.length <= this.block.length;
    if (!this.#hasRoom(isShort ? 0 : Buffer.byteLength(field), isNext)) return false;
    this.end += this.block.write(field, this.begin);
    return true;
  }

  /** Takes back a block whose lines are removed. */
  free(block: Buffer): void {
    if (block !== this.block && block.length === blockBytes) this.#spare = block as Block;
  }

  /** Begins a line, in another block if it must. */
  #hasRoom(bytes: number, isNext: boolean): boolean {
    const isInBlock = this.end + bytes <= this.block.length;
    if (!isInBlock && isNext) return false;
    if (!isInBlock) {
      const isLong = bytes > blockBytes;
      this.block = isLong ? newBlock(bytes) : (this.#spare ?? newBlock(blockBytes));
      if (!isLong) this.#spare = undefined;
      this.end = 0;
    }
    this.begin = this.end;
    return true;
  }
}
