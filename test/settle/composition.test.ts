import { describe, expect, it } from '@jest/globals';
import { filter, firstValueFrom, map, Subject } from 'rxjs';
import { relayFeed$ } from 'rx-trade-feed/browser';
import { createRelay, relayHandler } from 'rx-trade-feed/relay';
import { startTradeFeedService } from 'rx-trade-feed/testing';
import { tradeFeedEvents$ } from '../../src/index.js';
import type { RelayedEvent } from '../../src/protocol/event.js';
import type { AnyFrame } from '../../src/protocol/frame.js';
import { type LedgerStep, settle } from '../../src/settle/index.js';
import { watermark } from '../operators/stream.js';
import { Web } from '../relay/support.js';
import { stepOf } from './support.js';

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
});
