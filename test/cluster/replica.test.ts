/** @lane clock */
import { describe, expect, it } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { BehaviorSubject, defer, filter, finalize, firstValueFrom, NEVER, throwError } from 'rxjs';
import { readNotice, subjectsOf, writeControl } from '../../src/cluster/control.js';
import { readKey, writeKey } from '../../src/cluster/election/cluster-key.js';
import type { Input } from '../../src/cluster/election/election.js';
import { FeedRun } from '../../src/cluster/feed-run.js';
import { type ClusterEngine, type ClusterOptions, memoryEngine } from '../../src/cluster/index.js';
import { encode, type FeedHead } from '../../src/cluster/messages.js';
import { readClusterState, requestHandOver } from '../../src/cluster/operate.js';
import { type Feed, tradeFeed$, tradeFeedEvents$ } from '../../src/index.js';
import { resolveTicketOptions } from '../../src/feed/options.js';
import type { LifecycleEvent } from '../../src/protocol/event.js';
import { startTradeFeedService, type TradeFeedService } from '../../src/testing/index.js';
import { type Certificate, certificateFor } from '../support/certificate.js';
import { waitFor } from '../support/wait-for.js';
import { keyOf } from './support/driven-election.js';
import { shortTimes, startTestCluster, type TestReplica } from './support/replicas.js';

const names = subjectsOf('main');

const beatOf = (fields: Partial<FeedHead>): Buffer =>
  encode({
    ...{ kind: 'beat', line: '', gen: 1, after: 0, began: 0, owner: 'other', phase: 'open', revision: 1 },
    ...{ offset: 0, frames: 0, holes: 0, count: 0, at: 1, complete: 1, settling: undefined },
    ...fields,
  });

/** Replaces any key. */
const overwrite = async (engine: ClusterEngine, text: string) =>
  engine.compareAndSet(names.key, text, (await engine.read(names.key))?.revision);

