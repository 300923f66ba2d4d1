import type { RelayedEvent } from '../protocol/event.js';
import type { TradeFeedError } from '../protocol/failure.js';
import { readFailure } from '../protocol/read-failure.js';
import { readEvent, shifted } from './read-event.js';
import type { ServerSentEvent } from './server-sent-events.js';

/** What a message of a relay says. */
export interface RelaySaid {
  /** The clock of the relay, in epoch ms: its first message. */
  readonly relayAt?: number;
  /** Events, in order. */
  readonly events?: readonly RelayedEvent[];
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
  switch (type) {
    case '':
      return { events: lines.map((line) => readEvent(line, shiftMs)).filter((event) => event !== undefined) };
    case 'hello':
      return { relayAt: shifted(JSON.parse(lines.join('\n')) as { at: unknown }, ['at'], 0)['at'] as number };
    case 'stop':
      // Whatever its verdict: the relay has nothing else to say.
      return { stop: readFailure(JSON.parse(lines.join('\n')), shiftMs).with({ verdict: 'stop' }) };
    default:
      return {};
  }
};
