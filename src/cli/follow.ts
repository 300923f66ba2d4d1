import { catchError, filter, map, merge, mergeMap, NEVER, type Observable, scan, takeWhile, timer } from 'rxjs';
import type { ClusterEvent, ClusterLifecycleEvent, Feed, FeedEvent, Frame, Stopped, Watermark } from '../index.js';
import { afterEvent, afterFrame, type FeedState, noFeed } from '../protocol/feed-state.js';
import type { Ending } from './delivery.js';
import { ExitCode } from './errors.js';
import type { View } from './terminal.js';

/** The events that a command shows. The ending reports `stopped`, and only windows need watermarks. */
export type ShownEvent = Exclude<ClusterLifecycleEvent, Stopped | Watermark>;

type Ended = Readonly<{ type: 'ended'; at: number; ending: Ending }>;

/** A tick moves the clock on while nothing else happens. Times are epoch ms. */
export type CliEvent = ShownEvent | Frame | Readonly<{ type: 'tick'; at: number }> | Ended;

/** What a command knows about its feed. */
export interface Status {
  readonly feed: Feed;
  readonly startedAt: number;
  readonly now: number;
  readonly life: FeedState;
  readonly frames: number;
  readonly bytes: number;
  readonly lastFrame: Frame | undefined;
  /** The latest events, as many as one reconnect emits. */
  readonly recent: readonly ShownEvent[];
  /** The totals at the start and at the latest ticks. */
  readonly samples: readonly Sample[];
}

/** Totals, or rates per second. */
type Flow = Pick<Status, 'frames' | 'bytes'>;
type Sample = Flow & { readonly at: number };

export const recentEvents = 6;
const sampleCount = 41;
const rateTicks = 6;

export const statusAt = (feed: Feed, now: number): Status => {
  const none = { frames: 0, bytes: 0 };
  const samples = [{ at: now, ...none }];
  return { feed, startedAt: now, now, life: noFeed, ...none, lastFrame: undefined, recent: [], samples };
};

export const statusAfter = (status: Status, event: CliEvent): Status => {
  const { life, frames, bytes, samples, recent } = status;
  if (event.type === 'frame') {
    const { receivedAt: now, byteLength } = event;
    const total = { frames: frames + 1, bytes: bytes + byteLength };
    return { ...status, ...total, now, life: afterFrame(life, now, event), lastFrame: event };
  }
  if (event.type === 'tick' || event.type === 'ended')
    return { ...status, now: event.at, samples: [...samples, { at: event.at, frames, bytes }].slice(-sampleCount) };
  const now = event.type === 'gap' ? event.to : event.at;
  return { ...status, now, life: afterEvent(life, event, undefined), recent: [...recent, event].slice(-recentEvents) };
};

export const currentRate = ({ samples }: Status): Flow => {
  const [first, last] = [samples.at(-1 - rateTicks) ?? samples[0], samples.at(-1)] as [Sample, Sample];
  return perSecond(last.at - first.at, { frames: last.frames - first.frames, bytes: last.bytes - first.bytes });
};

export const averageRate = ({ now, startedAt, frames, bytes }: Status): Flow =>
  perSecond(now - startedAt, { frames, bytes });

const perSecond = (ms: number, { frames, bytes }: Flow): Flow =>
  ms <= 0 ? { frames: 0, bytes: 0 } : { frames: (frames * 1_000) / ms, bytes: (bytes * 1_000) / ms };

/** When a command ends: after this many frames, or after this many ms. */
export type Bounds = Readonly<{ count?: number | undefined; duration?: number | undefined }>;

export type Step = Readonly<{ event: CliEvent; status: Status }>;

export const tickMs = 500;

/**
 * Follows a feed to its end. Emits a step for each event, frame and tick, then `ended`, then completes.
 * Never errors: a failure that stops the feed is an ending.
 */
export const follow = (
  events$: Observable<FeedEvent | ClusterEvent>,
  feed: Feed,
  { count, duration }: Bounds,
  endings$: Observable<Ending>,
): Observable<Step> => {
  const timeUp$ = duration === undefined ? NEVER : timer(duration).pipe(map((): Ending => ({ kind: 'time-up' })));
  const shown$ = events$.pipe(
    filter((event) => event.type !== 'stopped' && event.type !== 'watermark'),
    catchError((error: unknown) => [ended({ kind: 'failed', error })]),
  );
  const ticks$ = timer(tickMs, tickMs).pipe(map(() => ({ type: 'tick' as const, at: Date.now() })));
  return merge<CliEvent[]>(merge(endings$, timeUp$).pipe(map(ended)), ticks$, shown$).pipe(
    scan((step, event) => ({ event, status: statusAfter(step.status, event) }), {
      status: statusAt(feed, Date.now()),
    } as Step),
    mergeMap((step) => {
      const isLast = step.status.frames === count;
      return isLast ? [step, { ...step, event: ended({ kind: 'count-reached' }) }] : [step];
    }),
    takeWhile(({ event }) => event.type !== 'ended', true),
  );
};

const ended = (ending: Ending): Ended => ({ type: 'ended', at: Date.now(), ending });

/** Shows each tick, the first frame, and all events except frames, to the end. */
export const showSteps = async (
  steps$: Observable<Step>,
  { show, close }: View<Step>,
  onEvent?: (event: CliEvent) => void,
): Promise<{ readonly status: Status; readonly ending: Ending }> => {
  let last: unknown;
  const each = (step: Step): void => {
    last = step;
    onEvent?.(step.event);
    if (step.event.type !== 'frame' || step.status.frames === 1) show(step);
  };
  await steps$.forEach(each).finally(close);
  const { event, status } = last as Step & { readonly event: Ended };
  return { status, ending: event.ending };
};

/**
 * Returns the exit code of an ending. Ctrl-C is the normal way to end an unbounded run. It leaves a bounded run
 * incomplete, so that exit code stops a script. Throws the failure of a failed ending.
 */
export const finish = (ending: Ending, { count, duration }: Bounds, hasOpened: boolean): number => {
  switch (ending.kind) {
    case 'failed':
      throw ending.error;
    case 'count-reached':
    case 'output-closed':
      return ExitCode.ok;
    case 'time-up':
      return count === undefined && hasOpened ? ExitCode.ok : ExitCode.unavailable;
    case 'interrupted':
      return count === undefined && duration === undefined ? ExitCode.ok : ExitCode.interrupted;
  }
};