describe('a replica', () => {
  it('ignores messages that no replica sends', async () => {
    await using test = await startTestCluster();
    const replica = await test.startOwner('a');
    const { replica: id } = replica.cluster.status;
    const subjects = [names.feed, names.standby, names.notices, names.to(id)];
    for (const subject of subjects) test.engine.publish(subject, Buffer.from('{"x":1}'));
    const answer = await test.engine.request(names.owner, Buffer.from('?'), 1);
    expect(answer).toEqual({ type: 'reply', data: new Uint8Array() });
    test.push('a');
    await waitFor(() => replica.texts().length === 1);
    expect(replica.cluster.status).toMatchObject({ role: 'owning', generation: 1 });
  });

  const refusal$ = throwError(() => new Error('no permission'));
  it.each<[string, Partial<ClusterEngine>]>([
    ['all subscriptions', { subscribe: () => refusal$ }],
    ['the requests to an owner', { respond: () => refusal$ }],
  ])('ends with an error if the engine refuses %s, and opens no connection', async (_, fields) => {
    const memory = memoryEngine();
    await using test = await startTestCluster(memory);
    let tickets = 0;
    test.service.events$.pipe(filter(({ type }) => type === 'ticket-issued')).subscribe(() => (tickets += 1));
    const replica = test.start('a', { engine: { ...memory, ...fields } });
    const error = await waitFor(() => replica.error());
    expect(error).toMatchObject({ code: 'engine-refused', verdict: 'stop' });
    expect(error.message).toContain('no permission');
    expect(replica.events.slice(-2).map(({ type }) => type)).toEqual(['engine-refused', 'stopped']);
    // A ticket that the replica requests arrives before that of a later client.
    const later = tradeFeedEvents$('market', { baseUrl: test.service.baseUrl, apiKey: test.apiKey });
    await firstValueFrom(later.pipe(filter(({ type }) => type === 'opened')));
    expect(tickets).toBe(1);
  });

  it.each<[string, Partial<ClusterEngine>]>([
    ['cannot be read', { request: () => Promise.resolve({ type: 'reply', data: Buffer.from('?') }) }],
    ['does not arrive', { request: () => Promise.reject(new Error('timeout')) }],
  ])('waits for the end of the lease if the answer of the owner %s', async (_, fields) => {
    const memory = memoryEngine();
    const engine: ClusterEngine = { ...memory, ...fields };
    await overwrite(memory, writeKey(keyOf({ phase: 'open' })));
    await using test = await startTestCluster(memory);
    const startedAt = performance.now();
    const replica = await test.startOwner('a', { engine, ...shortTimes });
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(shortTimes.leaseMs);
    expect(replica.cluster.status.generation).toBe(4);
  });

  it('voids its credit if another replica has claimed before its handshake', async () => {
    const engine = memoryEngine();
    const notices: unknown[] = [];
    engine.subscribe(names.notices).subscribe((data) => notices.push(readNotice(data)));
    await using test = await startTestCluster(engine);
    const first = engine.subscribe(names.feed).subscribe(() => {
      first.unsubscribe();
      engine.publish(names.feed, beatOf({ gen: 5, phase: 'opening' }));
    });
    const replica = test.start('a');
    await waitFor(() => notices.length > 0);
    expect(notices).toEqual([{ type: 'voided', gen: 1 }]);
    expect(replica.cluster.status).toMatchObject({ role: 'following', owner: 'other', generation: 5 });
  });

  it('receives an offer while its old connection is still open, and keeps receiving frames', async () => {
    await using test = await startTestCluster();
    const replica = await test.startOwner('a');
    const key = keyOf({ gen: 2, phase: 'open' });
    const revision = (await overwrite(test.engine, writeKey(key)))!;
    test.engine.publish(names.feed, beatOf({ gen: 2, revision, phase: 'opening' }));
    await waitFor(() => replica.cluster.status.role === 'following');
    test.engine.publish(names.to(replica.cluster.status.replica), writeControl({ key, revision }));
    await waitFor(() => replica.cluster.status.generation === 3 && replica.cluster.status.role === 'owning');
    await waitFor(() => replica.events.filter(({ type }) => type === 'gap').length === 1);
    test.push('a');
    await waitFor(() => replica.texts().includes('a'));
    expect(replica.error()).toBeUndefined();
  });
});

describe('a replica that joins again after a hand-over', () => {
  it.each<['compareAndSet' | 'request', number]>([
    ['compareAndSet', 50],
    ['request', 5_000],
  ])('ignores the result of a %s from before', async (call, handOverMs) => {
    const memory = memoryEngine();
    const isReleased$ = new BehaviorSubject(true);
    const hold = async (...args: readonly unknown[]) => {
      const result = await (memory[call] as (...all: unknown[]) => Promise<never>)(...args);
      await firstValueFrom(isReleased$.pipe(filter(Boolean)));
      return result;
    };
    let responders = 0;
    const respond: ClusterEngine['respond'] = (...args) =>
      defer(() => {
        responders += 1;
        return memory.respond(...args).pipe(finalize(() => (responders -= 1)));
      });
    const engine: ClusterEngine = { ...memory, respond, [call]: hold };
    await using test = await startTestCluster(memory);
    if (call === 'request') isReleased$.next(false);
    const replica = await test.startOwner('a', { engine, ...shortTimes, handOverMs });
    isReleased$.next(false);
    const rejoined = firstValueFrom(replica.cluster.status$.pipe(filter(({ role }) => role !== 'owning')));
    expect(await requestHandOver(memory, 'main')).toBe(true);
    // It doesn't get the result of its write, so it leaves after `handOverMs`.
    await rejoined;
    isReleased$.next(true);
    await waitFor(() => replica.events.some(({ type }) => type === 'gap'));
    await test.owner(replica);
    test.push('a');
    await waitFor(() => replica.texts().length === 1);
    expect(replica.cluster.status).toMatchObject({ role: 'owning', generation: 2 });
    // One for questions and one for operators. Those from before are gone.
    expect(responders).toBe(2);
  });
});

