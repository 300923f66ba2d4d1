import { describe, expect, it } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  concat,
  filter,
  firstValueFrom,
  from,
  lastValueFrom,
  map,
  NEVER,
  type Observable,
  of,
  Subject,
  take,
  throwError,
  toArray,
} from 'rxjs';
import { relayFeed$ } from 'rx-trade-feed/browser';
import { createRelay, relayHandler } from 'rx-trade-feed/relay';
import { startTradeFeedService } from 'rx-trade-feed/testing';
import { type FeedEvent, type Frame, shareFeed, tradeFeedEvents$, tumblingWindow } from '../../src/index.js';
import { feedLog } from '../../src/log/index.js';
import type { RelayedEvent } from '../../src/protocol/event.js';
import type { AnyFrame } from '../../src/protocol/frame.js';
import { type LedgerStep, settle } from '../../src/settle/index.js';
import { frameOf, gapOf, lost, opened, watermark } from '../operators/stream.js';
import { inWords, stepOf } from './support.js';

const keyOf = (frame: AnyFrame): string => frame.text();

/** Pushes a payload until the feed has it, confirms it, and returns its outcome, however long that takes. */
const confirmedOver = async (
  events$: ReturnType<typeof tradeFeedEvents$> | ReturnType<typeof relayFeed$>,
  push: () => void,
) => {
  const ledger$ = new Subject<LedgerStep<string> | ReturnType<typeof watermark>>();
  const shown$ = new Subject<number>();
  const outcome = firstValueFrom(
    (events$ as ReturnType<typeof relayFeed$>).pipe(
      map((event) => {
        if (event.type === 'frame') shown$.next(event.receivedAt);
        return event as RelayedEvent;
      }),
      settle(ledger$ as Subject<LedgerStep<string>>, { key: keyOf, withinMs: 60_000, keep: keyOf }),
      filter((event) => event.type === 'outcome'),
    ),
  );
  const firstShown = firstValueFrom(shown$);
  const pushing = setInterval(push, 20);
  ledger$.next(watermark(0));
  const seenAt = await firstShown;
  clearInterval(pushing);
  ledger$.next(stepOf(seenAt + 7, 'a'));
  ledger$.next(watermark(seenAt + 8));
  return { ...(await outcome), seenAt };
};

