import { Frame } from '../../src/protocol/frame.js';
import type { Disconnected, Opened, Reconnecting } from '../../src/protocol/event.js';
import { relayError, type RelayFailureFacts } from '../../src/protocol/failures/relay-error.js';
import type { AnyFrame } from '../../src/protocol/frame.js';

export const opened = (connection = 1): Opened => ({ type: 'opened', at: Date.now(), feed: 'market', connection });

export const frame = (text: string): AnyFrame =>
  new Frame<Uint8Array>('market', Buffer.from(text), false, Date.now(), 1);

export const disconnected = (facts: RelayFailureFacts): Disconnected => ({
  type: 'disconnected',
  at: Date.now(),
  failure: relayError(facts),
});

export const reconnecting = (delayMs: number): Reconnecting => ({
  type: 'reconnecting',
  at: Date.now(),
  delayMs,
  attempt: 1,
  verdict: 'renew',
});
