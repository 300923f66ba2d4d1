// What RxJS 7, the Observable of the platform and the bridges do today. Each pin runs in Node with RxJS 9, and in Chromium with its own Observable, over
// real feeds: test/apps/interop.test.mjs. test/peers/interop.test.mjs runs them with the newest RxJS 9. A pin that fails says what has changed.
import * as rx from 'rxjs';
import { fromPlatform, toPlatform, toStore } from 'rx-trade-feed/interop';
import { shareFeed } from 'rx-trade-feed/operators';

const equal = (actual, expected) => {
  const [a, e] = [actual, expected].map((value) => JSON.stringify(value));
  if (a !== e) throw new Error(`expected ${e}, got ${a}`);
};

/** Counts the subscriptions to a feed: all, and those that are open. */
const counted = (feed$) => {
  const counts = { all: 0, open: 0 };
  const counted$ = rx.defer(() => {
    counts.all += 1;
    counts.open += 1;
    return feed$.pipe(rx.finalize(() => (counts.open -= 1)));
  });
  return { counts, counted$ };
};

/** Subscribes to an Observable of the platform until it is aborted. `until(n)` resolves when n values have arrived. */
const follow = (source) => {
  const controller = new AbortController();
  const seen$ = new rx.ReplaySubject();
  const observer = { next: (value) => seen$.next(value), error: (error) => seen$.error(error) };
  source.subscribe({ ...observer, complete: () => seen$.complete() }, { signal: controller.signal });
  return { leave: () => controller.abort(), until: (n) => rx.lastValueFrom(seen$.pipe(rx.take(n), rx.toArray())) };
};

/** Pins that use the bridges. `feed$` is a live feed, and `isStopped` resolves once it was made to stop. */
export const bridged = {
  'two subscribers of an Observable share one connection, which closes after the last one, and the next one opens another':
    async ({ Kind, feed$ }) => {
      const { counts, counted$ } = counted(feed$);
      const platform = toPlatform(Kind)(counted$);
      const [one, two] = [follow(platform), follow(platform)];
      await Promise.all([one.until(2), two.until(2)]);
      equal(counts, { all: 1, open: 1 });
      one.leave();
      equal(counts, { all: 1, open: 1 });
      await two.until(3);
      two.leave();
      equal(counts, { all: 1, open: 0 });
      const three = follow(platform);
      await three.until(1);
      equal(counts, { all: 2, open: 1 });
      three.leave();
      equal(counts, { all: 2, open: 0 });
    },
  'the methods of the platform work, and unsubscribe': async ({ Kind, feed$ }) => {
    const { counts, counted$ } = counted(feed$);
    const values = await toPlatform(Kind)(counted$)
      .filter((value) => value !== undefined)
      .take(3)
      .toArray();
    equal({ length: values.length, ...counts }, { length: 3, all: 1, open: 0 });
  },
  'takeUntil(target.when(…)) closes the connection': async ({ Kind, feed$ }) => {
    if (!('when' in EventTarget.prototype)) return;
    const { counts, counted$ } = counted(feed$);
    const target = new EventTarget();
    const { until } = follow(toPlatform(Kind)(counted$).takeUntil(target.when('stop')));
    await until(1);
    target.dispatchEvent(new Event('stop'));
    await until(Infinity);
    equal(counts, { all: 1, open: 0 });
  },
  'fromPlatform takes what toPlatform made, and unsubscribes': async ({ Kind, feed$ }) => {
    const { counts, counted$ } = counted(feed$);
    const back$ = fromPlatform(toPlatform(Kind)(counted$));
    equal((await rx.lastValueFrom(back$.pipe(rx.take(3), rx.toArray()))).length, 3);
    equal(counts, { all: 1, open: 0 });
  },
  'fromPlatform keeps the values before a synchronous unsubscribe': async ({ Kind }) => {
    let n = 0;
    const endless = new Kind((subscriber) => {
      while (subscriber.active && n < 1_000) subscriber.next((n += 1));
    });
    equal(await rx.lastValueFrom(fromPlatform(endless).pipe(rx.take(3), rx.toArray())), [1, 2, 3]);
    equal(n, 3);
  },
  'a bridge and a store on one shared feed are one connection': async ({ Kind, feed$ }) => {
    const { counts, counted$ } = counted(feed$);
    const shared$ = counted$.pipe(shareFeed({ lingerMs: 0 }));
    const store = toStore(undefined)(shared$);
    const { leave, until } = follow(toPlatform(Kind)(shared$));
    let stop;
    const changed = new Promise((done) => (stop = store.subscribe(() => done())));
    await Promise.all([changed, until(2)]);
    equal({ hasValue: store.getSnapshot() !== undefined, ...counts }, { hasValue: true, all: 1, open: 1 });
    leave();
    equal(counts.open, 1);
    stop();
    equal(counts, { all: 1, open: 0 });
  },
  'an observer that throws is reported, and the others receive all': async ({ Kind, feed$, reported }) => {
    const platform = toPlatform(Kind)(feed$.pipe(rx.take(3)));
    const error = reported();
    platform.subscribe(() => {
      throw new RangeError('mine');
    });
    const { until } = follow(platform);
    equal((await until(3)).length, 3);
    equal(await error, 'RangeError');
  },
  'a stop arrives as the same error, and a subscription after it opens another connection': async ({
    Kind,
    feed$,
    stop,
    allow,
  }) => {
    const { counts, counted$ } = counted(feed$);
    const platform = toPlatform(Kind)(counted$);
    const { until } = follow(platform);
    await until(1);
    const end = until(Infinity).catch(({ name, code, verdict }) => ({
      name,
      isCode: typeof code === 'string',
      verdict,
    }));
    await stop();
    equal(await end, { name: 'TradeFeedError', isCode: true, verdict: 'stop' });
    equal(counts, { all: 1, open: 0 });
    await allow();
    const again = follow(platform);
    await again.until(1);
    again.leave();
    equal(counts, { all: 2, open: 0 });
  },
};

/** Pins that need the `ColdObservable` of RxJS 9. */
export const cold = {
  'two subscribers of a ColdObservable open a connection each, and the second kicks out the first': async ({
    Cold,
    feed$,
  }) => {
    const { counts, counted$ } = counted(feed$);
    const platform = toPlatform(Cold)(counted$);
    const one = follow(platform);
    await one.until(1);
    const end = one.until(Infinity).catch(({ code }) => code);
    const two = follow(platform);
    equal(await end, 'connection-replaced');
    await two.until(1);
    equal(counts, { all: 2, open: 1 });
    two.leave();
  },
};

/** What Chromium does but RxJS 9 doesn't. */
export const native = {
  'a Subscriber of RxJS 7 loses the values of the platform, which calls next without `this`': async ({
    Kind,
    reported,
  }) => {
    const source = () => new Kind((subscriber) => subscriber.next(1));
    const error = reported();
    const seen = [];
    new rx.Observable((subscriber) => source().subscribe(subscriber)).subscribe((value) => seen.push(value));
    equal(await error, 'TypeError');
    equal(seen, []);
    equal(await rx.firstValueFrom(fromPlatform(source())), 1);
  },
};
