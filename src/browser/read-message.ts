import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { type Received, readEventLine } from '../protocol/event-line.js';
import { checkFields, readFailure } from '../protocol/failures/read-failure.js';
import { isNumber } from '../protocol/type-guards.js';
import type { ServerSentEvent } from './server-sent-events.js';

/** The content of a message of a relay. */
export interface MessageContent {
  /** The clock of the relay in epoch ms, in the first message. */
  readonly relayAt?: number;
  /** The events, in order. */
  readonly events?: readonly Received[];
  /** Why the relay ends this connection, in the last message. */
  readonly ending?: TradeFeedError;
}

/**
 * Reads a complete message. If one line cannot be read, no event is emitted, and the relay sends the message again on the next connection.
 *
 * @param shiftMs - how far the clock of this machine is ahead of the relay's
 * @throws for an invalid message
 */
export const readMessage = ({ event: type, data: lines }: ServerSentEvent, shiftMs: number): MessageContent => {
  if (type === '') return { events: lines.flatMap((line) => readEventLine(line, shiftMs) ?? []) };
  if (type !== 'hello' && type !== 'connect-again') return {};
  const fields = JSON.parse(lines.join('\n')) as { readonly at: unknown };
  if (type === 'connect-again') return { ending: readFailure(fields, shiftMs) };
  const { at } = fields;
  checkFields(isNumber(at), type);
  return { relayAt: at };
};
