import { inspect } from 'node:util';
import { TradeFeedError } from 'rx-trade-feed';
import { expectedFailure, stoppingCodes } from '../failure-table.js';
import { failuresOf, entriesOf } from './entries-of.js';
import type { Seen } from './seen.js';

/** How long a connection may take to close after the end, in ms. */
const CLOSING_MS = 1_500;

export const afterTheEnd = (log: readonly Seen[]): readonly string[] => {
  const end = log.findIndex(({ what }) => what === 'unsubscribed' || what === 'errored');
  if (end === -1) return [];
  const after = log.slice(end + 1);
  const emitted = entriesOf(after, 'event', 'frame', 'errored').map(({ what }) => `emitted ${what} after the end`);
  // Requests that were already sent may still arrive.
  const settled = after.findIndex(({ what }) => what === 'settled');
  if (settled === -1) return emitted;
  const late = entriesOf(after.slice(settled), 'ticket-request', 'handshake').map(
    ({ what }) => `a ${what} after the end`,
  );
  // A closing handshake takes at most a second, plus the time until the service sees that the socket is closed.
  const endedAt = (log[end] as Seen).at;
  const last = log.findLastIndex(({ what, at }) => what === 'settled' && at > endedAt + CLOSING_MS);
  const open = new Set(entriesOf(log.slice(0, Math.max(0, last)), 'handshake').map(({ socket }) => socket));
  for (const { socket } of entriesOf(log.slice(0, Math.max(0, last)), 'gone')) open.delete(socket);
  return [...emitted, ...late, ...(open.size > 0 ? [`${open.size} sockets are open after the end`] : [])];
};

export const verdicts = (log: readonly Seen[], isOwnError: (error: unknown) => boolean): readonly string[] => [
  ...failuresOf(log)
    .filter(({ failure }) => stoppingCodes.includes(failure.code) || failure.verdict === 'stop')
    .map(({ failure }) => `reconnected after ${failure.code}`),
  ...entriesOf(log, 'errored')
    .filter(({ error }) => !isOwnError(error))
    .filter(({ error }) => !(error instanceof TradeFeedError && mayStop(error)))
    .map(({ error }) => `stopped with ${error instanceof TradeFeedError ? error.code : inspect(error)}`),
];

// The options of these feeds are valid, so `invalid-options` must not occur.
const mayStop = (failure: TradeFeedError): boolean =>
  failure.code !== 'invalid-options' && expectedFailure(failure).verdict === 'stop';
