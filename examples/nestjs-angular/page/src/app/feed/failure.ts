import type { TradeFeedError } from 'rx-trade-feed/browser';

/** A failure of the stream, or the plain data of a failure in the history of the server. */
export type Failure = Pick<
  TradeFeedError,
  'code' | 'stage' | 'verdict' | 'message' | 'advice' | 'endedAt' | 'status' | 'closeCode'
> & {
  readonly previous?: Failure;
};

/** A time whose frames are missing. In epoch ms. */
export interface Gap {
  readonly from: number;
  readonly to: number;
  readonly durationMs: number;
  readonly failure: Failure;
  /** The number of missing frames, if it is known. */
  readonly missed?: number;
}

/** Returns whether the failure belongs to the connection between the relay and this page. */
export const isOfPage = ({ code }: Failure): boolean => /^(relay-(?!source)|invalid-relay)/.test(code);

/** The failures after which a feed doesn't reconnect. This page keeps checking, so it receives them with the verdict `backoff`. */
const stops: ReadonlySet<TradeFeedError['code']> = new Set([
  ...([
    'invalid-options',
    'invalid-api-key',
    'not-entitled',
    'invalid-ticket-request',
    'ticket-request-rejected',
    'ticket-endpoint-without-tls',
  ] as const),
  ...(['untrusted-certificate', 'invalid-ticket', 'handshake-rejected', 'subprotocol-mismatch'] as const),
  ...(['connection-replaced', 'policy-violation', 'retries-exhausted', 'relay-source-failed'] as const),
]);

/** Returns whether the feed stays stopped after this failure until a person restarts it. */
export const isStop = ({ code, verdict }: Failure): boolean => verdict === 'stop' || stops.has(code);
