import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';

/** One message for one client: an event of Server-Sent Events, and a valid `MessageEvent` for NestJS's `@Sse()`. */
export interface RelayMessage {
  /** The client's position after this message. The client sends it back as `Last-Event-ID`. */
  readonly id: string;
  /**
   * The `event` field of Server-Sent Events (HTML, 9.2); absent for a message with events. `hello` comes first, with
   * the clock of the relay (`{"at": …}`, epoch ms). `heartbeat` shows that the relay is alive. `connect-again` or
   * `complete` comes last: the relay ends this stream with a failure, or the feed is complete.
   */
  readonly type?: string;
  /** For a message with events: one JSON line each, as `rx-trade-feed listen --json` writes it. */
  readonly data: string;
}

/** Writes a message as Server-Sent Events (HTML, 9.2.6). A heartbeat becomes a comment. */
export const sseText = ({ id, type, data }: RelayMessage): string => {
  if (type === 'heartbeat') return ': heartbeat\n\n';
  const event = type === undefined ? '' : `event: ${type}\n`;
  return `${event}${dataFields(data)}${beginOfId}${id}${endOfId(undefined)}`;
};

/** Writes the data of a message as Server-Sent Events, one field a line. */
export const dataFields = (data: string): string => `data: ${data.replaceAll('\n', '\ndata: ')}\n`;

/** Writes a line, which contains no newline, as {@link dataFields} does. */
export const lineField = (line: string): string => `${linePrefix}${line}\n`;

export const linePrefix = 'data: ';

/** Reverses {@link dataFields}. Lines are JSON, so none begins with `data: `. */
export const dataIn = (fields: string): string => fields.slice('data: '.length, -1).replaceAll('\ndata: ', '\n');

/** What comes before the id of a position: an id ends a message. */
export const beginOfId = 'id: ';

/** What comes after the id of a position: the name of a stream, if it has one, and the end of the message. */
export const endOfId = (stream: string | undefined): string => `${withStream('', stream)}\n\n`;

/** Appends a stream's name (8 hex digits) to an id, which distinguishes two clients at the same position. */
export const withStream = (id: string, stream: string | undefined): string =>
  stream === undefined ? id : `${id}-${stream}`;

/** Splits a `Last-Event-ID` into the id of a position and the name of the stream that sent it, if it has one. */
export const splitStream = (lastEventId: string | undefined): { readonly id?: string; readonly stream?: string } => {
  const [, id, stream] = /^(.*\d)-([\da-f]{8})$/.exec(lastEventId ?? '') ?? [];
  if (id !== undefined && stream !== undefined) return { id, stream };
  return lastEventId === undefined ? {} : { id: lastEventId };
};

export const isConnectAgain = ({ type }: RelayMessage): boolean => type === 'connect-again';

/** Returns whether a message is the last one of a relay that shuts down. */
export const isClosing = (message: RelayMessage): boolean =>
  isConnectAgain(message) && (JSON.parse(message.data) as TradeFeedError).code === 'relay-closing';
