import type { ClusterKey } from '../../../src/cluster/election/cluster-key.js';
import {
  type CallResult,
  type Effect,
  Election,
  type ElectionSettings,
  type Following,
  followerOf,
  type Input,
  nextTick,
  type Ownership,
  ownerOf,
  type Owning,
  phaseOf,
  type Report,
} from '../../../src/cluster/election/election.js';
import { step } from '../../../src/cluster/election/step.js';
import { timingDefaults } from '../../../src/cluster/election/timing.js';
import { createStore, type Store } from '../simulation/store.js';

/** Creates a key of another replica, which is the open owner of generation 3. */
export const keyOf = (fields: Partial<ClusterKey> = {}): ClusterKey => ({
  v: 1,
  source: 'market from a#1',
  gen: 3,
  owner: 'other',
  phase: 'open',
  since: 0,
  credits: [],
  evictions: [],
  changes: [],
  ...fields,
});

/** Creates a store with such a key. */
export const storeWith = (fields: Partial<ClusterKey> = {}): Store => {
  const store = createStore();
  store.write(keyOf(fields), undefined);
  return store;
};

/** A key without an owner. */
export const free: Partial<ClusterKey> = { owner: '', phase: 'free' };

export const reportOf = (fields: Partial<Report> = {}): Report => ({
  ...{ gen: 3, owner: 'other', phase: 'open', revision: 1 },
  ...fields,
});
/** Creates a message of that owner. */
export const heard = (fields: Partial<Report> = {}): Input => ({ type: 'heard', report: reportOf(fields) });

type Bare = 'start' | 'stop-notice' | 'hand-over' | 'handshake' | 'opened';
/** What happens to a replica: an input, time that passes in ms, new fields, or anything else. */
export type Step = Input | Bare | number | Fields | Change;
type Fields = Partial<Pick<DrivenElection, 'mode' | 'owner' | 'followed' | 'wallShift'>>;
export type Change = (replica: DrivenElection) => unknown;
type View = Partial<Omit<Following, 'name'> & Omit<Owning, 'name'>> & {
  readonly name: string;
  readonly phase?: string;
};

/** An election with a store and a clock set by a test. Questions find no responder unless the test says so. */
export class DrivenElection {
  /** `away`: the store doesn't answer. */
  mode: 'good' | 'away' = 'good';
  /** The result of the next questions to the owner. */
  owner: Extract<Input, { readonly type: 'ask' }>['result'] = 'no-responders';
  /** The newest owner whose frames the replica emits. */
  followed: Ownership = { gen: 0, owner: '' };
  now = 0;
  /** How far the wall clock alone has moved. */
  wallShift = 0;
  /** The effects of the last call of `give` or `pass`, without those of the store and of questions. */
  effects: readonly Effect[] = [];
  readonly questions: Ownership[] = [];
  readonly writes: string[] = [];
  readonly store: Store;
  #election: Election;

  constructor(settings: Partial<ElectionSettings> = {}, store = createStore()) {
    this.store = store;
    const defaults = { replica: 'me', since: 1, source: 'market from a#1', canOwn: true, ...timingDefaults } as const;
    this.#election = new Election({ ...defaults, ...settings }, true);
  }

  get election(): Election {
    return this.#election;
  }

  /** The state of the replica, with the phase of an owner. */
  get state(): View {
    const own = ownerOf(this.#election);
    return own ? { ...own, phase: phaseOf(own) } : { ...followerOf(this.#election), name: this.#election.state.name };
  }

  /** Performs steps, one after the other. Returns the types of their effects. */
  give(...steps: readonly Step[]): string {
    this.effects = steps.flatMap((step) => this.#do(step));
    return this.effects.map(({ type }) => type).join(' ');
  }

  #do(step: Step): readonly Effect[] {
    if (typeof step === 'number') return this.#pass(step);
    if (typeof step === 'string') return this.#give({ type: step });
    if (typeof step === 'function') step(this);
    else if ('type' in step) return this.#give(step);
    else Object.assign(this, step);
    return [];
  }

  /** Gives the result of the current call to the store. */
  answer(result: CallResult = this.store.read()): string {
    return this.give({ type: 'call', id: this.#election.call!.id, result });
  }

  pass(ms: number): string {
    return this.give(ms);
  }

  #pass(ms: number): readonly Effect[] {
    const until = this.now + ms;
    const effects: Effect[] = [];
    while (nextTick(this.#election) <= until) {
      this.now = Math.max(this.now, nextTick(this.#election));
      effects.push(...this.#give({ type: 'tick' }));
    }
    this.now = until;
    return effects;
  }

  /** Lets time pass until a condition holds, for a minute at most. */
  passUntil(condition: () => boolean): void {
    for (let n = 0; n < 6_000 && !condition(); n += 1) this.pass(10);
    if (!condition()) throw new Error('The condition does not hold after a minute.');
  }

  #give(input: Input): readonly Effect[] {
    const { now, wallShift, followed } = this;
    const { state, effects } = step(this.#election, input, {
      now,
      wall: 1e12 + now + wallShift,
      random: 0.5,
      followed,
    });
    this.#election = state;
    return effects.flatMap((effect) => this.#perform(effect));
  }

  #perform(effect: Effect): readonly Effect[] {
    if (effect.type === 'ask') {
      this.questions.push(effect.question);
      return this.#give({ type: 'ask', id: effect.id, result: this.owner });
    }
    if (effect.type !== 'read' && effect.type !== 'write') return [effect];
    const { id } = effect;
    if (effect.type === 'write') this.writes.push(`${effect.key.phase} ${effect.key.gen}`);
    if (this.mode === 'away') return [];
    const result = effect.type === 'read' ? this.store.read() : this.store.write(effect.key, effect.expected);
    return this.#give({ type: 'call', id, result });
  }
}

/** Starts an election over a store with a key. */
export const joined = (key: Partial<ClusterKey> = {}, settings: Partial<ElectionSettings> = {}): DrivenElection => {
  const replica = new DrivenElection(settings, storeWith(key));
  replica.give('start');
  return replica;
};

/** Starts an election that has claimed a free key, in generation 4, and has sent no handshake. */
export const claimed = (): DrivenElection => {
  const replica = joined(free);
  replica.pass(50);
  return replica;
};

/** Starts an election that owns in generation 1, with an open connection. */
export const owner = (): DrivenElection => {
  const replica = new DrivenElection();
  replica.give('start', 1_000, 'handshake', 'opened');
  return replica;
};

/** Starts such an owner, after an unanswered handshake. */
export const ownerWithCredit = (): DrivenElection => {
  const replica = owner();
  replica.give({ type: 'disconnected', isUnanswered: true }, 'handshake', 'opened');
  return replica;
};

/** Writes a key into the store, as another replica does. */
export const overwrite = ({ store }: DrivenElection, fields: Partial<ClusterKey>): void => {
  const { revision } = store.read() as { readonly revision: number | undefined };
  store.write(keyOf(fields), revision);
};
