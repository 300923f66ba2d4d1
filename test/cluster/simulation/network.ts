import type { Chance } from './chance.js';

/** The conditions between one replica, the engine and the service. Faults change them for some time. */
export interface Conditions {
  /** `refused`: the replica knows that the engine is away. `black-hole`: it does not, and nothing arrives. */
  link: 'good' | 'refused' | 'black-hole';
  /** Probability that a message or an answer of the engine is lost. */
  loss: number;
  /** Longest delay of an access to the store, in ms. */
  storeMs: number;
  /** Longest time that a handshake needs to reach the service, in ms. */
  handshakeMs: number;
  /** Longest time of a ticket request, in ms. */
  ticketMs: number;
}

/** The conditions without a fault. */
export const goodConditions = (): Conditions => ({
  link: 'good',
  loss: 0,
  storeMs: 3,
  handshakeMs: 20,
  ticketMs: 20,
});

/** Returns the delay of a handshake: with bad conditions mostly a long one. */
export const handshakeDelay = (chance: Chance, mostMs: number): number => chance.between(0.2, mostMs);

/** Returns a delay: mostly a short one, also with bad conditions. */
export const delayUpTo = (chance: Chance, mostMs: number): number =>
  chance.isTrue(0.5) ? chance.between(0.2, Math.min(3, mostMs)) : chance.between(0.2, mostMs);
