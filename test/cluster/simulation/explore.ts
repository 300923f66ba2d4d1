import type { ClusterKey } from '../../../src/cluster/election/cluster-key.js';
import {
  type CallResult,
  createElection,
  type Effect,
  type Election,
  type Input,
  isServing,
  nextTick,
  ownerOf,
  reportOf,
  roleOf,
} from '../../../src/cluster/election/election.js';
import { step } from '../../../src/cluster/election/step.js';
import { timingDefaults } from '../../../src/cluster/election/timing.js';

/** The result of an exhaustive search. */
export interface Exploration {
  readonly states: number;
  readonly transitions: number;
  readonly depth: number;
  /** States from which a fair continuation was run to its end. */
  readonly settled: number;
  /** How many of them end with a replica that still runs, because the store has lost the stop of the other one. */
  readonly lostStops: number;
  /** The first violation, with the transitions that lead to it. */
  readonly violation: string | undefined;
}

export interface ExploreOptions {
  /** Where the search begins: two replicas that start, or an owner with a follower. */
  readonly from: 'start' | 'owner';
  readonly depth: number;
  /** How many faults a path may contain; one of each kind at most. */
  readonly faults: number;
  readonly maxStates: number;
  /** From how many of the deepest states a fair continuation is run. */
  readonly settle: number;
}

/** What is under way. Time does not pass before it arrives, unless it is slow. */
type Pending = { readonly node: number; readonly isSlow?: true } & (
  | {
      readonly type: 'call';
      readonly id: number;
      readonly key?: ClusterKey;
      readonly expected?: number | undefined;
    }
  | { readonly type: 'handshake'; readonly feed: number }
);

interface Node {
  readonly election: Election;
  readonly isAlive: boolean;
  readonly isPaused: boolean;
  readonly isCut: boolean;
  readonly wallShift: number;
  /** The attempt of the feed, and how many there were. */
  readonly feed: { readonly number: number; readonly phase: 'ticket' | 'waiting' | 'sent' | 'open' } | undefined;
  readonly feeds: number;
  /** What arrived while the replica was paused. */
  readonly inbox: readonly Input[];
  /** What the service has sent, in order. */
  readonly notices: readonly { readonly feed: number; readonly what: 'opened' | 'replaced' | 'dropped' }[];
}

interface Version {
  readonly key: ClusterKey | undefined;
  readonly revision: number;
}

/** Two replicas, the store, the service and everything that is under way. Plain data. */
interface Place {
  readonly now: number;
  readonly nodes: readonly Node[];
  readonly store: readonly Version[];
  readonly live: { readonly node: number; readonly feed: number } | 'foreign' | undefined;
  readonly pending: readonly Pending[];
  readonly faults: readonly string[];
  readonly violation: string | undefined;
}

/** A transition: its name, and the place that it leads to. */
type Move = readonly [string, () => Place];

const nodeAt = (place: Place, n: number): Node => place.nodes[n]!;
const withNode = (place: Place, n: number, fields: Partial<Node>): Place => ({
  ...place,
  nodes: place.nodes.map((node, index) => (index === n ? { ...node, ...fields } : node)),
});
const versionOf = ({ store }: Place): Version => store.at(-1)!;
const revisionOf = ({ key, revision }: Version): number | undefined => (key === undefined ? undefined : revision);

/** Gives an input to a replica, and performs its effects. Messages arrive at once. */
const give = (before: Place, n: number, input: Input): Place => {
  const node = nodeAt(before, n);
  if (!node.isAlive) return before;
  if (node.isPaused) return withNode(before, n, { inbox: [...node.inbox, input] });
  const clock = {
    now: before.now,
    wall: before.now + 1e6 + node.wallShift,
    random: n === 0 ? 0.2 : 0.8,
    followed: { gen: 0, owner: '' },
  };
  const { state, effects } = step(node.election, input, clock);
  return effects.reduce((place, effect) => perform(place, n, effect), withNode(before, n, { election: state }));
};

const toOther = (place: Place, n: number, input: Input): Place => {
  const isThrough = ![0, 1].some((each) => nodeAt(place, each).isCut);
  return isThrough ? give(place, 1 - n, input) : place;
};

