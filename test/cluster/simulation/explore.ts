import type { ClusterKey } from '../../../src/cluster/election/cluster-key.js';
import {
  type Effect,
  Election,
  type Entry,
  type Input,
  isServing,
  nextTick,
  ownerOf,
  reportOf,
  roleOf,
} from '../../../src/cluster/election/election.js';
import { step } from '../../../src/cluster/election/step.js';
import { timingDefaults } from '../../../src/cluster/election/timing.js';

export interface ExploreOptions {
  /** Where the search begins: two replicas that start, or an owner with a follower. */
  readonly from: 'start' | 'owner';
  /** How many faults a path may contain; one of each kind at most. */
  readonly faults: number;
  readonly maxStates: number;
  /** How many of the deepest states get a fair continuation. */
  readonly settle: number;
}

type EffectOf<Type extends Effect['type']> = Extract<Effect, { readonly type: Type }>;

/** What's under way. Time doesn't pass before it arrives, unless it's slow. */
type Pending = { readonly node: number; readonly isSlow?: true } & (
  EffectOf<'read'> | EffectOf<'write'> | { readonly type: 'handshake'; readonly feed: number }
);

interface Node {
  election: Election;
  isAlive: boolean;
  isPaused: boolean;
  isCut: boolean;
  wallShift: number;
  /** The attempt of the feed, and how many there were. */
  feed: { readonly number: number; readonly phase: 'ticket' | 'waiting' | 'sent' | 'open' } | undefined;
  feeds: number;
  /** What arrived while the replica was paused. */
  inbox: readonly Input[];
  /** What the service has sent, in order. */
  notices: readonly { readonly feed: number; readonly what: 'opened' | 'replaced' | 'dropped' }[];
}

/** Two replicas, the store, the service and everything under way. Plain data that only its own move changes. */
interface Place {
  now: number;
  readonly nodes: readonly [Node, Node];
  /** The last two versions. */
  store: readonly { readonly key: ClusterKey | undefined; readonly revision: number }[];
  live: { readonly node: number; readonly feed: number } | 'foreign' | undefined;
  pending: readonly Pending[];
  faults: readonly string[];
  violation: string | undefined;
}

type Move = readonly [name: string, run: (place: Place) => void];

const after = (before: Place, [, run]: Move): Place => {
  const [one, other] = before.nodes;
  const place: Place = { ...before, nodes: [{ ...one }, { ...other }] };
  run(place);
  return place;
};

const nodeAt = ({ nodes }: Place, n: number): Node => nodes[n]!;
const entryOf = ({ store }: Place): Entry => {
  const { key, revision } = store.at(-1)!;
  return { key, revision: key && revision };
};

/** Gives an input to a replica, and performs its effects. Messages arrive at once. */
const give = (place: Place, n: number, input: Input): void => {
  const node = nodeAt(place, n);
  if (!node.isAlive) return;
  if (node.isPaused) {
    node.inbox = [...node.inbox, input];
    return;
  }
  const [wall, random] = [place.now + 1e6 + node.wallShift, n === 0 ? 0.2 : 0.8];
  const clock = { now: place.now, wall, random, followed: { gen: 0, owner: '' } };
  const { state, effects } = step(node.election, input, clock);
  node.election = state;
  for (const effect of effects) perform(place, n, effect);
};

const giveOther = (place: Place, n: number, input: Input): void => {
  if (!place.nodes.some(({ isCut }) => isCut)) give(place, 1 - n, input);
};

const perform = (place: Place, n: number, effect: Effect): void => {
  const node = nodeAt(place, n);
  switch (effect.type) {
    case 'read':
    case 'write':
      place.pending = [...place.pending, { ...effect, node: n }];
      return;
    case 'ask':
      return ask(place, n, effect);
    case 'beat':
      return giveOther(place, n, { type: 'heard', report: effect.report });
    case 'presence':
      return giveOther(place, n, { type: 'standby', presence: effect.presence });
    case 'offer':
      return giveOther(place, n, { type: 'offer', offer: effect.offer });
    case 'voided':
    case 'evicted':
    case 'stop-notice':
      return giveOther(place, n, effect);
    case 'open':
      leaveService(place, n);
      return startAttempt(node);
    case 'allow':
      if (node.feed?.phase !== 'waiting') return;
      node.feed = { ...node.feed, phase: 'sent' };
      place.pending = [...place.pending, { type: 'handshake', node: n, feed: node.feed.number }];
      return;
    case 'close':
      leaveService(place, n);
      node.feed = undefined;
      return;
    case 'fail':
      if (place.faults.includes('foreign') || !effect.isReplaced) return;
      place.violation = `replica ${n} stops, although no other client has connected`;
      return;
    case 'answer':
    case 'end':
    case 'left':
  }
};

