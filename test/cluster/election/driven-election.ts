import {
  type AskResult,
  createElection,
  type Effect,
  type Election,
  type ElectionSettings,
  type Input,
  nextTick,
} from '../../../src/cluster/election/election.js';
import { step } from '../../../src/cluster/election/step.js';
import { createStore, type Store } from '../simulation/store.js';

/** An election with a store and a clock that a test controls. */
export interface DrivenElection {
  readonly state: () => Election;
  readonly store: Store;
  readonly now: () => number;
  /** Gives an input, and returns its effects without those of the store. */
  readonly give: (input: Input) => readonly Effect[];
  /** Lets time pass, and returns the effects. */
  readonly pass: (ms: number) => readonly Effect[];
  /** Lets only the wall clock pass. */
  readonly jump: (ms: number) => void;
  /** `away`: the store does not answer. `lost`: it writes, but its answers do not arrive. */
  readonly setStore: (mode: 'good' | 'away' | 'lost') => void;
  /** Sets the result of the next questions to the owner. */
  readonly setOwner: (result: AskResult) => void;
  /** Sets the highest generation of the frames that the replica emits. */
  readonly setFollowed: (generation: number) => void;
  /** All writes so far, as texts. */
  readonly writes: () => readonly string[];
}

/** Starts an election. Questions have no responder until the test sets another result. */
export const driveElection = (settings: Partial<ElectionSettings> = {}, store = createStore()): DrivenElection => {
  let state = createElection(
    {
      ...{ replica: 'me', since: 1, feed: 'market', canOwn: true },
      ...{ leaseMs: 2_000, renewMs: 500, marginMs: 200, suspectMs: 600, handOverMs: 5_000 },
      ...settings,
    },
    true,
  );
  const writes: string[] = [];
  let now = 0;
  let wallShift = 0;
  let mode: 'good' | 'away' | 'lost' = 'good';
  let followed = 0;
  let asked: AskResult = { type: 'no-responders' };

  const perform = (effect: Effect): readonly Effect[] => {
    if (effect.type === 'read')
      return mode === 'good' ? give({ type: 'call', id: effect.id, result: store.read() }) : [];
    if (effect.type === 'ask') return give({ type: 'ask', id: effect.id, result: asked });
    if (effect.type !== 'write') return [effect];
    const { id, key, expected } = effect;
    writes.push(`${key.phase} ${key.gen}`);
    if (mode === 'away') return [];
    const result = store.write(key, expected);
    return mode === 'good' ? give({ type: 'call', id, result }) : [];
  };

  const give = (input: Input): readonly Effect[] => {
    const result = step(state, input, { now, wall: 1e12 + now + wallShift, random: 0.5, followed });
    ({ state } = result);
    return result.effects.flatMap(perform);
  };

  return {
    state: () => state,
    store,
    now: () => now,
    give,
    pass: (ms) => {
      const until = now + ms;
      const effects: Effect[] = [];
      while (nextTick(state) <= until) {
        now = Math.max(now, nextTick(state));
        effects.push(...give({ type: 'tick' }));
      }
      now = until;
      return effects;
    },
    jump: (ms) => {
      wallShift += ms;
    },
    setStore: (next) => {
      mode = next;
    },
    setOwner: (result) => {
      asked = result;
    },
    setFollowed: (generation) => {
      followed = generation;
    },
    writes: () => writes,
  };
};

/** Starts an election that owns, with an open connection. */
export const driveOwner = (settings: Partial<ElectionSettings> = {}): DrivenElection => {
  const election = driveElection(settings);
  election.give({ type: 'start' });
  election.pass(1_000);
  election.give({ type: 'handshake' });
  election.give({ type: 'opened' });
  return election;
};

/** Returns the types of effects. */
export const typesOf = (effects: readonly Effect[]): readonly Effect['type'][] => effects.map(({ type }) => type);
