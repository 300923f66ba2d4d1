/** @lane clock */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { existsSync, readFileSync, stat } from 'node:fs';
import { Agent } from 'node:http';
import type { Socket } from 'node:net';
import { firstValueFrom, map, NEVER, noop, Observable, of, Subject, take, toArray } from 'rxjs';
import { resolveOptions } from '../../src/feed/options.js';
import { feedEvents$ } from '../../src/feed/trade-feed.js';
import {
  type Feed,
  type FeedEvent,
  type Frame,
  frames,
  openConnection,
  requestTicket,
  tradeFeedEvents$,
  type TradeFeedOptions,
} from '../../src/index.js';
import { deadline, stalled$ } from '../../src/transport/deadline.js';
import { openConnectionOver } from '../../src/transport/open-connection.js';
import { freshSockets } from '../../src/transport/sockets.js';
import { fakeTimers } from '../support/fake-timers.js';
import { closed, optionsFor, until } from '../support/feed.js';
import { waitFor } from '../support/wait-for.js';
import {
  accept,
  binary,
  close,
  type HandshakeStep,
  issue,
  refuseHandshake,
  startWire,
  switching,
  text,
  type TicketStep,
  type Wire,
  wsFrame,
} from '../support/wire.js';

const frames$ = (wire: Wire, options?: TradeFeedOptions) =>
  of<Feed>('market').pipe(requestTicket(optionsFor(wire, options)), openConnection(optionsFor(wire, options)));

const texts = (wire: Wire, count: number, options?: TradeFeedOptions): Promise<string[]> =>
  firstValueFrom(
    frames$(wire, options).pipe(
      map((frame) => frame.text()),
      take(count),
      toArray(),
    ),
  );

const hex = (port = 0): string => `:${port.toString(16).padStart(4, '0').toUpperCase()}`;

/** Returns whether the kernel has bytes of a service's socket for its client to read. Only Linux can tell. */
const isReadable = ({ localPort, remotePort }: Socket): boolean => {
  if (!existsSync('/proc/net/tcp')) return true;
  const row = new RegExp(`${hex(remotePort)} \\w+${hex(localPort)} \\w+ \\w+:(\\w+)`);
  return Number.parseInt(row.exec(readFileSync('/proc/net/tcp', 'latin1'))?.[1] ?? '0', 16) > 0;
};

