import type { Frame } from '../protocol/frame.js';
import { type Block, type Rows, rowBytes, rowsOf } from './block.js';

/** Collects frames for a block. Until the block is sealed, the frames stay in the memory of their reads. */
export interface OpenBlock {
  /**
   * Adds a frame. All frames of a block must be from one connection. If the block uses enough memory and this frame is in another read
   * buffer, first seals and returns the block without this frame.
   */
  add(frame: Frame): Block | undefined;
  /** Copies the frames into a block and starts an empty one. Returns `undefined` if there are no frames. */
  seal(): Block | undefined;
  /** The size of all read buffers that contain its frames. */
  readonly usedBytes: number;
  readonly isEmpty: boolean;
}

/** Largest distance between two payloads that are copied together: the head of a WebSocket frame (RFC 6455, 5.2). */
const headBytes = 14;
const firstRows = 256;

/** Consecutive payloads of one read buffer. They are copied together, with the heads between them. */
interface Run {
  readonly buffer: ArrayBufferLike;
  readonly start: number;
  end: number;
}

/**
 * Creates an {@link OpenBlock}.
 *
 * @param enoughBytes - how much memory a block must use before it is sealed
 */
export const createOpenBlock = (enoughBytes: number): OpenBlock => {
  let rows = rowsOf(new ArrayBuffer(firstRows * rowBytes), firstRows);
  let runs: Run[] = [];
  let run: Run | undefined;
  let count = 0;
  let payloadBytes = 0;
  let usedBytes = 0;
  let first: Frame | undefined;

  const seal = (): Block | undefined => {
    if (first === undefined) return undefined;
    const { feed, connection, receivedAt: from } = first;
    const to = rows.times[count * 2 - 1] as number;
    const bytes = written(rows, count, runs, payloadBytes);
    const block: Block = { type: 'frames', feed, connection, count, bytes, from, to };
    [runs, run, first] = [[], undefined, undefined];
    [count, payloadBytes, usedBytes] = [0, 0, 0];
    return block;
  };

  return {
    add: (frame) => {
      const { data, isBinary, receivedAt } = frame;
      const { buffer, byteOffset, length } = data;
      const isElsewhere = run?.buffer !== buffer;
      const full = isElsewhere && usedBytes >= enoughBytes ? seal() : undefined;
      if (isElsewhere) usedBytes += buffer.byteLength;

      const between = isElsewhere || run === undefined ? -1 : byteOffset - run.end;
      if (run !== undefined && between >= 0 && between <= headBytes) payloadBytes += between;
      else runs.push((run = { buffer, start: byteOffset, end: byteOffset }));
      run.end = byteOffset + length;

      if (count * 4 === rows.words.length) rows = doubled(rows);
      rows.words[count * 4] = payloadBytes;
      rows.words[count * 4 + 1] = length * 2 + Number(isBinary);
      rows.times[count * 2 + 1] = receivedAt;
      payloadBytes += length;
      count += 1;
      first ??= frame;
      return full;
    },
    seal,
    get usedBytes() {
      return usedBytes;
    },
    get isEmpty() {
      return count === 0;
    },
  };
};

const doubled = ({ times }: Rows): Rows => {
  const bytes = new ArrayBuffer(times.byteLength * 2);
  new Float64Array(bytes).set(times);
  return rowsOf(bytes, times.length);
};

const written = (rows: Rows, count: number, runs: readonly Run[], payloadBytes: number): ArrayBuffer => {
  // Every byte is overwritten below.
  const target = Buffer.allocUnsafeSlow(count * rowBytes + payloadBytes);
  target.set(new Uint8Array(rows.times.buffer, 0, count * rowBytes));
  let at = count * rowBytes;
  for (const { buffer, start, end } of runs) {
    target.set(new Uint8Array(buffer, start, end - start), at);
    at += end - start;
  }
  return target.buffer;
};
