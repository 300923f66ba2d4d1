// Runs one storm: all clients are connected, the service ends, a new process of it starts on the same port, all clients reconnect.
import { setTimeout as delay } from 'node:timers/promises';
import { tradeFeedEvents$ } from 'rx-trade-feed';
import { startChild } from '../../bench/support/child.mjs';
import { seeded } from '../lib/random.mjs';

/**
 * Runs a storm.
 *
 * @param count - how many clients
 * @param ending - `shutdown`: closes all connections with 1001; `killed`: kills the process
 * @param backoff - the policy of the clients; its random numbers follow from the seed
 * @param settleMs - how long all clients are connected before the service ends; more than `stableAfterMs` makes them stable
 * @param downMs - how long the service is down, at least
 * @param ofService - the new service: its `capacity` at first, without which there is room for all, and the `limits` of its ticket endpoint
 */
export const storm = async ({ count, ending, backoff, seed, settleMs, downMs, apartMs, ...ofService }) => {
  const first = await startService({ accounts: count });
  const { baseUrl, keys } = first;
  const clients = await openClients({ baseUrl, keys, backoff, seed, apartMs });
  await delay(settleMs);

  const at = Date.now();
  await (ending === 'killed' ? first.child.kill() : first.child.stop());
  await delay(Math.max(0, at + downMs - Date.now()));
  const port = Number(new URL(baseUrl).port);
  const second = await startService({ port, accounts: count, ...ofService });
  await until(() => clients.every(({ backAt, stoppedBy }) => backAt ?? stoppedBy), 120_000);
  for (const { subscription } of clients) subscription.unsubscribe();
  // All events, because the service sends them after its shutdown.
  second.child.send('finish');
  const { events } = await second.child.next('events');
  await second.child.stop();
  return { ending, at, upAt: second.upAt, clients, events };
};

/** Starts the service in a process. It shuts down when the process is disconnected. */
const startService = async (options) => {
  const child = startChild(new URL('service.mjs', import.meta.url), [JSON.stringify(options)]);
  return { child, ...(await child.next('ready')) };
};

/** One client: its attempts and how each ended, its waits, and when it received frames again. */
class Client {
  isOpen = false;
  /** When its first connection was lost, in epoch ms. */
  lostAt;
  /** The attempts since then: `{ at, endedAt, code }`; `code` is the failure that ended the attempt. */
  attempts = [];
  /** The waits; `floorMs` is the Retry-After of the service. */
  waits = [];
  /** When the first frame arrived after the loss. */
  backAt;
  stoppedBy;
  #floorMs = 0;

  constructor(feed$) {
    this.subscription = feed$.subscribe({
      next: (event) => this.#record(event),
      error: (error) => (this.stoppedBy = error.code ?? String(error)),
    });
  }

  #record(event) {
    if (event.type === 'frame' && this.lostAt !== undefined) this.backAt ??= event.receivedAt;
    if (event.type === 'opened') this.isOpen = true;
    if (event.type === 'ticket-requested') this.attempts.push({ at: event.at, code: 'none' });
    if (event.type === 'reconnecting') this.waits.push({ ...event, floorMs: this.#floorMs });
    if (event.type !== 'disconnected') return;
    this.#floorMs = event.failure.retryAfterMs ?? 0;
    Object.assign(this.attempts.at(-1) ?? {}, { endedAt: event.at, code: event.failure.code });
    if (event.failure.stage !== 'stream') return;
    this.isOpen = false;
    if (this.lostAt !== undefined) return;
    this.lostAt = event.at;
    this.attempts = [{ at: event.at, code: event.failure.code }];
  }

  /** The attempts to reconnect. */
  get returns() {
    return this.lostAt === undefined ? [] : this.attempts.slice(1);
  }
}

/** Opens one client for each key, `apartMs` apart. Resolves when all are open. */
const openClients = async ({ baseUrl, keys, backoff, seed, apartMs }) => {
  const clients = [];
  for (const [n, apiKey] of keys.entries()) {
    const random = seeded(seed * 1_000_003 + n);
    clients.push(new Client(tradeFeedEvents$('market', { baseUrl, apiKey, backoff: { ...backoff, random } })));
    await delay(apartMs);
  }
  await until(() => clients.every(({ isOpen }) => isOpen), 60_000);
  return clients;
};

/** Waits for a condition. Resolves with false if it isn't met in time. */
const until = async (isMet, limitMs) => {
  const deadline = performance.now() + limitMs;
  while (!isMet()) {
    if (performance.now() > deadline) return false;
    await delay(20);
  }
  return true;
};
