import { describe, expect, it } from '@jest/globals';
import { filter, firstValueFrom, from, lastValueFrom, map, type Observable, Subject, toArray } from 'rxjs';
import { relayFeed$ } from 'rx-trade-feed/browser';
import { createRelay, relayHandler } from 'rx-trade-feed/relay';
import { startTradeFeedService } from 'rx-trade-feed/testing';
import { tradeFeedEvents$ } from '../../src/index.js';
import { feedLog } from '../../src/log/index.js';
import type { RelayedEvent } from '../../src/protocol/event.js';
import type { AnyFrame } from '../../src/protocol/frame.js';
import { type LedgerStep, settle } from '../../src/settle/index.js';
import { tempFolder } from '../cli/support/temp-folder.js';
import { disconnected, frameOf, gapOf, opened, opening, watermark } from '../operators/stream.js';
import { Web } from '../relay/support.js';
import { inWords, stepOf } from './support.js';

const folder = tempFolder();

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
      await using web = await Web.start(relayHandler(relay, { authorize: () => true }));
      const events$ = way === 'relay' ? relayFeed$(web.url) : feed$;
      const outcome = await confirmedOver(events$, () => service.push('raw', 'a'));
      expect(outcome).toMatchObject({ state: 'confirmed', key: 'a', value: 'a', leadMs: 7 });
      relay.close();
    },
    60_000,
  );

  it('emits the same outcomes for a recording of the feed as live', async () => {
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
    const log = feedLog(folder.path('day'));
    const live = await outcomesOf(from(events));
    await lastValueFrom(from(events).pipe(log.append()));
    expect(await outcomesOf(log.read$({ follow: false }))).toEqual(live);
    const [ofOpen, afterGap] = [
      'confirmed a 30, expired b',
      'unknown x feed gap, expired c, confirmed d 10, expired e',
    ];
    expect(live.map((line) => line.replace(/^\d+ /, '')).join(', ')).toBe(`${ofOpen}, ${afterGap}`);
  });

  it('does not know what a trade became that the feed may have missed before it was complete', async () => {
    const steps = [watermark(0), stepOf(100, 'a'), stepOf(560, 'b'), stepOf(700, 'x'), watermark(2_000)];
    const outcomesOf = (events: readonly unknown[]) =>
      lastValueFrom(
        (from(events) as unknown as ReturnType<typeof tradeFeedEvents$>).pipe(
          settle(from(steps), { key: keyOf, keep: keyOf, withinMs: 50, graceMs: 5, rememberMs: 20 }),
          filter((event) => event.type === 'outcome'),
          map(inWords),
          map((line) => line.replace(/^\d+ /, '')),
          toArray(),
        ),
      );
    const later = ['confirmed b 40', 'unseen x', 'expired d'];
    const first = [opening(10), frameOf('b', 520), frameOf('d', 900), watermark(3_000)];
    expect(await outcomesOf(first)).toEqual(['unknown a feed start', ...later]);
    const again = [opened(0), disconnected(50), opening(60, 2), ...first.slice(1)];
    expect(await outcomesOf(again)).toEqual(['unknown a feed gap', ...later]);
  });
});