describe('a replica that gives the ownership away for a shutdown', () => {
  it('does not take it back when an operator asks for a hand-over at the same time', async () => {
    await using test = await startTestCluster();
    const replica = await test.startOwner('a');
    // This standby never accepts.
    test.engine.publish(names.standby, writeControl({ replica: 'b', since: Date.now() }));
    await nextTurn();
    const leaves = replica.cluster.handOver();
    expect(await requestHandOver(test.engine, 'main')).toBe(true);
    await leaves;
    expect(replica.cluster.status.role).toBe('left');
  });
});

describe('a replica that streams something else than the others of its account', () => {
  it.each<[string, Partial<ClusterOptions>, Feed, RegExp]>([
    [
      'the other feed',
      {},
      'raw',
      /those of 'main' stream market from 127\.0\.0\.1:\d+#[\da-f]{10}, this one raw from 127/,
    ],
    ['the other feed, and only follows', { canOwn: false }, 'raw', /this one raw from 127/],
    [
      'another service',
      { baseUrl: 'https://staging.example.com/private' },
      'market',
      /^(?![^]*private)[^]*staging\.example\.com#/,
    ],
  ])('is refused if it uses %s, and its owner continues', async (_, options, feed, words) => {
    await using test = await startTestCluster();
    const owner = await test.startOwner('a');
    const replica = test.start('b', options, feed);
    test.push('a');
    const message = expect.stringMatching(words);
    expect(await waitFor(() => replica.error())).toMatchObject({ code: 'invalid-options', option: 'account', message });
    expect(replica.events.map(({ type }) => type)).toEqual(['stopped']);
    test.push('b');
    await waitFor(() => owner.texts().length === 2);
    expect(owner.cluster.status).toMatchObject({ role: 'owning', generation: 1 });
  });

  it('emits no frame of the others before it has read the key', async () => {
    const memory = memoryEngine();
    await using test = await startTestCluster(memory);
    const owner = await test.startOwner('a');
    const engine: ClusterEngine = { ...memory, read: () => new Promise(() => undefined) };
    const [raw, market] = [test.start('b', { engine }, 'raw'), test.start('c', { engine })];
    test.push('a');
    await waitFor(() => owner.texts().length === 1 && market.texts().length === 1);
    expect(raw.events).toEqual([]);
  });
});

describe('a cluster that the service refuses', () => {
  const codesOf = ({ events }: TestReplica) =>
    events.flatMap((event) => (event.type === 'disconnected' ? [event.failure.code] : []));
  const backoff = { initialDelayMs: 300, maxDelayMs: 300 };

  it('reports a 403 to all replicas within a second, retries in one, and continues when access is restored', async () => {
    const memory = memoryEngine();
    const replicas: TestReplica[] = [];
    const areTold = () => replicas.every((each) => codesOf(each).includes('not-entitled'));
    let beats = 0;
    const engine: ClusterEngine = {
      ...memory,
      publish: (subject, data) => {
        if (subject === names.beats && !areTold()) beats += 1;
        memory.publish(subject, data);
      },
    };
    await using test = await startTestCluster(engine);
    let requests = 0;
    test.service.events$.subscribe(({ type }) => {
      if (type === 'ticket-refused') requests += 1;
    });
    for (const name of ['a', 'b', 'c']) replicas.push(test.start(name, { backoff, canOwn: name !== 'c' }));
    await test.owner(...replicas);
    test.account.revokeAccess();
    await waitFor(() => replicas.some((each) => codesOf(each).includes('not-entitled')));
    beats = 0;
    await waitFor(areTold);
    // A beat comes at least every 250 ms.
    expect(beats).toBeLessThan(4);
    await waitFor(() => requests >= 3);
    expect(replicas.map(({ cluster }) => cluster.status.generation)).toEqual([1, 1, 1]);
    const opened = ({ events }: TestReplica) => events.filter(({ type }) => type === 'opened').length;
    const counts = replicas.map(opened);
    test.account.restoreAccess();
    await waitFor(() => replicas.every((each, n) => opened(each) > counts[n]!));
    test.push('a');
    await waitFor(() => replicas.every(({ texts }) => texts().length === 1));
    expect(replicas.map(({ error }) => error())).toEqual([undefined, undefined, undefined]);
  });

  it('reports the 403 to a replica that joins late, although the owner waits before it retries', async () => {
    await using test = await startTestCluster();
    test.account.revokeAccess();
    const slow = { backoff: { initialDelayMs: 600_000, maxDelayMs: 600_000 } };
    const owner = test.start('a', slow);
    await waitFor(() => codesOf(owner).length > 0);
    const late = test.start('b', slow);
    await waitFor(() => codesOf(late).length > 0);
    expect([owner, late].map(codesOf)).toEqual([['not-entitled'], ['not-entitled']]);
  });

  it('says which replica has a key that is refused, and asks for it again at the next election', async () => {
    await using test = await startTestCluster();
    let key = 'old-key';
    const replica = test.start('a', { apiKey: () => key });
    await waitFor(() => codesOf(replica).includes('invalid-api-key'));
    await waitFor(() => replica.cluster.status.cannotOwn);
    const other = test.start('b');
    await test.owner(other, replica);
    expect(replica.cluster.status).toMatchObject({
      role: 'following',
      cannotOwn: { code: 'invalid-api-key', status: 401 },
      refused: undefined,
    });
    expect(other.cluster.status.cannotOwn).toBeUndefined();
    key = test.apiKey;
    other.kill();
    await waitFor(() => replica.cluster.status.role === 'owning' && replica.cluster.status.cannotOwn === undefined);
    test.push('a');
    await waitFor(() => replica.texts().includes('a'));
  });
});