const perform = (place: Place, n: number, effect: Effect): Place => {
  const node = nodeAt(place, n);
  switch (effect.type) {
    case 'read':
      return { ...place, pending: [...place.pending, { type: 'call', node: n, id: effect.id }] };
    case 'write': {
      const { id, key, expected } = effect;
      return { ...place, pending: [...place.pending, { type: 'call', node: n, id, key, expected }] };
    }
    case 'ask':
      return asked(place, n, effect);
    case 'beat':
      return toOther(place, n, { type: 'heard', report: effect.report });
    case 'presence':
      return toOther(place, n, { type: 'standby', presence: effect.presence });
    case 'offer':
      return toOther(place, n, { type: 'offer', offer: effect.offer });
    case 'voided':
      return toOther(place, n, { type: 'voided', gen: effect.gen });
    case 'evicted':
      return toOther(place, n, { type: 'evicted', evictions: effect.evictions });
    case 'stop-notice':
      return toOther(place, n, { type: 'stop-notice' });
    case 'open':
      return withNode(leaveService(place, n), n, nextAttempt(node));
    case 'allow': {
      const { feed } = node;
      if (feed?.phase !== 'waiting') return place;
      const sent = withNode(place, n, { feed: { ...feed, phase: 'sent' } });
      return { ...sent, pending: [...sent.pending, { type: 'handshake', node: n, feed: feed.number }] };
    }
    case 'close':
      return withNode(leaveService(place, n), n, { feed: undefined });
    case 'fail':
      return place.faults.includes('foreign') || !effect.isReplaced
        ? place
        : { ...place, violation: `replica ${n} stops, although no other client has connected` };
    case 'answer':
    case 'end':
    case 'left':
      return place;
  }
};

const nextAttempt = ({ feeds }: Node): Pick<Node, 'feed' | 'feeds'> => ({
  feed: { number: feeds + 1, phase: 'ticket' },
  feeds: feeds + 1,
});

const asked = (place: Place, n: number, { id, question }: Extract<Effect, { readonly type: 'ask' }>): Place => {
  const other = nodeAt(place, 1 - n);
  if (nodeAt(place, n).isCut) return place;
  if (!other.isAlive || !isServing(other.election)) return give(place, n, { type: 'ask', id, result: 'no-responders' });
  if (other.isPaused || other.isCut) return place;
  const after = give(place, 1 - n, { type: 'asked', question });
  const result = reportOf(nodeAt(after, 1 - n).election) ?? reportOf(other.election)!;
  return give(after, n, { type: 'ask', id, result });
};

const leaveService = (place: Place, n: number): Place =>
  place.live !== 'foreign' && place.live?.node === n ? { ...place, live: undefined } : place;

const without = (place: Place, pending: Pending): Place => ({
  ...place,
  pending: place.pending.filter((each) => each !== pending),
});

/** Performs an access to the store, and delivers its result unless `isLost`. */
const access = (before: Place, call: Extract<Pending, { readonly type: 'call' }>, isLost: boolean): Place => {
  const newest = versionOf(before);
  const rest = without(before, call);
  const isWrite = call.key !== undefined;
  const isConflict = isWrite && revisionOf(newest) !== call.expected;
  const revision = newest.revision + 1;
  const place =
    isWrite && !isConflict ? { ...rest, store: [...rest.store, { key: call.key, revision }].slice(-2) } : rest;
  if (isLost || nodeAt(place, call.node).isCut) return place;
  const entry: CallResult = { type: 'entry', key: newest.key, revision: revisionOf(newest) };
  const written: CallResult = isConflict ? { type: 'conflict' } : { type: 'written', revision };
  return give(place, call.node, { type: 'call', id: call.id, result: isWrite ? written : entry });
};

const notify = (place: Place, n: number, feed: number, what: Node['notices'][number]['what']): Place =>
  withNode(place, n, { notices: [...nodeAt(place, n).notices, { feed, what }] });

const evict = (place: Place): Place =>
  place.live === undefined || place.live === 'foreign'
    ? place
    : notify(place, place.live.node, place.live.feed, 'replaced');

