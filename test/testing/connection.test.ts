/** @lane clock */
import { describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { Writable } from 'node:stream';
import type { TradeFeedAccount, TradeFeedService, TradeFeedServiceOptions, WaitingFrames } from 'rx-trade-feed/testing';
import { interval, noop, type SchedulerLike, Subscription } from 'rxjs';
import type { WebSocket } from 'ws';
import { Connection, messageOf } from '../../src/testing/connection.js';
import { DelayLine } from '../../src/testing/delay-line.js';
import { serviceSettings } from '../../src/testing/service-options.js';
import { connectAs, nextEvent, openRaw, postTicket, recordEvents, takeTicket } from './bare-client.js';
import { manualClock, serviceFactory, withKey } from './service-under-test.js';

const start = serviceFactory();

const live = async (
  service: TradeFeedService,
  feed?: string,
  options?: Parameters<TradeFeedService['createAccount']>[0],
) => {
  const account = service.createAccount(options);
  const key = account.createApiKey();
  return { account, key, socket: await connectAs(service, key, feed) };
};

/** Starts a service whose clock the test moves, with one connection of the market feed. */
const liveOnClock = async (
  limits?: TradeFeedServiceOptions['limits'],
  account?: Parameters<TradeFeedService['createAccount']>[0],
) => {
  const { scheduler, advance } = manualClock();
  const service = await start({ scheduler, ...(limits && { limits }) });
  return { scheduler, advance, service, ...(await live(service, 'market', account)) };
};

it.each([
  ['the same key and feed', 'market', false],
  ['another key and feed', 'raw', true],
])('a connection (contract 3.2) gets 4001 when its user opens one with %s', async (_, feed, isOtherKey) => {
  const service = await start({ limits: { freeDelayMs: 0 } });
  const { account, key, socket: old } = await live(service, 'market');
  const events = recordEvents(service);
  const next = await connectAs(service, isOtherKey ? account.createApiKey() : key, feed);
  expect(await old.closed).toEqual({ code: 4001, reason: 'connection replaced' });
  service.push('market', 'to market');
  service.push('raw', 'to raw');
  expect(await next.first(1)).toEqual([`to ${feed}`]);
  expect(old.messages).toEqual([]);
  expect(events.filter(({ type }) => type !== 'ticket-issued')).toMatchObject([
    { type: 'handshake-accepted', connection: 2, feed },
    { type: 'connection-closed', connection: 1, feed: 'market', code: 4001, reason: 'connection replaced' },
  ]);
});

// The fuzz tests have other messages, fragments and pings.
it.each([9, 2 * 1024 * 1024])(
  'a message of %d bytes from a client (contract 3.2, 4.2 rule 3) closes with 1008, and is a violation',
  async (bytes) => {
    const service = await start();
    const { socket } = await live(service, 'raw');
    const events = recordEvents(service);
    socket.ws.send(Buffer.alloc(bytes));
    expect(await socket.closed).toEqual({ code: 1008, reason: 'server push only' });
    expect(events).toMatchObject([
      { type: 'violation', rule: 'client-message', account: 'account-1', feed: 'raw', connection: 1 },
      { type: 'connection-closed', code: 1008, reason: 'server push only', by: 'service', account: 'account-1' },
    ]);
  },
);

describe('an account that loses access (contract 3.2, 5 rule 4)', () => {
  const rows: [string, (account: TradeFeedAccount) => void, number][] = [
    ['access expired', (account) => account.expireAccess(), 200],
    ['access revoked', (account) => account.revokeAccess(), 403],
  ];
  it.each(rows)('is closed with 4003 %s, and its next ticket request gets %3$d', async (reason, act, status) => {
    const service = await start({ limits: { freeDelayMs: 0 } });
    const other = await live(service);
    const { account, key, socket } = await live(service);
    const closed = nextEvent(service, 'connection-closed');
    act(account);
    service.push('market', 'after');
    expect(await socket.closed).toEqual({ code: 4003, reason });
    expect(await closed).toMatchObject({ account: 'account-2', code: 4003, reason, by: 'service' });
    expect(socket.messages).toEqual([]);
    expect(await other.socket.first(1)).toEqual(['after']);
    expect((await postTicket(service, key)).status).toBe(status);
  });

  it('loses its delayed frames and their timer', async () => {
    const { scheduler, advance } = manualClock();
    const timers: Subscription[] = [];
    const schedule = (...work: Parameters<SchedulerLike['schedule']>): Subscription => {
      const timer = scheduler.schedule(...work);
      timers.push(timer);
      return timer;
    };
    const service = await start({ scheduler: { now: () => scheduler.now(), schedule } });
    const { account, socket } = await live(service);
    service.push('market', 'late');
    service.push('market', 'later');
    expect(timers.map(({ closed }) => closed)).toEqual([false]);
    account.expireAccess();
    expect(timers.map(({ closed }) => closed)).toEqual([true]);
    advance(1_000);
    await socket.closed;
    expect(socket.messages).toEqual([]);
  });
});

describe('a slow client (contract 3.2, 8)', () => {
  it('is closed with 1013 if it does not read, after the frames before, without affecting other clients', async () => {
    const service = await start({ limits: { backlogBytes: 256 * 1024 } });
    const slow = await live(service, 'raw', { plan: 'developer' });
    const quick = await live(service, 'raw', { plan: 'developer' });
    slow.socket.ws.pause();
    const closed = nextEvent(service, 'connection-closed');
    const pushing = interval(0).subscribe(() => service.push('raw', Buffer.alloc(64 * 1024)));
    const event = await closed;
    pushing.unsubscribe();
    expect(event).toMatchObject({ account: 'account-1', code: 1013, reason: 'client too slow', by: 'service' });
    slow.socket.ws.resume();
    expect(await slow.socket.closed).toEqual({ code: 1013, reason: 'client too slow' });
    expect(slow.socket.messages).toHaveLength(event.frames);
    expect(quick.socket.ws.readyState).toBe(quick.socket.ws.OPEN);
  });

  it('is not blamed for frames that wait for their delay', async () => {
    const { service, advance, socket } = await liveOnClock({ backlogBytes: 1_000 });
    for (let i = 0; i < 100; i += 1) service.push('market', 'x'.repeat(1_000));
    advance(500);
    await socket.first(100);
    expect(socket.ws.readyState).toBe(socket.ws.OPEN);
  });

  it('loses its socket if it does not answer within limits.closeTimeoutMs', async () => {
    const service = await start({ limits: { closeTimeoutMs: 20 } });
    const account = service.createAccount();
    const { received } = await openRaw(service, await takeTicket(service, account.createApiKey()));
    account.expireAccess();
    expect((await received).subarray(-14).toString()).toBe('access expired');
  });
});

describe('the delay of a plan (contract 1, 6 rule 3, 8)', () => {
  it('applies to a new account, because its plan is Free', async () => {
    const { service, advance, account, socket } = await liveOnClock();
    const other = await live(service, 'market', { plan: 'developer' });
    expect([account.plan, other.account.plan]).toEqual(['free', 'developer']);
    service.push('market', '1');
    advance(499);
    service.push('market', '2');
    expect(await other.socket.first(2)).toEqual(['1', '2']);
    expect(socket.messages).toEqual([]);
    advance(1);
    expect(await socket.first(1)).toEqual(['1']);
    advance(499);
    expect(await socket.first(2)).toEqual(['1', '2']);
  });

  it('starts with the next frame when the plan changes to Free, and ends with Developer, after the delayed frames', async () => {
    const { service, advance, account, socket } = await liveOnClock(undefined, { plan: 'developer' });
    const other = await live(service, 'market', { plan: 'developer' });
    service.push('market', '1');
    account.setPlan('free');
    service.push('market', '2');
    expect(await other.socket.first(2)).toEqual(['1', '2']);
    expect(await socket.first(1)).toEqual(['1']);
    expect(socket.messages).toHaveLength(1);
    advance(500);
    expect(await socket.first(2)).toEqual(['1', '2']);
    for (const payload of ['3', '4']) service.push('market', payload);
    account.setPlan('developer');
    service.push('market', '5');
    expect(await socket.first(5)).toEqual(['1', '2', '3', '4', '5']);
    expect(account.plan).toBe('developer');
  });

  it('is never too short by the fraction that a timer drops', async () => {
    const { service, scheduler, advance, account } = await liveOnClock();
    service.push('market', 'first');
    scheduler.frame = 0.7;
    service.push('market', 'second');
    scheduler.frame = 0;
    advance(500);
    const closed = nextEvent(service, 'connection-closed');
    account.expireAccess();
    expect((await closed).frames).toBe(1);
  });
});

describe('frames that wait for their delay when a connection closes (contract 6, 8)', () => {
  type Clocked = Awaited<ReturnType<typeof liveOnClock>>;
  /** Pushes `old` 200 ms before the connection drops, and `lost` 100 ms after. */
  const cut = ({ service, advance }: Clocked, behavior: WaitingFrames) => {
    service.setWaitingFrames(behavior);
    service.push('market', 'old');
    advance(200);
    service.dropConnections();
    advance(100);
    service.push('market', 'lost');
    advance(100);
  };
  /** Returns what a connection has received when the service ends it. */
  const receivedBy = async ({ account }: Clocked, { closed, messages }: Awaited<ReturnType<typeof connectAs>>) => {
    account.expireAccess();
    await closed;
    return messages.map(({ data }) => data.toString());
  };

  const meanwhile = {
    'at once': () => undefined,
    'when the delay of the first is over': ({ advance }: Clocked) => advance(200),
    'after a restart': ({ service }: Clocked) => service.restart(),
    'after a change that drops them': ({ service }: Clocked) => service.setWaitingFrames('send-when-due'),
  };
  it.each<[WaitingFrames, keyof typeof meanwhile, number, readonly string[]]>([
    ['drop', 'at once', 499, []],
    ['drop', 'at once', 500, ['new']],
    ['send-when-due', 'at once', 99, []],
    ['send-when-due', 'at once', 100, ['old']],
    ['send-when-due', 'at once', 500, ['old', 'lost', 'new']],
    ['send-on-reconnect', 'at once', 0, ['old']],
    ['send-on-reconnect', 'at once', 500, ['old', 'new']],
    ['send-when-due', 'when the delay of the first is over', 499, ['lost']],
    ['send-on-reconnect', 'when the delay of the first is over', 499, ['old']],
    ['send-when-due', 'after a restart', 499, ['old', 'lost']],
    ['send-on-reconnect', 'after a restart', 499, ['old']],
    ['send-on-reconnect', 'after a change that drops them', 499, []],
  ])('with %s, %s: %d ms after the reconnect the client has %j', async (behavior, when, ms, expected) => {
    const world = await liveOnClock();
    cut(world, behavior);
    await meanwhile[when](world);
    const socket = await connectAs(world.service, world.key);
    world.service.push('market', 'new');
    world.advance(ms);
    expect(await receivedBy(world, socket)).toEqual(expected);
  });

  it.each<[WaitingFrames, readonly string[]]>([
    ['drop', []],
    ['send-when-due', ['old']],
    ['send-on-reconnect', ['old']],
  ])('with %s, after another connection took over: %j', async (behavior, expected) => {
    const world = await liveOnClock();
    world.service.setWaitingFrames(behavior);
    world.service.push('market', 'old');
    const socket = await connectAs(world.service, world.key);
    expect(await world.socket.closed).toEqual({ code: 4001, reason: 'connection replaced' });
    world.advance(500);
    expect(await receivedBy(world, socket)).toEqual(expected);
    expect(world.socket.messages).toEqual([]);
  });

  it('never reach a connection of the other feed', async () => {
    for (const behavior of ['send-when-due', 'send-on-reconnect'] as const) {
      const world = await liveOnClock();
      cut(world, behavior);
      const socket = await connectAs(world.service, world.key, 'raw');
      world.advance(1_000);
      expect(await receivedBy(world, socket)).toEqual([]);
    }
  });

  it('are at most 64 MiB for an account that is not connected', async () => {
    const world = await liveOnClock({ backlogBytes: Infinity });
    cut(world, 'send-when-due');
    for (let n = 0; n < 65; n += 1) world.service.push('market', Buffer.alloc(1024 * 1024, `${n % 10}`));
    const socket = await connectAs(world.service, world.key);
    world.advance(500);
    await socket.first(65);
    expect((await receivedBy(world, socket)).slice(0, 2)).toEqual(['old', 'lost']);
    expect(socket.messages).toHaveLength(65);
  });
});

describe('a close by the client', () => {
  it.each<[number, (ws: WebSocket) => void]>([
    [1000, (ws) => ws.close(1000, 'done')],
    [4999, (ws) => ws.close(4999, 'mine')],
    [1006, (ws) => ws.terminate()],
  ])('is reported with its code %d, but without its reason', async (code, act) => {
    const service = await start();
    const { socket } = await live(service);
    const closed = nextEvent(service, 'connection-closed');
    act(socket.ws);
    expect(await closed).toMatchObject({ code, reason: '', by: 'client', frames: 0 });
  });

  it('stops the frames during the closing handshake, and no other end is reported', async () => {
    const service = await start({ limits: { freeDelayMs: 0 } });
    const account = service.createAccount();
    const ticket = await takeTicket(service, account.createApiKey());
    const { socket, received } = await openRaw(service, ticket, { allowHalfOpen: true });
    const events = recordEvents(service);
    // A masked close frame with 1000. The service answers it and ends the socket on its side.
    socket.write(Buffer.from([0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe8]));
    await once(socket, 'end');
    service.push('market', 'after');
    account.expireAccess();
    expect(events).toEqual([]);
    socket.end();
    expect((await received).subarray(-4)).toEqual(Buffer.from([0x88, 0x02, 0x03, 0xe8]));
    await service.shutdown();
    expect(events).toMatchObject([{ type: 'connection-closed', code: 1000, by: 'client', frames: 0 }]);
  });

  it('by a broken frame gets 1002 and is reported as a violation', async () => {
    const { service, key } = await withKey(start());
    const { socket, received } = await openRaw(service, await takeTicket(service, key));
    const events = recordEvents(service);
    // A client must mask its frames; this one isn't masked.
    socket.end(Buffer.from([0x81, 0x00]));
    // FIN and close, two bytes: 1002.
    expect((await received).subarray(-4)).toEqual(Buffer.from([0x88, 0x02, 0x03, 0xea]));
    expect(events).toMatchObject([
      { type: 'violation', rule: 'protocol-error', account: 'account-1', connection: 1 },
      { type: 'connection-closed', code: 1002, by: 'service' },
    ]);
  });
});

const kib = (count: number): Buffer => Buffer.alloc(count * 1024);
const endOfTurn = (): Promise<void> => new Promise((resolve) => process.nextTick(resolve));

/** A connection over a fake socket, whose client reads nothing. */
const slowClient = (options: TradeFeedServiceOptions, onSend: () => void = noop) => {
  const writes: number[] = [];
  const ends: number[] = [];
  const socket = new Writable({
    writev: (chunks) => void writes.push(chunks.reduce((sum, { chunk }) => sum + (chunk as Buffer).length, 0)),
  });
  const sendTo = (data: Buffer) => (onSend(), socket.write(data));
  const webSocket = { on: () => webSocket, readyState: 1, send: sendTo, close: noop };
  const settings = serviceSettings(options);
  const connection = new Connection('market', webSocket as never, socket as never, settings, {
    onViolation: noop,
    onClosed: ({ code }) => ends.push(code),
  });
  return { settings, connection, writes, ends, send: (bytes: Buffer) => connection.send(messageOf(bytes)) };
};
const backlog = (backlogBytes: number) => slowClient({ limits: { backlogBytes } });

it('never waits a negative time for the next message of the Free plan, which Node 24 and later warn about', () => {
  const waits: number[] = [];
  let [now, release] = [0, noop];
  const schedule = (work: () => void, ms: number) => {
    waits.push(ms);
    release = work;
    return Subscription.EMPTY;
  };
  const scheduler = { now: () => now, schedule } as never;
  // Each write blocks the process for 100 ms.
  const { settings, connection } = slowClient({ scheduler, limits: { freeDelayMs: 50 } }, () => (now += 100));
  const delayLine = new DelayLine(settings, () => connection);
  delayLine.push('market', messageOf('first'));
  now = 10;
  delayLine.push('market', messageOf('second'));
  now = 50;
  release();
  expect(waits).toEqual([50, 0]);
});

describe('the backlog of a connection', () => {
  it('is written once per turn of the event loop, or earlier at 64 KiB', async () => {
    const { send, writes } = backlog(1_000_000);
    for (let n = 0; n < 5; n += 1) send(Buffer.alloc(10));
    expect(writes).toEqual([]);
    await endOfTurn();
    expect(writes).toEqual([50]);
    const many = backlog(1_000_000);
    for (let n = 0; n < 3; n += 1) many.send(kib(32));
    expect(many.writes).toEqual([64 * 1024]);
  });

  it('may reach the limit when a burst starts, and closes with 1013 beyond it', async () => {
    const { send, ends } = backlog(100);
    send(Buffer.alloc(100));
    await endOfTurn();
    send(Buffer.alloc(1));
    await endOfTurn();
    expect(ends).toEqual([]);
    send(Buffer.alloc(1));
    expect(ends).toEqual([1013]);
  });
});
