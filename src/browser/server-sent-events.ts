/** One event of a stream of Server-Sent Events. */
export interface ServerSentEvent {
  /** The type of the message: the `event` field, or an empty string. */
  readonly event: string;
  /** The `id` field, or an empty string. */
  readonly id: string;
  /** The `data` fields: the lines of the message. */
  readonly data: readonly string[];
}

/** Greater than any message of a relay. Without this limit, a message without an end would fill the memory. */
const maxLength = 2 ** 26;

/**
 * Creates a reader of one stream of Server-Sent Events (HTML, 9.2.6). It returns the events that are complete with the bytes that it is called
 * with.
 *
 * Ignores comments, and an incomplete event at the end. Lines end with LF or CRLF.
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
    return blocks.map(eventOf).filter(({ data }) => data.length > 0);
  };
};

const eventOf = (block: string): ServerSentEvent => {
  const fields = { event: '', id: '', data: [] as string[] };
  for (const line of block.split('\n')) {
    const [, name, value = ''] = /^(data|event|id)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (name === 'data') fields.data.push(value);
    else if (name) fields[name as 'event' | 'id'] = value;
  }
  return fields;
};
