import type { Disconnected, Reconnecting } from '../protocol/event.js';
import type { Reconnect } from './policy.js';

/** Reports the decision to try again as two events: why the attempt before it ended, and how long the wait is. */
export const reportReconnect =
  (emit: (event: Disconnected | Reconnecting) => void) =>
  ({ failure, delayMs, attempt }: Reconnect): void => {
    emit({ type: 'disconnected', at: Date.now(), failure });
    emit({ type: 'reconnecting', at: Date.now(), delayMs, attempt, verdict: failure.verdict });
  };
