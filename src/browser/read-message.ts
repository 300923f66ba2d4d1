import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { type Received, readEventLine } from '../protocol/event-line.js';
import { readFailure } from '../protocol/failures/read-failure.js';
import type { ServerSentEvent } from './server-sent-events.js';

/** What a message of a relay says. */
export interface RelaySaid {
  /** The clock of the relay, in epoch ms: its first message. */
  readonly relayAt?: number;
  /** Events, in order. */
  readonly events?: readonly Received[];
  /** Why the relay ends this connection: its last message. */
  readonly ending?: TradeFeedError;
}

/**
 * Reads a message, all of it: one that cannot be read is asked for again as a whole.
 *
 * @param shiftMs - by how much the clock of this machine is ahead of the relay's
 * @throws for what no relay sends
 */
export const readMessage = ({ type, lines }: ServerSentEvent, shiftMs: number): RelaySaid => {
  if (type === '') return { events: lines.flatMap((line) => readEventLine(line, shiftMs) ?? []) };
  if (type !== 'hello' && type !== 'connect-again') return {};
  const fields = JSON.parse(lines.join('\n')) as { readonly at: unknown };
  if (type === 'connect-again') return { ending: readFailure(fields, shiftMs) };
  if (typeof fields.at !== 'number') throw new TypeError('at');
  return { relayAt: fields.at };
};