const arrive = (before: Place, handshake: Extract<Pending, { readonly type: 'handshake' }>): Place => {
  const { node, feed } = handshake;
  const place = evict(without(before, handshake));
  const isThere = nodeAt(place, node).isAlive && nodeAt(place, node).feed?.number === feed;
  if (!isThere) return { ...place, live: undefined };
  return notify({ ...place, live: { node, feed } }, node, feed, 'opened');
};

const receiveNotice = (before: Place, n: number): Place => {
  const node = nodeAt(before, n);
  const [notice, ...notices] = node.notices;
  const place = withNode(before, n, { notices });
  if (notice === undefined || node.feed?.number !== notice.feed) return place;
  switch (notice.what) {
    case 'opened':
      return give(withNode(place, n, { feed: { ...node.feed, phase: 'open' } }), n, { type: 'opened' });
    case 'replaced':
      return give(withNode(place, n, { feed: undefined }), n, { type: 'failed', isReplaced: true });
    case 'dropped':
      return give(withNode(place, n, nextAttempt(node)), n, { type: 'disconnected', isUnanswered: false });
  }
};

const resume = (place: Place, n: number): Place => {
  const { inbox } = nodeAt(place, n);
  const awake = give(withNode(place, n, { isPaused: false, inbox: [] }), n, { type: 'tick' });
  return inbox.reduce((each, input) => give(each, n, input), awake);
};

const passTime = (place: Place): Place => {
  const awake = place.nodes.map((node) => (node.isAlive && !node.isPaused ? nextTick(node.election) : Infinity));
  const now = Math.max(place.now, Math.min(...awake));
  if (now === Infinity) return place;
  const due = awake.flatMap((at, n) => (at <= now ? [n] : []));
  return due.reduce((each, n) => give(each, n, { type: 'tick' }), { ...place, now });
};

/** What can happen without a fault. Time passes only when nothing else is due. */
const moves = (place: Place): readonly Move[] => {
  const running = place.nodes.flatMap((node, n) => (node.isAlive && !node.isPaused ? [[node, n] as const] : []));
  const due: readonly Move[] = [
    ...running.flatMap(([{ feed }, n]): readonly Move[] =>
      feed?.phase === 'ticket' ? [[`ticket of ${n}`, () => receiveTicket(place, n)]] : [],
    ),
    ...place.pending.filter(({ isSlow }) => !isSlow).map((pending) => arrival(place, pending)),
    ...running.flatMap(([{ notices }, n]): readonly Move[] =>
      notices[0] ? [[`${n} is ${notices[0].what}`, () => receiveNotice(place, n)]] : [],
    ),
  ];
  const slow: readonly Move[] = [
    ...place.pending.filter(({ isSlow }) => isSlow).map((pending) => arrival(place, pending)),
    ...place.nodes.flatMap((node, n): readonly Move[] =>
      node.isPaused ? [[`${n} continues`, () => resume(place, n)]] : [],
    ),
    ...place.nodes.flatMap((node, n): readonly Move[] =>
      node.isCut ? [[`${n} is connected again`, () => withNode(place, n, { isCut: false })]] : [],
    ),
  ];
  return due.length > 0 ? [...due, ...slow] : [...slow, ['time passes', () => passTime(place)]];
};

const receiveTicket = (place: Place, n: number): Place => {
  const { feed } = nodeAt(place, n);
  return feed === undefined
    ? place
    : give(withNode(place, n, { feed: { ...feed, phase: 'waiting' } }), n, { type: 'handshake' });
};

const arrival = (place: Place, pending: Pending): Move =>
  pending.type === 'call'
    ? [`${pending.key ? 'write' : 'read'} of ${pending.node}`, () => access(place, pending, false)]
    : [`handshake of ${pending.node}`, () => arrive(place, pending)];

