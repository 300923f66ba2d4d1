import { ownerOf, roleOf } from '../../../src/cluster/election/election.js';
import { timing } from '../../../src/cluster/election/timing.js';
import { freeDelayMs } from '../../../src/protocol/feed-state.js';
import { type Chance, createChance } from '../../simulation/chance.js';
import { planFaults } from '../../simulation/faults.js';
import { Timeline } from '../../simulation/timeline.js';
import { Time } from '../../simulation/world.js';
import { createEngine } from './engine.js';
import { faults, lineFaults, repair } from './faults.js';
import { LineServer } from './line.js';
import { createObserver, losses } from './observer.js';
import { passSlowlyTo, useProcesses } from './process.js';
import { type Client, createService, type Eviction } from './service.js';
import { SimulatedReplica, type World } from './simulated-replica.js';
import { createStore } from './store.js';

/** Another client of the account. `polite`: it connects once. `stubborn`: it reconnects after each eviction. */
type Foreign = 'none' | 'polite' | 'stubborn';

/** What happens in a run, unless the seed decides. */
export interface RunOptions {
  readonly faultNames?: readonly string[];
  readonly foreign?: Foreign;
  /** Whether the engine stores the line. */
  readonly hasLine?: boolean;
}

/** The result of a run. */
export type Run = Awaited<ReturnType<typeof simulate>>;

/** How often in a minute the replicas may evict a foreign client that has evicted one of them. A store that loses data loses the count. */
const maxEvictions = 3;
/** Whether an owner that was cut off sent the handshake within its lease, after another one had claimed. */
const isOfEarlier = ({ generations: [gen = 0, by = gen] }: Eviction): boolean => by < gen;

/** Faults that hide replicas from each other, so one with a bad key can give up although another one could own. */
const hiding = [
  'network fails',
  'engine fails over',
  'pause',
  'suspend',
  'link refused',
  'black hole',
  'lost messages',
  'hand-over with losses',
  'engine away',
  'slow store',
  'long cut',
];

/** The key holds credits for this many late handshakes. One more looks like another client. */
const maxCredits = 2;

/** The longest time from the faults to the claims that they cause, and of a slow access to the store. */
const takeoverMs = 3_100;
/** How long the replicas have to agree after the faults: a late handshake, and the longest wait before a claim. */
const maxSettleMs = 65_000;
/** How long they must agree: longer than the time without a frame, by this much. */
const settledMs = 100;
const lookEveryMs = 250;
/** How long after the last frame all replicas must be at its end: a beat, and a read of the store. */
const quietMs = 1_000;
/** How long a reader may wait for a store, and the owner until it claims again, at most. */
const maxFollowMs = 10_000;
/** The line's chances are others, so that a run without one is the same. */
const lineSeeds = 1_000_000_000;

/** Decides in advance what happens in a run. Times in ms. */
const createPlan = (chance: Chance, options: RunOptions) => {
  const foreign = options.foreign ?? chance.oneOf(['none', 'none', 'polite', 'stubborn'] as const);
  const faultsUntilMs = chance.oneOf([4_000, 6_000, 12_000]);
  const names = options.faultNames ?? kindsOf(chance);
  const count = Math.ceil(chance.between(0, 12));
  const times = { fromMs: 500, untilMs: faultsUntilMs, mostMs: 8_000, closeMs: 1_500 };
  const planned = planFaults(chance, { names, count, ...times });
  /** How long the service holds each frame back: 500 on the Free plan. */
  const delayMs = chance.oneOf([0, freeDelayMs]);
  // With 0 on the Free plan, the application would have told us a wrong thing.
  const deliveryDelayMs = chance.oneOf(['auto', 'auto', freeDelayMs, delayMs] as const);
  const frameEveryMs = chance.oneOf([40, 200, 200, 700]);
  const line = { delayMs, deliveryDelayMs, frameEveryMs };
  return { ...line, foreign, foreignAtMs: chance.between(1_000, faultsUntilMs), faultsUntilMs, faults: planned };
};

/** Runs with this fault take several times as long, so few have it. */
const slowKind = 'very late handshakes';

