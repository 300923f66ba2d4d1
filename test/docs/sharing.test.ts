import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { filter, firstValueFrom, map, type MonoTypeOperatorFunction, type Observable, ReplaySubject } from 'rxjs';
import { share, shareReplay, Subject, take, timer, toArray } from 'rxjs';
import { type Frame, tradeFeed$, type TradeFeedError } from 'rx-trade-feed';
import { startTradeFeedService } from 'rx-trade-feed/testing';
import type { ServiceEvent, TradeFeedAccount, TradeFeedService } from 'rx-trade-feed/testing';
import { proseOf } from './fences.js';

let service: TradeFeedService;
let account: TradeFeedAccount;
let events$: ReplaySubject<ServiceEvent>;

beforeEach(async () => {
  service = await startTradeFeedService({ sources: { market: timer(0, 10).pipe(map((n) => String(n))) } });
  account = service.createAccount({ plan: 'developer' });
  events$ = new ReplaySubject();
  service.events$.subscribe(events$);
});

afterEach(async () => {
  await service.shutdown();
});

const shared$ = (sharing: MonoTypeOperatorFunction<Frame>): Observable<Frame> =>
  tradeFeed$('market', { baseUrl: service.baseUrl, apiKey: account.createApiKey() }).pipe(sharing);

const failureOf = (frames$: Observable<Frame>): Promise<TradeFeedError> =>
  firstValueFrom(frames$.pipe(filter(() => false))).then(
    () => Promise.reject(new Error('The feed completed.')),
    (failure: unknown) => failure as TradeFeedError,
  );

/** Resolves when this number of connections has been opened or closed since the start. */
const connections = (type: 'handshake-accepted' | 'connection-closed', times = 1): Promise<unknown> =>
  firstValueFrom(
    events$.pipe(
      filter((event) => event.type === type),
      take(times),
      toArray(),
    ),
  );

/** Counts the connections so far. A ticket request first makes sure that the service has emitted all earlier events. */
const connectionsSoFar = async (): Promise<number> => {
  await fetch(`${service.baseUrl}/v1/wss/tickets`, { method: 'POST' });
  let count = 0;
  events$
    .pipe(filter(({ type }) => type === 'handshake-accepted'))
    .subscribe(() => (count += 1))
    .unsubscribe();
  return count;
};

/** Connects another client of the account, which stops the feed. */
const replace = async (): Promise<void> => {
  await firstValueFrom(tradeFeed$('market', { baseUrl: service.baseUrl, apiKey: account.createApiKey() }));
};

// One test for each option in the list of the guide, by its name there.
const options: Readonly<Record<string, () => Promise<void>>> = {
  'share()': async () => {
    const frames$ = shared$(share());
    const failures = Promise.all([failureOf(frames$), failureOf(frames$)]);
    await firstValueFrom(frames$);
    expect(await connectionsSoFar()).toBe(1);
    await replace();
    expect((await failures).map(({ code }) => code)).toEqual(['connection-replaced', 'connection-replaced']);

    await firstValueFrom(frames$);
    await connections('connection-closed', 3);
    expect(await connectionsSoFar()).toBe(3);
  },
  resetOnError: async () => {
    const frames$ = shared$(share({ resetOnError: false }));
    const failure = failureOf(frames$);
    await connections('handshake-accepted');
    await replace();
    expect(await failureOf(frames$)).toBe(await failure);
    expect(await connectionsSoFar()).toBe(2);
  },
  'resetOnRefCountZero: () => timer(5_000)': async () => {
    const end$ = new Subject<void>();
    const frames$ = shared$(share({ resetOnRefCountZero: () => end$ }));
    await firstValueFrom(frames$);
    await firstValueFrom(frames$);
    expect(await connectionsSoFar()).toBe(1);
    end$.next();
    await connections('connection-closed');
    await firstValueFrom(frames$);
    expect(await connectionsSoFar()).toBe(2);
    end$.next();
    await connections('connection-closed', 2);
  },
  'resetOnRefCountZero: false': async () => {
    const frames$ = shared$(share({ resetOnRefCountZero: false }));
    await firstValueFrom(frames$);
    await firstValueFrom(frames$);
    expect(await connectionsSoFar()).toBe(1);
    // The connection stays open without subscribers, so another client can replace it.
    await replace();
    expect(await firstValueFrom(events$.pipe(filter((event) => event.type === 'connection-closed')))).toMatchObject({
      code: 4001,
    });
  },
  'shareReplay({ bufferSize: 1, refCount: true })': async () => {
    const frames$ = shared$(shareReplay({ bufferSize: 1, refCount: true }));
    let newest: Frame | undefined;
    const first = frames$.subscribe((frame) => (newest = frame));
    await firstValueFrom(frames$);
    let replayed: Frame | undefined;
    frames$.subscribe((frame) => (replayed = frame)).unsubscribe();
    expect(replayed).toBe(newest);
    first.unsubscribe();
    await connections('connection-closed');
    expect(await connectionsSoFar()).toBe(1);
  },
};

it('tests every way of sharing that docs/sharing.md lists', () => {
  const [, section = ''] = /^## With plain share\n([\s\S]*?)^## /m.exec(proseOf('docs/sharing.md')) ?? [];
  expect([...section.matchAll(/^- \*\*`(.+?)`\*\*/gm)].map(([, option]) => option)).toEqual(Object.keys(options));
});

it.each(Object.entries(options))('%s does what the guide says', (_option, test) => test());