/** One fault of each kind. */
const faultMoves = (place: Place): readonly Move[] => {
  const all: readonly Move[] = [
    ...place.nodes.flatMap(({ isAlive, isPaused, isCut, election, wallShift }, n): readonly Move[] => {
      if (!isAlive) return [];
      const isDown = isPaused || isCut;
      const kill = (): Place => withNode(leaveService(place, n), n, { isAlive: false, feed: undefined });
      return [
        ...(isDown ? [] : [[`pause ${n}`, () => withNode(place, n, { isPaused: true })] as const]),
        ...(isDown ? [] : [[`cut ${n}`, () => withNode(place, n, { isCut: true })] as const]),
        ...(place.nodes.every((node) => node.isAlive) ? [[`kill ${n}`, kill] as const] : []),
        ...(isPaused || ownerOf(election) === undefined
          ? []
          : [[`hand-over ${n}`, () => give(place, n, { type: 'hand-over' })] as const]),
        [`jump ${n}`, () => withNode(place, n, { wallShift: wallShift + 10_000 })],
      ];
    }),
    ...place.pending.flatMap((pending): readonly Move[] =>
      pending.type === 'call' ? [[`lose the answer of ${pending.node}`, () => access(place, pending, true)]] : [],
    ),
    ...place.pending.flatMap((pending): readonly Move[] =>
      pending.isSlow ? [] : [[`slow ${pending.type} of ${pending.node}`, () => slowed(place, pending)]],
    ),
    ...(versionOf(place).key === undefined
      ? []
      : [['wipe', () => ({ ...place, store: [{ key: undefined, revision: 0 }] })] as const]),
    ...(place.store.length < 2 ? [] : [['roll back', () => ({ ...place, store: place.store.slice(0, 1) })] as const]),
    ...(place.live === undefined || place.live === 'foreign' ? [] : [['drop', () => drop(place)] as const]),
    ['foreign', () => ({ ...evict(place), live: 'foreign' })],
  ];
  return all.flatMap(([name, run]): readonly Move[] => {
    const kind = name.replace(/ of \d| \d/, '');
    return place.faults.includes(kind) ? [] : [[name, () => ({ ...run(), faults: [...place.faults, kind].sort() })]];
  });
};

const slowed = (place: Place, slow: Pending): Place => ({
  ...place,
  pending: place.pending.map((each) => (each === slow ? { ...each, isSlow: true } : each)),
});

const drop = (place: Place): Place => {
  const { live } = place;
  if (live === undefined || live === 'foreign') return place;
  return notify({ ...place, live: undefined }, live.node, live.feed, 'dropped');
};

/** The limit of a store that loses acknowledged writes: one replica has stopped, and the store cannot show it to the other one. */
const lostStop = 'the store has lost the stop';

/** Continues without faults: everything under way arrives before time passes. Returns what is wrong in the end. */
const settle = (start: Place): string | undefined => {
  let place = start;
  const until = place.now + 45_000;
  for (let n = 0; place.now < until && n < 5_000; n += 1) {
    const next = moves(place)[0]!;
    place = next[1]();
    if (place.violation) return place.violation;
  }
  const alive = place.nodes.filter(
    ({ isAlive, election }) => isAlive && !['stopped', 'left'].includes(roleOf(election)),
  );
  if (alive.length === 0) return undefined;
  const owners = alive.filter(({ election }) => ownerOf(election) !== undefined);
  const isPartlyStopped =
    alive.length < place.nodes.filter(({ isAlive, election }) => isAlive && roleOf(election) !== 'left').length;
  // A store that has lost the stop cannot show it to the other replica.
  const hasLostData = place.faults.some((fault) => ['wipe', 'roll back'].includes(fault));
  if (isPartlyStopped && !hasLostData) return 'one replica has stopped, and another one has not';
  if (owners.length !== 1) return `${owners.length} owners in the end`;
  if (owners[0]!.feed?.phase !== 'open') return 'the owner has no connection in the end';
  if (place.live === undefined || place.live === 'foreign' || nodeAt(place, place.live.node) !== owners[0])
    return 'the service is not connected to the owner in the end';
  return isPartlyStopped ? lostStop : undefined;
};

