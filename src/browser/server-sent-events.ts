import { concatMap, defer, type OperatorFunction } from 'rxjs';

/** One event of a stream of Server-Sent Events. */
export interface ServerSentEvent {
  /** Its `event` field; empty when it has none. */
  readonly type: string;
  /** Its `id` field; empty when it has none. */
  readonly id: string;
  /** Its `data` fields. */
  readonly lines: readonly string[];
}

/** More than any message of a relay has: what goes on without an end must not fill the memory. */
const mostText = 2 ** 26;

/**
 * Reads Server-Sent Events out of bytes (HTML, 9.2.6).
 *
 * Emits each event when it is whole; comments are left out, and so is what comes behind the last blank line. The ends of lines are LF or CRLF.
 */
export const serverSentEvents = (): OperatorFunction<Uint8Array, ServerSentEvent> => (source) =>
  defer(() => {
    const decoder = new TextDecoder();
    let rest = '';
    return source.pipe(
      concatMap((bytes) => {
        const text = decoder.decode(bytes, { stream: true }).replaceAll('\r', '');
        rest += text;
        if (rest.length > mostText) throw new RangeError();
        // A long line comes in many parts: what there is of it is not looked through with each of them.
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
