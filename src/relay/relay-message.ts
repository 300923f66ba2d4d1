import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';

/**
 * The types of the messages that a relay sends besides the events, which have none: the `event` field of Server-Sent Events (HTML,
 * 9.2). The data of events are lines of JSON, one for each event: see `src/protocol/event-line.ts`.
 *
 * - `hello`: the first one of an answer, `{"at": …}`: the clock of the relay in epoch ms.
 * - `heartbeat`: no data. It shows that the relay is alive.
 * - `connect-again`: the relay ends this stream. The data is the failure; its verdict says when to connect again. The last message.
 * - `complete`: the feed of the relay is complete. The last message.
 */
export type RelayMessageType = 'hello' | 'heartbeat' | 'connect-again' | 'complete';

/** One message for one client: what Server-Sent Events call an event, and what the `@Sse()` of NestJS takes. */
export interface RelayMessage {
  /** Where the client is once it has this message: what it gives back as `Last-Event-ID`. */
  readonly id: string;
  /** Missing for events; else one of `hello`, `heartbeat`, `connect-again`, `complete`. */
  readonly type?: string;
  /** Of events: a line of JSON for each, the one that `rx-trade-feed listen --json` writes. */
  readonly data: string;
}

/** Writes a message as the stream of Server-Sent Events has it (HTML, 9.2.6); a heartbeat is a comment there. */
export const sseText = ({ id, type, data }: RelayMessage): string => {
  if (type === 'heartbeat') return ': heartbeat\n\n';
  const event = type === undefined ? '' : `event: ${type}\n`;
  return `${event}id: ${id}\ndata: ${data.replaceAll('\n', '\ndata: ')}\n\n`;
};

/** Returns whether a message asks the client to connect again: it is the last one of a stream, or the only one of a refusal. */
export const isConnectAgain = ({ type }: RelayMessage): boolean => type === 'connect-again';

/** Returns whether a message is the last one of a relay that shuts down. */
export const isClosing = (message: RelayMessage): boolean =>
  isConnectAgain(message) && (JSON.parse(message.data) as TradeFeedError).code === 'relay-closing';
