// A service that counts, and a feed of it whose events are kept and looked at.
import { map, NEVER, timer } from 'rxjs';
import { tradeFeedEvents$ } from 'rx-trade-feed';
import { startTradeFeedService } from 'rx-trade-feed/testing';

// Of all three sizes that a WebSocket frame tells in a way of its own, the largest of many reads.
const fillingOf = (n) => (n % 100 === 99 ? 200_000 : n % 100 === 49 ? 1_000 : n % 50);

const counted$ = timer(0, 2).pipe(map((n) => `${n} ${'x'.repeat(fillingOf(n))}`));

/** Starts a service with one account; with `isQuiet` it sends nothing by itself. */
export const startService = async (t, { isQuiet = false, ...options }) => {
  const service = await startTradeFeedService({
    sources: { market: isQuiet ? NEVER : counted$ },
    limits: { shutdownTimeoutMs: 100, ticketsPerWindow: Infinity },
    ...options,
  });
  t.after(() => service.shutdown());
  const seen = [];
  service.events$.subscribe((event) => seen.push(event));
  return {
    service,
    seen,
    port: Number(new URL(service.baseUrl).port),
    apiKey: service.createAccount({ plan: 'developer' }).createApiKey(),
  };
};

/** Subscribes to a feed for as long as the test takes. */
export const follow = (t, options) => {
  const events = [];
  let look = () => undefined;
  let stopped;
  const subscription = tradeFeedEvents$('market', {
    ...options,
    backoff: { initialDelayMs: 5, maxDelayMs: 50, ...options.backoff },
  }).subscribe({
    next: (event) => {
      events.push(event);
      look();
    },
    error: (failure) => {
      stopped = failure;
      look();
    },
  });
  t.after(() => subscription.unsubscribe());
  const of = (type) => events.filter((event) => event.type === type);
  const when = (isSo) =>
    new Promise((resolve, reject) => {
      look = () => {
        if (isSo()) resolve();
        else if (stopped) reject(stopped);
      };
      look();
    });
  return {
    events,
    of,
    when,
    /** Waits until a connection has brought so many frames. */
    frames: (count, connection = of('opened').length || 1) =>
      when(() => of('frame').filter((frame) => frame.connection === connection).length >= count),
    /** Waits until the feed has stopped; gives its error. */
    stopped: async () => {
      await when(() => stopped !== undefined);
      return stopped;
    },
    /** How the attempts failed: code and verdict. */
    failures: () => of('disconnected').map(({ failure }) => `${failure.code}, ${failure.verdict}`),
    end: () => subscription.unsubscribe(),
  };
};

/** What is wrong with the frames: one that is not whole, not in its place, or missing without a gap to tell it. */
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