describe('a key that cannot be read', () => {
  it('is written again by the owner, and its replicas notice nothing', async () => {
    await using test = await startTestCluster();
    const replicas = [test.start('a'), test.start('b')];
    await test.owner(...replicas);
    await overwrite(test.engine, '{"v":2}');
    await waitFor(async () => readKey((await test.engine.read(names.key))!.value)?.phase === 'open');
    test.push('a');
    await waitFor(() => replicas.every(({ texts }) => texts().length === 1));
    const noticed = ['gap', 'disconnected', 'engine-refused', 'stopped'];
    for (const { events } of replicas) expect(events.filter(({ type }) => noticed.includes(type))).toEqual([]);
  });

  it('is reported by replicas that wait for an owner, and repaired by `resume`', async () => {
    const engine = memoryEngine();
    await overwrite(engine, '{"v":2}');
    await using test = await startTestCluster(engine);
    const replica = test.start('a', shortTimes);
    const refused = await waitFor(() => replica.cluster.status.refused);
    expect(refused).toMatchObject({ operation: 'read', advice: expect.stringContaining('cluster resume') });
    expect(replica.events).toEqual([refused]);
    expect(replica.cluster.status.role).toBe('joining');
    expect(await readClusterState(engine, 'main', 1)).toMatchObject({ key: undefined, isUnreadable: true });
    await replica.cluster.resume();
    await test.owner(replica);
    expect(replica.cluster.status.refused).toBeUndefined();
  });
});

describe('a replica without subscribers', () => {
  it('ends at once if it has stopped, or waits for the engine', async () => {
    const engine = memoryEngine();
    await overwrite(engine, writeKey(keyOf({ owner: '', phase: 'stopped' })));
    await using test = await startTestCluster(engine);
    const [stopped, waiting] = [test.start('a'), test.start('b', { engine: { ...engine, connected$: NEVER } })];
    await waitFor(() => stopped.error());
    expect(waiting.cluster.status.role).toBe('joining');
    for (const each of [stopped, waiting]) each.unsubscribe();
    expect([stopped, waiting].map(({ cluster }) => cluster.status.role)).toEqual(['stopped', 'left']);
  });
});

