import type { TradeFeedError } from '../protocol/failure.js';
import { readFailure } from '../protocol/read-failure.js';
import { readEvent, type Received, shifted } from './read-event.js';
import type { ServerSentEvent } from './server-sent-events.js';

/** What a message of a relay says. */
export interface RelaySaid {
  /** The clock of the relay, in epoch ms: its first message. */
  readonly relayAt?: number;
  /** Events, in order. */
  readonly events?: readonly Received[];
  /** Why the feed behind the relay has stopped. */
  readonly stop?: TradeFeedError;
}

/**
 * Reads a message, all of it: one that cannot be read is asked for again as a whole.
 *
 * @param shiftMs - by how much the clock of this machine is ahead of the relay's
 * @throws for what no relay sends
 */
export const readMessage = ({ type, lines }: ServerSentEvent, shiftMs: number): RelaySaid => {
  if (type === '') return { events: lines.flatMap((line) => readEvent(line, shiftMs) ?? []) };
  if (type !== 'hello' && type !== 'stop') return {};
  const fields = JSON.parse(lines.join('\n')) as { readonly at: unknown };
  return type === 'hello'
    ? { relayAt: shifted(fields, 'at', 0)['at'] as number }
    : // The relay sends nothing after this message, so the verdict is always `stop`.
      { stop: readFailure(fields, shiftMs).with({ verdict: 'stop' }) };
};