// Few kinds per run make each combination of some of them frequent.
const kindsOf = (chance: Chance): readonly string[] => {
  const all = Object.keys(faults)
    .filter((name) => !lineFaults.includes(name))
    .filter((name) => name !== slowKind || chance.isTrue(0.1));
  const count = Math.ceil(chance.between(0, 6));
  return Array.from({ length: count }, () => chance.oneOf(all));
};

/** Runs three replicas with random faults in virtual time. The same seed creates the same run. */
export const simulate = async (seed: number, options: RunOptions = {}) => {
  const time = new Time();
  const restore = useProcesses(time);
  try {
    return await run(time, seed, options);
  } finally {
    restore();
  }
};

/** Decides whether the engine stores the line, and how. Its faults are in addition to the others. */
const createLinePlan = (chance: Chance, options: RunOptions, faultsUntilMs: number) => {
  if (!(options.hasLine ?? chance.isTrue(0.5))) return undefined;
  const kind = chance.oneOf(['ids', 'copies', 'script'] as const);
  const maxAgeMs = chance.oneOf([60_000, 60_000, 3_000]);
  const names = options.faultNames?.filter((name) => lineFaults.includes(name)) ?? lineFaults;
  const count = names.length > 0 ? Math.floor(chance.between(0, 6)) : 0;
  const times = { fromMs: 500, untilMs: faultsUntilMs, mostMs: 4_000, closeMs: 1_000 };
  return { kind, maxAgeMs, faults: planFaults(chance, { names, count, ...times }) };
};