describe('openConnection', () => {
  it('uses wss_url, feed and subprotocol exactly as returned', async () => {
    const [subprotocol, path] = ['some.other.v9', '/a%20b?x=1&y=%2F'];
    const step: HandshakeStep = (peer) =>
      void peer.socket.write(Buffer.concat([Buffer.from(switching(peer, subprotocol)), text('a')]));
    const ticket = issue(({ wssUrl }) => ({ wss_url: wssUrl + path, feed: 'raw', subprotocol }));
    await using wire = await startWire({ ticket: [ticket], handshake: [step] });
    const frame = await firstValueFrom(frames$(wire));
    const headers = { 'sec-websocket-protocol': subprotocol };
    expect(wire.handshakes).toMatchObject([{ url: `/ws${path}`, headers }]);
    expect(frame.feed).toBe('raw');
  });

  it('emits a frame of 16 MiB, and by default no larger one', async () => {
    const largest = 16 * 1024 * 1024;
    await using wire = await startWire({
      handshake: [accept(binary(Buffer.alloc(largest, 7)), binary(Buffer.alloc(largest + 1)))],
    });
    const sizes: number[] = [];
    await expect(
      frames$(wire).forEach(({ data }) => {
        sizes.push(data.length);
      }),
    ).rejects.toMatchObject({ code: 'invalid-frame', framesReceived: 1 });
    expect(sizes).toEqual([largest]);
  });

  it('accepts up to 32 Ki fragments for a small frame, which is more than ws does by default', async () => {
    const fragments = (count: number) =>
      Buffer.concat(Array.from({ length: count }, (_, n) => wsFrame(n === 0 ? 1 : 0, 'x', n === count - 1)));
    await using wire = await startWire({ handshake: [accept(fragments(32_000)), accept(fragments(33_000))] });
    const few = { maxFrameBytes: 40_000 };
    await expect(texts(wire, 1, few)).resolves.toEqual(['x'.repeat(32_000)]);
    await expect(texts(wire, 1, few)).rejects.toMatchObject({ code: 'invalid-frame' });
  });

  it('keeps a connection when many pings arrive at once, as after a blocked event loop', async () => {
    const pings = Array.from({ length: 2_000 }, () => wsFrame(9));
    await using wire = await startWire({
      handshake: [
        (peer, wire, n) => {
          accept(...pings, text('a'))(peer, wire, n);
          // The answers show that all pings were read, so the next frame arrives over the same connection.
          peer.socket.on('data', () => {
            if (wire.opcodes.filter((opcode) => opcode === 10).length === pings.length) peer.socket.write(text('b'));
          });
        },
      ],
    });
    await expect(texts(wire, 2)).resolves.toEqual(['a', 'b']);
  });

  it('reports a close as soon as it reads the frame, answers it, and ends the closing handshake silently', async () => {
    const closing: Promise<void>[] = [];
    await using wire = await startWire({
      handshake: [accept(close(4003, 'access expired')), accept(text('a'))],
      ignoresClose: true,
    });
    const settings = resolveOptions(optionsFor(wire));
    const onClosing = (closed: Promise<void>) => void closing.push(closed);
    const connection = openConnectionOver(
      freshSockets(settings),
      settings,
      { opened: () => 1, firstFrame: noop },
      onClosing,
    );
    const ended = of<Feed>('market').pipe(requestTicket(settings), connection);
    await expect(firstValueFrom(ended)).rejects.toMatchObject({ code: 'access-expired', reason: 'access expired' });
    const [old] = [...wire.open].slice(-1) as [Socket];
    await waitFor(() => wire.opcodes.length > 0);
    expect([wire.opcodes, old.destroyed]).toEqual([[8], false]);
    old.end(text('late'));
    await Promise.all(closing);
    expect(closing).toHaveLength(1);
  });

  it('keeps its absolute deadline while the answer to the handshake arrives byte by byte', async () => {
    await using wire = await startWire({
      handshake: [
        ({ socket }) => {
          socket.write('HTTP/1.1 101 Switching Protocols\r\nx-filler: ');
          const timer = setInterval(() => socket.write('x'), 2);
          socket.on('close', () => clearInterval(timer)).on('error', () => undefined);
        },
      ],
    });
    // The bytes never stop, so a deadline for silence would never come.
    await expect(texts(wire, 1, { handshakeTimeoutMs: 60 })).rejects.toMatchObject({
      code: 'handshake-unreachable',
      message: expect.stringContaining('(no answer in 60 ms)'),
    });
  });

  it('starts no handshake with a ticket that expired before', async () => {
    await using wire = await startWire();
    const ticket = await firstValueFrom(of<Feed>('market').pipe(requestTicket(optionsFor(wire))));
    const held = { ...ticket, deadlineMs: performance.now() - 1 };
    const feed$ = of(held).pipe(openConnection(optionsFor(wire)));
    await expect(firstValueFrom(feed$)).rejects.toMatchObject({ code: 'ticket-expired' });
    expect(wire.handshakes).toEqual([]);
    expect(wire.connections).toBe(1);
  });

  it('replaces the connection when a new ticket arrives', async () => {
    await using wire = await startWire({ handshake: [accept(text('1')), accept(text('2'))] });
    const feeds = new Subject<Feed>();
    const seen: string[] = [];
    const frames$ = feeds.pipe(requestTicket(optionsFor(wire)), openConnection(optionsFor(wire)), take(2));
    const ended = frames$.forEach((frame) => {
      if (seen.push(frame.text()) === 1) feeds.next('raw');
    });
    feeds.next('market');
    await ended;
    expect(seen).toEqual(['1', '2']);
    expect(wire.handshakes).toHaveLength(2);
  });
});

