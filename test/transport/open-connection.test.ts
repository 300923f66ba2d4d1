import { describe, expect, it } from '@jest/globals';
import { stat } from 'node:fs';
import { Agent } from 'node:http';
import type { Socket } from 'node:net';
import { firstValueFrom, map, of, Subject, take, tap, toArray } from 'rxjs';
import { resolveOptions } from '../../src/feed/options.js';
import { MemoryUse, Payload, PayloadKind } from '../../src/frames/received-frame.js';
import {
  type Feed,
  type Frame,
  frames,
  openConnection,
  requestTicket,
  type TradeFeedOptions,
} from '../../src/index.js';
import { feedEvents$ } from '../../src/feed/trade-feed.js';
import { moveToBlocks, openConnectionOver } from '../../src/transport/open-connection.js';
import { freshSockets } from '../../src/transport/sockets.js';
import { fakeTimers } from '../support/fake-timers.js';
import { closed, optionsFor } from '../support/feed.js';
import { waitFor } from '../support/wait-for.js';
import {
  accept,
  binary,
  close,
  type HandshakeStep,
  issue,
  pong,
  startWire,
  switching,
  text,
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

  it('delivers text, binary, empty and fragmented frames exactly as sent', async () => {
    const bytes = Buffer.from([0, 255, 10, 13]);
    const fragments = [wsFrame(1, 'fra', false), pong(), wsFrame(0, 'gment', false), wsFrame(0, 'ed')];
    await using wire = await startWire({ handshake: [accept(text('a'), binary(bytes), text(''), ...fragments)] });
    const before = Date.now();
    const frames = await firstValueFrom(frames$(wire).pipe(take(4), toArray()));
    expect(frames.map(({ data, isBinary }) => [data.toString('latin1'), isBinary])).toEqual([
      ['a', false],
      [bytes.toString('latin1'), true],
      ['', false],
      ['fragmented', false],
    ]);
    for (const frame of frames) {
      expect(frame).toMatchObject({ type: 'frame', feed: 'market', connection: 1 });
      expect(frame.receivedAt).toBeGreaterThanOrEqual(before);
      expect(frame.receivedAt).toBeLessThanOrEqual(Date.now());
    }
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

  it('emits a frame with more fragments than ws allows by default', async () => {
    const part = Buffer.alloc(64, 120);
    const fragments = Array.from({ length: 20_000 }, (_, i) => wsFrame(i === 0 ? 1 : 0, part, i === 19_999));
    await using wire = await startWire({ handshake: [accept(...fragments)] });
    const [all] = await texts(wire, 1);
    expect(all).toBe('x'.repeat(64 * 20_000));
  });

  it('accepts at most 32 Ki fragments for a small frame', async () => {
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

  it('emits the frames before a close and its failure at once, even if the server keeps the socket open', async () => {
    const after = text('after the close');
    await using wire = await startWire({
      handshake: [accept(text('a'), text('b'), close(1001, 'server shutdown'), after)],
      ignoresClose: true,
      staysOpen: true,
    });
    const seen: string[] = [];
    // After a second of its clock the client would destroy the socket.
    using _time = fakeTimers();
    await expect(
      frames$(wire).forEach((frame) => {
        seen.push(frame.text());
      }),
    ).rejects.toMatchObject({ code: 'server-shutdown', framesReceived: 2 });
    expect(seen).toEqual(['a', 'b']);
    await waitFor(() => wire.opcodes.length > 0);
    expect(wire.opcodes).toEqual([8]);
  });

  it('reports a close as soon as it reads the frame, answers it, and ends the closing handshake silently', async () => {
    const closing: Promise<void>[] = [];
    await using wire = await startWire({
      handshake: [accept(close(4003, 'access expired')), accept(text('a'))],
      ignoresClose: true,
    });
    const settings = resolveOptions(optionsFor(wire));
    const onClosing = (closed: Promise<void>) => void closing.push(closed);
    const connection = openConnectionOver(freshSockets(settings), settings, () => 1, onClosing);
    const ended = of<Feed>('market').pipe(requestTicket(settings), connection);
    await expect(firstValueFrom(ended)).rejects.toMatchObject({ code: 'access-expired', reason: 'access expired' });
    const [old] = [...wire.open].slice(-1) as [Socket];
    await waitFor(() => wire.opcodes.length > 0);
    expect([wire.opcodes, old.destroyed]).toEqual([[8], false]);
    old.end(text('late'));
    await Promise.all(closing);
    expect(closing).toHaveLength(1);
  });

  it('reports how long the connection lived', async () => {
    await using wire = await startWire({ handshake: [accept(text('a'))] });
    const ended = frames$(wire).forEach(() => {
      setTimeout(() => [...wire.open].at(-1)?.end(close(1000)), 60);
    });
    await expect(ended).rejects.toMatchObject({ uptimeMs: expect.any(Number) });
    const { uptimeMs } = (await ended.catch((error: unknown) => error)) as { uptimeMs: number };
    expect(uptimeMs).toBeGreaterThanOrEqual(55);
    expect(uptimeMs).toBeLessThan(5_000);
  });

  it('sets receivedAt to the time of the read, even if the consumer was slow with the previous frame', async () => {
    await using wire = await startWire({ handshake: [accept(text('a'), text('b'))] });
    const frames: Frame[] = [];
    const slow$ = frames$(wire).pipe(take(2));
    await slow$.forEach((frame) => {
      frames.push(frame);
      for (const end = Date.now() + 30; Date.now() < end;);
    });
    expect(frames[1]?.receivedAt).toBe(frames[0]?.receivedAt);
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
  it('keeps a quiet connection that still answers pings', async () => {
    let pings = 0;
    await using wire = await startWire({
      handshake: [
        (peer) => {
          peer.socket.write(switching(peer));
          peer.socket.on('data', (chunk: Buffer) => {
            if (((chunk[0] as number) & 15) !== 9) return;
            pings += 1;
            peer.socket.write(pings < 2 ? pong() : text('still here'));
          });
        },
      ],
    });
    await expect(texts(wire, 1, { idleTimeoutMs: 600 })).resolves.toEqual(['still here']);
    expect(wire.handshakes).toHaveLength(1);
    expect(wire.opcodes.filter((opcode) => opcode === 9)).toHaveLength(2);
  });

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
      [...wire.open].at(-1)?.write(text('while blocked'));
      for (const end = performance.now() + 900; performance.now() < end;);
    };
    await frames$(wire, { idleTimeoutMs: 300 })
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

it('copies unread payloads to blocks of at most 64 KiB, so that a stored frame keeps few others alive', () => {
  const words = [30_000, 35_536, 20_000, 65_536, 100_000, 20_001].map((size, n) => String(n).repeat(size));
  const memory = Buffer.from(words.join(''));
  let end = 0;
  const payloads = words.map(({ length }) => {
    end += length;
    return new Payload(memory, end - length, end, PayloadKind.Ascii, MemoryUse.Reused);
  });
  moveToBlocks(payloads);
  memory.fill('z');
  const blocks = [...new Set(payloads.map(({ view }) => view.buffer))];
  expect(blocks.map(({ byteLength }) => byteLength)).toEqual([65_536, 20_000, 65_536, 100_000, 20_001]);
  expect(payloads.map((payload) => payload.text())).toEqual(words);
});

/** Receives one frame, and returns the promises of connections that started to close. */
const closingOf = async (wire: Wire): Promise<{ readonly closing: Promise<void>[]; readonly failure?: unknown }> => {
  const closing: Promise<void>[] = [];
  const owner = { user: { where: 'a test' }, onClosing: (closed: Promise<void>) => void closing.push(closed) };
  try {
    await firstValueFrom(feedEvents$('market', optionsFor(wire), owner).pipe(frames(), take(1)));
    return { closing };
  } catch (failure) {
    return { closing, failure };
  }
};

it('calls onClosing with a promise that resolves after the closing handshake', async () => {
  await using wire = await startWire({ handshake: [accept(text('a'))] });
  const { closing } = await closingOf(wire);
  expect(closing).toHaveLength(1);
  expect(wire.open.size).toBeGreaterThan(0);
  await closing[0];
  expect(wire.opcodes).toEqual([8]);
});

const agentFrames$ = (wire: Wire) =>
  of<Feed>('market').pipe(requestTicket(optionsFor(wire)), openConnection({ ...optionsFor(wire), agent: new Agent() }));

// Only ws reads the socket of an agent.
describe("with a user's agent", () => {
  it('emits the frames before a close and its failure at once, even if the server keeps the socket open', async () => {
    await using wire = await startWire({
      handshake: [accept(text('a'), close(4003, 'access expired'), text('late'))],
      staysOpen: true,
      ignoresClose: true,
    });
    const seen: string[] = [];
    // The closing handshake would be aborted after a second, but time stands still here.
    using _timers = fakeTimers();
    const ended = agentFrames$(wire).forEach((frame) => {
      seen.push(frame.text());
    });
    await expect(ended).rejects.toMatchObject({ code: 'access-expired', framesReceived: 1 });
    expect(seen).toEqual(['a']);
  });
});

it.each([
  ['in place', frames$],
  ['by ws', agentFrames$],
])('stays connected between reads, and stamps each frame with the time of its read: %s', async (_how, feedOf) => {
  let push: (frame: Buffer) => void = () => undefined;
  const open: HandshakeStep = (peer, wire, n) => {
    push = (frame) => void peer.socket.write(frame);
    accept(text('a'))(peer, wire, n);
  };
  await using wire = await startWire({ handshake: [open] });
  const later = () => setTimeout(() => push(text('b')), 50);
  const [a, b] = await firstValueFrom(
    feedOf(wire).pipe(
      tap((frame) => frame.text() === 'a' && later()),
      take(2),
      toArray(),
    ),
  );
  expect([a?.text(), b?.text()]).toEqual(['a', 'b']);
  expect((b?.receivedAt ?? 0) - (a?.receivedAt ?? 0)).toBeGreaterThanOrEqual(40);
  await Promise.all([...wire.open].map(closed));
});
