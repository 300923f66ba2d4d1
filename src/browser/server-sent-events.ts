import { concatMap, defer, type OperatorFunction } from 'rxjs';

/** One event of a stream of Server-Sent Events. */
export interface ServerSentEvent {
  /** The `event` field, or an empty string. */
  readonly type: string;
  /** The `id` field, or an empty string. */
  readonly id: string;
  /** The `data` fields. */
  readonly lines: readonly string[];
}

/** Greater than any message of a relay. Without this limit, a message without an end would fill the memory. */
const maxLength = 2 ** 26;

/**
 * Reads Server-Sent Events from bytes (HTML, 9.2.6).
 *
 * Emits each event when it is complete. Ignores comments, and an incomplete event at the end. Lines end with LF or CRLF.
 */
export const serverSentEvents = (): OperatorFunction<Uint8Array, ServerSentEvent> => (source) =>
  defer(() => {
    const decoder = new TextDecoder();
    let rest = '';
    return source.pipe(
      concatMap((bytes) => {
        const text = decoder.decode(bytes, { stream: true }).replaceAll('\r', '');
        rest += text;
        if (rest.length > maxLength) throw new RangeError();
        // A long line arrives in many parts. Searching all of them again with each part would take quadratic time.
        const end = text.includes('\n') ? rest.lastIndexOf('\n\n') : -1;
        if (end < 0) return [];
        const whole = rest.slice(0, end);
        rest = rest.slice(end + 2);
        return whole.split('\n\n').map(eventOf).filter(hasData);
      }),
    );
  });

const eventOf = (block: string): ServerSentEvent => {
  const event = { type: '', id: '', lines: [] as string[] };
  for (const line of block.split('\n')) {
    const [, name, value = ''] = /^(data|event|id)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (name === 'data') event.lines.push(value);
    else if (name) event[name === 'id' ? 'id' : 'type'] = value;
  }
  return event;
};

const hasData = ({ lines: { length } }: ServerSentEvent): boolean => length > 0;
