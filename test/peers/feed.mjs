// A service that sends numbered frames, and a feed whose events are collected.
import { map, NEVER, timer } from 'rxjs';
import { tradeFeedEvents$ } from 'rx-trade-feed';
import { startTradeFeedService } from 'rx-trade-feed/testing';

// A WebSocket frame encodes a length in three ways: these sizes need all three. The largest takes many reads.
const fillingOf = (n) => (n % 100 === 99 ? 200_000 : n % 100 === 49 ? 1_000 : n % 50);

const counted$ = timer(0, 2).pipe(map((n) => `${n} ${'x'.repeat(fillingOf(n))}`));

/** Starts a service with one account. Sends no frames if `isQuiet`. */
export const startService = async (t, { isQuiet = false, ...options }) => {
  const service = await startTradeFeedService({
    sources: { market: isQuiet ? NEVER : counted$ },
    limits: { shutdownTimeoutMs: 100, ticketsPerWindow: Infinity },
    ...options,
  });
  t.after(() => service.shutdown());
  const serviceEvents = [];
  service.events$.subscribe((event) => serviceEvents.push(event));
  return {
    service,
    serviceEvents,
    port: Number(new URL(service.baseUrl).port),
    apiKey: service.createAccount({ plan: 'developer' }).createApiKey(),
  };
};

/** Subscribes to a feed until the test ends. */
export const follow = (t, options) => {
  const events = [];
  let check = () => undefined;
  let stopped;
  const subscription = tradeFeedEvents$('market', {
    ...options,
    backoff: { initialDelayMs: 5, maxDelayMs: 50, ...options.backoff },
  }).subscribe({
    next: (event) => {
      events.push(event);
      check();
    },
    error: (failure) => {
      stopped = failure;
      check();
    },
  });
  t.after(() => subscription.unsubscribe());
  const of = (type) => events.filter((event) => event.type === type);
  const when = (condition) =>
    new Promise((resolve, reject) => {
      check = () => {
        if (condition()) resolve();
        else if (stopped) reject(stopped);
      };
      check();
    });
  return {
    events,
    of,
    when,
    /** Waits until a connection has delivered this number of frames. */
    frames: (count, connection = of('opened').length || 1) =>
      when(() => of('frame').filter((frame) => frame.connection === connection).length >= count),
    /** Waits until the feed stops, and returns the error. */
    stopped: async () => {
      await when(() => stopped !== undefined);
      return stopped;
    },
    /** Returns code and verdict of each failed attempt. */
    failures: () => of('disconnected').map(({ failure }) => `${failure.code}, ${failure.verdict}`),
    end: () => subscription.unsubscribe(),
  };
};

/** Returns the errors in the frames: truncated frames, frames out of order, and losses without a gap. */
export const wrongFrames = (events) => {
  const wrong = [];
  let last;
  let mayMiss = true;
  for (const event of events) {
    if (event.type === 'gap') mayMiss = true;
    if (event.type !== 'frame') continue;
    const [digits, filling] = event.text().split(' ');
    const n = Number(digits);
    if (filling.length !== fillingOf(n)) wrong.push(`${n} is not whole`);
    if (last !== undefined && (mayMiss ? n <= last : n !== last + 1)) wrong.push(`${n} after ${last}`);
    mayMiss = false;
    last = n;
  }
  return wrong;
};
