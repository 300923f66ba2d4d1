// Compile-only: `tsc --noEmit` is the test. `@ts-expect-error` marks code that must not compile; an unused mark is an error.
import { ConsoleLogger, Logger } from '@nestjs/common';
import { pino } from 'pino';
import {
  type AttemptMessage,
  type Disconnected,
  type EventLevel,
  type EventLogger,
  type EventRecord,
  type FeedEvent,
  type FeedEventMessage,
  type Frame,
  frames,
  type Fresh,
  type Freshness,
  freshness,
  type FreshnessOptions,
  type Gap,
  logEvents,
  type LogEventsOptions,
  type Opened,
  type OwnerChanged,
  type Stale,
  type Stopped,
  type TradeFeedError,
  tradeFeed$,
  tradeFeedEvents$,
} from 'rx-trade-feed';
import { asyncScheduler, type Observable, of } from 'rxjs';

// True if both types are assignable to each other and the inferred one is not `any`.
type Same<A, B> = [A, B, 0 extends 1 & A ? 1 : 2] extends [B, A, 2] ? true : false;

type Emitted<O> = O extends Observable<infer T> ? T : never;
type Is<T extends true> = T;

const events$ = tradeFeedEvents$('market');

// Logging does not change the type of frames or events.
export const logged$ = events$.pipe(logEvents(console));
export type IsLogged = Is<Same<Emitted<typeof logged$>, FeedEvent>>;
export const frames$ = events$.pipe(logEvents(console, { level: 'warn' }), frames());
export type IsFrames = Is<Same<Emitted<typeof frames$>, Frame>>;
export const numbers$ = of(1).pipe(logEvents(console));
export type IsNumbers = Is<Same<Emitted<typeof numbers$>, number>>;

// Known loggers fit without a cast.
export const loggers: readonly EventLogger[] = [console, pino(), new Logger('Feed'), new ConsoleLogger()];
export const custom: EventLogger = {
  debug: (record) => record.type,
  info: (record: EventRecord) => `${record.at} ${record.msg}`,
  warn: () => undefined,
  error: () => undefined,
};
export const level: LogEventsOptions = { level: 'info' satisfies EventLevel };

// @ts-expect-error -- unknown level
export const badLevel = logEvents(console, { level: 'trace' });
// @ts-expect-error -- a logger needs `error`
export const badLogger = logEvents({ debug: () => 1, info: () => 1, warn: () => 1 });
// @ts-expect-error -- a logger needs `info` or `log`
export const noInfo = logEvents({ debug: () => 1, warn: () => 1, error: () => 1 });
// @ts-expect-error -- options are readonly
level.level = 'warn';

// The freshness is a union discriminated by `state`.
export const freshness$ = tradeFeed$('market').pipe(
  freshness({ maxAgeMs: 1_000, factor: 20, scheduler: asyncScheduler }),
);
export type IsFreshness = Is<Same<Emitted<typeof freshness$>, Freshness>>;
export const limitOf = (state: Freshness): number => {
  if (state.state === 'fresh') return (state satisfies Fresh).since;
  return (state satisfies Stale).maxAgeMs + (state.newestAt ?? 0);
};
export const limit: FreshnessOptions = { maxAgeMs: undefined, factor: 20 };

// @ts-expect-error -- the options are required
export const noLimit = freshness();
// @ts-expect-error -- unknown option
export const badLimit = freshness({ maxAge: 1_000 });
// @ts-expect-error -- options are readonly
limit.factor = 3;

// The messages of the channels.
export const failureOf = ({ event }: FeedEventMessage): TradeFeedError | undefined => {
  switch (event.type) {
    case 'opened':
      event satisfies Opened;
      return undefined;
    case 'disconnected':
      return (event satisfies Disconnected).failure;
    case 'gap':
      return (event satisfies Gap).failure;
    case 'stopped':
      return (event satisfies Stopped).failure;
    case 'owner-changed':
      event satisfies OwnerChanged;
      return undefined;
    default:
      // `never` if all events are handled.
      return event satisfies never;
  }
};
export const openedIn = ({ origin, event }: FeedEventMessage<Opened>): string =>
  `${origin.where} ${origin.baseUrl} ${origin.feed satisfies 'market' | 'raw'} ${event.connection}`;
export const durationOf = ({ startedAt, endedAt, stage, error }: AttemptMessage): number => {
  stage satisfies 'ticket' | 'handshake' | 'stream';
  error satisfies TradeFeedError | undefined;
  return (endedAt ?? Date.now()) - (startedAt.handshake ?? startedAt.ticket);
};
