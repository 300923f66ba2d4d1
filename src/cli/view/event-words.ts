import type { ShownLifecycle } from '../follow/happening.js';
import { whatHappened } from './failure-words.js';
import { duration } from './units.js';

type Words = { readonly [E in ShownLifecycle as E['type']]: (event: E) => string };

const words: Words = {
  'ticket-requested': ({ feed }) => `requesting a ticket for ${feed}`,
  'ticket-issued': () => 'ticket issued, good for one handshake',
  opened: ({ feed, connection }) => `connection ${connection} is open: frames of ${feed} follow`,
  disconnected: ({ failure }) => `disconnected: ${whatHappened(failure)}`,
  reconnecting: (event) => `${reconnectWords(event)}, with a fresh ticket`,
  gap: ({ durationMs }) => `gap of ${duration(durationMs)}: its frames are not replayed`,
};

/** Says an event in a few plain words. */
export const eventWords = (event: ShownLifecycle): string =>
  (words[event.type] as (event: ShownLifecycle) => string)(event);

/** Says when the next attempt is. */
export const reconnectWords = ({ delayMs, attempt }: { readonly delayMs: number; readonly attempt: number }): string =>
  delayMs <= 0 ? 'reconnecting now' : `reconnecting in ${duration(delayMs)} (attempt ${attempt})`;
