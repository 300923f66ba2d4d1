import { readEventLine, type Received } from '../protocol/event-line.js';
import { checkFields } from '../protocol/failures/trade-feed-error.js';
import { eventsNotBefore } from '../protocol/feed-state.js';
import { isTime } from '../protocol/type-guards.js';

/** One event of a stream of Server-Sent Events. Missing fields are empty strings. */
export interface ServerSentEvent {
  readonly event: string;
  readonly id: string;
  /** The `data` fields: the lines of the message. */
  readonly data: readonly string[];
}

/** Larger than any relay message. A message that never ends would otherwise fill the memory. */
const maxLength = 2 ** 26;

/**
 * Creates a reader for one stream of Server-Sent Events (HTML, 9.2.6). Call it with bytes, and it returns the events
 * they complete. Ignores comments, and an incomplete event at the end. Lines end with LF or CRLF.
 *
 * @throws RangeError, from the reader, for a message that is too long
 */
export const createServerSentEventReader = (): ((bytes: Uint8Array) => readonly ServerSentEvent[]) => {
  const decoder = new TextDecoder();
  let rest = '';
  let end = '';
  return (bytes) => {
    const text = decoder.decode(bytes, { stream: true }).replaceAll('\r', '');
    rest += text;
    if (rest.length > maxLength) throw new RangeError();
    // A long message arrives in many parts, and searching all of them each time would be quadratic.
    const last = end + text;
    end = last.slice(-1);
    if (!last.includes('\n\n')) return [];
    const blocks = rest.split('\n\n');
    rest = blocks.pop() ?? '';
    return blocks.map(fieldsOf).filter(({ data }) => data.length > 0);
  };
};

const fieldsOf = (block: string): ServerSentEvent => {
  const fields = { event: '', id: '', data: [] as string[] };
  for (const line of block.split('\n')) {
    const [, name, value = ''] = /^(data|event|id)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (name === 'data') fields.data.push(value);
    else if (name) fields[name as 'event' | 'id'] = value;
  }
  return fields;
};

/** Returns the relay's clock, in epoch ms. Throws for an invalid message. */
export const readHello = (lines: readonly string[]): number => {
  const { at } = JSON.parse(lines.join('\n')) as { readonly at: unknown };
  checkFields(isTime(at), 'hello');
  return at;
};

/**
 * Reads the events of a message. If one line is unreadable there are none, and the relay sends the message again.
 *
 * @param ownAt - time of the last event that a page emitted before its first connection: the state of the relay's feed
 *   may be older. Frames keep the time of the service
 * @throws for an invalid line
 */
export const eventsOf = (lines: readonly string[], shiftMs: number, ownAt = -Infinity): readonly Received[] =>
  lines.flatMap((line): readonly Received[] => {
    const event = readEventLine(line, shiftMs);
    if (event === undefined) return [];
    const { type } = event;
    return type === 'frame' || type === 'value' || type === 'watermark' ? [event] : eventsNotBefore([event], ownAt);
  });
