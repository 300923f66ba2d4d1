import { afterEach, describe, expect, it } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Subject } from 'rxjs';
import type { RelayedEvent } from '../../src/protocol/event.js';
import { createRelay, type Relay, type RelayReceiver } from '../../src/relay/index.js';
import { LoopTurns } from '../../src/relay/turns.js';
import { opened } from '../operators/stream.js';
import { waitFor } from '../support/wait-for.js';
import { eventsIn, frame, range, Response } from './support.js';

const maxTurnBytes = 2 * 1024 * 1024;
const clientBytes = 64 * 1024;

describe('a turn of the event loop', () => {
  /** Turns whose works record their names. Each takes `ms` of the clock. */
  const start = ({ ms = 0, bytes = 0 } = {}) => {
    let now = 0;
    const turns = new LoopTurns(() => now);
    const done: string[] = [];
    const work = (name: string) => () => {
      done.push(name);
      turns.wrote(bytes);
      now += ms;
    };
    return { turns, done, work };
  };
  const named = (name: string, count: number) => range(1, count).map((n) => `${name} ${n}`);

  it('runs live work and joins at once, and does not wait for a turn', () => {
    const { turns, done, work } = start();
    turns.run(work('live'), 'live');
    turns.run(work('join'), 'join');
    expect(done).toEqual(['live', 'join']);
  });

  it('takes work of 2 MiB at once; the rest waits for the next turns, in order', async () => {
    const { turns, done, work } = start({ bytes: clientBytes });
    for (const name of named('live', 60)) turns.run(work(name), 'live');
    const most = Math.ceil(maxTurnBytes / (clientBytes + 16_384));
    for (const turn of [1, 2]) {
      expect(done).toEqual(named('live', turn * most));
      await nextTurn();
    }
    expect(done).toEqual(named('live', 60));
  });

  it('ends after 5 ms, whatever the number of bytes', async () => {
    const { turns, done, work } = start({ ms: 2 });
    for (const name of named('replay', 7)) turns.later(work(name), 'replay');
    expect(done).toEqual([]);
    for (const count of [3, 6, 7, 7]) {
      await nextTurn();
      expect(done).toEqual(named('replay', count));
    }
  });

  it('begins with live work; then come joins, clients that are a little late, and replays', async () => {
    const { turns, done, work } = start();
    for (const lane of ['replay', 'late', 'live'] as const) turns.later(work(lane), lane);
    turns.later(work('join'), 'join');
    turns.run(work('next live'), 'live');
    await nextTurn();
    expect(done).toEqual(['live', 'next live', 'join', 'late', 'replay']);
  });

  it('goes on with one piece of each kind, even if live work takes all its time', async () => {
    const { turns, done, work } = start({ ms: 10 });
    for (const name of named('live', 3)) turns.later(work(name), 'live');
    for (const lane of ['join', 'late', 'replay'] as const)
      for (const name of named(lane, 2)) turns.later(work(name), lane);
    await nextTurn();
    expect(done).toEqual(['live 1', 'join 1', 'late 1', 'replay 1']);
  });

  it('has room for one replay only if a client joins', async () => {
    const { turns, done, work } = start();
    for (const name of named('join', 3)) turns.run(work(name), 'join');
    for (const name of named('replay', 3)) turns.later(work(name), 'replay');
    expect(done).toEqual(['join 1']);
    await nextTurn();
    expect(done).toEqual(['join 1', 'join 2', 'replay 1']);
  });

  it('takes eight requests at once, and those that wait before any join', async () => {
    const { turns, done, work } = start();
    for (const name of named('request', 10)) turns.run(work(name), 'request');
    turns.run(work('join'), 'join');
    expect(done).toEqual(named('request', 8));
    await nextTurn();
    expect(done).toEqual([...named('request', 10), 'join']);
  });

  it('does a client’s work once, in the place where it waits, and forgets that of a client that has left', async () => {
    const { turns, done, work } = start();
    const [kept, dropped] = [work('kept'), work('dropped')];
    turns.later(kept, 'replay');
    // A live batch, while the client has not received what comes before it.
    turns.run(kept, 'live');
    turns.later(dropped, 'late');
    turns.drop(dropped);
    expect(done).toEqual([]);
    await nextTurn();
    await nextTurn();
    expect(done).toEqual(['kept']);
  });
});