const startAttempt = (node: Node): void => {
  node.feeds += 1;
  node.feed = { number: node.feeds, phase: 'ticket' };
};

const ask = (place: Place, n: number, { id, question }: EffectOf<'ask'>): void => {
  const other = nodeAt(place, 1 - n);
  if (nodeAt(place, n).isCut) return;
  if (!other.isAlive || !isServing(other.election)) return give(place, n, { type: 'ask', id, result: 'no-responders' });
  if (other.isPaused || other.isCut) return;
  const before = reportOf(other.election)!;
  give(place, 1 - n, { type: 'asked', question });
  give(place, n, { type: 'ask', id, result: reportOf(other.election) ?? before });
};

const leaveService = (place: Place, n: number): void => {
  if (place.live !== 'foreign' && place.live?.node === n) place.live = undefined;
};

const remove = (place: Place, pending: Pending): void => {
  place.pending = place.pending.filter((each) => each !== pending);
};

/** Performs a call to the store, and delivers its result unless `isLost`. */
const access = (place: Place, call: Exclude<Pending, { readonly type: 'handshake' }>, isLost = false): void => {
  const entry = entryOf(place);
  const { node, id } = call;
  const isConflict = call.type === 'write' && entry.revision !== call.expected;
  const revision = place.store.at(-1)!.revision + 1;
  remove(place, call);
  if (call.type === 'write' && !isConflict) place.store = [...place.store, { key: call.key, revision }].slice(-2);
  if (isLost || nodeAt(place, node).isCut) return;
  if (call.type === 'read') return give(place, node, { type: 'call', id, result: { type: 'entry', ...entry } });
  const result = isConflict ? ({ type: 'conflict' } as const) : ({ type: 'written', revision } as const);
  give(place, node, { type: 'call', id, result });
};

/** Ends the service's current connection. */
const endLive = (place: Place, what: 'replaced' | 'dropped'): void => {
  const { live } = place;
  place.live = undefined;
  if (live !== undefined && live !== 'foreign') notify(nodeAt(place, live.node), live.feed, what);
};

const notify = (node: Node, feed: number, what: Node['notices'][number]['what']): void => {
  node.notices = [...node.notices, { feed, what }];
};

const arrive = (place: Place, handshake: Extract<Pending, { readonly type: 'handshake' }>): void => {
  const { node: n, feed } = handshake;
  const node = nodeAt(place, n);
  remove(place, handshake);
  endLive(place, 'replaced');
  if (!node.isAlive || node.feed?.number !== feed) return;
  place.live = { node: n, feed };
  notify(node, feed, 'opened');
};

const receiveNotice = (place: Place, n: number): void => {
  const node = nodeAt(place, n);
  const [notice, ...notices] = node.notices;
  node.notices = notices;
  if (notice === undefined || node.feed?.number !== notice.feed) return;
  switch (notice.what) {
    case 'opened':
      node.feed = { ...node.feed, phase: 'open' };
      return give(place, n, { type: 'opened' });
    case 'replaced':
      node.feed = undefined;
      return give(place, n, { type: 'failed', isReplaced: true });
    case 'dropped':
      startAttempt(node);
      return give(place, n, { type: 'disconnected', isUnanswered: false });
  }
};

const receiveTicket = (place: Place, n: number): void => {
  const node = nodeAt(place, n);
  if (node.feed) node.feed = { ...node.feed, phase: 'waiting' };
  give(place, n, { type: 'handshake' });
};

const resume = (place: Place, n: number): void => {
  const node = nodeAt(place, n);
  const { inbox } = node;
  [node.isPaused, node.inbox] = [false, []];
  for (const input of [{ type: 'tick' } as const, ...inbox]) give(place, n, input);
};

const passTime = (place: Place): void => {
  const ticks = place.nodes.map((node) => (node.isAlive && !node.isPaused ? nextTick(node.election) : Infinity));
  const now = Math.max(place.now, Math.min(...ticks));
  if (now === Infinity) return;
  place.now = now;
  for (const [n, at] of ticks.entries()) if (at <= now) give(place, n, { type: 'tick' });
};

/** Collects the moves that are possible. */
const collect = (fill: (add: (isPossible: boolean, name: string, run: Move[1]) => void) => void): readonly Move[] => {
  const all: Move[] = [];
  fill((isPossible, ...move) => {
    if (isPossible) all.push(move);
  });
  return all;
};

