// Compile-only: `tsc --noEmit` is the test. `@ts-expect-error` marks code that must not compile; an unused mark is an error.
import {
  type ConnectingStatus,
  connectionStatus,
  type ConnectionStatus,
  type Decoded,
  decodeWith,
  type DropReport,
  type FailureCode,
  type FeedEvent,
  type FeedStats,
  feedStats,
  type Frame,
  frames,
  type Gap,
  gaps,
  type LiveStatus,
  mergeMapBounded,
  type ReconnectingStatus,
  type StoppedStatus,
  shareFeed,
  type ShareFeedOptions,
  type FeedStatsOptions,
  type TradeFeedError,
  tradeFeed$,
  tradeFeedEvents$,
} from 'rx-trade-feed';
import * as t from 'io-ts';
import { asyncScheduler, map, NEVER, type Observable, of, Subject, VirtualTimeScheduler } from 'rxjs';

// True if both types are assignable to each other and the inferred one is not `any`.
type Same<A, B> = [A, B, 0 extends 1 & A ? 1 : 2] extends [B, A, 2] ? true : false;

type Emitted<O> = O extends Observable<infer T> ? T : never;
type Is<T extends true> = T;

const codec = t.type({ n: t.number });
const events$ = tradeFeedEvents$('market');

// Sharing does not change the type of frames or events.
export const shared$ = events$.pipe(shareFeed());
export type IsShared = Is<Same<Emitted<typeof shared$>, FeedEvent>>;
export const sharedFrames$ = tradeFeed$('raw').pipe(shareFeed({ lingerMs: 5_000, scheduler: asyncScheduler }));
export type IsSharedFrames = Is<Same<Emitted<typeof sharedFrames$>, Frame>>;
export const sharedDecoded$ = events$.pipe(decodeWith(codec), shareFeed({ lingerMs: 0 }), frames());
export type IsSharedDecoded = Is<Same<Emitted<typeof sharedDecoded$>, Decoded<{ n: number }>>>;
export const sharedNumbers$ = of(1).pipe(shareFeed({ lingerMs: Infinity }));
export type IsSharedNumbers = Is<Same<Emitted<typeof sharedNumbers$>, number>>;
// One operator serves any number of sources.
const share = shareFeed({ lingerMs: undefined, scheduler: undefined });
export const both = [share(events$) satisfies Observable<FeedEvent>, share(of('a')) satisfies Observable<string>];

// The status is a union discriminated by `state`.
export const status$ = shared$.pipe(connectionStatus());
export type IsStatus = Is<Same<Emitted<typeof status$>, ConnectionStatus>>;
export const startOf = (status: ConnectionStatus): number => {
  switch (status.state) {
    case 'connecting':
      return (status satisfies ConnectingStatus).since;
    case 'live':
      return (status satisfies LiveStatus).since + status.connection;
    case 'reconnecting': {
      const { since, attempt, nextAttemptAt, failure } = status satisfies ReconnectingStatus;
      nextAttemptAt satisfies number | undefined;
      failure satisfies TradeFeedError | undefined;
      return since + attempt;
    }
    case 'stopped':
      return (status satisfies StoppedStatus).failure.endedAt;
    default:
      // `never` if all states are handled.
      return status satisfies never;
  }
};

// The statistics.
const drops$ = new Subject<DropReport>();
export const stats$ = shared$.pipe(feedStats({ everyMs: 500, drops$, scheduler: new VirtualTimeScheduler() }));
export type IsStats = Is<Same<Emitted<typeof stats$>, FeedStats>>;
export const statsOfFrames$: Observable<FeedStats> = tradeFeed$().pipe(feedStats());
export const noDrops$ = feedStats({ drops$: NEVER, everyMs: undefined })(events$) satisfies Observable<FeedStats>;
export const reporting$ = shared$.pipe(
  frames(),
  mergeMapBounded((frame) => of(frame.text()), { onDrop: (report) => drops$.next(report) }),
);
export const rate = (stats: FeedStats): number => {
  stats.type satisfies 'stats';
  return stats.framesPerSecond + stats.lostMs + (stats.reconnects['connection-lost'] ?? 0);
};
export type IsCause = Is<Same<keyof FeedStats['reconnects'], FailureCode>>;

// Only the frames or only the gaps.
export const frames$ = events$.pipe(frames());
export type IsFrames = Is<Same<Emitted<typeof frames$>, Frame>>;
export const framesOfFrames$ = tradeFeed$().pipe(frames());
export type IsFramesOfFrames = Is<Same<Emitted<typeof framesOfFrames$>, Frame>>;
export const decoded$ = events$.pipe(decodeWith(codec), frames());
export type IsDecoded = Is<Same<Emitted<typeof decoded$>, Decoded<{ n: number }>>>;
export const mapped$ = events$.pipe(
  map((event) => (event.type === 'frame' ? event.data.length : event)),
  frames(),
);
export type IsMapped = Is<Same<Emitted<typeof mapped$>, number>>;
export const gaps$ = events$.pipe(gaps());
export type IsGaps = Is<Same<Emitted<typeof gaps$>, Gap>>;
export const gapsOfDecoded$ = events$.pipe(
  decodeWith(codec),
  gaps(),
  map((gap) => (gap satisfies Gap).durationMs),
);
export type IsGapsOfDecoded = Is<Same<Emitted<typeof gapsOfDecoded$>, number>>;

export const linger: ShareFeedOptions = { lingerMs: 1 };
export const period: FeedStatsOptions = { everyMs: 1, drops$: undefined };

// @ts-expect-error -- unknown option
export const badShare = shareFeed({ linger: 1_000 });
// @ts-expect-error -- `lingerMs` is a number
export const badLinger = shareFeed({ lingerMs: '1s' });
// @ts-expect-error -- a scheduler is not a number
export const badScheduler = shareFeed({ scheduler: 5 });
// @ts-expect-error -- options are readonly
linger.lingerMs = 2;
// @ts-expect-error -- `connectionStatus` has no options
export const badStatus = connectionStatus({ lingerMs: 1 });
// @ts-expect-error -- unknown option
export const badStats = feedStats({ every: 1_000 });
// @ts-expect-error -- `everyMs` is a number
export const badPeriod = feedStats({ everyMs: '1s' });
// @ts-expect-error -- `drops$` emits reports, not numbers
export const badDrops = feedStats({ drops$: of(1) });
// @ts-expect-error -- `drops$` is an Observable
export const noObservable = feedStats({ drops$: [] });
// @ts-expect-error -- `frames` has no parameter
export const badFrames = frames((event: FeedEvent) => event.type === 'frame');
// @ts-expect-error -- `gaps` has no parameter
export const badGaps = gaps({ minMs: 10 });
// @ts-expect-error -- frames have no duration
export const noGapLeft = frames$.pipe(map((frame) => frame.durationMs as unknown));
// @ts-expect-error -- a gap has no payload
export const noFrameLeft = gaps$.pipe(map((gap) => gap.data as unknown));
// @ts-expect-error -- only one state has `nextAttemptAt`
export const unnarrowed = status$.pipe(map((status) => status.nextAttemptAt as unknown));

declare const status: ConnectionStatus;
// @ts-expect-error -- unknown state
export const unknownState = status.state === 'closed';
// @ts-expect-error -- the fields of a status are readonly
status.since = 0;
declare const stats: FeedStats;
// @ts-expect-error -- statistics are readonly
stats.frames = 0;
// @ts-expect-error -- also the nested counts
stats.reconnects['connection-lost'] = 0;
// @ts-expect-error -- unknown failure code
export const unknownCause = stats.reconnects.timeout as unknown;
