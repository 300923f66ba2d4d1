import * as t from 'io-ts';
import { auditTime, catchError, defer, exhaustMap, map, NEVER, type Observable, of, timer } from 'rxjs';
import type { Dispatcher } from 'undici';
import { type Feed, type FeedEvent, TradeFeedError } from '../../index.js';
import { lossesOf } from '../../operators/feed-stats.js';
import { afterEvent, type FeedState } from '../../protocol/feed-state.js';
import { type CliEvent, currentRate, follow, type Step } from '../follow.js';
import { connectionOf, type marks } from '../view/status.js';

// Reads each part separately, so that an unknown field or an unexpected type doesn't spoil the rest.
const connection = t.intersection([
  t.type({ state: t.keyof({ connecting: null, live: null, reconnecting: null, stopped: null, idle: null }) }),
  t.partial({ failure: t.type({ code: t.string }) }),
]);
const stats = t.partial({
  framesPerSecond: t.number,
  bytesPerSecond: t.number,
  gaps: t.number,
  lostMs: t.number,
  dropped: t.number,
  reconnects: t.record(t.string, t.number),
});
const clients = t.array(t.type({ sent: t.number, missed: t.number }));
const cluster = t.intersection([t.type({ role: t.string, replica: t.string }), t.partial({ owner: t.string })]);

/** The current status of a source. Times are epoch ms. Fields that the source doesn't know are missing. */
export interface Snapshot {
  /** `unknown`: the source has no status. */
  readonly state: keyof typeof marks;
  readonly problem?: string | undefined;
  /** The figures of a feed, as `feedStats` counts them. */
  readonly stats?: t.TypeOf<typeof stats> | undefined;
  readonly lastFrameAt?: number | undefined;
  /** The clients of a relay. `authorizing` counts those whose `authorize` is still pending. */
  readonly clients?: Readonly<Record<'count' | 'authorizing' | 'sent' | 'missed', number>> | undefined;
  /** The replica that answered, if the app has several. */
  readonly cluster?: t.TypeOf<typeof cluster> | undefined;
}

const snapshotEveryMs = 200;

/** Emits the status of a feed. Keeps the last status after the feed has stopped. */
export const feedSnapshots$ = (feed: Feed, events$: Observable<FeedEvent>): Observable<Snapshot> =>
  events$.pipe(follow(feed, {}, NEVER), auditTime(snapshotEveryMs), map(snapshotOf));

const snapshotOf = ({ event, status }: Step): Snapshot => {
  const { now, lastFrame } = status;
  const life = stoppedBy(event, status.life);
  const { frames, bytes } = currentRate(status);
  const { state, reason, next } = connectionOf({ life, now });
  return {
    state,
    problem: state === 'reconnecting' ? `${reason} Reconnecting ${next}.` : reason,
    stats: {
      framesPerSecond: frames,
      bytesPerSecond: bytes,
      ...lossesOf(life, now),
      reconnects: life.totals.reconnects,
    },
    lastFrameAt: lastFrame?.receivedAt,
  };
};

const stoppedBy = (event: CliEvent, life: FeedState): FeedState => {
  if (event.type !== 'ended' || event.ending.kind !== 'failed') return life;
  const { error: failure } = event.ending;
  if (!(failure instanceof TradeFeedError)) throw failure;
  return afterEvent(life, { type: 'stopped', at: event.at, failure }, undefined);
};

export interface StatusRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly dispatcher: Dispatcher;
}

/** Polls the status of an app. Emits a status with the problem if a request fails. */
export const statusSnapshots$ = (url: URL, settings: StatusRequest, everyMs = 1_000): Observable<Snapshot> =>
  timer(0, everyMs).pipe(
    exhaustMap(() =>
      defer(() => requestStatus(url, settings)).pipe(
        catchError((error: unknown) => of(noStatus(error as NodeJS.ErrnoException))),
      ),
    ),
  );

const silenceMs = 5_000;

const requestStatus = async (url: URL, { headers, dispatcher }: StatusRequest): Promise<Snapshot> => {
  const { origin, pathname, search } = url;
  const answer = await dispatcher.request({
    origin,
    path: pathname + search,
    method: 'GET',
    headers: { ...headers, accept: 'application/json' },
    headersTimeout: silenceMs,
    bodyTimeout: silenceMs,
  });
  const type = String(answer.headers['content-type'] ?? 'no type');
  const isStatus = answer.statusCode === 200 && type.includes('json');
  if (!isStatus) {
    // The body of a stream would never end.
    answer.body.on('error', () => undefined).destroy();
    const what = answer.statusCode === 200 ? type.split(';', 1).join('') : `HTTP ${answer.statusCode}`;
    return problem(`The address answers with ${what} instead of a status as JSON.`);
  }
  const body: unknown = await answer.body.json();
  return readStatus(body) ?? problem("The JSON at this address isn't a status.");
};

const problem = (text: string): Snapshot => ({ state: 'unknown', problem: text });
const noStatus = ({ message, code }: NodeJS.ErrnoException) => problem(`No status: ${message || String(code)}`);

/**
 * Reads the status of an app: `relay.status()`, with `connection` (from `connectionStatus`), `stats` (from `feedStats`),
 * `lastFrameAt` and `cluster`. Any part may be missing. Returns `undefined` if all are.
 */
export const readStatus = (body: unknown): Snapshot | undefined => {
  if (!t.UnknownRecord.is(body)) return undefined;
  const { lastFrameAt, authorizing } = body;
  const ofConnection = connection.is(body['connection']) ? body['connection'] : undefined;
  const ofRelay = clients.is(body['clients']) ? body['clients'] : undefined;
  const parts = {
    stats: stats.is(body['stats']) ? body['stats'] : undefined,
    lastFrameAt: t.number.is(lastFrameAt) ? lastFrameAt : undefined,
    clients: ofRelay && totals(ofRelay, t.number.is(authorizing) ? authorizing : 0),
    cluster: cluster.is(body['cluster']) ? body['cluster'] : undefined,
  };
  if (ofConnection === undefined && Object.values(parts).every((part) => part === undefined)) return undefined;
  return { state: ofConnection?.state ?? 'unknown', problem: ofConnection?.failure?.code, ...parts };
};

const totals = (all: t.TypeOf<typeof clients>, authorizing: number): NonNullable<Snapshot['clients']> => ({
  count: all.length,
  authorizing,
  sent: all.reduce((sum, { sent }) => sum + sent, 0),
  missed: all.reduce((sum, { missed }) => sum + missed, 0),
});
