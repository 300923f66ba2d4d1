import { describe, expect, it } from '@jest/globals';
import { marketBatches$, pendingTransactions$, type SourceOptions } from 'rx-trade-feed/testing';
import { firstValueFrom, type Observable, take, toArray } from 'rxjs';
import { paced$ } from '../../src/testing/sources.js';
import { manualClock } from './service-under-test.js';

const firstOf = async (source$: Observable<string>, count = 50): Promise<string[]> =>
  firstValueFrom(source$.pipe(take(count), toArray()));

const fast = { rate: 50_000 };

const sources: [string, (options?: SourceOptions) => Observable<string>][] = [
  ['pendingTransactions$', pendingTransactions$],
  ['marketBatches$', marketBatches$],
];

describe.each(sources)('%s', (_, source$) => {
  it('emits the same payloads for the same seed, to each subscriber, and none twice', async () => {
    const source = source$({ ...fast, seed: 7 });
    const payloads = await firstOf(source, 2_000);
    expect(new Set(payloads).size).toBe(2_000);
    expect(await firstOf(source)).toEqual(payloads.slice(0, 50));
    expect(await firstOf(source$({ rate: 20_000, seed: 7 }))).toEqual(payloads.slice(0, 50));
    expect(await firstOf(source$({ ...fast, seed: 8 }))).not.toEqual(payloads.slice(0, 50));
    expect(await firstOf(source$(fast), 1)).toEqual(await firstOf(source$({ ...fast, seed: 1 }), 1));
  });

  it.each([
    [3, 10_000, 30],
    [333, 3_000, 999],
    [50_000, 100, 5_000],
  ])('emits, at %d per second, in %d ms, %d payloads', (rate, ms, expected) => {
    const { scheduler, advance } = manualClock();
    let count = 0;
    const subscription = source$({ rate, scheduler }).subscribe(() => (count += 1));
    expect(count).toBe(0);
    advance(ms);
    subscription.unsubscribe();
    expect(count).toBe(expected);
    advance(ms);
    expect(count).toBe(expected);
  });

  it.each<[object, string]>([
    [{ rate: 0 }, '`rate` must be a number above 0, up to 100000, got 0'],
    [{ rate: NaN }, '`rate` must be a number above 0, up to 100000, got NaN'],
    [{ rate: '1' }, '`rate` must be a number above 0, up to 100000'],
    [{ seed: -1 }, '`seed` must be a whole number from 0 to 4294967295, got -1'],
    [{ seed: 0.5 }, '`seed` must be a whole number from 0 to 4294967295, got 0.5'],
    [{ scheduler: 1 }, '`scheduler` must be an RxJS scheduler, got 1'],
    [{ speed: 1 }, "`speed` doesn't exist: the options are"],
  ])('refuses %j', (options, message) => {
    expect(() => source$(options)).toThrow(message);
  });
});

describe('a payload', () => {
  const hash = expect.stringMatching(/^0x[0-9a-f]{64}$/);
  const address = expect.stringMatching(/^0x[0-9a-f]{40}$/);
  const number = expect.stringMatching(/^0x[0-9a-f]+$/);

  it('of the raw feed is one pending transaction', async () => {
    const parties = { hash, type: '0x2', chainId: '0x1', from: address, to: address };
    const of = { ...parties, nonce: number, value: number, gas: number };
    const fees = { maxPriorityFeePerGas: number, maxFeePerGas: number };
    const input = expect.stringMatching(/^0x([0-9a-f]{72})?$/);
    for (const payload of await firstOf(pendingTransactions$(fast), 500))
      expect(JSON.parse(payload)).toEqual({ ...of, ...fees, input });
  });

  it('of the market feed is a numbered batch of trades', async () => {
    const payloads = await firstOf(marketBatches$({ ...fast, batchSize: 3 }), 100);
    const decimal = expect.stringMatching(/^\d+\.\d\d\d?$/);
    const [market, side] = [expect.stringMatching(/^[A-Z]+-USD$/), expect.stringMatching(/^(buy|sell)$/)];
    const trade = { transaction: hash, market, side, price: decimal, amount: decimal };
    expect(payloads.map((payload) => JSON.parse(payload) as unknown)).toEqual(
      payloads.map((_, index) => ({ batch: index + 1, trades: [trade, trade, trade] })),
    );
    expect(() => marketBatches$({ batchSize: 0 })).toThrow('`batchSize` must be a whole number from 1 to 1000, got 0');
  });
});

const counter = () => {
  let count = 0;
  return () => (count += 1);
};

describe('the pace of a source', () => {
  it('comes in bursts at a high rate, at most one per 4 ms', () => {
    const { scheduler, advance } = manualClock();
    const bursts = new Map<number, number>();
    const subscription = paced$(50_000, counter, scheduler).subscribe(() => {
      bursts.set(scheduler.now(), (bursts.get(scheduler.now()) ?? 0) + 1);
    });
    advance(100);
    subscription.unsubscribe();
    expect(bursts.size).toBe(25);
    expect([...new Set(bursts.values())]).toEqual([200]);
  });

  it('catches up on at most a tenth of a second when the process was blocked', () => {
    const { scheduler, advance } = manualClock();
    let heldUpMs = 0;
    const clock = { now: () => scheduler.now() + heldUpMs, schedule: scheduler.schedule.bind(scheduler) };
    const values: number[] = [];
    const subscription = paced$(1_000, counter, clock).subscribe((value) => values.push(value));
    advance(4);
    expect(values).toHaveLength(4);
    heldUpMs = 5_000;
    advance(4);
    expect(values).toHaveLength(104);
    advance(4);
    subscription.unsubscribe();
    // The sequence has no hole: skipped values were never created.
    expect(values).toEqual(Array.from({ length: 108 }, (_, index) => index + 1));
  });
});