describe('liveness on the wire', () => {
  it('detects a half-open connection and destroys it', async () => {
    await using wire = await startWire({ handshake: [accept(text('a'))] });
    const heardAt = Date.now();
    const failure: unknown = await frames$(wire, { idleTimeoutMs: 30 })
      .forEach(() => undefined)
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'connection-stalled', framesReceived: 1 });
    // The gap starts at the last read, not when the connection was closed.
    expect((failure as { endedAt: number }).endedAt - heardAt).toBeLessThan(Date.now() - heardAt - 50);
    await Promise.all([...wire.open].map(closed));
  });

  it.each(['an I/O callback', 'a timer'])("doesn't mistake an event loop blocked in %s for silence", async (where) => {
    await using wire = await startWire({ handshake: [accept(text('before'))] });
    const seen: string[] = [];
    const block = () => {
      const socket = [...wire.open].at(-1) as Socket;
      socket.write(text('while blocked'));
      // A busy machine can take longer to deliver than the client may be silent.
      for (const end = performance.now() + 350; performance.now() < end || !isReadable(socket););
    };
    await frames$(wire, { idleTimeoutMs: 120 })
      .pipe(take(2))
      .forEach((frame) => {
        seen.push(frame.text());
        if (seen.length > 1) return;
        if (where === 'a timer') setTimeout(block, 5);
        else stat('.', block);
      });
    expect(seen).toEqual(['before', 'while blocked']);
    await Promise.all([...wire.open].map(closed));
    expect(wire.opcodes).toEqual([8]);
  });
});

it('calls onClosing with a promise that resolves after the closing handshake', async () => {
  await using wire = await startWire({ handshake: [accept(text('a'))] });
  const closing: Promise<void>[] = [];
  const owner = { user: { where: 'a test' }, onClosing: (closed: Promise<void>) => void closing.push(closed) };
  await firstValueFrom(feedEvents$('market', optionsFor(wire), owner).pipe(frames()));
  expect(closing).toHaveLength(1);
  expect(wire.open.size).toBeGreaterThan(0);
  await closing[0];
  expect(wire.opcodes).toEqual([8]);
});

const agentFrames$ = (wire: Wire) =>
  of<Feed>('market').pipe(requestTicket(optionsFor(wire)), openConnection({ ...optionsFor(wire), agent: new Agent() }));

// Only ws reads the socket of an agent.
const readers = [
  ['in place', frames$],
  ['by ws', agentFrames$],
] as const;

it.each(readers)(
  'emits the frames before a close and its failure at once, even if the server keeps the socket open: read %s',
  async (_how, feedOf) => {
    const after = text('after the close');
    await using wire = await startWire({
      handshake: [accept(text('a'), text('b'), close(1001, 'server shutdown'), after)],
      ignoresClose: true,
      staysOpen: true,
    });
    const seen: string[] = [];
    // After a second of its clock the client would destroy the socket.
    using _time = fakeTimers();
    const ended = feedOf(wire).forEach((frame) => {
      seen.push(frame.text());
    });
    await expect(ended).rejects.toMatchObject({ code: 'server-shutdown', framesReceived: 2 });
    expect(seen).toEqual(['a', 'b']);
    await waitFor(() => wire.opcodes.length > 0);
    expect(wire.opcodes).toEqual([8]);
  },
);

it.each(readers)(
  'stays connected between reads, and stamps the frames of each with its time: %s',
  async (_how, feedOf) => {
    let push: (frame: Buffer) => void = () => undefined;
    const open: HandshakeStep = (peer, wire, n) => {
      push = (frame) => void peer.socket.write(frame);
      accept(text('a'), text('b'))(peer, wire, n);
    };
    await using wire = await startWire({ handshake: [open] });
    const frames: Frame[] = [];
    await feedOf(wire)
      .pipe(take(3))
      .forEach((frame) => {
        frames.push(frame);
        // A slow consumer, so that the time passes within the read.
        for (const end = Date.now() + 30; frames.length === 1 && Date.now() < end;);
        if (frames.length === 2) setTimeout(() => push(text('c')), 50);
      });
    expect(frames.map((frame) => frame.text())).toEqual(['a', 'b', 'c']);
    const [a, b, c] = frames.map(({ receivedAt }) => receivedAt) as [number, number, number];
    expect(b).toBe(a);
    expect(c - a).toBeGreaterThanOrEqual(70);
    await Promise.all([...wire.open].map(closed));
  },
);

/** Issues a ticket with a lifetime of one minute, through a proxy whose `Date` is this far ahead. */
const issueWithDateAhead =
  (aheadMs: number): TicketStep =>
  (response, wire, n) => {
    // A `Date` header has whole seconds.
    const now = Math.floor(Date.now() / 1_000) * 1_000;
    const expires_at = new Date(now + 60_000).toISOString();
    issue({ expires_at }, { date: new Date(now + aheadMs).toUTCString() })(response, wire, n);
  };
