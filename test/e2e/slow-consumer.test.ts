import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { filter, share, tap } from 'rxjs';
import { startTradeFeedService } from 'rx-trade-feed/testing';
import { type DropReport, type Frame, mergeMapBounded, toAsyncIterable, tradeFeedEvents$ } from '../../src/index.js';
import { connectAs } from '../testing/bare-client.js';
import { waitFor } from '../support/wait-for.js';

const burst = 50_000;
const perTurn = 500;

const payloadOf = (n: number): string => `${n}`.padEnd(400);
const numberOf = (frame: Frame): number => Number(frame.text());
const sum = (reports: readonly DropReport[]): number => reports.reduce((total, { dropped }) => total + dropped, 0);

it('a slow consumer after mergeMapBounded causes no 1013, and every frame is either processed or counted as dropped', async () => {
  const service = await startTradeFeedService({ limits: { backlogBytes: 256 * 1024 } });
  try {
    // Proves that the burst is large enough: a client that stops reading is closed with 1013.
    const stopped = await connectAs(service, service.createAccount({ plan: 'developer' }).createApiKey());
    stopped.ws.pause();

    const reports: DropReport[] = [];
    const types: string[] = [];
    const processed: number[] = [];
    let received = 0;
    const options = { baseUrl: service.baseUrl, apiKey: service.createAccount({ plan: 'developer' }).createApiKey() };
    const frames$ = tradeFeedEvents$('market', options).pipe(
      tap(({ type }) => {
        if (type === 'frame') received += 1;
        else types.push(type);
      }),
      filter((event) => event.type === 'frame'),
      share(),
    );
    const work = async (frame: Frame): Promise<void> => {
      await turn();
      processed.push(numberOf(frame));
    };
    const bounded = frames$
      .pipe(mergeMapBounded(work, { capacity: 1_000, onDrop: (report) => reports.push(report) }))
      .subscribe();

    const loopReports: DropReport[] = [];
    const looped: number[] = [];
    const loop = (async () => {
      for await (const frame of toAsyncIterable({ capacity: 1_000, onDrop: (report) => loopReports.push(report) })(
        frames$,
      )) {
        await turn();
        looped.push(numberOf(frame));
        if (looped.at(-1) === burst) break;
      }
    })();

    await waitFor(() => types.includes('opened'));
    for (let n = 1; n <= burst; n += 1) {
      service.push('market', payloadOf(n));
      if (n % perTurn === 0) await turn();
    }
    await loop;
    await waitFor(() => processed.at(-1) === burst);
    bounded.unsubscribe();

    expect(types).toEqual(['ticket-requested', 'ticket-issued', 'opened']);
    expect(received).toBe(burst);
    for (const [numbers, drops] of [
      [processed, reports],
      [looped, loopReports],
    ] as const) {
      expect(numbers.length + sum(drops)).toBe(burst);
      expect(drops.at(-1)?.total).toBe(sum(drops));
      expect(sum(drops)).toBeGreaterThan(burst / 2);
      expect(drops.length).toBeLessThan(numbers.length / 100);
      expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
    }

    stopped.ws.resume();
    expect(await stopped.closed).toMatchObject({ code: 1013 });
  } finally {
    await service.shutdown();
  }
});