const relativeNames = new Set([
  ...['revisionAt', 'heardAt', 'precedenceUntil', 'at', 'wall', 'until', 'sentAt', 'sentWall', 'now'],
]);
// Places that differ only in these are equal: they are constant, or no decision depends on them.
const ignoredNames = new Set(['settings', 'lastId', 'since', 'changes']);
const relativeLists = new Set(['timers', 'claims']);

/** Returns the text of a place in which times are relative, so that places that differ only in time are equal. */
const keyOf = (place: Place): string => {
  const { now } = place;
  const ids = new Map<number, number>();
  const idOf = (id: number): number => {
    if (!ids.has(id)) ids.set(id, ids.size);
    return ids.get(id)!;
  };
  const relative = (value: number): number => Math.round(value - now);
  return JSON.stringify(place, (name, value: unknown) => {
    if (ignoredNames.has(name)) return undefined;
    if ((name === 'id' || name === 'ask') && typeof value === 'number') return idOf(value);
    if (relativeNames.has(name) && typeof value === 'number') return relative(value > 9e5 ? value - 1e6 : value);
    if (relativeLists.has(name) && typeof value === 'object' && value !== null)
      return Object.entries(value).map(([each, at]) => [each, typeof at === 'number' ? relative(at) : (at as unknown)]);
    return value;
  });
};

const begin = (): Place => {
  const node = (n: number): Node => ({
    election: createElection({ replica: `r${n}`, since: n, feed: 'market', canOwn: true, ...timingDefaults }, true),
    ...{ isAlive: true, isPaused: false, isCut: false, wallShift: 0, feed: undefined, feeds: 0 },
    ...{ inbox: [], notices: [] },
  });
  const place: Place = {
    ...{ now: 0, nodes: [node(0), node(1)], store: [{ key: undefined, revision: 0 }], live: undefined },
    ...{ pending: [], faults: [], violation: undefined },
  };
  return [0, 1].reduce((each, n) => give(each, n, { type: 'start' }), place);
};

const beginWithOwner = (): Place => {
  let place = begin();
  for (let n = 0; n < 60; n += 1) place = moves(place)[0]![1]();
  return place;
};

interface Visited {
  readonly place: Place;
  readonly name: string;
  readonly before: Visited | undefined;
}

const pathOf = (visited: Visited | undefined): readonly string[] =>
  visited === undefined ? [] : [...pathOf(visited.before), `${visited.place.now} ms: ${visited.name}`];

/** Searches every order of events and faults, breadth first, up to a depth or a number of states. */
export const explore = (options: ExploreOptions): Exploration => {
  const { from, depth: maxDepth, faults, maxStates, settle: settleCount } = options;
  const first: Visited = { place: from === 'start' ? begin() : beginWithOwner(), name: from, before: undefined };
  const known = new Set([keyOf(first.place)]);
  let layer: readonly Visited[] = [first];
  let [transitions, depth, settled, lostStops] = [0, 0, 0, 0];
  let isFull = false;
  const found = (at?: Visited, what?: string): Exploration => {
    const violation = what === undefined ? undefined : [...pathOf(at), what].join('\n');
    return { states: known.size, transitions, depth, settled, lostStops, violation };
  };
  while (depth < maxDepth && layer.length > 0 && !isFull) {
    const next: Visited[] = [];
    for (const visited of layer) {
      const { place: before } = visited;
      for (const [name, move] of [...moves(before), ...(before.faults.length < faults ? faultMoves(before) : [])]) {
        transitions += 1;
        const place = move();
        const reached: Visited = { place, name, before: visited };
        if (place.violation !== undefined) return found(reached, place.violation);
        const key = keyOf(place);
        if (!known.has(key)) next.push(reached);
        known.add(key);
      }
      isFull = known.size >= maxStates;
      if (isFull) break;
    }
    if (!isFull) depth += 1;
    layer = next;
  }
  const every = Math.max(1, Math.floor(layer.length / Math.max(1, settleCount)));
  for (let n = 0; n < layer.length && settled < settleCount; n += every) {
    settled += 1;
    const violation = settle(layer[n]!.place);
    if (violation === lostStop) lostStops += 1;
    else if (violation !== undefined) return found(layer[n], violation);
  }
  return found();
};
