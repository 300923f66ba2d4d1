import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { defer, finalize } from 'rxjs';
import { resolveClusterOptions } from '../../src/cluster/cluster-options.js';
import { subjectsOf } from '../../src/cluster/control.js';
import { Election, type Report } from '../../src/cluster/election/election.js';
import { EngineFaults, watchEngine } from '../../src/cluster/engine-faults.js';
import { FeedChannel } from '../../src/cluster/feed-channel.js';
import { type ClusterEngine, type ClusterOptions, memoryEngine } from '../../src/cluster/index.js';
import { PayloadKind } from '../../src/frames/received-frame.js';
import { type ClusterEvent, createTradeFeedError, type FeedEvent, Frame } from '../../src/index.js';
import { clusterMeanings } from '../../src/protocol/failures/classify.js';
import { gapOfMissed } from '../../src/protocol/feed-state.js';
import { fakeTimers } from '../support/fake-timers.js';
import { waitFor } from '../support/wait-for.js';
import { receivedIn } from '../support/received-in.js';

const subjects = subjectsOf('main');

/** An engine that records its subscriptions. */
const watched = (engine: ClusterEngine) => {
  const subscribed = new Set<string>();
  const subscribe = (subject: string) =>
    defer(() => {
      subscribed.add(subject);
      return engine.subscribe(subject).pipe(finalize(() => subscribed.delete(subject)));
    });
  return { subscribed: () => [...subscribed], engine: { ...engine, subscribe } };
};

const settingsOf = (engine: ClusterEngine, options: Partial<ClusterOptions>) =>
  resolveClusterOptions({ engine, account: 'main', baseUrl: 'http://127.0.0.1:1', apiKey: 'key', ...options });

const channels: FeedChannel[] = [];
afterEach(() => channels.splice(0).forEach((channel) => channel.close()));

const replicaOf = (memory: ClusterEngine, id: string, options: Partial<ClusterOptions> = {}) => {
  const { engine, subscribed } = watched(memory);
  const events: (FeedEvent | ClusterEvent)[] = [];
  const heard: Report[] = [];
  const faults = new EngineFaults((event) => events.push(event));
  const settings = settingsOf(engine, options);
  const election = new Election({ ...settings, replica: id, since: 0, source: 'market' }, true);
  const channel = new FeedChannel('market', settings, {
    engine: watchEngine(engine, faults),
    faults,
    election: () => election,
    event: (event) => events.push(event),
    show: () => undefined,
    heard: (report) => heard.push(report),
    fenced: () => undefined,
    error: (error) => {
      throw error;
    },
    counts: { fetched: 0, surplus: 0 },
  });
  channel.report(undefined, false, false);
  channels.push(channel);
  const texts = () => events.filter((event) => event.type === 'frame').map((frame) => frame.text());
  const codes = () => events.flatMap((event) => (event.type === 'gap' ? [[event.failure.code, event.missed]] : []));
  return {
    ...{ channel, election, events, heard, texts, codes, subscribed },
    own: (gen: number, phase: Report['phase'] = 'open', isServing = true, isOffered = false) =>
      channel.report({ gen, owner: id, phase, revision: 1 }, isServing, isOffered),
    beat: (gen: number, phase: Report['phase'] = 'open') => channel.beat({ gen, owner: id, phase, revision: 1 }),
    opened: () => {
      channel.event({ type: 'opened', at: 1, feed: 'market', connection: 1 });
      channel.event(gapOfMissed({ from: 1, to: 1, frames: undefined }, clusterMeanings.ownerChanged));
    },
    push: (...payloads: readonly string[]) => {
      for (const text of payloads) channel.frame(new Frame('market', Buffer.from(text), false, 1, 1));
    },
  };
};

/** The channel begins at once, and what is lost is reported. */
const withoutStore = (): ClusterEngine => {
  const { line: _line, ...engine } = memoryEngine();
  return engine;
};

const advance = (ms: number) => jest.advanceTimersByTimeAsync(ms);

/** A replica that owns generation 1, and one that follows. */
const start = async () => {
  const memory = withoutStore();
  const [owner, follower] = [replicaOf(memory, 'a'), replicaOf(memory, 'b')];
  owner.own(1);
  owner.opened();
  owner.beat(1);
  await nextTurn();
  owner.own(1);
  return { owner, follower, engine: memory };
};

