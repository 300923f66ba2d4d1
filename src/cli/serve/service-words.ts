import type { ServiceEvent } from '../../testing/index.js';
import { printable } from '../../protocol/printable.js';
import { counted } from '../view/units.js';

type Words = { readonly [E in ServiceEvent as E['type']]: (event: E) => string };

const words: Words = {
  'ticket-issued': ({ account, feed }) => `ticket issued: ${account}, ${feed}`,
  'ticket-refused': ({ status, code, account, retryAfterSeconds }) =>
    `ticket refused: ${listed(account, `${status} ${code}`, retryAfterSeconds !== undefined && `retry after ${retryAfterSeconds} s`)}`,
  'ticket-revoked': ({ account, feed }) => `ticket revoked: ${account}, ${feed}`,
  'handshake-accepted': ({ account, feed, connection }) => `connection ${connection} is open: ${account}, ${feed}`,
  'handshake-refused': ({ status, code, account, feed }) =>
    `handshake refused: ${listed(account, feed, `${status} ${code}`)}`,
  'connection-closed': ({ connection, code, reason, by, frames }) =>
    `connection ${connection} closed by the ${by}: ${listed(`${code}${reason && ` "${printable(reason)}"`}`, counted(frames, 'frame'))}`,
  violation: ({ rule, account, connection }) =>
    `against the contract: ${listed(rule, account, connection !== undefined && `connection ${connection}`)}`,
  'source-ended': ({ feed, error }) =>
    error === undefined
      ? `the source of ${feed} has ended; the service stays up`
      : `the source of ${feed} failed: ${printable(error instanceof Error ? error.message : 'for an unknown reason')}`,
};

/** Says in a few plain words what the service saw. */
export const serviceWords = (event: ServiceEvent): string =>
  (words[event.type] as (event: ServiceEvent) => string)(event);

const listed = (...parts: readonly (string | false | undefined)[]): string => parts.filter(Boolean).join(', ');
