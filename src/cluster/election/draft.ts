import { type ClusterKey, remaining } from './cluster-key.js';
import {
  type Call,
  type CallResult,
  type Clock,
  type Effect,
  type Election,
  type ElectionSettings,
  followerOf,
  Following,
  type Input,
  noTimers,
  type Ownership,
  ownerOf,
  type Report,
  type Revision,
  type TimerName,
  type Timers,
} from './election.js';
import { timing } from './timing.js';

/** What happens to a replica: an input, a timer, or the end of a call to the store. `idle`: a call may start. */
export type Happening =
  | Input
  | { readonly type: TimerName | 'idle' }
  | { readonly type: 'result'; readonly call: Call; readonly result: CallResult };

/** One row for each happening that changes something in a state. */
export type Rules<State> = {
  readonly [Type in Happening['type']]?:
    ((draft: Draft, state: State, happening: Extract<Happening, { readonly type: Type }>) => void) | undefined;
};

// An election and its states are plain data: they have no methods.
const copyOf = <T extends object>(data: T): T => ({ ...data });

/** A step while it is computed: a copy of the election, which the rules change, and the effects so far. */
export class Draft {
  readonly election: Election;
  /** The last state that has started. */
  started: Election['state'];
  readonly effects: Effect[] = [];
  readonly clock: Clock;
  readonly now: number;
  readonly settings: ElectionSettings;
  readonly timers: Timers;

  constructor(before: Election, clock: Clock) {
    this.timers = { ...before.timers };
    this.election = Object.assign(copyOf(before), { timers: this.timers, state: copyOf(before.state) });
    this.started = this.election.state;
    this.clock = clock;
    this.now = clock.now;
    this.settings = before.settings;
  }

  /** Replaces the timers of a state. Those common to all states go on. */
  setStateTimers(set: Partial<Timers>): void {
    const { 'call-over': call, 'leave-over': leave, 'retry-due': retry } = this.timers;
    Object.assign(this.timers, noTimers, { 'call-over': call, 'leave-over': leave, 'retry-due': retry }, set);
  }

  stop(...names: readonly TimerName[]): void {
    for (const name of names) this.timers[name] = Infinity;
  }

  set(name: TimerName, ms: number): void {
    this.timers[name] = this.now + ms;
  }

  get isBusy(): boolean {
    const { call, isConnected } = this.election;
    return call !== undefined || !isConnected || this.timers['retry-due'] !== Infinity;
  }

  read(purpose: Call['purpose']): void {
    this.effects.push({ type: 'read', id: this.#startCall(purpose) });
  }

  write(purpose: Call['purpose'], key: ClusterKey, expected: Revision): void {
    this.effects.push({ type: 'write', id: this.#startCall(purpose, key), key, expected });
  }

  endCall(): void {
    this.election.call = undefined;
    this.stop('call-over');
  }

  #startCall(purpose: Call['purpose'], key?: ClusterKey): number {
    const id = (this.election.lastId += 1);
    this.election.call = { id, purpose, at: this.now, wall: this.clock.wall, key };
    this.set('call-over', timing.callMs);
    return id;
  }

  /** Closes the feed, if any, and reports the end of its generation. */
  endFeed(): void {
    const follower = followerOf(this.election);
    const gen = follower ? follower.draining : ownerOf(this.election)?.gen;
    if (gen === undefined) return;
    this.effects.push({ type: 'close' }, { type: 'end', gen });
    if (follower) follower.draining = undefined;
  }

  /** Ends this replica's election with an error. `other`: what the owner streams, if this replica doesn't fit. */
  fail(isReplaced: boolean, other?: string): void {
    this.#end({ name: 'stopped' }, { type: 'fail', isReplaced, ...(other && { other }) });
  }

  leave(): void {
    if (!this.election.rejoins) return this.#end({ name: 'left' }, { type: 'left' });
    this.#end(new Following('joining'));
    Object.assign(this.election, { isLeaving: false, rejoins: false });
  }

  #end(state: Election['state'], ...effects: readonly Effect[]): void {
    this.endFeed();
    this.effects.push(...effects);
    Object.assign(this.election, { state, call: undefined });
    Object.assign(this.timers, noTimers);
  }

  /** Records what's known of the owner. A new revision shows that it renewed its lease. */
  note({ gen, owner, phase, revision }: Omit<Election['known'], 'revisionAt'>): void {
    const { election } = this;
    const { known, refusal } = election;
    const revisionAt = known.revision === revision && known.gen === gen ? known.revisionAt : this.now;
    election.gen = Math.max(election.gen, gen);
    election.known = { gen, owner, phase, revision, revisionAt };
    if (refusal !== undefined && phase === 'open' && gen > refusal.gen) election.refusal = { ...refusal, isPast: true };
  }

  noteKey(state: Following, key: ClusterKey, revision: Revision): void {
    this.note({ ...key, revision });
    if (key.owner === '' || key.source === this.settings.source) state.other = undefined;
  }

  /** Records a message of the owner. Returns `false`, and changes nothing, if it's of an earlier generation. */
  noteOwner(state: Following, report: Report): boolean {
    const { election, now, timers } = this;
    if (report.owner === this.settings.replica || this.isOutdated(report)) return false;
    this.note(report);
    // The owner writes them into the key, so that all replicas count them.
    const evictions = remaining(election.evictions, now);
    if (evictions.length > 0) this.effects.push({ type: 'evicted', evictions });
    election.evictions = [];
    if (state.draining !== undefined && report.gen > state.draining && report.phase === 'open')
      timers['drain-over'] = Math.min(timers['drain-over'], now + timing.drainMs);
    state.heardAt = now;
    return true;
  }

  /**
   * Returns whether a report or a key belongs to an earlier generation than the one this replica knows. A store that
   * lost data can give another owner the same number, even after its release. The next owner gets a higher one.
   */
  isOutdated(reported: Ownership): boolean {
    const { gen, known } = this.election;
    const { followed } = this.clock;
    if (reported.gen < Math.max(gen, followed.gen)) return true;
    const isOther = (one: Ownership): boolean => one.gen === reported.gen && one.owner !== reported.owner;
    return reported.owner !== '' && ((known.gen === gen && isOther(known)) || isOther(followed));
  }

  /**
   * Returns the newest owner this replica knows. If it knows two of one generation it's neither: an owner that answers
   * then needs a higher number.
   */
  get newest(): Ownership {
    const { gen, known } = this.election;
    const { followed } = this.clock;
    if (followed.gen > gen) return followed;
    return { gen, owner: followed.gen < gen || followed.owner === known.owner ? known.owner : '' };
  }
}
