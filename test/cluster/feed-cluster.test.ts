/** @lane clock */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { BehaviorSubject, filter, Subject, Subscription, take, throwError } from 'rxjs';
import type { EngineFailure } from '../../src/cluster/engine.js';
import { subjectsOf, writeControl } from '../../src/cluster/control.js';
import type { Presence } from '../../src/cluster/election/election.js';
import { type ClusterEngine, type ClusterOptions, createFeedCluster, memoryEngine } from '../../src/cluster/index.js';
import { readClusterState, resumeCluster } from '../../src/cluster/operate.js';
import { debug } from '../../src/feed/diagnostics.js';
import {
  type FeedEvent,
  type FeedEventMessage,
  type FeedOrigin,
  type PublishedEvent,
  tradeFeedEvents$,
} from '../../src/index.js';
import type { ClusterEvent } from '../../src/protocol/event.js';
import { eventRecords } from '../../src/protocol/event-record.js';
import { waitFor } from '../support/wait-for.js';
import { shortestTimes, startTestCluster, type TestCluster, type TestReplica } from './support/replicas.js';

const options = (fields: Readonly<Record<string, unknown>> = {}): ClusterOptions => ({
  engine: memoryEngine(),
  account: 'main',
  baseUrl: 'https://feed.example',
  apiKey: 'key',
  ...fields,
});

/** What an owner can't publish is lost. */
const withoutStore = (): ClusterEngine => {
  const { line: _line, ...engine } = memoryEngine();
  return engine;
};

