import { ownerOf } from '../../../src/cluster/election/election.js';
import { createTradeFeedError } from '../../../src/protocol/failures/classify.js';
import { Frame } from '../../../src/protocol/frame.js';
import { delayUpTo } from './chance.js';
import { payloadOf } from './observer.js';
import type { Client } from './service.js';
import type { SimulatedReplica } from './simulated-replica.js';

interface Attempt extends Client {
  state: 'ticket' | 'waiting' | 'sent' | 'open' | 'over';
  ticketUntil: number;
  sentIn: number | undefined;
}

const ticketMs = 60_000;
const handshakeMs = 3_000;

/** The feed of a replica: its attempts, from the ticket to the end of the connection. */
export class SimulatedFeed {
  readonly #replica: SimulatedReplica;
  readonly #hasBadKey: boolean;
  #attempt: Attempt | undefined;
  #isOpen = false;
  /** When the last connection ended, by the clock of this replica. */
  #outageFrom: number | undefined;

  /** @param hasBadKey - the service refuses the key of this replica */
  constructor(replica: SimulatedReplica, hasBadKey: boolean) {
    this.#replica = replica;
    this.#hasBadKey = hasBadKey;
  }

  get hasConnection(): boolean {
    return this.#attempt?.state === 'open';
  }

  open(): void {
    this.#isOpen = true;
    this.#startAttempt(0);
  }

  close(): void {
    this.#isOpen = false;
    this.endAttempt();
  }

  /** Sends the handshake that waits. */
  allow(): void {
    const { world, election, conditions } = this.#replica;
    const current = this.#attempt;
    if (current?.state !== 'waiting') return;
    current.state = 'sent';
    current.sentIn = ownerOf(election)?.gen;
    const delayMs = world.chance.between(0.2, conditions.handshakeMs);
    this.#replica.record(`sends a handshake, which arrives in ${delayMs.toFixed(0)} ms`);
    world.service.handshake(current, delayMs, current.ticketUntil);
    this.#replica.later(handshakeMs, () => {
      if (current === this.#attempt && current.state === 'sent') this.#lost(current, true);
    });
  }

  endAttempt(): void {
    const current = this.#attempt;
    if (current?.state === 'open' || current?.state === 'sent') this.#replica.world.service.leave(current);
    if (current) current.state = 'over';
    this.#attempt = undefined;
  }

  #startAttempt(delayMs: number): void {
    this.endAttempt();
    const replica = this.#replica;
    const { world, conditions } = replica;
    const current: Attempt = {
      ...{ name: replica.id, state: 'ticket', ticketUntil: 0, sentIn: undefined },
      generation: () => current.sentIn,
      disturbedAt: () => (ownerOf(replica.election) && !replica.election.isLeaving ? replica.disturbedAt : Infinity),
      answeredAt: (other) => replica.answers.get(other) ?? Infinity,
      isThere: () => replica.isAlive && current.state !== 'over',
      hasLeft: () => !replica.isAlive || replica.election.isLeaving,
      opened: () => replica.run(() => this.#opened(current)),
      refused: () => replica.run(() => this.#lost(current)),
      closed: (code) => replica.run(() => (code === 4001 ? this.#replaced(current) : this.#lost(current))),
      frame: (number) => replica.run(() => this.#frame(current, number)),
    };
    this.#attempt = current;
    replica.later(delayMs + delayUpTo(world.chance, conditions.ticketMs), () => {
      if (current !== this.#attempt) return;
      if (this.#hasBadKey) return this.#failed(false);
      // A 403 concerns the account, so the owner retries with backoff.
      if (!world.service.isEntitled()) return this.#lost(current);
      current.state = 'waiting';
      current.ticketUntil = world.schedule.now() + ticketMs;
      replica.input({ type: 'handshake' });
    });
  }

  #opened(current: Attempt): void {
    const replica = this.#replica;
    if (current !== this.#attempt || current.state !== 'sent') return;
    current.state = 'open';
    replica.disturb();
    replica.input({ type: 'opened' });
    replica.publishEvent({ type: 'opened', at: replica.wall, feed: 'market', connection: 1 });
    if (this.#outageFrom !== undefined) {
      const failure = createTradeFeedError({ stage: 'stream', closeCode: 1006 });
      replica.publishEvent({ type: 'gap', from: this.#outageFrom, to: replica.wall, durationMs: 0, failure });
    }
    this.#outageFrom = undefined;
  }

  #lost(current: Attempt, isUnanswered = false): void {
    const replica = this.#replica;
    if (current !== this.#attempt || !this.#isOpen) return;
    replica.disturb();
    if (current.state === 'open') this.#outageFrom = replica.wall;
    this.#startAttempt(replica.world.chance.between(1, 500));
    replica.input({ type: 'disconnected', isUnanswered });
  }

  #replaced(current: Attempt): void {
    if (current !== this.#attempt) return;
    this.#replica.record('receives 4001');
    this.#failed(true);
    if (ownerOf(this.#replica.election)) this.#outageFrom = this.#replica.wall;
  }

  #failed(isReplaced: boolean): void {
    this.close();
    this.#outageFrom = undefined;
    this.#replica.input({ type: 'failed', isReplaced });
  }

  #frame(current: Attempt, number: number): void {
    if (current !== this.#attempt || current.state !== 'open') return;
    this.#replica.publishFrame(new Frame('market', payloadOf(number), false, this.#replica.wall, 1));
  }
}
