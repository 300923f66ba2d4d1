// The clients of a storm: each is a feed with its own account and records what it does.
import { setTimeout as delay } from 'node:timers/promises';
import { tradeFeedEvents$ } from 'rx-trade-feed';
import { seeded } from '../lib/random.mjs';

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
export const openClients = async ({ baseUrl, keys, backoff, seed, apartMs }) => {
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
export const until = async (isMet, limitMs) => {
  const deadline = performance.now() + limitMs;
  while (!isMet()) {
    if (performance.now() > deadline) return false;
    await delay(20);
  }
  return true;
};
