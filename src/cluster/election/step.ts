import { accept, claimed, claimRead, startClaim } from './claim.js';
import type { ClusterKey } from './cluster-key.js';
import {
  type Call,
  type CallResult,
  type Clock,
  type Effect,
  type Election,
  firstTimer,
  type Input,
  nextTick,
  type Question,
  type Revision,
  type TimerName,
} from './election.js';
import { askOwner, follow, heardOwner, isOutdated, planClaim, unanswered } from './follow.js';
import { fail, leave } from './leave.js';
import { looked, orient } from './orient.js';
import {
  allow,
  beat,
  beatAgain,
  confirmed,
  drained,
  evicted,
  handOver,
  heardRival,
  offerEnded,
  opened,
  pump,
  release,
  reopening,
  suspectLater,
  written,
} from './own.js';
import { change, changeOwn, read, reportOf, setTimers, timing, type Turn } from './turn.js';

/** The result of a step. */
export interface Step {
  readonly state: Election;
  readonly effects: readonly Effect[];
}

/**
 * Computes the next state of an election, and what the replica must do. Pure: time, random numbers, the store, messages and the feed are
 * inputs, and everything that the replica does is an effect.
 */
export const step = (state: Election, input: Input, clock: Clock): Step => {
  if (state.role === 'stopped' || state.role === 'left') return { state, effects: [] };
  const turn: Turn = { state, effects: [], clock };
  handle(turn, input);
  return { state: turn.state, effects: turn.effects };
};

const handle = (turn: Turn, input: Input): void => {
  switch (input.type) {
    case 'start':
      return turn.state.isConnected ? join(turn) : undefined;
    case 'tick':
      return tick(turn);
    case 'engine':
      return input.isConnected ? engineBack(turn) : engineAway(turn);
    case 'call':
      return callEnded(turn, input.id, input.result);
    case 'ask':
      return askEnded(turn, input);
    case 'heard':
      return heard(turn, input.report);
    case 'asked':
      return asked(turn, input.question);
    case 'standby':
      return noteStandby(turn, input.presence);
    case 'offer':
      return accept(turn, input.offer);
    case 'voided':
      return voidCredit(turn, input.gen);
    case 'evicted':
      return noteEvictions(turn, input.evictions);
    case 'stop-notice':
      return readAgain(turn);
    case 'handshake':
      changeOwn(turn, { isWaiting: true });
      allow(turn);
      return pump(turn);
    case 'opened':
      return opened(turn);
    case 'disconnected':
      return turn.state.draining === undefined ? reopening(turn, input.isUnanswered) : drained(turn);
    case 'failed':
      return failed(turn, input.isReplaced);
    case 'hand-over':
      return startLeaving(turn);
  }
};

/** Announces this replica before it has read the key, so that an owner that leaves at this moment can choose it. */
const join = (turn: Turn): void => {
  // An owner without a key has a full lease to answer.
  change(turn, { known: { ...turn.state.known, revisionAt: turn.clock.now } });
  if (turn.state.settings.canOwn) setTimers(turn, { presence: turn.clock.now });
  read(turn, 'orient');
};

/** Runs the timers that are due, the earliest first. */
const tick = (turn: Turn): void => {
  for (;;) {
    const name = firstTimer(turn.state);
    if (name === undefined || nextTick(turn.state) > turn.clock.now) return;
    setTimers(turn, { [name]: undefined });
    timers[name](turn);
  }
};

const timers: Readonly<Record<TimerName, (turn: Turn) => void>> = {
  ask: askOwner,
  'ask-timeout': (turn) => unanswered(turn, false),
  lease: planClaim,
  claim: startClaim,
  call: (turn) => callEnded(turn, turn.state.call?.id ?? 0, { type: 'unknown' }),
  renew: (turn) => {
    changeOwn(turn, { isDirty: true });
    setTimers(turn, { renew: turn.clock.now + turn.state.settings.renewMs });
    pump(turn);
  },
  beat: beatAgain,
  presence: (turn) => presence(turn),
  offer: offerEnded,
  drain: drained,
  leave,
  retry: (turn) => {
    pump(turn);
    startWanted(turn);
  },
};

const engineAway = (turn: Turn): void => {
  change(turn, { isConnected: false, call: undefined, ask: undefined, wanted: undefined });
  setTimers(turn, { call: undefined });
  if (turn.state.own) return changeOwn(turn, { mustRead: true });
  if (turn.state.role !== 'joining') follow(turn);
};

const engineBack = (turn: Turn): void => {
  const { state, clock } = turn;
  // The owner may need more time to connect to the engine again.
  change(turn, { isConnected: true, precedenceUntil: clock.now + state.settings.leaseMs });
  if (state.own) {
    changeOwn(turn, { mustRead: true });
    beat(turn);
    return pump(turn);
  }
  if (state.role === 'joining') return join(turn);
  change(turn, { known: { ...turn.state.known, revisionAt: clock.now } });
  follow(turn);
  read(turn, 'orient');
};

const callEnded = (turn: Turn, id: number, result: CallResult): void => {
  const { call } = turn.state;
  if (call?.id !== id) return;
  change(turn, { call: undefined });
  setTimers(turn, {
    call: undefined,
    ...(result.type === 'unknown' && { retry: turn.clock.now + timing.retryMs }),
  });
  if (turn.state.own) ownCallEnded(turn, call, result);
  else followerCallEnded(turn, call, result);
  startWanted(turn);
};

