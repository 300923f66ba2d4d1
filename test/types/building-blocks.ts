// Compile-only: `tsc --noEmit` is the test. `@ts-expect-error` marks code that must not compile; an unused mark is an error.
import {
  backoff,
  classify,
  CloseCode,
  CloseReason,
  type FailureCode,
  Feed,
  type Frame,
  openConnection,
  type Reconnect,
  requestTicket,
  retryDelay,
  Secret,
  type Ticket,
  TradeFeedError,
  tradeFeed$,
  createTradeFeedError,
  tradeFeedEvents$,
  type Verdict,
} from 'rx-trade-feed';
import { defer, map, type Observable, of, type OperatorFunction, retry, retryWhen, share } from 'rxjs';

// The composition of the feed, with `retryWhen` and with `retry`.
export const byRetryWhen: Observable<Frame> = defer(() => of('market' as const)).pipe(
  requestTicket(),
  openConnection(),
  retryWhen(backoff()),
);
export const byRetry: Observable<Frame> = defer(() =>
  of('raw' as const).pipe(requestTicket(), openConnection(), retry({ delay: retryDelay({ maxAttempts: 3 }) })),
);

// Each building block alone, and an operator between them.
export const tickets: OperatorFunction<Feed, Ticket> = requestTicket({ apiKey: 'key' });
export const frames: OperatorFunction<Ticket, Frame> = openConnection({ idleTimeoutMs: 0 });
export const numbered: OperatorFunction<Ticket, Frame> = openConnection({}, (feed) => (feed satisfies Feed).length);
export const between: Observable<Frame> = of<Feed>('raw').pipe(
  requestTicket(),
  map((ticket) => ({ ...ticket, deadlineMs: performance.now() + 1_000 })),
  openConnection(),
);
export const reported = backoff({}, (reconnect) => (reconnect satisfies Reconnect).failure.advice);

export const shared$: Observable<Frame> = tradeFeed$().pipe(share());
export const both = [tradeFeed$('raw'), tradeFeedEvents$('raw', { apiKey: 'key' }), tradeFeed$(undefined)] as const;

// @ts-expect-error -- a feed is one of two strings
export const badFeed = tradeFeed$('Market');
// @ts-expect-error -- also for events
export const badEvents = tradeFeedEvents$('trades');
// @ts-expect-error -- not any string
export const anyText = tradeFeed$(process.argv.join());
// @ts-expect-error -- also for the operator
export const badSource = of('trades').pipe(requestTicket());
// @ts-expect-error -- a connection needs a ticket, not a feed
export const noTicket = of<Feed>('raw').pipe(openConnection());
// @ts-expect-error -- the secret of a ticket is wrapped: decode the wire format
export const bareTicket: Ticket['ticket'] = 'secret';
// @ts-expect-error -- unknown option of the policy
export const badPolicy = backoff({ retries: 3 });

export const feed: 'market' | 'raw' = Feed.is('x') ? 'raw' : 'market';
export const verdict: Verdict = classify({ stage: 'stream', closeCode: CloseCode.connectionReplaced });
export const reason: 'access revoked' = CloseReason.accessRevoked;
export const revealed: string = new Secret('x').reveal();

// @ts-expect-error -- a stage is required
export const noStage = classify({ status: 401 });

export const handled = (error: unknown): FailureCode | undefined => {
  if (!(error instanceof TradeFeedError)) return undefined;
  if (error.status !== undefined) error.status satisfies number;
  error.previous?.previous satisfies TradeFeedError | undefined;
  // @ts-expect-error -- unknown failure code
  if (error.code === 'timeout') return undefined;
  return error.code;
};

const failed: TradeFeedError = createTradeFeedError({ stage: 'ticket', status: 401 });
// @ts-expect-error -- the fields of an error are readonly
failed.verdict = 'backoff';

declare const frame: Frame;
// @ts-expect-error -- the fields of a frame are readonly
frame.data = Buffer.alloc(0);
// @ts-expect-error -- `json()` returns `unknown`
export const field: string = frame.json();
// @ts-expect-error -- a feed is not an Observer: nothing can be sent
export const send: keyof ReturnType<typeof tradeFeed$> = 'next';
