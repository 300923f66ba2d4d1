import { createChance } from './chance.js';
import { createEngine } from './engine.js';
import { faults } from './faults.js';
import { createObserver } from './observer.js';
import { createSchedule } from './schedule.js';
import { type Client, createService } from './service.js';
import type { SimulatedReplica } from './simulated-replica.js';
import { startReplica, type World } from './start-replica.js';
import { createStore } from './store.js';

/** The result of a run. */
export interface Run {
  readonly seed: number;
  /** What the observer found wrong. */
  readonly violations: readonly string[];
  readonly faults: Readonly<Record<string, number>>;
  readonly isStopped: boolean;
  readonly foreign: Foreign;
  readonly frames: number;
  /** How often a replica replaced the connection of another one. */
  readonly takeovers: number;
  readonly timeline: readonly string[];
}

type Foreign = 'none' | 'polite' | 'stubborn';

/** What happens in a run, unless the seed decides. */
export interface RunOptions {
  readonly faultNames?: readonly string[];
  readonly foreign?: Foreign;
}

/** How often in a minute the replicas may evict a foreign client that has evicted one of them. A store that loses data loses the count. */
const maxEvictions = 3;
/** With these faults a replica cannot see all others, so one with a bad key can give up although another one could own. */
const hiding = ['pause', 'suspend', 'link refused', 'black hole', 'lost messages', 'engine away', 'slow store'];

const faultsUntilMs = 25_000;
const endMs = 70_000;
const frameEveryMs = 200;

/** Runs three replicas with random faults in virtual time. The same seed creates the same run. */
export const simulate = (seed: number, options: RunOptions = {}): Run => {
  const schedule = createSchedule();
  const chance = createChance(seed);
  const timeline: string[] = [];
  const record = (text: string): void => void timeline.push(`${schedule.now().toFixed(1).padStart(9)}  ${text}`);
  const store = createStore();
  const observer = createObserver(schedule.now, () => historyLosses() > 0);
  const service = createService(schedule, chance, record);
  const engine = createEngine(schedule, chance, store);
  const foreignKind = options.foreign ?? chance.oneOf(['none', 'none', 'polite', 'stubborn'] as const);
  const replicas: SimulatedReplica[] = [];
  const counts: Record<string, number> = {};
  let hasForeignOpened = false;
  let isStopped = false;
  let started = 0;

  const world: World = {
    ...{ schedule, chance, engine, service, observer, record },
    onFailed: (replica, isReplaced) => {
      if (!isReplaced) {
        if (
          Object.keys(counts).every((name) => !hiding.includes(name)) &&
          replicas.some((each) => each !== replica && each.isAlive() && !badKeys.has(each.id))
        )
          observer.report(`${replica.id} gives up although there are other candidates`);
        return;
      }
      isStopped = true;
      if (!hasForeignOpened) observer.report(`${replica.id} stops, although no other client has opened a connection`);
    },
  };
  const badKeys = new Set<string>();
  const start = (): void => {
    started += 1;
    const id = `r${started}`;
    const hasBadKey = started > 1 && chance.isTrue(0.05);
    if (hasBadKey) badKeys.add(id);
    replicas.push(startReplica(world, id, true, hasBadKey));
  };

  for (let n = 0; n < 3; n += 1) schedule.after(chance.between(0, 300), start);
  const pushFrames = (): void => {
    service.push();
    schedule.after(frameEveryMs, pushFrames);
  };
  pushFrames();

  const alive = (): SimulatedReplica[] => replicas.filter((each) => each.isAlive() && each.state().role !== 'stopped');
  const targets = {
    ...{ schedule, chance, engine, service, store, record },
    target: () => {
      const owner = alive().find((each) => each.state().own !== undefined);
      return owner && chance.isTrue(0.6) ? owner : chance.oneOf([...alive(), undefined]);
    },
    replace: (replica: SimulatedReplica, how: 'kill' | 'hand-over') => {
      if (how === 'kill') replica.kill();
      else replica.run(() => replica.input({ type: 'hand-over' }));
      schedule.after(chance.between(0, 5_000), start);
    },
  };
  const historyLosses = (): number => (counts['store wiped'] ?? 0) + (counts['store rolled back'] ?? 0);
  const names = options.faultNames ?? Object.keys(faults);
  const faultCount = Math.ceil(chance.between(0, 12));
  for (let n = 0; n < faultCount; n += 1) {
    const name = chance.oneOf(names);
    counts[name] = (counts[name] ?? 0) + 1;
    const beginMs = chance.between(500, faultsUntilMs);
    schedule.after(beginMs, () => faults[name]!(targets, chance.between(20, Math.min(8_000, faultsUntilMs - beginMs))));
  }

  const foreign: Client = {
    name: 'foreign client',
    isThere: () => true,
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
    if (foreignKind === 'stubborn') schedule.after(chance.between(100, 1_000), openForeign);
  };
  if (foreignKind !== 'none') schedule.after(chance.between(1_000, faultsUntilMs), openForeign);

  schedule.runUntil(faultsUntilMs);
  record('the faults are over');
  for (const replica of replicas) {
    if (replica.isPaused()) replica.resume(false);
  }
  const settledMs = endMs - 5_000;
  schedule.runUntil(settledMs);
  const ownerBefore = service.live();
  schedule.runUntil(endMs);

  checkEnd();
  return {
    ...{ seed, violations: observer.violations, faults: counts, isStopped, foreign: foreignKind, timeline },
    frames: observer.framesChecked(),
    takeovers: service.evictions.filter(({ client, by }) => client !== foreign && by !== foreign).length,
  };

  function checkEnd(): void {
    const evictions = service.evictions.filter(
      ({ client, by, isLate, hasEvicted }) => client === foreign && by !== foreign && !isLate && hasEvicted,
    );
    const limit = maxEvictions * (1 + historyLosses());
    for (const { at } of evictions)
      if (evictions.filter((each) => each.at >= at && each.at < at + 60_000).length > limit)
        return observer.report(`the foreign client was evicted more than ${limit} times in a minute`);
    const running = alive();
    if (isStopped) {
      // A store that has lost the stop cannot show it to the others.
      if (running.length > 0 && historyLosses() === 0)
        observer.report(`stopped, but ${running.map(({ id }) => id).join(', ')} still run`);
      return;
    }
    if (foreignKind === 'stubborn' && service.live() === foreign)
      return observer.report('a stubborn foreign client has the connection, and no replica has stopped');
    const able = running.filter(({ id }) => !badKeys.has(id));
    if (able.length === 0) return;
    const owners = running.filter((each) => each.state().own !== undefined);
    if (owners.length !== 1) return observer.report(`${owners.length} owners at the end`);
    const [owner] = owners;
    if (!owner!.hasConnection()) observer.report(`${owner!.id} owns, but has no connection`);
    if (service.live()?.name !== owner!.id) observer.report(`the service is connected to ${service.live()?.name}`);
    // A late handshake can arrive after the faults.
    if (service.live() !== ownerBefore && !('late handshakes' in counts))
      observer.report('the connection changed long after the faults');
    for (const replica of running)
      if (replica.generation() !== owner!.state().own!.gen)
        observer.report(
          `${replica.id} follows generation ${replica.generation()} instead of ${owner!.state().own!.gen}`,
        );
  }
};
