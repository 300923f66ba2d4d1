import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';

/**
 * The types of the messages without events: the `event` field of Server-Sent Events (HTML, 9.2). A message with events has no type; its data is
 * one line of JSON for each event: see `src/protocol/event-line.ts`.
 *
 * - `hello`: the first message, `{"at": …}`: the clock of the relay in epoch ms.
 * - `heartbeat`: no data. It shows that the relay is alive.
 * - `connect-again`: the relay ends this stream. The data is the failure; its verdict says when to connect again. The last message.
 * - `complete`: the feed of the relay is complete. The last message.
 */
export type RelayMessageType = 'hello' | 'heartbeat' | 'connect-again' | 'complete';

/** One message for one client: an event of Server-Sent Events. It is also a valid `MessageEvent` for `@Sse()` of NestJS. */
export interface RelayMessage {
  /** The position of the client after this message. The client sends it as `Last-Event-ID`. */
  readonly id: string;
  /** `hello`, `heartbeat`, `connect-again` or `complete`; absent for a message with events. */
  readonly type?: string;
  /** For a message with events: one line of JSON for each, as `rx-trade-feed listen --json` writes it. */
  readonly data: string;
}

/** Writes a message in the format of Server-Sent Events (HTML, 9.2.6). A heartbeat is a comment there. */
export const sseText = ({ id, type, data }: RelayMessage): string => {
  if (type === 'heartbeat') return ': heartbeat\n\n';
  const event = type === undefined ? '' : `event: ${type}\n`;
  return `${event}id: ${id}\ndata: ${data.replaceAll('\n', '\ndata: ')}\n\n`;
};

/** Returns whether a message is `connect-again`: the last one of a stream, or the only one of a refusal. */
export const isConnectAgain = ({ type }: RelayMessage): boolean => type === 'connect-again';

/** Returns whether a message is the last one of a relay that shuts down. */
export const isClosing = (message: RelayMessage): boolean =>
  isConnectAgain(message) && (JSON.parse(message.data) as TradeFeedError).code === 'relay-closing';
