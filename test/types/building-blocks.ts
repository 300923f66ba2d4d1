// Compile-only: `tsc --noEmit` is the test. What must not compile is marked, and an unused mark fails.
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

// The sentence of the design, in both spellings.
export const byRetryWhen: Observable<Frame> = defer(() => of('market' as const)).pipe(
  requestTicket(),
  openConnection(),
  retryWhen(backoff()),
);
export const byRetry: Observable<Frame> = defer(() =>
  of('raw' as const).pipe(requestTicket(), openConnection(), retry({ delay: retryDelay({ maxAttempts: 3 }) })),
);

// Each block alone, and another one in between.
export const tickets: OperatorFunction<Feed, Ticket> = requestTicket({ apiKey: 'key' });
export const frames: OperatorFunction<Ticket, Frame> = openConnection({ idleTimeoutMs: 0 });
export const numbered: OperatorFunction<Ticket, Frame> = openConnection({}, (feed) => (feed satisfies Feed).length);
export const between: Observable<Frame> = of<Feed>('raw').pipe(
  requestTicket(),
  map((ticket) => ({ ...ticket, deadlineMs: performance.now() + 1_000 })),
  openConnection(),
);
export const told = backoff({}, (reconnect) => (reconnect satisfies Reconnect).failure.advice);

export const shared$: Observable<Frame> = tradeFeed$().pipe(share());
export const both = [tradeFeed$('raw'), tradeFeedEvents$('raw', { apiKey: 'key' }), tradeFeed$(undefined)] as const;

// @ts-expect-error -- a feed is one of two words
export const badFeed = tradeFeed$('Market');
// @ts-expect-error -- here too
export const badEvents = tradeFeedEvents$('trades');
// @ts-expect-error -- and not any text
export const anyText = tradeFeed$(process.argv.join());
// @ts-expect-error -- and for the operator
export const badSource = of('trades').pipe(requestTicket());
// @ts-expect-error -- a connection opens with a ticket, not with a feed
export const noTicket = of<Feed>('raw').pipe(openConnection());
// @ts-expect-error -- a ticket as it is on the wire has its secret open: decode it
export const bareTicket: Ticket['ticket'] = 'secret';
// @ts-expect-error -- a policy has no such option
export const badPolicy = backoff({ retries: 3 });

export const feed: 'market' | 'raw' = Feed.is('x') ? 'raw' : 'market';
export const verdict: Verdict = classify({ stage: 'stream', closeCode: CloseCode.connectionReplaced });
export const reason: 'access revoked' = CloseReason.accessRevoked;
export const revealed: string = new Secret('x').reveal();

// @ts-expect-error -- the facts name their stage
export const noStage = classify({ status: 401 });

export const handled = (error: unknown): FailureCode | undefined => {
  if (!(error instanceof TradeFeedError)) return undefined;
  if (error.status !== undefined) error.status satisfies number;
  error.previous?.previous satisfies TradeFeedError | undefined;
  // @ts-expect-error -- there is no such code to branch on
  if (error.code === 'timeout') return undefined;
  return error.code;
};

const failed: TradeFeedError = createTradeFeedError({ stage: 'ticket', status: 401 });
// @ts-expect-error -- an error is what happened: it cannot be changed
failed.verdict = 'backoff';

declare const frame: Frame;
// @ts-expect-error -- a frame is read, never written
frame.data = Buffer.alloc(0);
// @ts-expect-error -- its payload is opaque until it is checked
export const field: string = frame.json();
// @ts-expect-error -- there is no way to send
export const send: keyof ReturnType<typeof tradeFeed$> = 'next';