const arrivals = ({ pending }: Place, areSlow: boolean): readonly Move[] =>
  pending
    .filter(({ isSlow = false }) => isSlow === areSlow)
    .map((each) => [
      `${each.type} of ${each.node}`,
      (place) => (each.type === 'handshake' ? arrive(place, each) : access(place, each)),
    ]);

/** Moves without a fault. Time passes only when nothing else is due. */
const moves = (place: Place): readonly Move[] => {
  const awake = [...place.nodes.entries()].filter(([, { isAlive, isPaused }]) => isAlive && !isPaused);
  const due: readonly Move[] = [
    ...collect((add) => {
      for (const [n, { feed }] of awake)
        add(feed?.phase === 'ticket', `ticket of ${n}`, (next) => receiveTicket(next, n));
    }),
    ...arrivals(place, false),
    ...collect((add) => {
      for (const [n, { notices }] of awake)
        add(notices.length > 0, `${n} is ${notices[0]?.what}`, (next) => receiveNotice(next, n));
    }),
  ];
  const slow: readonly Move[] = [
    ...arrivals(place, true),
    ...collect((add) => {
      for (const [n, { isPaused }] of place.nodes.entries()) add(isPaused, `${n} continues`, (next) => resume(next, n));
      for (const [n, { isCut }] of place.nodes.entries())
        add(isCut, `${n} is connected again`, ({ nodes }) => void (nodes[n]!.isCut = false));
    }),
  ];
  return due.length > 0 ? [...due, ...slow] : [...slow, ['time passes', passTime]];
};

const kill = (place: Place, n: number): void => {
  leaveService(place, n);
  Object.assign(nodeAt(place, n), { isAlive: false, feed: undefined });
};

const slow = (place: Place, pending: Pending): void => {
  place.pending = place.pending.map((each) => (each === pending ? { ...each, isSlow: true } : each));
};

/** One fault of each kind. */
const faultMoves = (place: Place): readonly Move[] =>
  collect((add) => {
    const addFault: typeof add = (isPossible, name, run) => {
      const kind = name.replace(/ of \d| \d/, '');
      add(isPossible && !place.faults.includes(kind), name, (next) => {
        run(next);
        next.faults = [...next.faults, kind].sort();
      });
    };
    const areAllAlive = place.nodes.every(({ isAlive }) => isAlive);
    for (const [n, { isAlive, isPaused, isCut, election }] of place.nodes.entries()) {
      const isOwner = ownerOf(election) !== undefined;
      addFault(isAlive && !isPaused && !isCut, `pause ${n}`, ({ nodes }) => void (nodes[n]!.isPaused = true));
      addFault(isAlive && !isPaused && !isCut, `cut ${n}`, ({ nodes }) => void (nodes[n]!.isCut = true));
      addFault(areAllAlive, `kill ${n}`, (next) => kill(next, n));
      addFault(isAlive && !isPaused && isOwner, `hand-over ${n}`, (next) => give(next, n, { type: 'hand-over' }));
      addFault(isAlive, `jump ${n}`, ({ nodes }) => void (nodes[n]!.wallShift += 10_000));
    }
    for (const each of place.pending)
      if (each.type !== 'handshake')
        addFault(true, `lose the answer of ${each.node}`, (next) => access(next, each, true));
    for (const each of place.pending) {
      const kind = each.type === 'handshake' ? each.type : 'call';
      addFault(!each.isSlow, `slow ${kind} of ${each.node}`, (next) => slow(next, each));
    }
    const isKept = entryOf(place).key !== undefined;
    addFault(isKept, 'wipe', (next) => void (next.store = [{ key: undefined, revision: 0 }]));
    addFault(place.store.length > 1, 'roll back', (next) => void (next.store = next.store.slice(0, 1)));
    const isLive = place.live !== undefined && place.live !== 'foreign';
    addFault(isLive, 'drop', (next) => endLive(next, 'dropped'));
    addFault(true, 'foreign', (next) => {
      endLive(next, 'replaced');
      next.live = 'foreign';
    });
  });

