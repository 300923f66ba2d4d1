import { seededRandom } from '../../../src/testing/sources.js';

export type Chance = ReturnType<typeof createChance>;

/** The random numbers of a run. The same seed creates the same run. */
export const createChance = (seed: number) => {
  const next = seededRandom(seed);
  /** From 0 up to 1. */
  const random = (): number => next() / 2 ** 32;
  return {
    random,
    between: (least: number, most: number): number => least + random() * (most - least),
    oneOf: <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!,
    isTrue: (probability: number): boolean => random() < probability,
  };
};

/** The conditions between one replica, the engine and the service. Faults change them for some time. */
export interface Conditions {
  /** `refused`: the replica knows that the engine is away. `black-hole`: it doesn't, and nothing arrives. */
  link: 'good' | 'refused' | 'black-hole';
  /** Probability that a message or an answer of the engine is lost. */
  loss: number;
  /** Longest delay of a call to the store, in ms. */
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

/** Returns a delay: mostly a short one, even in bad conditions. */
export const delayUpTo = (chance: Chance, mostMs: number): number =>
  chance.isTrue(0.5) ? chance.between(0.2, Math.min(3, mostMs)) : chance.between(0.2, mostMs);
