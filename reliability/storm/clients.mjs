// Many feeds, each of an account of its own, and what each of them did.
import { setTimeout as delay } from 'node:timers/promises';
import { tradeFeedEvents$ } from 'rx-trade-feed';
import { seeded } from '../lib/random.mjs';

/** One client: its attempts, with how each ended, its waits, and when frames came again. */
class Client {
  isOpen = false;
  /** When its first connection was lost, in epoch ms. */
  lostAt;
  /** Since then: `{ at, endedAt, code }`; `code` is what ended it. */
  attempts = [];
  /** Each with `floorMs`, what the service asked for. */
  waits = [];
  /** When the first frame came after it was lost. */
  backAt;
  stoppedBy;
  #floorMs = 0;

  constructor(feed$) {
    this.subscription = feed$.subscribe({
      next: (event) => this.#see(event),
      error: (error) => (this.stoppedBy = error.code ?? String(error)),
    });
  }

  #see(event) {
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

  /** The attempts after the loss. */
  get returns() {
    return this.lostAt === undefined ? [] : this.attempts.slice(1);
  }
}

/** Opens one client for each key, a few ms apart; resolves when all are open. */
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

/** Waits until something is so; gives whether it became so in time. */
export const until = async (isSo, limitMs) => {
  const deadline = performance.now() + limitMs;
  while (!isSo()) {
    if (performance.now() > deadline) return false;
    await delay(20);
  }
  return true;
};
