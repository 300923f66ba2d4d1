import { describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { firstValueFrom, map, NEVER, of, Subject, timer, toArray } from 'rxjs';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import { TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import { createRelay, RelayFullError } from '../../src/relay/index.js';
import { admission, type PendingReceiver } from '../../src/relay/relay-options.js';
import { opened } from '../operators/stream.js';
import { Client, eventsIn, frame, range, Response, virtualRelay, watermarkIn } from './support.js';
import { cases } from '../support/cases.js';

const replaced = createTradeFeedError({ stage: 'stream', closeCode: 4001, reason: 'connection replaced' });

const codeOf = ({ messages }: Client): unknown => (JSON.parse(messages.at(-1)!.data) as { code: unknown }).code;

describe('createRelay: the source', () => {
  it('is subscribed to once for all clients: with the first one, until lingerMs after the last one has left', () => {
    const { clock, source, join } = virtualRelay({ lingerMs: 1_000 });
    expect(source.subscriptions).toBe(0);
    const clients = range(1, 20).map(() => join());
    expect([source.subscriptions, source.active]).toEqual([1, 1]);
    for (const client of clients) client.leave();
    clock.pass(999);
    expect(source.active).toBe(1);
    clock.pass(1);
    expect([source.subscriptions, source.active]).toEqual([1, 0]);
    join();
    expect([source.subscriptions, source.active]).toEqual([2, 1]);
  });

  it('stays open for at most 24.8 days, even if lingerMs is greater', () => {
    const { clock, source, join } = virtualRelay({ lingerMs: Infinity, heartbeatMs: Infinity });
    join().leave();
    clock.pass(2 ** 31 - 2);
    expect(source.active).toBe(1);
  });

  it('may emit and complete synchronously: the first client receives every event', async () => {
    const relay = createRelay(of(opened(5), frame('a'), frame('b')), { batchMs: 0 });
    const messages = await firstValueFrom(relay.messages$().pipe(toArray()));
    expect(messages.map(({ type }) => type)).toEqual(['hello', undefined, 'complete']);
    expect(eventsIn(messages[1]!).map(({ type }) => type)).toEqual(['opened', 'frame', 'frame']);
    // A late client has missed nothing since it joined.
    const late = new Client(relay);
    expect([late.types, late.isComplete]).toEqual([['hello', 'events', 'complete'], true]);
    expect(late.events.map(({ type }) => type)).toEqual(['opened']);
  });

  it('gives each client messages that stay as they are, although the log writes over its oldest lines', () => {
    const { clock, source, join } = virtualRelay({ capacity: 10 });
    const [client, other] = [join(), join()];
    const payloads = range(1, 200).map((n) => `${n} ${'é'.repeat(5_000)}`);
    for (const payload of payloads) {
      source.frames(payload);
      clock.pass(16);
    }
    // The text of a message is created when it's read.
    expect(client.payloads).toEqual(payloads);
    expect(other.batches.at(-1)).toBe(client.batches.at(-1));
  });
});

describe('createRelay: a source that has ended', () => {
  it.each(['stops', 'completes'] as const)(
    'is not subscribed again when it %s while there are no clients, which then wait longer after a stop',
    (how) => {
      const { clock, source, join, visit } = virtualRelay({ lingerMs: 1_000 });
      const first = visit('a');
      clock.pass(500);
      source.frames('b');
      if (how === 'stops') source.subject.error(replaced);
      else source.subject.complete();
      clock.pass(100_000);
      expect(join().types).toEqual(how === 'stops' ? ['connect-again'] : ['hello', 'events', 'complete']);
      const back = join({ lastEventId: first.lastEventId });
      const stop = { code: 'connection-replaced', verdict: 'stop', retryAfterMs: 5_000 };
      expect(back.payloads).toEqual(['b']);
      expect([back.types.at(-1), JSON.parse(back.messages.at(-1)!.data)]).toMatchObject(
        how === 'stops' ? ['connect-again', stop] : ['complete', {}],
      );
      expect(source.subscriptions).toBe(1);
    },
  );

  it.each([new Error('secret-1'), 'secret-1', { toString: () => 'secret-1' }])(
    'does not send the text of an unknown error: %p',
    (error) => {
      const { clock, source, reports, join } = virtualRelay();
      const client = join();
      source.subject.error(error);
      clock.pass(16);
      expect(reports).toContainEqual(expect.objectContaining({ type: 'source-stopped', error }));
      expect(JSON.stringify([client.messages, join().messages])).not.toContain('secret-1');
      expect(JSON.parse(client.messages.at(-1)!.data)).toMatchObject({ code: 'relay-source-failed' });
    },
  );
});

describe('createRelay: batches', () => {
  it('sends the events of batchMs together, as the same object to all clients, and delays none for longer', () => {
    const { clock, source, join } = virtualRelay({ batchMs: 20 });
    const [one, two] = [join(), join()];
    for (let ms = 1; ms <= 100; ms += 1) {
      source.frames(...range(ms * 10 - 9, ms * 10));
      clock.pass(1);
      expect(one.payloads.length).toBeGreaterThanOrEqual((ms - 20) * 10);
    }
    clock.pass(20);
    expect(one.payloads).toEqual(range(1, 1_000).map(String));
    expect(one.batches.length).toBeLessThanOrEqual(6);
    for (const [n, message] of one.batches.entries()) expect(two.batches[n]).toBe(message);
  });

  it('creates no timer for each event of a slow feed', () => {
    const { clock, source, join } = virtualRelay();
    const schedule = jest.spyOn(clock.scheduler, 'schedule');
    const client = join();
    source.frames(0);
    const timers = schedule.mock.calls.length;
    for (const n of range(1, 50)) {
      clock.pass(1_000);
      source.frames(n);
    }
    clock.pass(16);
    expect([client.payloads.length, schedule.mock.calls.length]).toEqual([51, timers]);
  });
});

describe('createRelay: slow clients', () => {
  it('stay while they read now and then, and lose their slot after four heartbeats without reading', () => {
    const { clock, join, relay, reports } = virtualRelay({ heartbeatMs: 1_000, maxClients: 1 });
    const response = new Response();
    const slow = join({ response });
    clock.pass(500);
    response.fill();
    // The response is full at each heartbeat, and drains in between.
    for (let n = 0; n < 10; n += 1) {
      clock.pass(1_900);
      response.drain();
      response.fill();
      clock.pass(100);
    }
    expect([response.isDestroyed, slow.isComplete, slow.types]).toEqual([false, false, ['hello']]);
    expect(join().error).toBeInstanceOf(RelayFullError);
    clock.pass(3_499);
    expect(slow.isComplete).toBe(false);
    clock.pass(1);
    expect([response.isDestroyed, slow.isComplete, response.listenerCount('drain')]).toEqual([true, true, 0]);
    expect(reports.map(({ type }) => type)).toEqual(['client-joined', 'client-refused', 'client-stuck', 'client-left']);
    expect([relay.status().clients, join().error]).toEqual([[], undefined]);
  });

  it('have figures that add up: `sent` plus `missed` are all frames since they joined', () => {
    const act = fc.oneof(
      fc.record({ frames: fc.integer({ min: 1, max: 60 }) }),
      fc.record({ client: fc.nat(3), does: fc.constantFrom('fills', 'drains', 'returns') }),
    );
    const capacities = fc.record({
      capacity: fc.integer({ min: 1, max: 80 }),
      capacityBytes: fc.integer({ min: 200, max: 16_000 }),
    });
    fc.assert(
      fc.property(capacities, fc.array(act, { maxLength: 40 }), (capacity, acts) => {
        const { clock, source, relay, join } = virtualRelay({ ...capacity, batchMs: 10 });
        let emitted = 0;
        let joined = 0;
        const enter = (lastEventId?: string) => {
          const response = new Response();
          const from = lastEventId === undefined ? emitted : Number(lastEventId.split('.')[2]);
          return { response, from, client: join({ response, lastEventId }), n: (joined += 1) };
        };
        const clients = range(1, 4).map(() => enter());
        for (const each of acts) {
          if ('frames' in each) {
            source.frames(...range(emitted + 1, emitted + each.frames));
            emitted += each.frames;
          } else {
            const { response, client } = clients[each.client]!;
            if (each.does === 'fills') response.writableNeedDrain = true;
            else if (each.does === 'drains') response.drain();
            else {
              client.leave();
              clients[each.client] = enter(client.lastEventId);
            }
          }
          clock.pass(10);
        }
        for (const { response, client, from, n } of clients) {
          response.drain();
          const { sent, missed } = relay.status().clients.find((each) => each.client === n)!;
          expect([sent, sent + missed]).toEqual([client.payloads.length, emitted - from]);
          // The received events match these figures, in order.
          let next = from + 1;
          for (const event of client.events) {
            if (event.type === 'gap') next += event['missed'] as number;
            else if (event.type === 'frame') {
              expect(Number(event['data'])).toBe(next);
              next += 1;
            }
          }
          expect(next).toBe(emitted + 1);
        }
      }),
      { numRuns: cases(100) },
    );
  });
});

it('createRelay: a quiet feed sends heartbeats, and after the first event four watermarks a second, except while the response is full', () => {
  const { clock, source, join } = virtualRelay({ heartbeatMs: 1_000, batchMs: 0 });
  const response = new Response();
  const client = join({ response });
  const marks = () => client.batches.map(watermarkIn);
  clock.pass(1_000);
  expect(client.types).toEqual(['hello', 'heartbeat']);
  const at = clock.now;
  source.emit(opened(at));
  clock.pass(850);
  expect(marks()).toEqual([at, at + 250, at + 500, at + 750]);
  response.writableNeedDrain = true;
  clock.pass(1_900);
  expect([marks().length, client.types.filter((type) => type === 'heartbeat').length]).toEqual([4, 1]);
});

it('createRelay: the limit refuses further clients and reports it; a slot is free again when a client leaves', () => {
  const { clock, relay, source, reports, join } = virtualRelay({ maxClients: 2 });
  const [one, , three] = [join(), join(), join()];
  expect(three.error).toBeInstanceOf(RelayFullError);
  expect((three.error as Error).message).toBe('There are 2 clients. Retry later.');
  one.leave();
  expect(join().error).toBeUndefined();
  expect(reports.map((event) => [event.type, 'client' in event ? event.client : 0])).toEqual([
    ['client-joined', 1],
    ['client-joined', 2],
    ['client-refused', 0],
    ['client-left', 1],
    ['client-joined', 3],
  ]);
  expect(relay.status().clients.map(({ client }) => client)).toEqual([2, 3]);
  expect([source.subscriptions, clock.now]).toEqual([1, 1_000_000]);
});

describe('createRelay: status and events', () => {
  it('reports how a client joined, and its figures when it leaves', () => {
    const { clock, reports, join, visit } = virtualRelay({ capacity: 2 });
    const first = visit(1, 2, 3, 4);
    join({ lastEventId: first.lastEventId }).leave();
    join({ lastEventId: `${first.lastEventId.split('.')[0]}.1.1.5` }).leave();
    expect(reports.slice(1)).toEqual([
      { type: 'client-behind', at: clock.now, client: 1, missed: 2 },
      { type: 'client-left', at: clock.now, client: 1, sent: 2, missed: 2 },
      { type: 'client-joined', at: clock.now, client: 2, joined: 'resumed' },
      { type: 'client-left', at: clock.now, client: 2, sent: 0, missed: 0 },
      { type: 'client-joined', at: clock.now, client: 3, joined: 'behind' },
      { type: 'client-left', at: clock.now, client: 3, sent: 2, missed: 1 },
    ]);
  });

  it.each(['ends the streams', 'loses the clients'])(
    'reports that each client has left, then completes, when the closing relay %s',
    (how) => {
      const { clock, relay, source } = virtualRelay({ batchMs: 0 });
      const reports: string[] = [];
      relay.events$.subscribe({
        next: (event) => {
          if (event.type !== 'client-left') return;
          reports.push(`${event.client}: ${event.sent} sent`);
          expect(relay.status().clients.map(({ client }) => client)).not.toContain(event.client);
        },
        complete: () => reports.push('complete'),
      });
      // Over HTTP `authorize` resolves after the request.
      const response = new Response();
      const receiver: PendingReceiver = {
        response,
        [admission]: timer(10, clock.scheduler).pipe(map(() => ({}))),
      };
      const clients = range(1, 3).map(() => new Client(relay, receiver));
      clock.pass(10);
      source.frames('a');
      clock.pass(0);
      response.writableNeedDrain = how === 'loses the clients';
      relay.close();
      for (const client of clients) client.leave();
      expect(reports).toEqual(['1: 1 sent', '2: 1 sent', '3: 1 sent', 'complete']);
    },
  );
});

it('createRelay: the age of a stream ends at random times within the last tenth of maxAgeMs; a returning client misses nothing', () => {
  const { clock, source, join } = virtualRelay({ maxAgeMs: 100_000 });
  const clients = range(1, 50).map(() => join());
  clock.pass(89_999);
  expect(clients.filter(({ isComplete }) => isComplete)).toEqual([]);
  source.frames('a');
  clock.pass(5_000);
  const early = clients.filter(({ isComplete }) => isComplete).length;
  expect(early).toBeGreaterThan(5);
  expect(early).toBeLessThan(45);
  clock.pass(5_001);
  const [first] = clients as [Client];
  for (const { types, payloads, isComplete } of clients)
    expect([types.at(-1), payloads, isComplete]).toEqual(['connect-again', ['a'], true]);
  expect(JSON.parse(first.messages.at(-1)!.data)).toMatchObject({ code: 'relay-session-ended', verdict: 'renew' });
  source.frames('b');
  expect(join({ lastEventId: first.lastEventId }).payloads).toEqual(['b']);
});

it.each([
  ['nothing', 500, 0],
  ['slowly for five seconds', 5_000, 400],
])(
  'createRelay: a client whose stream the relay ends is ended without the rest when it reads %s',
  (_how, mostMs, everyMs) => {
    const { clock, relay, source, join } = virtualRelay();
    const response = new Response();
    const slow = join({ response }, response.fill);
    source.frames(...range(1, 50).map((n) => String(n).padEnd(70_000)));
    relay.close();
    const until = clock.now + mostMs;
    while (clock.now < until - 1) {
      expect(slow.isComplete).toBe(false);
      clock.pass(Math.min(everyMs === 0 ? mostMs : everyMs, until - 1 - clock.now));
      if (everyMs > 0) response.drain();
    }
    expect(slow.isComplete).toBe(false);
    clock.pass(1);
    expect([slow.types.at(-1), slow.isComplete]).toEqual(['connect-again', true]);
    // The id is the position that it has reached.
    expect(Number(slow.lastEventId.split('.')[2])).toBe(slow.payloads.length);
  },
);

describe('createRelay: close', () => {
  it('permanently ends the streams, the source and the events', () => {
    const { clock, relay, source, reports, join } = virtualRelay();
    let isOver = false;
    relay.events$.subscribe({ complete: () => (isOver = true) });
    const response = new Response();
    const clients = [join(), join({ response: new Response() }), join({ response })];
    response.writableNeedDrain = true;
    source.frames('a');
    relay.close();
    expect(clients.map(({ isComplete }) => isComplete)).toEqual([true, true, false]);
    expect([source.active, isOver]).toEqual([0, false]);
    // The client that isn't reading.
    clock.pass(500);
    expect(clients.map(({ isComplete }) => isComplete)).toEqual([true, true, true]);
    expect(clients.map(({ types }) => types)).toEqual([
      ['hello', 'events', 'connect-again'],
      ['hello', 'events', 'connect-again'],
      ['hello', 'connect-again'],
    ]);
    expect([source.active, relay.status().clients, isOver]).toEqual([0, [], true]);
    expect(reports.filter(({ type }) => type === 'client-left')).toHaveLength(3);
    expect(response.listenerCount('drain')).toBe(0);
    expect(join().error).toBeInstanceOf(RelayFullError);
    expect(source.subscriptions).toBe(1);
    relay.close();
    clock.pass(1e6);
    expect(clock.scheduler.actions).toEqual([]);
  });

  it('ends a source without clients, and leaves no timer', () => {
    const { clock, relay, source, join } = virtualRelay();
    join().leave();
    expect(source.active).toBe(1);
    relay.close();
    expect(source.active).toBe(0);
    clock.pass(1e6);
    expect(clock.scheduler.actions).toEqual([]);
  });
});

it.each<[string, unknown]>([
  ...[0, -1, 1.5, NaN, Infinity, '5', null].map((value): [string, unknown] => ['capacity', value]),
  ...[0, -1, 1.5, '5'].map((value): [string, unknown] => ['capacityBytes', value]),
  ...[0, -1, 1.5, Infinity, '5'].map((value): [string, unknown] => ['maxReplayBytes', value]),
  ...[-1, NaN, '5'].map((value): [string, unknown] => ['batchMs', value]),
  ...[0, -1, NaN, '5'].map((value): [string, unknown] => ['heartbeatMs', value]),
  ...[0, 1.5, '5'].map((value): [string, unknown] => ['maxClients', value]),
  ...[0, 1.5, '5'].map((value): [string, unknown] => ['maxClientsPerUser', value]),
  ...[0, -1, NaN, '5'].map((value): [string, unknown] => ['maxAgeMs', value]),
  ...[0, 1.5, '5'].map((value): [string, unknown] => ['maxTopics', value]),
  ...[-1, NaN, '5'].map((value): [string, unknown] => ['lingerMs', value]),
  ['scheduler', {}],
  ['batch', 1],
])('createRelay refuses %s: %p at once, and names the option', (name, value) => {
  const make = () => createRelay(NEVER, { [name]: value });
  expect(make).toThrow(TradeFeedError);
  expect(make).toThrow(
    expect.objectContaining({ code: 'invalid-options', message: expect.stringContaining(`\`${name}\``) }),
  );
});

describe('createRelay: the streams of a user', () => {
  const refusedFor = (reason: string) => expect.objectContaining({ name: 'RelayFullError', reason });

  it('are limited for each user, and the error does not name the user', () => {
    const { join } = virtualRelay({ maxClientsPerUser: 2 });
    const clients = ['ann-7', 'ann-7', 'bob', undefined, undefined, undefined].map((user) => join({ user }));
    expect(clients.map(({ error }) => error)).toEqual(clients.map(() => undefined));
    const third = join({ user: 'ann-7' });
    expect(third.error).toEqual(refusedFor('user'));
    expect((third.error as Error).message).not.toContain('ann-7');
    clients[0]!.leave();
    expect(join({ user: 'ann-7' }).error).toBeUndefined();
  });

  it('are replaced by a stream that continues exactly this one, which frees its place at once', () => {
    const { relay, join } = virtualRelay({ maxClientsPerUser: 2 });
    const response = new Response();
    const [other, dead] = [join({ user: 'ann' }), join({ user: 'ann', response })];
    response.writableNeedDrain = true;
    const { lastEventId } = dead;
    const withoutName = lastEventId.slice(0, -9);
    for (const id of [undefined, withoutName, `${withoutName}-00000000`])
      expect(join({ user: 'ann', lastEventId: id }).error).toEqual(refusedFor('user'));
    const next = join({ user: 'ann', lastEventId });
    expect([next.error, other.isComplete]).toEqual([undefined, false]);
    expect(relay.status().clients).toHaveLength(3);
    // The replaced page is alive: its tab was duplicated. It can't replace its duplicate.
    expect(join({ user: 'ann', lastEventId }).error).toEqual(refusedFor('user'));
    expect(relay.disconnect('ann')).toBe(2);
    response.drain();
    expect([next, other, dead].map(codeOf)).toEqual(['relay-session-ended', 'relay-session-ended', 'relay-replaced']);
  });

  it('are never replaced by a stream of another user, nor by one without a user', () => {
    const { join } = virtualRelay({ maxClientsPerUser: 1 });
    const ann = join({ user: 'ann' });
    const { lastEventId } = ann;
    for (const user of ['bob', undefined]) expect(join({ user, lastEventId }).error).toBeUndefined();
    expect(ann.isComplete).toBe(false);
    for (const receiver of [{}, { user: 'ann' }])
      expect(virtualRelay().join(receiver).lastEventId).toMatch(/^l_[\da-f]{12}-0\.0\.0\.\d+$/);
  });

  it('are ended by `disconnect`, which also refuses an authorization that has started', () => {
    const { relay, join } = virtualRelay();
    const clients = ['a', 'b', 'a', undefined].map((user) => join({ user }));
    const decided = new Subject<{ user: string }>();
    const pending: PendingReceiver = { [admission]: decided };
    const late = join(pending);
    expect(relay.disconnect('a')).toBe(2);
    expect(clients.map(({ isComplete }) => isComplete)).toEqual([true, false, true, false]);
    expect(relay.disconnect('nobody')).toBe(0);
    decided.next({ user: 'a' });
    expect(late.error).toEqual(refusedFor('session-ended'));
    expect(join({ user: 'a' }).error).toBeUndefined();
  });
});
