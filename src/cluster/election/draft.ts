import { type ClusterKey, isSameSource, remaining, type Source } from './cluster-key.js';
import {
  type Call,
  type CallResult,
  type Clock,
  type Effect,
  type Election,
  type ElectionSettings,
  followerOf,
  type Following,
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

/** What happens to a replica: an input, the end of a timer, or the end of an access to the store. */
export type Happening =
  Input | { readonly type: TimerName } | { readonly type: 'result'; readonly call: Call; readonly result: CallResult };

/** A row for each thing that changes something in a state. */
export type Rules<State> = {
  readonly [Type in Happening['type']]?:
    ((draft: Draft, state: State, happening: Extract<Happening, { readonly type: Type }>) => void) | undefined;
};

// An election and its states are plain data: they have no methods.
const copyOf = <T extends object>(data: T): T => ({ ...data });

/** A step while it is computed: a copy of the election, which the rules change, and the effects so far. */
export class Draft {
  readonly election: Election;
  readonly effects: Effect[] = [];
  readonly clock: Clock;
  readonly now: number;
  readonly settings: ElectionSettings;
  readonly timers: Timers;

  constructor(before: Election, clock: Clock) {
    this.timers = { ...before.timers };
    this.election = Object.assign(copyOf(before), { timers: this.timers, state: copyOf(before.state) });
    this.clock = clock;
    this.now = clock.now;
    this.settings = before.settings;
  }

  /** Replaces the timers of a state. Those of every state go on. */
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

  /** Whether no access to the store can begin now. */
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
    this.election.call = { id, purpose, sentAt: this.now, sentWall: this.clock.wall, key };
    this.set('call-over', timing.callMs);
    return id;
  }

  /** Closes the feed, if there is one, and reports the end of its generation. */
  endFeed(): void {
    const follower = followerOf(this.election);
    const gen = follower ? follower.draining : ownerOf(this.election)?.gen;
    if (gen === undefined) return;
    this.effects.push({ type: 'close' }, { type: 'end', gen });
    if (follower) follower.draining = undefined;
  }

  /** Ends the election of this replica with an error. `other`: what the owner streams, if this replica does not fit. */
  fail(isReplaced: boolean, other?: Source): void {
    this.endFeed();
    this.effects.push({ type: 'fail', isReplaced, ...(other && { other }) });
    this.#end('stopped');
  }

  leave(): void {
    this.endFeed();
    this.effects.push({ type: 'left' });
    this.#end('left');
  }

  #end(name: 'stopped' | 'left'): void {
    Object.assign(this.election, { state: { name }, call: undefined });
    Object.assign(this.timers, noTimers);
  }

  /** Notes what is known of the owner. A new revision shows that it renewed its lease. */
  note({ gen, owner, phase, revision }: Omit<Election['known'], 'revisionAt'>): void {
    const { election } = this;
    const { known, refusal } = election;
    const revisionAt = known.revision === revision && known.gen === gen ? known.revisionAt : this.now;
    election.gen = Math.max(election.gen, gen);
    election.known = { gen, owner, phase, revision, revisionAt };
    if (refusal !== undefined && phase === 'open' && gen > refusal.gen) election.refusal = { ...refusal, isPast: true };
  }

  noteKey(me: Following, key: ClusterKey, revision: Revision): void {
    this.note({ ...key, revision });
    this.election.epoch = key.epoch;
    if (key.owner === '' || isSameSource(this.settings, key)) me.other = undefined;
  }

  /** Notes a message of the owner. Returns whether it is not of an earlier generation, which changes nothing. */
  noteOwner(me: Following, report: Report): boolean {
    const { election, now, timers } = this;
    if (report.owner === this.settings.replica || this.isOutdated(report)) return false;
    this.note(report);
    // The owner writes them into the key, so that all replicas count them.
    const evictions = remaining(election.evictions, now);
    if (evictions.length > 0) this.effects.push({ type: 'evicted', evictions });
    election.evictions = [];
    if (me.draining !== undefined && report.gen > me.draining && report.phase === 'open')
      timers['drain-over'] = Math.min(timers['drain-over'], now + timing.drainMs);
    me.heardAt = now;
    return true;
  }

  /**
   * Whether a report or a key is of an earlier generation than this replica has seen. A store that has lost data can
   * use the number of a generation again, for another owner, also after its release: the next owner has a higher one.
   */
  isOutdated(seen: Ownership): boolean {
    const { gen, known } = this.election;
    const { followed } = this.clock;
    if (seen.gen < Math.max(gen, followed.gen)) return true;
    const isOther = (one: Ownership): boolean => one.gen === seen.gen && one.owner !== seen.owner;
    return seen.owner !== '' && ((known.gen === gen && isOther(known)) || isOther(followed));
  }

  /**
   * Returns the newest owner that this replica knows. With two of one generation it is neither: the one that answers
   * needs a higher number.
   */
  get newest(): Ownership {
    const { gen, known } = this.election;
    const { followed } = this.clock;
    if (followed.gen > gen) return followed;
    return { gen, owner: followed.gen < gen || followed.owner === known.owner ? known.owner : '' };
  }
}
