import type { TradeFeedError } from 'rx-trade-feed/browser';

/** A failure: one of the stream, or the plain data of one in the history of the server. */
export type Failure = Pick<
  TradeFeedError,
  'code' | 'stage' | 'verdict' | 'message' | 'advice' | 'endedAt' | 'status' | 'closeCode'
> & {
  readonly previous?: Failure;
};

/** Returns whether the failure is one of the connection between the relay and this page. */
export const isOfPage = ({ code }: Failure): boolean => /^(relay-(?!source)|invalid-relay)/.test(code);

/** The failures after which a feed does not try again. A page that looks again has them with the verdict `backoff`. */
const stops: ReadonlySet<TradeFeedError['code']> = new Set([
  ...([
    'invalid-options',
    'invalid-api-key',
    'not-entitled',
    'invalid-ticket-request',
    'ticket-request-rejected',
  ] as const),
  ...(['untrusted-certificate', 'invalid-ticket', 'handshake-rejected', 'subprotocol-mismatch'] as const),
  ...(['connection-replaced', 'policy-violation', 'retries-exhausted', 'relay-source-failed'] as const),
]);

/** Returns whether the feed does not go on after it unless a person asks for it. */
export const isStop = ({ code, verdict }: Failure): boolean => verdict === 'stop' || stops.has(code);