/** Continues without faults: all that's under way arrives before time passes. Returns what's wrong at the end. */
const settle = (start: Place): string | undefined => {
  let place = start;
  const until = place.now + 45_000;
  for (let n = 0; place.now < until && n < 5_000; n += 1) {
    place = after(place, moves(place)[0]!);
    if (place.violation) return place.violation;
  }
  const running = place.nodes.filter(({ isAlive, election }) => isAlive && roleOf(election) !== 'left');
  const alive = running.filter(({ election }) => roleOf(election) !== 'stopped');
  if (alive.length === 0) return undefined;
  const owners = alive.filter(({ election }) => ownerOf(election) !== undefined);
  const isPartlyStopped = alive.length < running.length;
  // A store that has lost the stop can't show it to the other replica.
  const hasLostData = place.faults.some((fault) => ['wipe', 'roll back'].includes(fault));
  if (isPartlyStopped && !hasLostData) return 'one replica has stopped, and another one has not';
  if (owners.length !== 1) return `${owners.length} owners in the end`;
  if (owners[0]!.feed?.phase !== 'open') return 'the owner has no connection in the end';
  if (place.live === undefined || place.live === 'foreign' || nodeAt(place, place.live.node) !== owners[0])
    return 'the service is not connected to the owner in the end';
  return undefined;
};

const relativeNames = new Set([...['revisionAt', 'heardAt', 'precedenceUntil', 'at', 'wall', 'until', 'now']]);
// Places that differ only in these are equal: they're constant, or no decision depends on them.
const ignoredNames = new Set(['settings', 'lastId', 'since', 'changes']);
const relativeLists = new Set(['timers', 'claims']);

/** Returns a place as text with relative times, so that places that differ only in time are equal. */
const keyOf = (place: Place): string => {
  const ids = new Map<number, number>();
  const idOf = (id: number): number => ids.get(id) ?? ids.set(id, ids.size).size - 1;
  const relative = (value: unknown): unknown => (typeof value === 'number' ? Math.round(value - place.now) : value);
  return JSON.stringify(place, (name, value: unknown) => {
    if (ignoredNames.has(name)) return undefined;
    if (typeof value === 'number' && (name === 'id' || name === 'ask')) return idOf(value);
    if (typeof value === 'number' && relativeNames.has(name)) return relative(value > 9e5 ? value - 1e6 : value);
    if (relativeLists.has(name)) return Object.entries(value as object).map(([each, at]) => [each, relative(at)]);
    return value;
  });
};

const begin = (): Place => {
  const node = (n: number): Node => ({
    election: new Election({ replica: `r${n}`, since: n, source: 'market', canOwn: true, ...timingDefaults }, true),
    ...{ isAlive: true, isPaused: false, isCut: false, wallShift: 0, feed: undefined, feeds: 0 },
    ...{ inbox: [], notices: [] },
  });
  const place: Place = {
    ...{ now: 0, nodes: [node(0), node(1)], store: [{ key: undefined, revision: 0 }], live: undefined },
    ...{ pending: [], faults: [], violation: undefined },
  };
  for (const n of [0, 1]) give(place, n, { type: 'start' });
  return place;
};

const beginWithOwner = (): Place => {
  let place = begin();
  for (let n = 0; n < 60; n += 1) place = after(place, moves(place)[0]!);
  return place;
};

interface Visited {
  readonly place: Place;
  readonly name: string;
  readonly before: Visited | undefined;
}

const pathOf = (visited: Visited | undefined): readonly string[] =>
  visited === undefined ? [] : [...pathOf(visited.before), `${visited.place.now} ms: ${visited.name}`];

/**
 * Searches every order of events and faults, breadth first, up to a number of states. `settled`: states from which a fair
 * continuation was run to its end. `violation`: the first one, with its moves.
 */
export const explore = ({ from, faults, maxStates, settle: settleCount }: ExploreOptions) => {
  const first: Visited = { place: from === 'start' ? begin() : beginWithOwner(), name: from, before: undefined };
  const known = new Set([keyOf(first.place)]);
  let layer: readonly Visited[] = [first];
  let settled = 0;
  const found = (at?: Visited, what?: string) => {
    const violation = what === undefined ? undefined : [...pathOf(at), what].join('\n');
    return { states: known.size, settled, violation };
  };
  while (layer.length > 0 && known.size < maxStates) {
    const next: Visited[] = [];
    for (const visited of layer) {
      const { place: before } = visited;
      for (const move of [...moves(before), ...(before.faults.length < faults ? faultMoves(before) : [])]) {
        const reached: Visited = { place: after(before, move), name: move[0], before: visited };
        if (reached.place.violation !== undefined) return found(reached, reached.place.violation);
        const key = keyOf(reached.place);
        if (!known.has(key)) next.push(reached);
        known.add(key);
      }
      if (known.size >= maxStates) break;
    }
    layer = next;
  }
  const every = Math.max(1, Math.floor(layer.length / settleCount));
  for (let n = 0; n < layer.length && settled < settleCount; n += every) {
    settled += 1;
    const violation = settle(layer[n]!.place);
    if (violation !== undefined) return found(layer[n], violation);
  }
  return found();
};