/** Issues a ticket that expires too soon for any handshake. */
const issueShort =
  (ms: number): TicketStep =>
  (response, wire, n) => {
    const expires_at = `2031-01-01T00:00:00.${String(ms).padStart(3, '0')}Z`;
    issue({ expires_at }, { date: 'Wed, 01 Jan 2031 00:00:00 GMT' })(response, wire, n);
  };
const slowly =
  (ms: number, step: HandshakeStep): HandshakeStep =>
  (peer, wire, n) =>
    void setTimeout(step, ms, peer, wire, n);

const names = (events: readonly FeedEvent[]): string[] =>
  events.map((event) => (event.type === 'disconnected' ? event.failure.code : event.type));
const untilFrame = (options: TradeFeedOptions) =>
  until(tradeFeedEvents$('market', options), ({ type }) => type === 'frame');

const opened = ['ticket-requested', 'ticket-issued', 'opened', 'frame'];
const expired = ['ticket-requested', 'ticket-issued', 'ticket-expired', 'reconnecting'];

describe('a wrong `Date` from a proxy', () => {
  it.each([60_000, 10 ** 12])('is ignored if it leaves the ticket no lifetime: %i ms ahead', async (aheadMs) => {
    await using wire = await startWire({ ticket: [issueWithDateAhead(aheadMs)], handshake: [accept(text('a'))] });
    const events = await untilFrame(optionsFor(wire));
    expect(names(events)).toEqual(opened);
    expect(wire.tickets).toHaveLength(1);
  });

  it('is ignored in the second attempt in a row if it leaves the ticket too little time', async () => {
    const handshake = slowly(150, accept(text('a')));
    await using wire = await startWire({ ticket: [issueShort(50)], handshake: [handshake] });
    const events = await untilFrame(optionsFor(wire));
    expect(names(events)).toEqual([...expired, ...opened]);
    expect(wire.tickets).toHaveLength(2);
  });

  it('is used again after any other failure', async () => {
    const answers: HandshakeStep[] = [() => undefined, refuseHandshake(503), () => undefined, accept(text('a'))];
    // On a slow machine the ticket may expire before the handshake starts, so look at its lifetime.
    const handshake: HandshakeStep = (peer, wire, n) => answers[wire.tickets.length - 1]?.(peer, wire, n);
    await using wire = await startWire({ ticket: [issueShort(50)], handshake: [handshake] });
    const events = await untilFrame(optionsFor(wire));
    const full = expired.map((name) => (name === 'ticket-expired' ? 'capacity-full' : name));
    expect(names(events)).toEqual([...expired, ...full, ...expired, ...opened]);
  });

  it("doesn't make a handshake endless: handshakeTimeoutMs still applies", async () => {
    await using wire = await startWire({ ticket: [issueShort(50)], handshake: [() => undefined] });
    const events = await until(
      tradeFeedEvents$('market', optionsFor(wire, { handshakeTimeoutMs: 200 })),
      (event) => event.type === 'disconnected' && event.failure.code === 'handshake-unreachable',
    );
    expect(names(events)).toEqual([...expired, 'ticket-requested', 'ticket-issued', 'handshake-unreachable']);
  });
});

