import type { Chance } from '../../simulation/chance.js';
import { createLines, type Time } from '../../simulation/world.js';

/** A client of the service: an attempt of a replica, or another program with the same account. */
export interface Client {
  readonly name: string;
  readonly opened: () => void;
  readonly refused: () => void;
  readonly closed: (closeCode: 4001 | 1006) => void;
  readonly frame: (number: number) => void;
  /** The generation in which a replica has sent its handshake; `undefined` for another program. */
  readonly generation: () => number | undefined;
  /** When a fault last disturbed this client, or when it ends, in ms. */
  readonly disturbedAt: () => number;
  /** When this owner first answered another replica's question after that, in ms; `Infinity` if never. */
  readonly answeredAt: (replica: string) => number;
  /** Whether the client still has its socket. The service notices a closed socket after the handshake. */
  readonly isThere: () => boolean;
  /** Whether the client was killed, or leaves for a shutdown. */
  readonly hasLeft: () => boolean;
}

/** A connection that was replaced. */
export interface Eviction {
  readonly at: number;
  readonly client: Client;
  readonly by: Client;
  /** Whether the new client had left before its handshake arrived. */
  readonly isLate: boolean;
  /** Whether the new client had been killed, or was shutting down, when its handshake arrived. */
  readonly hasLeft: boolean;
  /** Whether the handshake took so long that another replica may have claimed in between. */
  readonly isSlow: boolean;
  readonly wasHealthy: boolean;
  readonly generations: readonly [number | undefined, number | undefined];
  /** Whether the client had itself evicted another one. */
  readonly hasEvicted: boolean;
}

/** Slower handshakes count as slow. The margin of a lease is longer. */
const slowMs = 100;

/** How long after a fault an owner may lose the ownership because of it. */
const healthyMs = 4_000;
/** How long after an owner's answer a claim already under way can replace it. */
const answerMs = 500;

export type SimulatedService = ReturnType<typeof createService>;

/**
 * Creates the contract's service for one account: the newest connection evicts the older one. A connection starts empty,
 * and frames that wait when it ends are lost.
 *
 * @param delayMs - how long it holds each frame back: 500 on the Free plan
 * @param record - receives what happens, for the timeline
 */
export const createService = (time: Time, chance: Chance, delayMs: number, record: (text: string) => void) => {
  const evictions: Eviction[] = [];
  const late: number[] = [];
  let live: Client | undefined;
  let hasEvicted = false;
  let isUp = true;
  let isEntitled = true;
  let frames = 0;
  let expected = 0;

  // Frames, and the close after them, arrive in order.
  const lines = createLines(time);
  const send = (client: Client, action: () => void): void => void lines(client, chance.between(0.5, 5), action);

  const isHealthy = (owner: Client, by: Client): boolean => {
    const answeredAt = owner.answeredAt(by.name);
    const isAnswered = by.disturbedAt() < answeredAt && time.now() - answeredAt > answerMs;
    const disturbedAt = Math.max(owner.disturbedAt(), by.disturbedAt());
    return time.now() - disturbedAt > healthyMs || (isAnswered && owner.disturbedAt() < answeredAt);
  };

  const register = (client: Client, isSlow: boolean): void => {
    record(`service: ${client.name} is connected${live ? `, ${live.name} is evicted` : ''}`);
    const evicted = live;
    live = client;
    if (isSlow || !client.isThere()) late.push(time.now());
    if (evicted !== undefined) {
      evictions.push({
        at: time.now(),
        client: evicted,
        by: client,
        isLate: !client.isThere(),
        hasLeft: client.hasLeft(),
        hasEvicted,
        isSlow,
        wasHealthy: evicted.isThere() && isHealthy(evicted, client),
        generations: [evicted.generation(), client.generation()],
      });
      send(evicted, () => evicted.closed(4001));
    }
    hasEvicted = evicted !== undefined;
    send(client, client.opened);
    time.after(5, () => {
      if (live === client && !client.isThere()) live = undefined;
    });
  };

  return {
    /** Delivers a handshake after a delay, even if the client has left. */
    handshake: (client: Client, delayMs: number, ticketUntil: number): void => {
      expected += 1;
      time.after(delayMs, () => {
        expected -= 1;
        if (isUp && time.now() < ticketUntil) register(client, delayMs > slowMs);
        else send(client, client.refused);
      });
    },
    leave: (client: Client): void => {
      time.after(chance.between(0.5, 5), () => {
        if (live === client) live = undefined;
      });
    },
    /** Ends the connection like a network failure. */
    drop: (): void => {
      const dropped = live;
      live = undefined;
      if (dropped) send(dropped, () => dropped.closed(1006));
    },
    setUp: (up: boolean): void => {
      isUp = up;
    },
    /** Sets whether the account may use the stream. If not, every ticket request gets a 403. */
    setEntitled: (entitled: boolean): void => {
      isEntitled = entitled;
    },
    isEntitled: (): boolean => isEntitled,
    /** Sees a frame. Returns its number. */
    push: (): number => {
      frames += 1;
      const client = live;
      const number = frames;
      const deliver = (): void => {
        if (client !== undefined && client === live) send(client, () => client.frame(number));
      };
      if (delayMs === 0) deliver();
      else if (client !== undefined) time.after(delayMs, deliver);
      return number;
    },
    live: (): Client | undefined => live,
    /** Whether a handshake is under way. */
    isExpecting: (): boolean => expected > 0,
    evictions: evictions as readonly Eviction[],
    /** When handshakes arrived that were slow, or whose client had left. */
    late: late as readonly number[],
  };
};