const ownCallEnded = (turn: Turn, call: Call, result: CallResult): void => {
  if (result.type === 'written' && hasKey(call)) return written(turn, call, result.revision);
  if (result.type === 'entry') return confirmed(turn, result.key, result.revision);
  changeOwn(turn, { mustRead: true, isDirty: true });
  pump(turn);
};

const followerCallEnded = (turn: Turn, call: Call, result: CallResult): void => {
  switch (result.type) {
    case 'entry': {
      const handleKey = { claim: claimRead, alone: aloneRead, look: looked }[call.purpose as string] ?? orient;
      return handleKey(turn, result.key, result.revision);
    }
    case 'written':
      return hasKey(call) ? claimed(turn, call, result.revision) : undefined;
    case 'conflict':
    case 'unknown':
      return call.purpose === 'look' ? undefined : change(turn, { wanted: 'orient' });
  }
};

const hasKey = (call: Call): call is Call & { readonly key: ClusterKey } => call.key !== undefined;

const startWanted = (turn: Turn): void => {
  const { wanted, call, own, isConnected, timers: pending } = turn.state;
  if (wanted === undefined || call !== undefined || own !== undefined) return;
  if (!isConnected || pending.retry !== undefined) return;
  change(turn, { wanted: undefined });
  if (wanted === 'orient') read(turn, 'orient');
  else startClaim(turn);
};

const readAgain = (turn: Turn): void => {
  if (turn.state.own) {
    changeOwn(turn, { mustRead: true });
    return pump(turn);
  }
  change(turn, { wanted: 'orient' });
  startWanted(turn);
};

const askEnded = (turn: Turn, { id, result }: Extract<Input, { readonly type: 'ask' }>): void => {
  if (turn.state.ask !== id) return;
  setTimers(turn, { 'ask-timeout': undefined });
  if (result.type !== 'answer') return unanswered(turn, result.type === 'no-responders');
  // An owner of an earlier generation learns from the question that there was a later one, and claims again.
  if (isOutdated(turn, result.report)) return unanswered(turn, false);
  heard(turn, result.report);
};

const heard = (turn: Turn, report: Parameters<typeof heardOwner>[1]): void => {
  if (report.owner === turn.state.settings.replica) return;
  if (turn.state.own) heardRival(turn, report);
  else heardOwner(turn, report);
};

const asked = (turn: Turn, { gen, owner }: Question): void => {
  const { own, settings } = turn.state;
  if (own === undefined || own.isEvicted || own.isReleasing) return;
  turn.effects.push({ type: 'answer', report: reportOf(turn.state, own) });
  const isNewest = gen < own.gen || (gen === own.gen && owner === settings.replica);
  if (isNewest) return;
  suspectLater(turn, gen);
};

const noteStandby = (turn: Turn, { replica, since }: { readonly replica: string; readonly since: number }): void => {
  const { now } = turn.clock;
  const others = turn.state.standbys.filter((each) => each.replica !== replica && now - each.at < timing.goneMs);
  if (replica !== turn.state.settings.replica) change(turn, { standbys: [...others, { replica, since, at: now }] });
};

// The claim issued the newest credit of that generation. The others are for handshakes that were sent.
const voidCredit = (turn: Turn, gen: number): void => {
  const { own } = turn.state;
  if (own === undefined) return;
  const voided = own.credits.findLast((credit) => credit.gen === gen);
  changeOwn(turn, { credits: own.credits.filter((credit) => credit !== voided) });
};

const noteEvictions = (turn: Turn, evictions: ClusterKey['evictions']): void => {
  const { own } = turn.state;
  if (own) changeOwn(turn, { evictions: [...own.evictions, ...evictions] });
};

const presence = (turn: Turn): void => {
  const { state, clock } = turn;
  const { settings, known, isBarred } = state;
  setTimers(turn, { presence: clock.now + timing.presenceMs });
  if (!isBarred)
    return void turn.effects.push({
      type: 'presence',
      presence: { replica: settings.replica, since: settings.since },
    });
  const isSilent = clock.now - Math.max(state.heardAt, known.revisionAt) >= timing.standbyMs;
  if (isSilent && isAlone(turn) && state.call === undefined) read(turn, 'alone');
};

// Standbys can be cut off from the engine for a while, so a replica that has heard of one waits longer.
const isAlone = ({ state, clock }: Turn): boolean => state.standbys.every(({ at }) => clock.now - at >= timing.goneMs);

/** Ends the election of a replica that cannot own, if the key shows that no other replica does. */
const aloneRead = (turn: Turn, key: ClusterKey | undefined, revision: Revision | undefined): void => {
  const { known } = turn.state;
  const isUnchanged = key === undefined || key.phase === 'free' || revision === known.revision;
  if (isUnchanged && isAlone(turn)) return fail(turn, false);
  orient(turn, key, revision);
};

const failed = (turn: Turn, isReplaced: boolean): void => {
  if (turn.state.draining !== undefined) return drained(turn);
  if (isReplaced) return evicted(turn);
  change(turn, { isBarred: true });
  release(turn);
};

const startLeaving = (turn: Turn): void => {
  const { state, clock } = turn;
  // Without the engine no other replica can learn of it.
  if (!state.isConnected) return leave(turn);
  change(turn, { isLeaving: true });
  setTimers(turn, { leave: clock.now + state.settings.handOverMs, claim: undefined, presence: undefined });
  if (state.own) return handOver(turn);
  const isClaimSent = state.call?.purpose === 'claim' && state.call.key !== undefined;
  if (!isClaimSent && state.draining === undefined) leave(turn);
};

/** Whether the owner answers questions. */
export const isServing = ({ own }: Election): boolean => own !== undefined && !own.isEvicted && !own.isReleasing;
