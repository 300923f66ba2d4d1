import type { Tally } from '../follow/tally.js';
import { reconnectWords } from './event-words.js';
import { whatHappened } from './failure-words.js';
import type { Span } from './line.js';

/** What is going on at the moment: a mark and a word to see at once, and what there is to say about it. */
export interface PhaseWords {
  readonly mark: Span;
  readonly title: string;
  /** Why, when there is a reason to give. */
  readonly reason: string | undefined;
}

/** Says what is going on. */
export const phaseWords = ({ phase, now, feed, connections }: Tally): PhaseWords => {
  switch (phase.name) {
    case 'ticket':
      return { mark: ['○', 'yellow'], title: `requesting a ticket for ${feed}`, reason: undefined };
    case 'handshake':
      return { mark: ['◐', 'yellow'], title: `opening a connection to ${feed}`, reason: undefined };
    case 'open':
      return { mark: ['●', 'green'], title: `live: ${feed}, connection ${connections}`, reason: undefined };
    case 'waiting': {
      const { at, delayMs, attempt } = phase.reconnecting;
      const title = reconnectWords({ delayMs: at + delayMs - now, attempt });
      return { mark: ['○', 'red'], title, reason: whatHappened(phase.failure) };
    }
  }
};
