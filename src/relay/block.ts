import { writeEventLine } from '../protocol/event-line.js';
import type { Checkpoint } from './chunk.js';
import type { LineMemory } from './line-memory.js';
import { beginOfId, dataIn, type RelayMessage, withStream } from './relay-message.js';

/** Where pages are that have received a block. */
export interface Reached {
  readonly end: Checkpoint;
  /** The last watermark that they received. */
  readonly watermark: number;
  /** The time that they have reached, in epoch ms. */
  readonly reached: number;
}

/** A message of the log that any number of pages receive. It's encoded once: each page writes the same bytes. */
export class Block implements Reached {
  /** The offset of its first event. */
  readonly from: number;
  readonly end: Checkpoint;
  readonly watermark: number;
  readonly reached: number;
  /** The id of the message, without the name of a stream. */
  readonly id: string;
  /** The message as Server-Sent Events, up to its id. Each page writes its own {@link endOfId} after it. */
  readonly bytes: Buffer;
  #message: RelayMessage | undefined;

  /**
   * @param fields - the lines of its events, each a `lineField`
   * @param memory - where its bytes are
   */
  constructor(
    { from, end, watermark, reached }: Reached & Pick<Block, 'from'>,
    fields: readonly Buffer[],
    id: string,
    memory: LineMemory,
  ) {
    this.from = from;
    this.end = end;
    this.watermark = watermark;
    this.reached = reached;
    this.id = id;
    const mark = watermark === -Infinity ? '' : `data: {"type":"watermark","at":${watermark}}\n`;
    this.bytes = memory.join(fields, `${mark}${beginOfId}${id}`);
  }

  /** The message, for clients that aren't written to. HTTP only needs the bytes, so the text is created on demand. */
  messageOf(stream: string | undefined): RelayMessage {
    const { id, bytes } = this;
    let data: string | undefined;
    this.#message ??= {
      id,
      get data() {
        return (data ??= dataIn(bytes.toString('utf8', 0, bytes.length - beginOfId.length - id.length)));
      },
    };
    const message = this.#message;
    if (stream === undefined) return message;
    return {
      id: withStream(id, stream),
      get data() {
        return message.data;
      },
    };
  }
}

/** Appends a watermark, if there is one. Clients use it to close windows. */
export const withWatermark = (lines: string, at: number): string => {
  if (at === -Infinity) return lines;
  const watermark = writeEventLine({ type: 'watermark', at });
  return lines === '' ? watermark : `${lines}\n${watermark}`;
};
