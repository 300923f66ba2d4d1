import { readEventLine, type Received } from '../protocol/event-line.js';
import { checkFields } from '../protocol/failures/trade-feed-error.js';
import { notBefore } from '../protocol/feed-state.js';
import { isTime } from '../protocol/type-guards.js';

/** One event of a stream of Server-Sent Events. A field that is absent is an empty string. */
export interface ServerSentEvent {
  readonly event: string;
  readonly id: string;
  /** The `data` fields: the lines of the message. */
  readonly data: readonly string[];
}

/** Greater than any message of a relay. Without this limit, a message without an end would fill the memory. */
const maxLength = 2 ** 26;

/**
 * Creates a reader of one stream of Server-Sent Events (HTML, 9.2.6). It returns the events that are complete with the
 * bytes that it is called with. Ignores comments, and an incomplete event at the end. Lines end with LF or CRLF.
 *
 * @throws RangeError, from the reader, for a message that is too long
 */
export const createServerSentEventReader = (): ((bytes: Uint8Array) => readonly ServerSentEvent[]) => {
  const decoder = new TextDecoder();
  let rest = '';
  return (bytes) => {
    const text = decoder.decode(bytes, { stream: true }).replaceAll('\r', '');
    rest += text;
    if (rest.length > maxLength) throw new RangeError();
    // A long line arrives in many parts. Searching all of them again with each part would take quadratic time.
    if (!text.includes('\n')) return [];
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

/** Returns the clock of the relay, in epoch ms. Throws for an invalid message. */
export const readHello = (lines: readonly string[]): number => {
  const { at } = JSON.parse(lines.join('\n')) as { readonly at: unknown };
  checkFields(isTime(at), 'hello');
  return at;
};

/**
 * Reads the events of a message. If one line cannot be read, there are none: the relay sends the message again.
 *
 * @param ownAt - a page that could not connect at first has emitted that, and the state of the feed of the relay may be
 *   older. Frames have the time of the service
 * @throws for an invalid line
 */
export const eventsOf = (lines: readonly string[], shiftMs: number, ownAt = -Infinity): readonly Received[] =>
  lines.flatMap((line) => {
    const event = readEventLine(line, shiftMs);
    if (event === undefined) return [];
    const { type } = event;
    return type === 'frame' || type === 'value' || type === 'watermark' ? event : notBefore(event, ownAt);
  });
