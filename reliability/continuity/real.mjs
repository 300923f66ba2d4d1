// Cuts real connections to the local service, and checks what arrives behind each hop.
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { filter, firstValueFrom, Subject, takeWhile, timeout } from 'rxjs';
import { gaps, tradeFeedEvents$, tumblingWindow } from 'rx-trade-feed';
import { relayFeed$ } from 'rx-trade-feed/browser';
import { createFeedCluster, memoryEngine } from 'rx-trade-feed/cluster';
import { feedLog } from 'rx-trade-feed/log';
import { createRelay, relayHandler } from 'rx-trade-feed/relay';
import { startTradeFeedService } from 'rx-trade-feed/testing';
import { seeded } from '../lib/random.mjs';

const everyMs = 20;
const delayMs = 500;
/** Clocks have whole ms, and what is pushed is received in the same ms or in the next one. */
const toleranceMs = 2;
const limitMs = 60_000;

const cases = [
  { plan: 'developer', waiting: 'drop', deliveryDelayMs: 'auto' },
  { plan: 'developer', waiting: 'drop', deliveryDelayMs: 0 },
  { plan: 'free', waiting: 'drop', deliveryDelayMs: 'auto' },
  { plan: 'free', waiting: 'send-when-due', deliveryDelayMs: 'auto' },
  { plan: 'free', waiting: 'send-on-reconnect', deliveryDelayMs: 500 },
];

/** Each hop: from the options of a feed to events behind it. `ends` receives what to end. */
const hops = {
  direct: (options) => tradeFeedEvents$('market', options),
  worker: (options) => tradeFeedEvents$('market', { ...options, receiveIn: 'worker' }),
  relay: async (options, ends) => {
    const relay = createRelay(tradeFeedEvents$('market', options));
    const server = createServer(relayHandler(relay, { authorize: () => true })).listen(0, '127.0.0.1');
    await once(server, 'listening');
    ends.push(() => (relay.close(), server.close()));
    return relayFeed$(`http://127.0.0.1:${server.address().port}/feed`);
  },
  log: (options, ends) => {
    const folder = mkdtempSync(join(tmpdir(), 'rx-trade-feed-continuity-'));
    const log = feedLog(folder);
    const writing = tradeFeedEvents$('market', options).pipe(log.append()).subscribe();
    ends.push(() => (writing.unsubscribe(), rmSync(folder, { recursive: true })));
    return log.read$({ follow: true });
  },
  cluster: async (options, ends) => {
    const engine = memoryEngine();
    const [owner, follower] = ['a', 'b'].map((replica) =>
      createFeedCluster('market', { ...options, engine, account: 'main', replica }),
    );
    const owning = owner.events$.subscribe();
    ends.push(() => owning.unsubscribe());
    await firstValueFrom(owner.events$.pipe(filter(({ type }) => type === 'opened')));
    return follower.events$;
  },
};

/** Cuts connections of each case behind each hop. Resolves with a row for each. */
export const cutForReal = async ({ cuts, seed }) => {
  const rows = [];
  // One hop after the other, all cases at the same time.
  for (const hop of Object.keys(hops)) {
    console.error(`real cuts: ${hop}`);
    rows.push(...(await Promise.all(cases.map((of, n) => cutHop({ hop, case: of, cuts, random: seeded(seed + n) })))));
  }
  return rows;
};

const cutHop = async ({ hop, case: of, cuts, random }) => {
  const service = await startTradeFeedService({ limits: { ticketsPerWindow: 1e9 } });
  service.setWaitingFrames(of.waiting);
  const account = service.createAccount({ plan: of.plan });
  const pushed = [];
  const pump = setInterval(() => {
    pushed.push({ n: pushed.length + 1, at: Date.now() });
    service.push('market', `${pushed.length}`);
  }, everyMs);
  const ends = [() => clearInterval(pump)];
  const options = {
    ...{ baseUrl: service.baseUrl, apiKey: account.createApiKey(), warnings: false },
    ...{ backoff: { initialDelayMs: 30, maxDelayMs: 400 }, deliveryDelayMs: of.deliveryDelayMs },
  };
  const events$ = await hops[hop](options, ends);
  const seen = observe(events$);
  try {
    await cutAll({ service, account, cuts, random, seen, pushed });
  } finally {
    seen.end();
    for (const end of ends) end();
    await service.shutdown();
  }
  return { hop, case: of, cuts, ...check(seen, pushed, of) };
};