describe('the options of a cluster', () => {
  it.each<[string, Readonly<Record<string, unknown>>, RegExp]>([
    ['engine', { engine: undefined }, /`engine` must be a ClusterEngine/],
    ['engine', { engine: {} }, /`engine` must be a ClusterEngine/],
    ['account', { account: undefined }, /`account` must be 1 to 80 letters/],
    ['account', { account: '*' }, /`account` must be 1 to 80 letters/],
    ['replica', { replica: '*' }, /`replica` must be 1 to 80 letters/],
    ['canOwn', { canOwn: 'yes' }, /`canOwn` must be true or false/],
    ['leaseMs', { leaseMs: 0 }, /`leaseMs` must be a number of ms above 0, got 0/],
    ['renewMs', { renewMs: 700 }, /`renewMs` must be at most a third of leaseMs \(2000\), got 700/],
    ['marginMs', { marginMs: 1_500 }, /`marginMs` must be less than leaseMs minus renewMs \(1500\), got 1500/],
    ['suspectMs', { suspectMs: 250 }, /`suspectMs` must be more than 250, and less than leaseMs \(2000\), got 250/],
    ['suspectMs', { suspectMs: 2_000 }, /`suspectMs` must be more than 250/],
    ['line.maxAgeMs', { line: { maxAgeMs: 99 } }, /`line\.maxAgeMs` must be a number of ms, 100 or more/],
    ['line.storage', { line: { storage: 'disk' as never } }, /`line\.storage` must be 'memory' or 'file'/],
    ['batchBytes', { batchBytes: 1_023 }, /`batchBytes` must be a whole number, 1024 or more/],
    ['handOverMs', { handOverMs: -1 }, /`handOverMs` must be a number of ms above 0/],
    ['receiveIn', { receiveIn: 'worker' }, /`receiveIn` must be 'main' in a cluster/],
    ['idleTimeoutMs', { idleTimeoutMs: -1 }, /`idleTimeoutMs` must be/],
    ['lease', { lease: 1 }, /`lease` doesn't exist: the options are engine, account/],
  ])('throw for a wrong %s', (name, fields, message) => {
    expect(() => createFeedCluster('market', options(fields))).toThrow(
      expect.objectContaining({ code: 'invalid-options', option: name, message: expect.stringMatching(message) }),
    );
  });

  it('throw for a feed that does not exist', () => {
    expect(() => createFeedCluster('other' as 'raw', options())).toThrow(/`feed` must be/);
  });
});

const tooLarge = new Error('payload too large');
const refuse = (): never => {
  throw tooLarge;
};

/** The second byte of a message with frames. */
const batchKind = 1;

const codesOf = ({ events }: TestReplica): readonly string[] =>
  events.flatMap((event) => (event.type === 'gap' ? [event.failure.code] : []));

const numbers = (from: number, to: number): readonly string[] =>
  Array.from({ length: to - from + 1 }, (_, n) => String(from + n));

const received = (replica: TestReplica, text: string): Promise<unknown> =>
  waitFor(() => replica.texts().includes(text), {
    what: () => `${text} in ${replica.name}: ${replica.texts().join()}`,
  });

/** Pushes texts, and waits until these replicas have received the last one. */
const pushTo = async (test: TestCluster, replicas: readonly TestReplica[], ...texts: readonly string[]) => {
  test.push(...texts);
  for (const replica of replicas) await received(replica, texts.at(-1)!);
};

/** Starts replicas with these options, and waits until one of them owns the connection. */
const started = async (names: string, options: Partial<ClusterOptions> = {}) => {
  const test = await startTestCluster();
  const replicas = names.split(' ').map((name) => test.start(name, options));
  const owner = await test.owner(...replicas);
  const push = (to: readonly TestReplica[], ...texts: readonly string[]) => pushTo(test, to, ...texts);
  const others = replicas.filter((replica) => replica !== owner);
  return { test, replicas, owner, others, push, [Symbol.asyncDispose]: () => test[Symbol.asyncDispose]() };
};

describe('replicas of an account', () => {
  it('share one connection: each emits all frames, and its status shows what it does', async () => {
    await using test = await startTestCluster();
    const first = test.start('a');
    const roles: string[] = [];
    const statuses = first.cluster.status$.subscribe(({ role }) => roles.push(role));
    await test.owner(first);
    statuses.unsubscribe();
    expect(roles).toEqual(['joining', 'following', 'claiming', 'owning']);
    const { replica } = first.cluster.status;
    expect(replica).toMatch(/^a-[0-9a-f]{20}$/);
    expect(first.cluster.status).toMatchObject({ owner: replica, generation: 1, since: expect.any(Number) });
    const replicas = [first, test.start('b'), test.start('c')];
    await test.owner(...replicas);
    await pushTo(test, replicas, ...numbers(1, 50));
    for (const each of replicas) expect(each.texts()).toEqual(numbers(1, 50));
    expect(replicas.map(({ cluster }) => cluster.status.role)).toEqual(['owning', 'following', 'following']);
  });

  it.each<'kill' | 'unsubscribe'>(['kill', 'unsubscribe'])(
    'have a new owner after the old one has ended, and report the change as a gap: %s',
    async (end) => {
      await using running = await started('a b c');
      const { replicas, owner, others, push } = running;
      await push(replicas, 'before');
      const published = jest.fn();
      subscribe('rx-trade-feed:owner', published);
      owner[end]();
      expect(owner.cluster.status.role).toBe('left');
      const next = await waitFor(() => others.find((each) => each.cluster.status.role === 'owning'));
      await waitFor(() => others.every((each) => codesOf(each).includes('owner-changed')));
      await push(others, 'after');
      unsubscribe('rx-trade-feed:owner', published);
      // The replica that has ended shows nothing.
      expect(published).toHaveBeenCalledTimes(2);
      const event = { type: 'owner-changed', owner: next.cluster.status.replica };
      for (const replica of others) {
        expect(replica.texts()).toEqual(['before', 'after']);
        expect(codesOf(replica)).toEqual(['owner-changed']);
        expect(replica.events).toContainEqual(expect.objectContaining(event));
      }
    },
  );

  it('all stop after a client outside the cluster has connected, until an operator resumes', async () => {
    await using test = await startTestCluster();
    const replicas = ['a', 'b', 'c'].map((name) => test.start(name));
    await test.owner(...replicas);
    const foreign = tradeFeedEvents$('market', { baseUrl: test.service.baseUrl, apiKey: test.apiKey }).subscribe();
    const ended = async (replica: TestReplica) => {
      expect(await waitFor(() => replica.error())).toMatchObject({ code: 'connection-replaced', closeCode: 4001 });
      expect(replica.cluster.status.role).toBe('stopped');
    };
    for (const replica of replicas) await ended(replica);
    await ended(test.start('late'));
    foreign.unsubscribe();
    const { key } = await readClusterState(test.engine, 'main', 1);
    expect(key).toMatchObject({ phase: 'stopped', stop: { at: expect.any(Number) } });
    expect(await resumeCluster(test.engine, 'main')).toBe(true);
    expect(await resumeCluster(test.engine, 'main')).toBe(false);
    const again = await test.startOwner('again');
    await pushTo(test, [again], 'again');
  });

  it('lose no frame in a hand-over', async () => {
    await using running = await started('a b c');
    const { test, replicas, owner: first } = running;
    let pushed = 0;
    const timer = setInterval(() => test.push(String((pushed += 1))), 1);
    try {
      await received(first, '20');
      await first.cluster.handOver();
      expect(first.cluster.status.role).toBe('left');
      const last = pushed + 50;
      for (const replica of replicas) await received(replica, String(last));
      for (const replica of replicas) {
        expect(replica.texts().slice(0, last)).toEqual(numbers(1, last));
        expect(codesOf(replica)).toEqual(['owner-changed']);
      }
    } finally {
      clearInterval(timer);
    }
  });

  it('tell a later subscriber that the connection settles, and from then on the time of the stream', async () => {
    await using running = await started('a', { deliveryDelayMs: 60_000 });
    const { owner, push } = running;
    await push([owner], '1');
    const joined: (FeedEvent | ClusterEvent)[] = [];
    owner.cluster.events$.pipe(take(2)).subscribe((event) => joined.push(event));
    expect(joined).toEqual([expect.objectContaining({ type: 'opened', connection: 1 }), expect.anything()]);
    await using complete = await started('b', { deliveryDelayMs: 0 });
    await complete.push([complete.owner], '1');
    complete.owner.cluster.events$.pipe(take(1)).subscribe((event) => joined.push(event));
    expect(joined.slice(1)).toMatchObject([{ type: 'watermark' }, { type: 'watermark' }]);
  });

  it('end with an outage since they were last complete, because what they missed does not follow', async () => {
    await using test = await startTestCluster();
    const connected$ = new BehaviorSubject(true);
    const owner = await test.startOwner('a');
    const follower = test.start('b', { engine: { ...test.engine, connected$ }, canOwn: false });
    await test.owner(owner, follower);
    await pushTo(test, [owner, follower], '1');
    const { complete } = follower.cluster.position!;
    connected$.complete();
    await waitFor(() => follower.error());
    expect(follower.error()).toMatchObject({ code: 'engine-closed', endedAt: complete });
    expect(follower.events.at(-1)).toMatchObject({ type: 'stopped', failure: follower.error() });
  });

  it('keep the owner while the engine is away: it receives frames, and the others report the gap', async () => {
    await using running = await started('a b c');
    const { replicas, owner, others, push } = running;
    await push(replicas, 'before');
    for (const { engine } of replicas) engine.cut();
    await push([owner], '1', '2', '3');
    // The owner sends a turn's frames at its end, which must come before the engine is back.
    await nextTurn();
    for (const { cluster, events } of others) {
      expect(cluster.status.role).toBe('isolated');
      expect(events.at(-1)).toMatchObject({ type: 'disconnected', failure: { code: 'cluster-away' } });
    }
    for (const { engine } of replicas) engine.restore();
    await push(others, 'after');
    for (const replica of others) {
      expect(replica.texts()).toEqual(['before', 'after']);
      const gap = replica.events.find(({ type }) => type === 'gap');
      expect(gap).toMatchObject({ missed: 3, failure: { code: 'cluster-away' } });
    }
    expect(owner.cluster.status).toMatchObject({ role: 'owning', generation: 1 });
    expect(owner.texts()).toEqual(['before', '1', '2', '3', 'after']);
  });

  it('report the reconnects of the owner to all, with the gap of the service', async () => {
    await using running = await started('a b', { backoff: { initialDelayMs: 1, maxDelayMs: 5 } });
    const { test, replicas, push } = running;
    await push(replicas, 'before');
    test.account.expireAccess();
    for (const replica of replicas) await waitFor(() => codesOf(replica).includes('access-expired'));
    await push(replicas, 'after');
    for (const replica of replicas) {
      const types = replica.events.filter(({ type }) => type !== 'watermark').map(({ type }) => type);
      expect(types).toEqual([
        ...['opened', 'frame', 'disconnected', 'reconnecting', 'ticket-requested', 'ticket-issued'],
        ...['opened', 'gap', 'frame'],
      ]);
      expect(codesOf(replica)).toEqual(['access-expired']);
    }
  });

  it('send no frames while their messages do not come back, and send them again afterwards', async () => {
    const memory = withoutStore();
    let hears = true;
    let batches = 0;
    const engine: ClusterEngine = {
      ...memory,
      subscribe: (subject) => memory.subscribe(subject).pipe(filter(() => hears)),
      publish: (subject, data) => {
        if (data[1] === batchKind) batches += 1;
        memory.publish(subject, data);
      },
    };
    await using test = await startTestCluster(memory);
    const replica = await test.startOwner('a', { engine, ...shortestTimes });
    let pushed = 0;
    const isPublished = async (): Promise<boolean> => {
      const before = batches;
      pushed += 1;
      test.push(String(pushed));
      await received(replica, String(pushed));
      await nextTurn();
      return batches > before;
    };
    expect(await isPublished()).toBe(true);
    hears = false;
    while (await isPublished());
    hears = true;
    while (!(await isPublished()));
    expect(replica.texts()).toEqual(numbers(1, pushed));
  });

  it.each<[string, (failures$: Subject<EngineFailure>) => unknown]>([
    ['throws, as its messages are small', refuse],
    ['rejects', () => Promise.resolve().then(refuse)],
    ['tells later', (failures$) => failures$.next({ operation: 'publish', error: tooLarge })],
    [
      'tells later as an error of the connection',
      (failures$) => failures$.next({ operation: 'connect', error: tooLarge }),
    ],
  ])('report messages that the engine refuses, and their frames as a gap, if `publish` %s', async (_, refuseIn) => {
    const memory = withoutStore();
    const failures$ = new Subject<EngineFailure>();
    let isRefused = false;
    const engine: ClusterEngine = {
      ...memory,
      failures$,
      // A message this small has no room for a frame.
      maxMessageBytes: () => (isRefused && refuseIn === refuse ? 100 : undefined),
      publish: (...args) => (isRefused ? refuseIn(failures$) : memory.publish(...args)),
    };
    await using test = await startTestCluster(memory);
    const [owner, follower] = [test.start('a', { engine }), test.start('b', { canOwn: false })];
    await test.owner(owner, follower);
    await pushTo(test, [follower], 'before');
    isRefused = true;
    await pushTo(test, [owner], ...numbers(1, 7));
    const refused = await waitFor(() => owner.events.find(({ type }) => type === 'engine-refused'));
    expect(refused).toMatchObject({ operation: 'publish', message: 'payload too large' });
    expect(owner.cluster.status.refused?.type).toBe('engine-refused');
    isRefused = false;
    await pushTo(test, [follower], 'after');
    expect(owner.texts()).toEqual(['before', ...numbers(1, 7), 'after']);
    expect(follower.texts()).toEqual(['before', 'after']);
    const gaps = follower.events.filter((event) => event.type === 'gap');
    expect(gaps.map(({ missed, failure }) => [missed, failure.code])).toEqual([[7, 'cluster-behind']]);
    expect(owner.cluster.status.role).toBe('owning');
  });

  it('give the ownership away after a subscriber has subscribed again because of an error', async () => {
    const memory = memoryEngine();
    let isRefused = true;
    const engine: ClusterEngine = {
      ...memory,
      subscribe: (subject) => (isRefused ? throwError(refuse) : memory.subscribe(subject)),
    };
    await using test = await startTestCluster(memory);
    const cluster = createFeedCluster('market', {
      ...{ baseUrl: test.service.baseUrl, apiKey: test.apiKey, engine, account: 'main', replica: 'a' },
    });
    const subscriptions = new Subscription();
    const subscribeAgain = (): void => {
      isRefused = false;
      subscriptions.add(cluster.events$.subscribe());
    };
    cluster.events$.subscribe({ error: subscribeAgain });
    await waitFor(() => cluster.position !== undefined);
    await cluster.handOver();
    expect(cluster.status.role).toBe('left');
    subscriptions.unsubscribe();
  });

  it('are joining until they have joined, and have left only after their last subscriber has', async () => {
    await using test = await startTestCluster();
    const { baseUrl } = test.service;
    const cluster = createFeedCluster('market', options({ engine: test.engine, baseUrl, apiKey: test.apiKey }));
    const roles: string[] = [];
    cluster.status$.subscribe(({ role }) => roles.push(role));
    await cluster.handOver();
    expect(cluster.status).toMatchObject({ role: 'joining', owner: undefined, generation: 0 });
    const subscription = cluster.events$.subscribe();
    await waitFor(() => cluster.status.role === 'owning');
    await cluster.resume();
    expect(cluster.status.role).toBe('owning');
    subscription.unsubscribe();
    expect(cluster.status.role).toBe('left');
    expect([roles[0], roles.indexOf('left')]).toEqual(['joining', roles.length - 1]);
    await cluster.handOver();
  });
});

describe('the log and the channels of a replica', () => {
  const names = ['opened', 'disconnected', 'gap', 'stopped', 'owner', 'engine'].map((name) => `rx-trade-feed:${name}`);
  const types = ['opened', 'disconnected', 'gap', 'stopped', 'owner-changed', 'engine-refused', 'engine-recovered'];
  const published = new Map<FeedOrigin, PublishedEvent[]>();
  const listener = (message: unknown) => {
    const { origin, event } = message as FeedEventMessage;
    if (origin.where.startsWith('createFeedCluster')) published.set(origin, [...(published.get(origin) ?? []), event]);
  };

  beforeEach(() => {
    jest.spyOn(debug, 'isOn').mockReturnValue(true);
    jest.spyOn(debug, 'write').mockReturnValue();
    for (const name of names) subscribe(name, listener);
  });
  afterEach(() => {
    for (const name of names) unsubscribe(name, listener);
    published.clear();
    jest.restoreAllMocks();
  });

  const has = (replica: TestReplica, type: string, count = 1) =>
    waitFor(() => replica.events.filter((event) => event.type === type).length >= count);

  /** Compares what was shown with what the subscribers of the replicas got, in the order of their first events. */
  const expectShown = (...replicas: readonly TestReplica[]) => {
    const received = replicas.map(({ events }) => events.filter(({ type }) => types.includes(type)));
    const shown = [...published.values()];
    expect(shown.map((events) => events.map(({ type }) => type))).toEqual(
      received.map((events) => events.map(({ type }) => type)),
    );
    for (const [n, events] of shown.entries())
      for (const [m, event] of events.entries()) expect(event).toBe(received[n]?.[m]);
    const texts = replicas.flatMap(({ events }) => {
      const record = eventRecords();
      return events.flatMap((event) => (event.type === 'frame' || event.type === 'watermark' ? [] : record(event).msg));
    });
    const logged = jest.mocked(debug.write).mock.calls.flatMap(([line]) => {
      const [, text] = /^createFeedCluster.*?, http\S+: (.*)/s.exec(line) ?? [];
      return text === undefined ? [] : [text];
    });
    // Before its first connection, an owner's attempts are in its log only.
    expect(logged[0]).toMatch(/^Requesting a ticket/);
    const withoutAttempts = (lines: readonly string[]) =>
      lines.filter((line) => !/^(Requesting a ticket|Ticket issued|Waiting)/.test(line)).sort();
    expect(withoutAttempts(logged)).toEqual(withoutAttempts(texts));
  };

  it('have the events of its subscriber: the service refuses the key', async () => {
    await using test = await startTestCluster();
    const replica = test.start('a', { apiKey: 'not-a-key' });
    await has(replica, 'stopped');
    expectShown(replica);
  });

  it('have the events of its subscriber, in a follower too: an outage, another owner, and the end', async () => {
    await using test = await startTestCluster();
    const [a, b] = [await test.startOwner('a'), test.start('b')];
    await test.owner(a, b);
    test.service.dropConnections();
    for (const replica of [a, b]) await has(replica, 'gap');
    await a.cluster.handOver();
    for (const replica of [a, b]) await has(replica, 'owner-changed');
    for (const replica of [a, b]) await has(replica, 'gap', 2);
    await test.owner(a, b);
    test.service.dropConnections();
    for (const replica of [a, b]) await has(replica, 'gap', 3);
    expectShown(a, b);
    const connections = b.events.flatMap((event) => (event.type === 'opened' ? [event.connection] : []));
    expect(connections).toEqual([1, 2, 3, 4]);
  });
});

describe('the operator of a cluster', () => {
  const { standby } = subjectsOf('main');
  it('reads the standbys that report themselves while it waits, the oldest first, and ignores other messages', async () => {
    const engine = memoryEngine();
    const state = readClusterState(engine, 'main', 1);
    const messages: readonly Presence[] = [
      { replica: 'young', since: 2 },
      { replica: 'old', since: 1 },
      { replica: 'young', since: 2 },
    ];
    for (const each of messages) engine.publish(standby, writeControl(each));
    engine.publish(standby, Buffer.from('?'));
    expect((await state).standbys).toEqual([messages[1], messages[0]]);
  });
});