describe('the channel of a replica', () => {
  it('emits the frames of the owner in both replicas, and the owner does not receive them from the engine until it is replaced', async () => {
    const { owner, follower } = await start();
    expect(owner.subscribed()).toEqual([subjects.beats]);
    const texts = Array.from({ length: 100 }, (_, n) => `frame ${n}`);
    owner.push(...texts);
    expect(owner.texts()).toEqual(texts);
    await nextTurn();
    expect(owner.subscribed()).toEqual([subjects.beats]);
    expect(follower.texts()).toEqual(texts);
    expect(follower.codes()).toEqual([]);
    // It was replaced, and does not know by whom.
    owner.own(1, 'opening', false);
    expect(owner.subscribed()).toEqual([subjects.feed]);
  });

  it('notices another owner, and receives its frames once it no longer owns', async () => {
    const { owner, follower } = await start();
    owner.push('1');
    await nextTurn();
    follower.own(2, 'opening');
    follower.beat(2, 'opening');
    await nextTurn();
    expect(owner.heard).toContainEqual(expect.objectContaining({ gen: 2, owner: 'b' }));
    owner.channel.report(undefined, false, false);
    expect(owner.subscribed()).toEqual([subjects.feed]);
    owner.push('2');
    owner.channel.end(1);
    await nextTurn();
    follower.own(2);
    follower.opened();
    follower.push('3');
    await nextTurn();
    for (const { texts, codes } of [owner, follower]) {
      expect(texts()).toEqual(['1', '2', '3']);
      expect(codes()).toEqual([['owner-changed', undefined]]);
    }
  });

  it.each<[string, number, 'steady' | 'silent' | 'ends', boolean]>([
    ['after the end of the previous one', 0, 'ends', true],
    ['when the previous owner has been silent for 400 ms', 400, 'silent', false],
    ['when the lease is over, if the previous owner that offered it does not end', 2_000, 'steady', true],
  ])('begins a generation %s, with everything that it has received meanwhile', async (_, ms, how, isOffered) => {
    using _timers = fakeTimers();
    const { owner, follower, engine } = await start();
    const other = replicaOf(engine, 'c');
    const old = Array.from({ length: 9 }, (_, n) => `old ${n}`);
    owner.push('old');
    await nextTurn();
    owner.channel.report(undefined, false, false);
    follower.own(2, 'open', true, isOffered);
    follower.opened();
    follower.push('new 1', 'new 2');
    expect(follower.subscribed()).toEqual([subjects.feed]);
    const sent = how === 'silent' ? [] : old;
    for (const text of sent) {
      owner.push(text);
      await advance(how === 'steady' ? 200 : 0);
    }
    if (how === 'ends') owner.channel.end(1);
    else await advance(ms - (how === 'steady' ? 1_800 : 0) - 1);
    expect(follower.texts()).toEqual(['old', ...sent]);
    await advance(1);
    await nextTurn();
    follower.own(2);
    follower.push('new 3');
    await nextTurn();
    for (const { texts, codes } of [owner, follower, other]) {
      expect(texts()).toEqual(['old', ...sent, 'new 1', 'new 2', 'new 3']);
      expect(codes()).toEqual([['owner-changed', undefined]]);
    }
    expect(follower.subscribed()).toEqual([subjects.beats]);
  });

  it.each([
    ['waits 400 ms for a message of the previous owner', 5],
    ['begins the first generation of all at once', 1],
  ])('of a replica that has heard nobody %s', async (_, gen) => {
    using _timers = fakeTimers();
    const replica = replicaOf(withoutStore(), 'a');
    replica.own(gen);
    replica.opened();
    replica.push('a');
    await advance(399);
    expect(replica.texts()).toEqual(gen === 1 ? ['a'] : []);
    await advance(1);
    expect(replica.texts()).toEqual(['a']);
  });

  it('publishes what has waited before it ends a generation that has not begun', async () => {
    const { owner, follower, engine } = await start();
    const other = replicaOf(engine, 'c');
    owner.push('1');
    await nextTurn();
    owner.channel.report(undefined, false, false);
    follower.own(2);
    follower.opened();
    follower.push('2');
    const failure = createTradeFeedError({ stage: 'stream', closeCode: 1006 });
    follower.channel.event({ type: 'disconnected', at: Date.now(), failure });
    expect(follower.texts()).toEqual(['1']);
    follower.channel.end(2);
    follower.channel.report(undefined, false, false);
    await nextTurn();
    other.own(3, 'open', true, true);
    other.opened();
    other.push('3');
    await nextTurn();
    for (const { texts, events } of [owner, follower, other]) {
      expect(texts()).toEqual(['1', '2', '3']);
      expect(events.filter(({ type }) => type === 'disconnected')).toHaveLength(1);
    }
  });

  it('begins a generation at once if too much waits', async () => {
    const { follower } = await start();
    follower.own(2, 'open', true, true);
    const texts = Array.from({ length: 10_001 }, (_, n) => `${n}`);
    follower.push(...texts.slice(1));
    expect(follower.texts()).toEqual([]);
    follower.push('last');
    expect(follower.texts()).toEqual([...texts.slice(1), 'last']);
  });

  it('asks every 5 s what the store holds, and says so if the store refuses that', async () => {
    using _timers = fakeTimers();
    const engine = memoryEngine();
    let isRefused = false;
    const line: ClusterEngine['line'] = (...names) => {
      const store = engine.line!(...names);
      return { ...store, extent: () => (isRefused ? Promise.reject(new Error('refused')) : store.extent()) };
    };
    const owner = replicaOf({ ...engine, line }, 'a');
    owner.channel.connected(true, true);
    owner.own(1);
    owner.opened();
    owner.push('1', '2');
    await nextTurn();
    expect(owner.channel.extent).toBeUndefined();
    await advance(5_000);
    expect(owner.channel.extent).toMatchObject({ from: 0, to: 4 });
    isRefused = true;
    await advance(4_999);
    expect(owner.channel.extent).toMatchObject({ from: 0, to: 4 });
    await advance(1);
    expect(owner.channel.extent).toBeUndefined();
    // Each refusal may pass: the second one is reported.
    await advance(5_000);
    expect(owner.events).toContainEqual(expect.objectContaining({ type: 'engine-refused', operation: 'store' }));
  });

  it('reports that no owner is heard, but not while the owner may still be about to reconnect', async () => {
    using _timers = fakeTimers();
    const { election, events } = replicaOf(memoryEngine(), 'a');
    election.isConnected = false;
    await advance(5_500);
    Object.assign(election, { isConnected: true, precedenceUntil: performance.now() + 2_000 });
    await advance(3_000);
    expect(events).toEqual([]);
    await advance(500);
    expect(events).toEqual([expect.objectContaining({ type: 'engine-refused', operation: 'subscribe' })]);
  });

  it('never mixes two generations in a message', async () => {
    const { owner, follower } = await start();
    owner.push('1', '2');
    owner.own(2);
    owner.push('3');
    await waitFor(() => [owner, follower].every(({ texts }) => texts().length === 3));
    for (const { texts, codes } of [owner, follower]) {
      expect(texts()).toEqual(['1', '2', '3']);
      expect(codes()).toEqual([['owner-changed', undefined]]);
    }
  });

  it('continues the time of the stream as its next owner, although its clock is an hour behind', async () => {
    using _timers = fakeTimers();
    const { owner, follower, engine } = await start();
    await advance(10);
    owner.channel.end(1);
    await nextTurn();
    jest.setSystemTime(Date.now() - 3_600_000);
    const joined = replicaOf(engine, 'c');
    follower.own(2);
    const at = Date.now();
    follower.channel.event({ type: 'opened', at, feed: 'market', connection: 1, completeFrom: at });
    follower.channel.event(gapOfMissed({ from: at, to: at, frames: undefined }, clusterMeanings.ownerChanged));
    await advance(10);
    follower.beat(2);
    await nextTurn();
    const [times, ofJoined] = [follower, joined].map(({ events }) =>
      events.flatMap((event) => (event.type === 'watermark' ? [event.at] : [])),
    );
    const first = times![1]!;
    // The first connection, which is of long ago here, the beat of its owner, and that of the next one.
    expect(times).toEqual([1, first, first + 20]);
    // A replica that joins begins with the next owner's connection.
    expect(ofJoined).toEqual([first + 10, first + 20]);
  });

  it('sends the bytes that the service sent, even if a subscriber changes its frame', async () => {
    const { owner, follower, engine } = await start();
    const other = replicaOf(engine, 'c');
    const change = ({ data }: Frame): void => void data.fill('x');
    const memory = Buffer.from('onetwo');
    for (const at of [0, 3]) {
      const frame = receivedIn(memory, at, at + 3);
      owner.channel.frame(frame);
      change(frame);
    }
    await nextTurn();
    expect(follower.texts()).toEqual(['one', 'two']);
    follower.events.filter((event) => event.type === 'frame').forEach(change);
    expect(other.texts()).toEqual(['one', 'two']);
  });

  it('sends the frames of a read buffer before the buffer is reused, and keeps none of it', async () => {
    const { owner, follower } = await start();
    const memory = Buffer.from('onetwonaïve');
    const frames = [
      receivedIn(memory, 0, 3),
      receivedIn(memory, 3, 6, { kind: PayloadKind.Binary }),
      receivedIn(memory, 6, 12, { kind: PayloadKind.Utf8 }),
    ];
    frames[2]!.text();
    for (const frame of frames) owner.channel.frame(frame);
    expect(frames.map(({ payload }) => payload.isLeased)).toEqual([false, false, false]);
    memory.fill('x');
    await nextTurn();
    for (const { texts } of [owner, follower]) expect(texts()).toEqual(['one', 'two', 'naïve']);
    expect(frames.map(({ data }) => data.toString())).toEqual(['one', 'two', 'naïve']);
  });
});