const cutAll = async ({ service, account, cuts, random, seen, pushed }) => {
  const until = (isTrue) => firstValueFrom(seen.events.pipe(filter(isTrue), timeout(limitMs)));
  await until(({ type }) => type === 'frame');
  const kinds = [() => service.dropConnections(), () => service.closeConnections(1001), () => account.expireAccess()];
  for (let n = 0; n < cuts; n += 1) {
    // A service may close a connection before it has settled.
    const reopened = firstValueFrom(
      service.events$.pipe(
        filter(({ type }) => type === 'handshake-accepted'),
        timeout(limitMs),
      ),
    );
    kinds[Math.floor(random() * kinds.length)]();
    await reopened;
    await new Promise((done) => setTimeout(done, random() * (random() < 0.3 ? 400 : 1_300)));
  }
  // A frame from after the last cut, and the time to close its windows.
  const last = pushed.length + 1_500 / everyMs;
  await firstValueFrom(
    seen.events.pipe(
      takeWhile((event) => event.type !== 'frame' || Number(event.text()) < last, true),
      filter((event) => event.type === 'frame' && Number(event.text()) >= last),
      timeout(limitMs),
    ),
  );
};

/** Records frames, gaps and windows, and when the connection of each outage ended. */
const observe = (events$) => {
  const events = new Subject();
  const seen = { events, received: new Map(), ends: [], gaps: [], windows: [], openedAt: Infinity, violations: [] };
  let last = 0;
  events.subscribe((event) => {
    if (event.type === 'opened') seen.openedAt = Math.min(seen.openedAt, event.at);
    if (event.type === 'disconnected' && event.failure.stage === 'stream')
      seen.ends.push({ after: last, at: Math.min(event.at, event.failure.endedAt) });
    if (event.type !== 'frame') return;
    const n = Number(event.text());
    if (n <= last) seen.violations.push(`frame ${n} follows ${last}`);
    last = n;
    seen.received.set(n, event.receivedAt);
  });
  const subscription = events.pipe(gaps()).subscribe((gap) => seen.gaps.push(gap));
  for (const lengthMs of [50, 200, 1_000]) {
    const windows$ = events.pipe(tumblingWindow({ lengthMs }));
    subscription.add(
      windows$.subscribe(({ start, end, count, complete }) => seen.windows.push({ start, end, count, complete })),
    );
  }
  subscription.add(
    events$.subscribe({
      next: (event) => events.next(event),
      error: (error) => seen.violations.push(`the feed has stopped: ${error}`),
    }),
  );
  seen.end = () => subscription.unsubscribe();
  return seen;
};

const check = ({ received, ends, gaps: all, windows, openedAt, violations }, pushed, { plan }) => {
  const expectedAt = (at) => at + (plan === 'free' ? delayMs : 0);
  const [first, last] = [Math.min(...received.keys()), Math.max(...received.keys())];
  // What is lost before the client reads a close is missing from the end of that connection on.
  const endAfter = (n) => ends.find(({ after }) => after < n && !hasFrameBetween(received, after, n))?.at ?? -Infinity;
  const lost = pushed
    .filter(
      ({ n, at }) => n > first && n < last && !received.has(n) && expectedAt(at) > openedAt + delayMs + toleranceMs,
    )
    .map(({ n, at }) => ({ n, at: Math.max(expectedAt(at), endAfter(n)) }));
  const outside = lost.filter(({ at }) => !all.some(({ from, to }) => from <= at && at <= to + toleranceMs));
  const wrong = windows.filter(({ start, end, count, complete }) => {
    if (!complete) return false;
    const missing = lost.filter(({ at }) => at >= start + toleranceMs && at < end);
    const inside = [...received.values()].filter((at) => at >= start && at < end);
    return missing.length > 0 || inside.length !== count;
  });
  return {
    lost: lost.length,
    windows: windows.length,
    msPerGap: Math.round(all.reduce((sum, { durationMs }) => sum + durationMs, 0) / Math.max(1, all.length)),
    violations: [
      ...violations,
      ...outside.map(({ n, at }) => `frame ${n} of ${at} is missing, and in no gap`),
      ...wrong.map(({ start, end, count }) => `the window of ${start} to ${end} says complete, with ${count}`),
    ],
  };
};

const hasFrameBetween = (received, after, n) => {
  for (let each = after + 1; each < n; each += 1) if (received.has(each)) return true;
  return false;
};