/** Starts a service, and a run that records what it reports. Each handshake is allowed at once. */
const startRun = async (
  onInput: (input: Input, run: FeedRun) => void = () => undefined,
  { tls, hasOpened = false }: { readonly tls?: Certificate; readonly hasOpened?: boolean } = {},
) => {
  const service = await startTradeFeedService({ tls });
  const account = service.createAccount({ plan: 'developer' });
  const options = { baseUrl: service.baseUrl, apiKey: account.createApiKey(), backoff: { initialDelayMs: 1 } };
  const inputs: Input[] = [];
  const events: LifecycleEvent[] = [];
  const input = (each: Input): void => {
    inputs.push(each);
    if (each.type === 'handshake') run.allow();
    onInput(each, run);
  };
  const event = (each: LifecycleEvent) => events.push(each) > 0;
  const channel = { frame: () => undefined, event, follower: { hasOpened } };
  const parts = { channel, input, show: () => undefined };
  const run: FeedRun = new FeedRun('market', resolveTicketOptions(options), { where: 'a test' }, parts);
  return {
    ...{ service, account, options, run, inputs, events },
    opened: (count = 1) => waitFor(() => events.filter(({ type }) => type === 'opened').length === count),
    input: (type: Input['type']) => waitFor(() => inputs.find((each) => each.type === type)),
    [Symbol.asyncDispose]: async () => {
      run.close();
      await service.shutdown();
    },
  };
};

describe('the connection of an owner', () => {
  it('asks before a handshake, and sends none before it is allowed, or after it was closed', async () => {
    await using test = await startRun((input, run) => {
      if (input.type === 'handshake') run.close();
    });
    // Nothing waits yet.
    test.run.allow();
    test.run.open();
    await test.input('handshake');
    test.run.allow();
    expect(test.inputs).toHaveLength(1);
  });

  it.each<[string, (service: TradeFeedService) => void, boolean]>([
    ['was refused', (service) => service.setCapacity(0), false],
    ['had no answer', (service) => service.setHandshake('unreachable'), true],
  ])('reports a handshake that %s', async (_, prepare, isUnanswered) => {
    await using test = await startRun();
    prepare(test.service);
    test.run.open();
    expect(await test.input('disconnected')).toEqual({ type: 'disconnected', isUnanswered });
  });

  it.each([
    ['stops before the cluster has had a connection', false, 'failed'],
    ['is tried again after that, also by a new owner', true, 'disconnected'],
  ] as const)('with an untrusted certificate %s', async (_, hasOpened, input) => {
    await using test = await startRun(undefined, { tls: await certificateFor(), hasOpened });
    test.run.open();
    await waitFor(() => test.inputs.length > 0);
    expect(test.inputs.map(({ type }) => type)).toEqual([input]);
    const verdict = hasOpened ? 'backoff' : 'stop';
    expect(test.events[1]).toMatchObject({ failure: { code: 'untrusted-certificate', verdict } });
  });

  it('does not report the end of a connection that the election has closed meanwhile', async () => {
    await using test = await startRun((input, run) => {
      if (input.type === 'disconnected') run.close();
    });
    test.run.open();
    await test.opened();
    test.account.expireAccess();
    await test.input('disconnected');
    expect(test.events.map(({ type }) => type)).not.toContain('disconnected');
  });

  it.each<[string, boolean, readonly string[]]>([
    ['of the replacement', true, ['owner-changed', 'connection-replaced']],
    ['of the hand-over, which goes on, if it was not complete before', false, ['owner-changed']],
  ])('reports a connection that was replaced, and when it opens again the gap %s', async (_, isSettled, codes) => {
    await using test = await startRun();
    test.run.open();
    await test.opened();
    const gaps = (): readonly LifecycleEvent[] => test.events.filter(({ type }) => type === 'gap');
    if (isSettled) await waitFor(() => gaps()[0]);
    const foreign = tradeFeed$('market', test.options).subscribe();
    expect(await test.input('failed')).toEqual({ type: 'failed', isReplaced: true });
    foreign.unsubscribe();
    expect(test.run.failure).toBeUndefined();
    test.run.open();
    await test.opened(2);
    await waitFor(() => gaps()[codes.length - 1]);
    expect(gaps()).toMatchObject(codes.map((code) => ({ failure: { code } })));
  });
});