describe('createRelay: many clients at a time', () => {
  let relay: Relay | undefined;
  let counting: NodeJS.Immediate | undefined;
  afterEach(() => {
    clearImmediate(counting);
    relay?.close();
  });

  /** Starts a relay whose log has so many frames of 1 KB, and the id of a page that left before them. */
  const startWithLog = (frames: number) => {
    const source = new Subject<RelayedEvent>();
    const created = (relay = createRelay(source, { heartbeatMs: 60_000 }));
    const hold = created.hold();
    const emit = (from: number, to: number) => {
      for (const n of range(from, to)) source.next(frame(String(n).padEnd(1_000), 1_000_000 + n));
    };
    source.next(opened(1_000_000));
    let id = '';
    created
      .messages$()
      .subscribe((message) => (id = message.id))
      .unsubscribe();
    emit(1, frames);
    return { relay: created, emit, id, hold };
  };

  /** Counts the turns of the event loop. */
  const countTurns = () => {
    const turns = { now: 0 };
    const count = () => {
      turns.now += 1;
      counting = setImmediate(count);
    };
    count();
    return turns;
  };

  /** A client whose response takes 16 KiB, as a socket does, and drains at once, because the kernel takes the rest. */
  const receive = (from: Relay, turns: { readonly now: number }, receiver: RelayReceiver) => {
    const response = new Response();
    let frames = 0;
    const messages: { readonly turn: number; readonly bytes: number; readonly data: string }[] = [];
    const subscription = from.messages$({ ...receiver, response }).subscribe((message) => {
      const { data } = message;
      frames += data.split('"type":"frame"').length - 1;
      messages.push({ turn: turns.now, bytes: data.length, data: message.type === undefined ? data : '' });
      if (data.length < 16_384) return;
      response.fill();
      process.nextTick(() => response.drain());
    });
    const payloads = () =>
      messages
        .filter(({ data }) => data !== '')
        .flatMap(({ data }) => eventsIn({ id: '', data }))
        .flatMap((event) => (event.type === 'frame' ? [Number(event['data'])] : []));
    return { messages, subscription, payloads, frames: () => frames };
  };

  const sums = (of: readonly { readonly turn: number; readonly bytes: number }[]): readonly number[] => {
    const byTurn = new Map<number, number>();
    for (const { turn, bytes } of of) byTurn.set(turn, (byTurn.get(turn) ?? 0) + bytes);
    return [...byTurn.values()];
  };

  it('sends each about 64 KiB of its replay in a turn, and all together about 2 MiB; each receives every frame once', async () => {
    const { relay: of, emit, id } = startWithLog(300);
    const turns = countTurns();
    const clients = range(1, 60).map(() => receive(of, turns, { lastEventId: id }));
    await waitFor(() => clients.every(({ frames }) => frames() === 300));
    emit(301, 310);
    await waitFor(() => clients.every(({ frames }) => frames() === 310));
    clearImmediate(counting);
    for (const { messages, payloads } of clients) {
      expect(Math.max(...sums(messages))).toBeLessThan(clientBytes + 4_096);
      expect(payloads()).toEqual(range(1, 310));
    }
    expect(Math.max(...sums(clients.flatMap(({ messages }) => messages)))).toBeLessThan(maxTurnBytes + 2 * clientBytes);
  });

  it('sends nothing more to clients that have left, and leaves nothing open', async () => {
    const { relay: of, id, hold } = startWithLog(300);
    const turns = countTurns();
    const clients = range(1, 60).map(() => receive(of, turns, { lastEventId: id }));
    await waitFor(() => clients.some(({ messages }) => messages.length > 2));
    const counts = clients.map(({ messages, subscription }) => {
      subscription.unsubscribe();
      return messages.length;
    });
    await nextTurn();
    await nextTurn();
    expect(clients.map(({ messages }) => messages.length)).toEqual(counts);
    clearImmediate(counting);
    hold.unsubscribe();
    of.close();
    // Other code of the process may wait for a turn too, but not for ever.
    await waitFor(() => !process.getActiveResourcesInfo().includes('Immediate'));
    expect(of.status().clients).toEqual([]);
  });

  it('ends their streams in turns when it closes, each after all its events', async () => {
    const { relay: of, id } = startWithLog(300);
    const turns = countTurns();
    const clients = range(1, 300).map((n) => receive(of, turns, n <= 20 ? { lastEventId: id } : {}));
    await waitFor(() => clients.every(({ messages }) => messages.length > 0));
    of.close();
    await waitFor(() => clients.every(({ subscription }) => subscription.closed));
    clearImmediate(counting);
    const ends = new Map<number, number>();
    for (const { messages } of clients) ends.set(messages.at(-1)!.turn, (ends.get(messages.at(-1)!.turn) ?? 0) + 1);
    expect(Math.max(...ends.values())).toBeLessThanOrEqual(maxTurnBytes / 16_384);
    for (const { payloads } of clients.slice(0, 20)) expect(payloads()).toEqual(range(1, 300));
  });
});