describe('time limits', () => {
  const MAX_TIMER_MS = 2_147_483_647;
  const late = new Error('late');

  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    expect(jest.getTimerCount()).toBe(0);
    jest.useRealTimers();
  });

  /** Subscribes to a deadline of 10 ms. */
  const limited = (source: Observable<number>, ms = 10, onTimeout: () => unknown = () => late) => {
    const observer = { next: jest.fn(), error: jest.fn(), complete: jest.fn() };
    const subscription = source.pipe(deadline(ms, onTimeout)).subscribe(observer);
    return { ...observer, subscription };
  };

  describe('deadline', () => {
    it("doesn't limit the source after its first value", () => {
      const source = new Subject<number>();
      const { next, error, complete } = limited(source);
      jest.advanceTimersByTime(9);
      source.next(1);
      expect(jest.getTimerCount()).toBe(0);
      source.next(2);
      source.complete();
      expect([next.mock.calls, complete.mock.calls, error.mock.calls]).toEqual([[[1], [2]], [[]], []]);
    });

    it('accepts a value that arrived in time but is read in the turn after the timer', () => {
      // The event loop was blocked past the deadline: the timer fires first, then the socket is read.
      const source = new Observable<number>((subscriber) => {
        setTimeout(() => setImmediate(() => subscriber.next(1)), 10);
      });
      const { next, error, subscription } = limited(source);
      jest.advanceTimersByTime(1_000);
      expect([next.mock.calls, error.mock.calls]).toEqual([[[1]], []]);
      subscription.unsubscribe();
    });

    it.each([2 ** 31, Infinity])("doesn't fire at once for %d ms, which no timer can wait", (ms) => {
      const { error, subscription } = limited(NEVER, ms);
      jest.advanceTimersByTime(MAX_TIMER_MS - 1);
      expect(error).not.toHaveBeenCalled();
      subscription.unsubscribe();
    });
  });

  /** When a connection receives bytes, and how long it takes to answer a ping, in ms; `null`: never. */
  interface Line {
    readonly readAt?: readonly number[];
    readonly answersAfterMs?: readonly (number | null)[];
  }

  /** Watches a connection, and returns when it was pinged and when it was found stalled. */
  const watch = (idleTimeoutMs: number, { readAt = [], answersAfterMs = [] }: Line = {}) => {
    const startedMs = performance.now();
    let lastReadMs = startedMs;
    const pings: number[] = [];
    const stalls: number[] = [];
    const read = (): void => {
      lastReadMs = performance.now();
    };
    // Reads follow the timers of their turn.
    for (const at of readAt) setTimeout(() => setImmediate(read), at);
    const ping = (): void => {
      const answerMs = answersAfterMs[pings.length] ?? null;
      pings.push(performance.now() - startedMs);
      if (answerMs !== null) setTimeout(() => setImmediate(read), answerMs);
    };
    const subscription = stalled$({ lastReadMs: () => lastReadMs, ping }, idleTimeoutMs).subscribe({
      next: () => stalls.push(performance.now() - startedMs),
    });
    return { pings, stalls, subscription };
  };

  // In fake time, the turn after a timer takes 1 ms.
  describe('stalled$', () => {
    it.each<[string, number, Line, number[], number[]]>([
      ['pings after idleTimeoutMs, and emits after the same time again', 10, {}, [11], [22]],
      ['waits at most 5 s for an answer', 30_000, {}, [30_001], [35_002]],
      ['waits the same time for an answer up to 5 s', 5_000, {}, [5_001], [10_002]],
      ['measures the silence from the last read', 10, { readAt: [4, 9] }, [21], [32]],
      ['pings again after an answer', 10, { answersAfterMs: [3, 3, 3] }, [11, 26, 41, 56], [67]],
      ['emits when the answers stop', 10, { answersAfterMs: [3] }, [11, 26], [37]],
      ['accepts any byte after the ping as its answer', 10, { readAt: [15] }, [11, 27], [38]],
      ['accepts an answer that is read with the timer of its deadline', 10, { answersAfterMs: [10] }, [11, 33], [44]],
      ['does not ping if waiting bytes are read in the turn after the timer', 10, { readAt: [10] }, [22], [33]],
    ])('%s', (_title, idleTimeoutMs, line, pings, stalls) => {
      const seen = watch(idleTimeoutMs, line);
      jest.advanceTimersByTime(60_000);
      expect([seen.pings, seen.stalls]).toEqual([pings, stalls]);
      expect(seen.subscription.closed).toBe(true);
    });

    it('checks again in 1 ms if a timer fires too early', () => {
      // The clock is slower than the timers, which can happen in Node.
      const clock = jest.spyOn(performance, 'now').mockImplementation(() => Date.now() * 0.95);
      const start = Date.now();
      const pings: number[] = [];
      const lastReadMs = performance.now();
      stalled$({ lastReadMs: () => lastReadMs, ping: () => pings.push(Date.now() - start) }, 10).subscribe();
      jest.advanceTimersByTime(60);
      expect(pings).toEqual([11]);
      clock.mockRestore();
    });

    it('does nothing if it is disabled', () => {
      watch(0);
      expect(jest.getTimerCount()).toBe(0);
    });
  });
});