const run = async (time: Time, seed: number, options: RunOptions) => {
  const chance = createChance(seed);
  const timeline = new Timeline(time);
  const record = (text: string): void => timeline.note(text);
  const plan = createPlan(chance, options);
  /** How long no frame may arrive: on the Free plan, the first one comes later. */
  const maxSilenceMs = Math.max(1_000, 2 * plan.frameEveryMs + plan.delayMs);
  const linePlan = createLinePlan(createChance(seed + lineSeeds), options, plan.faultsUntilMs);
  const passTo = (end: number): void | Promise<void> => (line ? passSlowlyTo(time, end) : time.passTo(end));
  const store = createStore();
  const observer = createObserver(time, timeline, plan.deliveryDelayMs === 'auto' ? 0 : plan.deliveryDelayMs);
  const line = linePlan && new LineServer(time, observer, linePlan.kind, linePlan.maxAgeMs);
  const service = createService(time, chance, plan.delayMs, record);
  const engine = createEngine<SimulatedReplica>(time, chance, store, line);
  const replicas: SimulatedReplica[] = [];
  const badKeys = new Set<string>();
  let hasForeignOpened = false;
  let isStopped = false;
  let isUnnoticedLoss = false;
  let uncounted = 0;
  let started = 0;
  let starting = 0;
  /** Faults can overlap, so good conditions don't prove that all are over. */
  let partsLeft = 0;
  let lastTarget: SimulatedReplica | undefined;

  const world: World = {
    ...{ time, chance, engine, service, observer, record, deliveryDelayMs: plan.deliveryDelayMs },
    onStopWritten: (isExact) => {
      const evictions = service.evictions.filter(({ at }) => time.now() - at < timing.creditMs);
      const late = service.late.filter((at) => time.now() - at < timing.creditMs).length;
      // An eviction whose credit is lost uses the credit of the next one.
      const hasLostReason = evictions.some(
        (each) =>
          store.hasLostReason(each.by.generation(), each.isSlow || each.isLate) ||
          (isOfEarlier(each) && store.hasHiddenOpening(each.by.generation())),
      );
      const isUnnoticed = isExact || late > maxCredits || hasLostReason;
      if (isUnnoticed && !hasForeignOpened) isUnnoticedLoss = true;
    },
    onUncounted: () => {
      uncounted += 1;
    },
    onFailed: (replica, isReplaced) => {
      if (!isReplaced) {
        // A replica stopped by a foreign client still runs, but isn't a candidate.
        if (timeline.times(...hiding) === 0 && alive().some(({ id }) => !badKeys.has(id)))
          timeline.wrong(`${replica.id} gives up although there are other candidates`);
        return;
      }
      isStopped = true;
      if (!hasForeignOpened && !isUnnoticedLoss)
        timeline.wrong(`${replica.id} stops, although no other client has opened a connection`);
    },
  };
  const start = (): void => {
    started += 1;
    const id = `r${started}`;
    const hasBadKey = started > 1 && chance.isTrue(0.05);
    if (hasBadKey) badKeys.add(id);
    const replica = new SimulatedReplica(world, id, hasBadKey);
    replica.start();
    replicas.push(replica);
  };

  for (let n = 0; n < 3; n += 1) time.after(chance.between(0, 300), start);
  let isQuiet = false;
  const pushFrames = (): void => {
    if (isQuiet) return;
    observer.seen(service.push(), time.now() + plan.delayMs);
    time.after(plan.frameEveryMs, pushFrames);
  };
  pushFrames();

  const alive = (): SimulatedReplica[] =>
    replicas.filter((each) => each.isAlive && roleOf(each.election) !== 'stopped');
  const ownerNow = (except?: SimulatedReplica): SimulatedReplica | undefined =>
    alive().find((each) => each !== except && ownerOf(each.election) !== undefined);
  const target = (): SimulatedReplica | undefined => {
    if (lastTarget?.isAlive && chance.isTrue(0.5)) return lastTarget;
    const owner = ownerNow();
    lastTarget = owner && chance.isTrue(0.6) ? owner : chance.oneOf([...alive(), undefined]);
    return lastTarget;
  };
  const targets = {
    ...{ chance, engine, service, store, timeline, target, alive, owner: ownerNow },
    later: (delayMs: number, action: () => void) => {
      partsLeft += 1;
      time.after(delayMs, () => {
        partsLeft -= 1;
        action();
      });
    },
    disturbAll: (forMs: number) => replicas.forEach((each) => each.disturb(forMs)),
    replace: (replica: SimulatedReplica, how: 'kill' | 'hand-over') => {
      if (how === 'kill') replica.kill();
      else replica.run(() => replica.input({ type: 'hand-over' }));
      starting += 1;
      time.after(chance.between(0, 5_000), () => {
        starting -= 1;
        start();
      });
    },
  };
  const historyLosses = (): number => timeline.times(...losses);
  for (const { name, beginMs, durationMs } of [...plan.faults, ...(linePlan?.faults ?? [])]) {
    timeline.count(name);
    time.after(beginMs, () => faults[name]!(targets, durationMs));
  }

  const foreign: Client = {
    name: 'foreign client',
    generation: () => undefined,
    disturbedAt: () => Infinity,
    answeredAt: () => Infinity,
    isThere: () => true,
    hasLeft: () => false,
    opened: () => void (hasForeignOpened = true),
    refused: () => reopenForeign(),
    closed: () => reopenForeign(),
    frame: () => undefined,
  };
  const openForeign = (): void => {
    hasForeignOpened = true;
    service.handshake(foreign, chance.between(1, 50), Infinity);
  };
  const reopenForeign = (): void => {
    if (plan.foreign === 'stubborn') time.after(chance.between(100, 1_000), openForeign);
  };
  if (plan.foreign !== 'none') time.after(plan.foreignAtMs, openForeign);

  /** Returns the final disagreements between all parts. */
  const disagreements = (): readonly string[] => {
    const running = alive();
    // A store that has lost the stop can't show it to the others.
    if (isStopped && historyLosses() > 0) return [];
    if (isStopped) return running.map(({ id }) => `stopped, but ${id} still runs`);
    if (running.every(({ id }) => badKeys.has(id))) return [];
    if (plan.foreign === 'stubborn') return ['there is a stubborn foreign client, and no replica has stopped'];
    const owners = running.filter((each) => ownerOf(each.election) !== undefined);
    const [owner] = owners;
    if (owners.length !== 1 || owner === undefined) return [`${owners.length} owners at the end`];
    const { gen } = ownerOf(owner.election)!;
    const run = `${gen} of ${owner.id}`;
    const live = service.live();
    return [
      ...(owner.hasConnection ? [] : [`${owner.id} owns, but has no connection`]),
      // The owner's own late handshake ends its connection, which it learns a little later.
      ...(live?.name === owner.id && live.isThere() ? [] : [`the service is connected to ${live?.name}`]),
      ...running
        .filter((each) => each.followed !== run)
        .map((each) => `${each.id} follows ${each.followed} instead of ${run}`),
      ...running
        .filter(({ id }) => time.now() - observer.lastFrameAt(id) > maxSilenceMs)
        .map(({ id }) => `${id} has received no frame for ${maxSilenceMs} ms`),
    ];
  };

  /** Returns where the replicas are, if they aren't all at the end of the line, and what the store lacks of it. */
  const endings = (): readonly string[] => {
    // Without an owner, nobody tells the others of a generation that only one has begun.
    const places = ownerNow() ? alive().flatMap(({ place }) => place ?? []) : [];
    const texts = new Set(places.map(({ gen, offset, frames, holes }) => `${gen}: ${offset} ${frames} ${holes}`));
    if (texts.size > 1) return [`the replicas end at ${[...texts].join(' and ')}`];
    return line && places[0] ? line.problems(places[0]) : [];
  };

  const settle = async (): Promise<void> => {
    const endMs = time.now() + maxSettleMs;
    await passTo(time.now() + takeoverMs);
    while (time.now() < endMs && (starting > 0 || service.isExpecting() || disagreements().length > 0))
      await passTo(time.now() + lookEveryMs);
    const wasStopped = isStopped;
    const connected = service.live();
    await passTo(time.now() + maxSilenceMs + settledMs);
    for (const each of disagreements()) timeline.wrong(each);
    if (!wasStopped && service.live() !== connected) timeline.wrong('the connection changed long after the faults');
    if (isStopped || timeline.violations.length > 0) return;
    isQuiet = true;
    await passTo(time.now() + plan.delayMs + quietMs);
    // A reader may have waited for records of a replaced owner, and must be told that this one isn't the last.
    const lastMs = time.now() + maxFollowMs;
    while (time.now() < lastMs && endings().length > 0) await passTo(time.now() + lookEveryMs);
    for (const each of endings()) timeline.wrong(each);
  };

  const checkEvictions = (): void => {
    const evictions = service.evictions.filter(
      ({ client, by, isLate, hasEvicted }) => client === foreign && by !== foreign && !isLate && hasEvicted,
    );
    // Each late handshake adds a credit, and a used one makes room for the next.
    const more = uncounted + Math.max(0, service.late.length - maxCredits);
    const limit = maxEvictions * (1 + historyLosses()) + more;
    if (evictions.some(({ at }) => evictions.filter((each) => each.at >= at && each.at < at + 60_000).length > limit))
      timeline.wrong(`the foreign client was evicted more than ${limit} times in a minute`);
  };

  const checkTakeovers = (): void => {
    for (const {
      at,
      client,
      by,
      hasLeft,
      isSlow,
      wasHealthy,
      generations: [older, newer],
    } of service.evictions) {
      if (older === undefined || newer === undefined || isSlow || hasLeft) continue;
      if (newer < older && historyLosses() === 0)
        timeline.wrong(`at ${at.toFixed(0)} ms ${by.name} connects in generation ${newer}, after generation ${older}`);
      if (wasHealthy)
        timeline.wrong(`at ${at.toFixed(0)} ms ${by.name} replaces ${client.name}, which nothing disturbs`);
    }
  };

  await passTo(plan.faultsUntilMs);
  while (partsLeft > 0) await passTo(time.now() + lookEveryMs);
  // A store that goes back in time can have the damaged key again.
  repair(store, timeline);
  record('the faults are over');
  await settle();
  checkEvictions();
  checkTakeovers();
  return {
    ...timeline.result(seed),
    ...observer.counts(),
    ...{
      isStopped,
      foreign: plan.foreign,
      isFree: plan.delayMs > 0,
      hasLine: line !== undefined,
      durationMs: time.now(),
    },
    /** Whether the replicas stopped because the store lost a claim or a credit, unnoticed by all. */
    isUnnoticedLoss,
    /** How often a replica replaced the connection of another one. */
    takeovers: service.evictions.filter(({ client, by }) => client !== foreign && by !== foreign).length,
  };
};