describe('settle with a whole feed', () => {
  // A busy machine takes seconds to start a worker.
  it.each(['main thread', 'worker thread', 'relay'])(
    'confirms a trade of a feed over the %s',
    async (way) => {
      await using service = await startTradeFeedService({ sources: {} });
      const apiKey = service.createAccount({ plan: 'developer' }).createApiKey();
      const receiveIn = way === 'worker thread' ? 'worker' : 'main';
      const feed$ = tradeFeedEvents$('raw', { baseUrl: service.baseUrl, apiKey, receiveIn });
      const relay = createRelay(feed$);
      const server = createServer(relayHandler(relay, { authorize: () => true })).listen(0, '127.0.0.1');
      await once(server, 'listening');
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
      try {
        const events$ = way === 'relay' ? relayFeed$(url) : feed$;
        const outcome = await confirmedOver(events$, () => service.push('raw', 'a'));
        expect(outcome).toMatchObject({ state: 'confirmed', key: 'a', value: 'a', leadMs: 7 });
      } finally {
        relay.close();
        server.close();
        server.closeAllConnections();
      }
    },
    60_000,
  );

  it('emits the same outcomes for a recording of the feed as live', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'settle-'));
    const begin = 1_700_000_000_000;
    const events = [
      ...[opened(begin), frameOf('a', begin + 10), frameOf('b', begin + 20), frameOf('c', begin + 30)],
      ...[gapOf(begin + 60, begin + 80), frameOf('d', begin + 90), frameOf('e', begin + 200)],
    ];
    const steps = [
      ...[watermark(begin), stepOf(begin + 40, 'a'), watermark(begin + 40), stepOf(begin + 70, 'x')],
      ...[watermark(begin + 70), stepOf(begin + 100, 'd'), watermark(begin + 300)],
    ];
    const outcomesOf = (feed$: Observable<unknown>) =>
      lastValueFrom(
        (feed$ as ReturnType<typeof tradeFeedEvents$>).pipe(
          settle(from(steps), { key: keyOf, keep: keyOf, withinMs: 50, graceMs: 5 }),
          filter((event) => event.type === 'outcome'),
          map(inWords),
          toArray(),
        ),
      );
    const log = feedLog(join(folder, 'day'));
    try {
      const live = await outcomesOf(from(events));
      await lastValueFrom(from(events).pipe(log.append()));
      expect(await outcomesOf(log.read$({ follow: false }))).toEqual(live);
      const [ofOpen, afterGap] = [
        'confirmed a 30, expired b',
        'unknown x feed gap, expired c, confirmed d 10, expired e',
      ];
      expect(live.map((line) => line.replace(/^\d+ /, '')).join(', ')).toBe(`${ofOpen}, ${afterGap}`);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('emits the same outcomes to two subscribers of a shared feed, beside a window', async () => {
    const source$ = new Subject<
      ReturnType<typeof opened> | ReturnType<typeof frameOf> | ReturnType<typeof watermark>
    >();
    const shared$ = (source$ as unknown as ReturnType<typeof tradeFeedEvents$>).pipe(shareFeed());
    const ledger$ = concat(of(watermark(0), stepOf(104, 'a'), watermark(1_000)));
    const run = () =>
      lastValueFrom(
        shared$.pipe(
          settle(ledger$, { key: keyOf, withinMs: 10, graceMs: 1 }),
          filter((event) => event.type === 'outcome'),
          map(inWords),
          toArray(),
        ),
      );
    const [first, windows, second] = [
      run(),
      lastValueFrom(shared$.pipe(tumblingWindow({ lengthMs: 50 }), toArray())),
      run(),
    ];
    for (const event of [opened(0), frameOf('a', 100), frameOf('b', 101), watermark(500)]) source$.next(event);
    source$.complete();
    expect(await first).toEqual(['104 confirmed a 4', '111 expired b']);
    expect(await second).toEqual(await first);
    expect((await windows).reduce((sum, { count }) => sum + count, 0)).toBe(2);
  });
});

describe('settle with a feed that stopped', () => {
  it('knows nothing of the time until the feed is subscribed again', async () => {
    const events = concat(
      of(opened(0), frameOf('a', 100), { type: 'stopped', at: 101, failure: lost(101) } as FeedEvent),
      of(opened(110, 1), frameOf('b', 111), watermark(200)),
    );
    const ledger$ = of(watermark(0), stepOf(105, 'c'), watermark(300));
    const outcomes = events.pipe(
      settle(ledger$, { key: (frame: Frame) => frame.text(), withinMs: 10, graceMs: 3, rememberMs: 20 }),
      map((event) => (event.type === 'outcome' ? inWords(event) : '')),
      toArray(),
    );
    expect(await firstValueFrom(outcomes)).toContain('108 unknown c feed gap');
  });

  it('errors with the error of the feed after the outcomes', async () => {
    const events = concat(
      of(opened(0), frameOf('a', 100)),
      throwError(() => new Error('stop')),
    );
    const ledger$ = concat(of(watermark(0), watermark(101)), NEVER);
    const all: string[] = [];
    await new Promise<void>((done) => {
      (events as typeof NEVER).pipe(settle(ledger$, { key: () => 'a', withinMs: 10 }), take(9)).subscribe({
        next: (event: { type: string }) => all.push(event.type),
        error: (error: unknown) => {
          all.push(String(error));
          done();
        },
      });
    });
    expect(all.slice(-2)).toEqual(['outcome', 'Error: stop']);
  });
});
