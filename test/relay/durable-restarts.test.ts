/**
 * @lane brokers
 * @ci
 */
import { describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { startServer } from '../cluster/support/real-server.js';
import { type FeedLog, feedLog } from '../../src/log/index.js';
import { Frame } from '../../src/protocol/frame.js';
import { createRelay, type Relay, type RelayOptions } from '../../src/relay/index.js';
import { logServers } from '../log/log-servers.js';
import { path, startWriter } from '../log/support.js';
import { startLimitMs, startTestLimitMs, waitFor } from '../support/wait-for.js';
import { Client, range, timeIn } from './support.js';

const restarts = 20;
const framesPerSecond = 2;
const limitMs = startLimitMs;

/** Numbers from 0 to before 1 that are the same for a seed. */
const randomOf = (seed: number) => {
  let state = seed;
  return (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
};

/** A page that comes and goes. What it has received is in order and complete, or a gap says how much is missing. */
class Page {
  #client: Client | undefined;
  #lastEventId: string | undefined;
  #last: number | undefined;
  #time = -Infinity;
  gaps = 0;

  join(relay: Relay): void {
    this.leave();
    this.#client = new Client(relay, { lastEventId: this.#lastEventId });
  }

  get last(): number | undefined {
    return Number(this.#client?.payloads.at(-1) ?? this.#last);
  }

  get hasJoined(): boolean {
    return this.#client !== undefined && this.#client.events.length > 0;
  }

  leave(): void {
    const client = this.#client;
    this.#client = undefined;
    if (client === undefined || client.messages.length === 0) return;
    this.#lastEventId = client.lastEventId;
    for (const event of client.events) {
      const time = timeIn(event);
      expect(time).toBeGreaterThanOrEqual(this.#time);
      this.#time = time;
      if (event.type === 'gap') {
        this.gaps += 1;
        this.#last = this.#last === undefined ? undefined : this.#last + (event['missed'] as number);
      }
      if (event.type !== 'frame') continue;
      const number = Number(event['data']);
      expect(number).toBe((this.#last ?? number - 1) + 1);
      this.#last = number;
    }
  }
}

/** Restarts a relay while pages are away for 1 s to 10 min. Returns how many gaps they have received. */
const run = async (log: FeedLog, seed: number, options: RelayOptions): Promise<number> => {
  const random = randomOf(seed);
  const writer = startWriter(log);
  // The time of the feed passes faster than the clock, and never slower.
  let [time, last, lookedAt] = [Date.now() - restarts * 700_000, 0, Date.now()];
  writer.send({ type: 'opened', at: time, feed: 'market', connection: 1 });
  const pass = (ms: number): void => {
    const [step, now] = [1_000 / framesPerSecond, Date.now()];
    [time, lookedAt] = [time + now - lookedAt, now];
    const frames = range(1, Math.ceil(ms / step)).map(
      (n) => new Frame('market', Buffer.from(String(last + n)), false, time + n * step, 1),
    );
    writer.send(...frames);
    [time, last] = [time + ms, last + frames.length];
  };
  const start = (): Relay => {
    const relay = createRelay(log.read$({ from: 'latest' }), { log, capacity: 200, ...options });
    relay.hold();
    return relay;
  };
  const pages = range(1, 6).map(() => new Page());
  let relay = start();
  const arrive = async () => {
    for (const page of pages) page.join(relay);
    await waitFor(() => pages.every((page) => page.last === last), { limitMs });
  };
  await waitFor(() => relay.status().stored.events > 0, { limitMs });
  for (const page of pages) page.join(relay);
  await waitFor(() => pages.every((page) => page.hasJoined), { limitMs });
  pass(1_000);
  await waitFor(() => pages.every((page) => page.last === last), { limitMs });
  for (let round = 0; round < restarts; round += 1) {
    for (const page of pages) if (random() < 0.5) page.leave();
    pass(1_000 * 600 ** random());
    if (random() < 0.5) relay.close();
    const before = relay;
    relay = start();
    pass(1_000 * 10 ** random());
    for (const page of pages) if (random() < 0.7) page.join(relay);
    before.close();
    // Some leave in the middle of what they missed.
    for (let turns = 20 * random(); turns > 0; turns -= 1) await new Promise(setImmediate);
    for (const page of pages) if (random() < 0.3) page.leave();
    if (random() < 0.3) await arrive();
  }
  await arrive();
  for (const page of pages) page.leave();
  relay.close();
  await writer.end();
  return pages.reduce((sum, { gaps }) => sum + gaps, 0);
};

const seeds = process.env['RESTART_SEEDS']?.split(',').map(Number) ?? [1];

describe.each(['a folder', 'nats', 'redis'] as const)('20 restarts of a relay over %s', (kind) => {
  const opened = async () => {
    if (kind === 'a folder') return { open: (name: string) => feedLog(path(name)), stop: () => undefined };
    const server = await startServer(kind);
    const { open } = await logServers[kind].connect(server);
    return { open, stop: () => server.stop() };
  };

  it.each(seeds)(
    'cost no frame, and beyond `maxReplayBytes` one gap with the exact number (seed %d)',
    async (seed) => {
      const { open, stop } = await opened();
      expect(await run(open(randomUUID()), seed, {})).toBe(0);
      expect(await run(open(randomUUID()), seed, { maxReplayBytes: 50_000 })).toBeGreaterThan(0);
      await stop();
    },
    startTestLimitMs,
  );
});
