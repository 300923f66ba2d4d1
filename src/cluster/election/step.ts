// The election of one owner. The service decides which connection lives: the newest one. So safety rests on the service
// and on compare-and-set of one key; clocks only decide how soon something happens (timing.ts).
//
// GENERATION. Before it opens anything, each claim writes the key with a higher generation than any it knows. A replica
// that knows a lower one is out of date: its messages are dropped, and its next compare-and-set fails. A store that
// loses data can repeat a generation; the owner of the lower one then claims again, above both (owning.ts).
//
// LEASE. An owner renews its key, and sends a handshake only if a write that said `opening` is recent (`leaseMs` less
// `marginMs`). Others claim when the key says `free`, when two questions find no responder, or when a lease has passed
// without a new revision: an owner that was opening may have a handshake under way, and a silent one may be cut off. A
// replica that loses the engine claims nothing, and an owner that loses it keeps its connection.
//
// CREDIT. An unanswered handshake can still arrive, and evict the owner (4001). So a replica that displaces an owner
// that was opening, or gets no answer itself, writes a credit into the key. An evicted owner first writes the key. If
// that fails, another replica has claimed: follow it. If a credit explains the eviction, it's used up, and the owner
// opens once more. Otherwise the client is a stranger: the key says `stopped`, and no replica fights.
//
// The states, and what leads to the next one:
//
//   joining     the key was read                              following, or claiming if it is free
//   following   silence, the end of a lease, or a free key    claiming
//   claiming    its claim was written                         opening; following if another one was faster
//   isolated    the engine is back (away: to isolated)        following
//
//   opening     the feed has a ticket                         waiting
//   waiting     the lease is confirmed                        sent
//   sent        the connection is open                        open
//   open        a hand-over, with a standby                   offering; releasing without one
//   offering    the standby did not claim                     open, then offering to the next standby
//   these five  the connection or an attempt failed           opening; releasing if the feed cannot work here
//               4001                                          evicted
//               another one has claimed                       following, until it is open with the old connection
//   evicted     the key was written                           opening with a credit, stopped without one
//   releasing   the key was written                           following, or left
//
// following.ts has the rules of the first four, owning.ts those of an owner, and `always` what is the same for all.
// `step` looks up the rule: state × what happens → next state and effects.

import { areOfDifferentSources } from './cluster-key.js';
import { Draft, type Happening, type Rules } from './draft.js';
import { type Clock, type Effect, type Election, firstTimer, type Input, nextTick } from './election.js';
import { following } from './following.js';
import { owning } from './owning.js';
import { timing } from './timing.js';

/** What happens in every state, before the state's own rule. */
const always: Rules<unknown> = {
  // Runs the timers that are due, the earliest first.
  tick: (draft) => {
    while (nextTick(draft.election) <= draft.now) {
      const type = firstTimer(draft.election);
      draft.stop(type);
      happen(draft, { type });
    }
  },
  start: ({ election }, _, { isConnected = election.isConnected }) => {
    election.isConnected = isConnected;
  },
  engine: (draft, _, { isConnected }) => {
    draft.election.isConnected = isConnected;
    // The owner may need longer than this replica to reconnect.
    if (isConnected) draft.election.precedenceUntil = draft.now + draft.settings.leaseMs;
    else draft.endCall();
  },
  call: (draft, _, { id, result }) => {
    const { call } = draft.election;
    if (call?.id !== id) return;
    draft.endCall();
    if (result.type === 'unknown') draft.set('retry-due', timing.retryMs);
    happen(draft, { type: 'result', call, result });
  },
  'call-over': (draft) => {
    const { call } = draft.election;
    if (call) happen(draft, { type: 'call', id: call.id, result: { type: 'unknown' } });
  },
  standby: ({ election, now, settings }, _, { presence: { replica, since } }) => {
    if (replica === settings.replica || areOfDifferentSources(settings.replica, replica)) return;
    const others = election.standbys.filter((each) => each.replica !== replica && now - each.at < timing.goneMs);
    election.standbys = [...others, { replica, since, at: now }];
  },
  'hand-over': (draft, _, { rejoins = false }) => {
    const { election } = draft;
    election.rejoins = rejoins && (election.rejoins || !election.isLeaving);
    // While the engine is unreachable, no other replica can learn of it.
    if (!election.isConnected) return draft.leave();
    election.isLeaving = true;
    draft.stop('claim-due', 'presence-due');
    draft.set('leave-over', draft.settings.handOverMs);
  },
  'leave-over': (draft) => draft.leave(),
};

/** What each state does. Happenings that have no rule change nothing. */
const table = { ...following, ...owning, stopped: undefined, left: undefined };

export interface Step {
  readonly state: Election;
  readonly effects: readonly Effect[];
}

/**
 * Computes the next state of an election. Pure: time, random numbers, the store, messages and the feed are inputs, and
 * everything the replica does is an effect.
 */
export const step = (before: Election, input: Input, clock: Clock): Step => {
  const draft = new Draft(before, clock);
  happen(draft, input);
  idle(draft);
  return { state: draft.election, effects: draft.effects };
};

const happen = (draft: Draft, happening: Happening): void => {
  const { election } = draft;
  if (table[election.state.name] === undefined) return;
  apply(always, draft, happening);
  apply(table[election.state.name], draft, happening);
  if (election.state === draft.started) return;
  draft.started = election.state;
  happen(draft, { type: 'start' });
};

/** Starts the call to the store that the state needs. Starting none can change the state, which may then need one. */
const idle = (draft: Draft): void => {
  const { name } = draft.election.state;
  if (draft.isBusy) return;
  happen(draft, { type: 'idle' });
  if (draft.election.state.name !== name) idle(draft);
};

const apply = (rules: Rules<never> | undefined, draft: Draft, happening: Happening): void => {
  const rule = rules?.[happening.type] as ((...args: readonly unknown[]) => void) | undefined;
  rule?.(draft, draft.election.state, happening);
};
