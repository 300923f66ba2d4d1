import { printable } from '../../protocol/printable.js';
import type { Plan, ServiceEvent } from '../../testing/index.js';
import { counted } from '../view/units.js';

/** The facts about a service that has started. */
export interface Welcome {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly plan: Plan;
  /** A description of the payloads of each feed. */
  readonly feeds: Readonly<Record<'market' | 'raw', string>>;
  /** The feed of the suggested command. */
  readonly feed: 'market' | 'raw';
  /** The CA file of a certificate that was created for this run. */
  readonly caFile: string | undefined;
}

/** Returns the text with the address of the service and the commands to type next. */
export const welcome = ({ baseUrl, apiKey, plan, feeds, feed, caFile }: Welcome): string =>
  [
    'A local trade feed service is running. Ctrl-C ends it.',
    '',
    `  address  ${baseUrl}`,
    `  API key  ${apiKey} (${plan} plan; only for this run)`,
    `  market   ${feeds.market}`,
    `  raw      ${feeds.raw}`,
    ...(caFile === undefined ? [] : [`  CA       ${caFile} (only for this run)`]),
    '',
    'Type this in another terminal:',
    '',
    `  export TRADE_FEED_BASE_URL=${baseUrl}`,
    `  export TRADE_FEED_API_KEY=${apiKey}`,
    ...(caFile === undefined
      ? []
      : [`  export NODE_EXTRA_CA_CERTS=${caFile}  # or add to the next line: --ca ${caFile}`]),
    `  npx rx-trade-feed listen ${feed}`,
    '',
    '',
  ].join('\n');

type EventWords = { readonly [E in ServiceEvent as E['type']]: (event: E) => string };

const words: EventWords = {
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
    `contract violation: ${listed(rule, account, connection !== undefined && `connection ${connection}`)}`,
  'source-ended': ({ feed, error }) =>
    error === undefined
      ? `the source of ${feed} has ended; the service continues to run`
      : `the source of ${feed} failed: ${printable(error instanceof Error ? error.message : 'for an unknown reason')}`,
};

/** Describes an event of the service in a few words. */
export const serviceEventWords = (event: ServiceEvent): string =>
  (words[event.type] as (event: ServiceEvent) => string)(event);

const listed = (...parts: readonly (string | false | undefined)[]): string => parts.filter(Boolean).join(', ');
