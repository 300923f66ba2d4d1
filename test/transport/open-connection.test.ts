import { stat } from 'node:fs';
import type { Socket } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { firstValueFrom, map, of, Subject, take, toArray } from 'rxjs';
import { type Feed, type Frame, openConnection, requestTicket, type TradeFeedOptions } from '../../src/index.js';
import { resolveOptions } from '../../src/options.js';
import { openConnectionOver } from '../../src/transport/open-connection.js';
import { freshSockets } from '../../src/transport/reusable-sockets.js';
import { certificateFor } from '../support/certificate.js';
import { closed, optionsFor } from '../support/feed.js';
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
import { cases } from '../support/cases.js';

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

/** Accepts, then writes the pieces in separate turns, so that they arrive one by one. */
const inPieces =
  (...pieces: readonly Buffer[]): HandshakeStep =>
  (peer) => {
    const rest = [Buffer.from(switching(peer)), ...pieces];
    const next = () => {
      const piece = rest.shift();
      if (piece && !peer.socket.destroyed) peer.socket.write(piece, () => setImmediate(next));
    };
    next();
  };

describe('openConnection', () => {
  it('sends the ticket in Authorization and the subprotocol, and no other secret', async () => {
    await using wire = await startWire({ handshake: [accept(text('a'))] });
    await texts(wire, 1);
    expect(wire.handshakes).toMatchObject([
      {
        url: '/ws',
        headers: { authorization: 'Bearer planted-ticket-1', 'sec-websocket-protocol': 'mmp.trade-batch.v1' },
      },
    ]);
    expect(wire.handshakes[0]?.headers['x-api-key']).toBeUndefined();
    expect(wire.handshakes[0]?.headers['sec-websocket-extensions']).toBeUndefined();
  });

  it('uses wss_url, feed and subprotocol exactly as returned', async () => {
    const fields = (wire: Wire) => ({
      wss_url: `${wire.wssUrl}/a%20b?x=1&y=%2F`,
      feed: 'raw',
      subprotocol: 'some.other.v9',
    });
    await using wire = await startWire({
      ticket: [issue(fields)],
      handshake: [
        (peer) => {
          peer.socket.write(Buffer.concat([Buffer.from(switching(peer, 'some.other.v9')), text('a')]));
        },
      ],
    });
    const frame = await firstValueFrom(frames$(wire));
    expect(wire.handshakes).toMatchObject([
      { url: '/ws/a%20b?x=1&y=%2F', headers: { 'sec-websocket-protocol': 'some.other.v9' } },
    ]);
    expect(frame.feed).toBe('raw');
  });

  it('delivers the frames that arrive in the same segment as the 101', async () => {
    await using wire = await startWire({ handshake: [accept(text('a'), text('b'))] });
    await expect(texts(wire, 2)).resolves.toEqual(['a', 'b']);
  });

  it('delivers text, binary, empty and fragmented frames as they were sent', async () => {
    const bytes = Buffer.from([0, 255, 10, 13]);
    await using wire = await startWire({
      handshake: [
        accept(
          text('a'),
          binary(bytes),
          text(''),
          wsFrame(1, 'fra', false),
          pong(),
          wsFrame(0, 'gment', false),
          wsFrame(0, 'ed'),
        ),
      ],
    });
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

  it('emits all frames unchanged and in order, however the bytes are split', async () => {
    const frame = fc.record({
      payload: fc.uint8Array({ maxLength: 300 }),
      isBinary: fc.boolean(),
      fragments: fc.integer({ min: 1, max: 3 }),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(frame, { minLength: 1, maxLength: 12 }),
        fc.infiniteStream(fc.integer({ min: 1, max: 200 })),
        async (sent, cuts) => {
          const payloads = sent.map(({ payload, isBinary }) =>
            isBinary ? Buffer.from(payload) : Buffer.from(Buffer.from(payload).toString('latin1')),
          );
          const bytes = Buffer.concat(
            sent.flatMap(({ isBinary, fragments }, i) => {
              const payload = payloads[i] as Buffer;
              const size = Math.ceil(payload.length / fragments);
              return Array.from({ length: fragments }, (_, part) =>
                wsFrame(
                  part > 0 ? 0 : isBinary ? 2 : 1,
                  payload.subarray(part * size, (part + 1) * size),
                  part === fragments - 1,
                ),
              );
            }),
          );
          const pieces: Buffer[] = [];
          for (let at = 0; at < bytes.length;) {
            const size = cuts.next().value as number;
            pieces.push(bytes.subarray(at, at + size));
            at += size;
          }
          await using wire = await startWire({ handshake: [inPieces(...pieces)] });
          const frames = await firstValueFrom(frames$(wire).pipe(take(sent.length), toArray()));
          expect(frames.map(({ data }) => data.toString('hex'))).toEqual(
            payloads.map((payload) => payload.toString('hex')),
          );
          expect(frames.map(({ isBinary }) => isBinary)).toEqual(sent.map(({ isBinary }) => isBinary));
        },
      ),
      { numRuns: cases(25) },
    );
  });

  it('emits a frame with more fragments than the default limit of ws', async () => {
    const part = Buffer.alloc(64, 120);
    const fragments = Array.from({ length: 20_000 }, (_, i) => wsFrame(i === 0 ? 1 : 0, part, i === 19_999));
    await using wire = await startWire({ handshake: [accept(...fragments)] });
    const [all] = await texts(wire, 1);
    expect(all).toBe('x'.repeat(64 * 20_000));
  });

  it('accepts at most 32 Ki fragments of a small frame', async () => {
    const fragments = (count: number) =>
      Buffer.concat(Array.from({ length: count }, (_, n) => wsFrame(n === 0 ? 1 : 0, 'x', n === count - 1)));
    await using wire = await startWire({ handshake: [accept(fragments(32_000)), accept(fragments(33_000))] });
    const few = { maxFrameBytes: 40_000 };
    await expect(texts(wire, 1, few)).resolves.toEqual(['x'.repeat(32_000)]);
    await expect(texts(wire, 1, few)).rejects.toMatchObject({ code: 'invalid-frame' });
  });

  it('keeps a connection on which many pings arrive at once, as after a blocked event loop', async () => {
    const pings = Array.from({ length: 2_000 }, () => wsFrame(9));
    await using wire = await startWire({
      handshake: [
        (peer, wire, n) => {
          accept(...pings, text('a'))(peer, wire, n);
          // The answers show that all pings were read: the next frame arrives over the same connection.
          peer.socket.on('data', () => {
            if (wire.opcodes.filter((opcode) => opcode === 10).length === pings.length) peer.socket.write(text('b'));
          });
        },
      ],
    });
    await expect(texts(wire, 2)).resolves.toEqual(['a', 'b']);
  });

  it('emits the frames before a close, then its failure, at once, although the server keeps the socket open', async () => {
    const after = text('after the close');
    await using wire = await startWire({
      handshake: [accept(text('a'), text('b'), close(1001, 'server shutdown'), after)],
      staysOpen: true,
    });
    const seen: string[] = [];
    const started = performance.now();
    await expect(
      frames$(wire).forEach((frame) => {
        seen.push(frame.text());
      }),
    ).rejects.toMatchObject({ code: 'server-shutdown', framesReceived: 2 });
    expect(seen).toEqual(['a', 'b']);
    expect(performance.now() - started).toBeLessThan(900);
    while (wire.opcodes.length === 0) await new Promise((resolve) => setImmediate(resolve));
    expect(wire.opcodes).toEqual([8]);
  });

  it('reports a close when its frame is read, answers it, and ends the closing handshake silently', async () => {
    const closing: Promise<void>[] = [];
    await using wire = await startWire({
      handshake: [accept(close(4003, 'access expired')), accept(text('a'))],
      ignoresClose: true,
    });
    const settings = resolveOptions(optionsFor(wire));
    const connection = openConnectionOver(
      freshSockets(settings),
      settings,
      () => 1,
      (closed) => void closing.push(closed),
    );
    const ended = of<Feed>('market').pipe(requestTicket(settings), connection);
    await expect(firstValueFrom(ended)).rejects.toMatchObject({ code: 'access-expired', reason: 'access expired' });
    const [old] = [...wire.open].slice(-1) as [Socket];
    while (wire.opcodes.length === 0) await new Promise((resolve) => setImmediate(resolve));
    expect([wire.opcodes, old.destroyed]).toEqual([[8], false]);
    old.end(text('late'));
    await Promise.all(closing);
    expect(closing).toHaveLength(1);
  });

  it.each([
    ['a code that must not be sent', close(1006)],
    ['a reason that is not UTF-8', wsFrame(8, Buffer.from([0x0f, 0xa1, 0xff]))],
  ])('reports a close frame with %s as an invalid frame', async (_, frame) => {
    await using wire = await startWire({ handshake: [accept(text('a'), frame)] });
    await expect(frames$(wire).forEach(() => undefined)).rejects.toMatchObject({ code: 'invalid-frame' });
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

  it('sets receivedAt to the time of the read, also if the consumer was slow with the previous frame', async () => {
    await using wire = await startWire({ handshake: [accept(text('a'), text('b'))] });
    const frames: Frame[] = [];
    await new Promise<void>((resolve) => {
      frames$(wire)
        .pipe(take(2))
        .subscribe({
          next: (frame) => {
            frames.push(frame);
            for (const end = Date.now() + 30; Date.now() < end;);
          },
          complete: resolve,
        });
    });
    expect(frames[1]?.receivedAt).toBe(frames[0]?.receivedAt);
  });

  it('sets receivedAt of a later frame to its own time', async () => {
    await using wire = await startWire({
      handshake: [
        (peer, wire, n) => {
          accept(text('a'))(peer, wire, n);
          setTimeout(() => peer.socket.write(text('b')), 40);
        },
      ],
    });
    const [a, b] = await firstValueFrom(frames$(wire).pipe(take(2), toArray()));
    expect((b?.receivedAt ?? 0) - (a?.receivedAt ?? 0)).toBeGreaterThanOrEqual(30);
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
    const started = performance.now();
    await expect(texts(wire, 1, { handshakeTimeoutMs: 60 })).rejects.toMatchObject({
      code: 'handshake-unreachable',
      message: expect.stringContaining('(no answer in 60 ms)'),
    });
    expect(performance.now() - started).toBeLessThan(1_000);
  });

  it('uses a ticket that is expired by the local clock', async () => {
    const ticket = issue({ expires_at: '2001-01-01T00:01:00Z' }, { date: 'Mon, 01 Jan 2001 00:00:00 GMT' });
    await using wire = await startWire({ ticket: [ticket], handshake: [accept(text('a'))] });
    await expect(texts(wire, 1)).resolves.toEqual(['a']);
  });

  it('uses handshakeTimeoutMs for a ticket without a known deadline', async () => {
    const slow: HandshakeStep = (peer, wire, n) => void setTimeout(accept(text('a')), 50, peer, wire, n);
    await using wire = await startWire({ handshake: [slow] });
    const ticket = await firstValueFrom(of<Feed>('market').pipe(requestTicket(optionsFor(wire))));
    const { deadlineMs: _known, ...unknown } = ticket;
    const [frame] = await firstValueFrom(of(unknown).pipe(openConnection(optionsFor(wire)), take(1), toArray()));
    expect(frame?.text()).toBe('a');
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

  it('trusts a private CA for the ticket request and the handshake', async () => {
    const certificate = await certificateFor();
    await using wire = await startWire({ tls: certificate, handshake: [accept(text('over TLS'))] });
    await expect(texts(wire, 1, { tls: { ca: certificate.cert } })).resolves.toEqual(['over TLS']);
  });

  it('replaces the connection of an earlier ticket with that of a later one', async () => {
    await using wire = await startWire({ handshake: [accept(text('1')), accept(text('2'))] });
    const feeds = new Subject<Feed>();
    const seen: string[] = [];
    const subscription = feeds
      .pipe(requestTicket(optionsFor(wire)), openConnection(optionsFor(wire)))
      .subscribe((frame) => {
        seen.push(frame.text());
        if (seen.length === 1) feeds.next('raw');
        else subscription.unsubscribe();
      });
    await new Promise((resolve) => {
      subscription.add(() => resolve(undefined));
      feeds.next('market');
    });
    expect(seen).toEqual(['1', '2']);
    expect(wire.handshakes).toHaveLength(2);
  });
});

describe('liveness on the wire', () => {
  it('sends no ping while bytes arrive', async () => {
    await using wire = await startWire({
      handshake: [
        (peer) => {
          peer.socket.write(switching(peer));
          const timer = setInterval(() => peer.socket.write(text('tick')), 10);
          peer.socket.on('close', () => clearInterval(timer));
        },
      ],
    });
    await texts(wire, 15, { idleTimeoutMs: 60 });
    expect(wire.opcodes).not.toContain(9);
  });

  it('keeps a quiet connection that still answers', async () => {
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
    await expect(texts(wire, 1, { idleTimeoutMs: 150 })).resolves.toEqual(['still here']);
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
    // The following gap starts at the last read, not when the connection was closed.
    expect((failure as { endedAt: number }).endedAt - heardAt).toBeLessThan(Date.now() - heardAt - 50);
    await Promise.all([...wire.open].map(closed));
  });

  it('never sends a ping with idleTimeoutMs 0', async () => {
    await using wire = await startWire({ handshake: [accept()] });
    const subscription = frames$(wire, { idleTimeoutMs: 0 }).subscribe();
    while (wire.handshakes.length === 0) await new Promise((resolve) => setImmediate(resolve));
    for (const end = performance.now() + 60; performance.now() < end;)
      await new Promise((resolve) => setImmediate(resolve));
    subscription.unsubscribe();
    await Promise.all([...wire.open].map(closed));
    expect(wire.opcodes).toEqual([8]);
  });

  it.each(['an I/O callback', 'a timer'])(
    'does not report an event loop that is blocked in %s as silence',
    async (where) => {
      await using wire = await startWire({ handshake: [accept(text('before'))] });
      const seen: string[] = [];
      const block = () => {
        [...wire.open].at(-1)?.write(text('while blocked'));
        for (const end = performance.now() + 200; performance.now() < end;);
      };
      await new Promise<void>((resolve, reject) => {
        const subscription = frames$(wire, { idleTimeoutMs: 60 }).subscribe({
          next: (frame) => {
            seen.push(frame.text());
            if (seen.length === 1) {
              if (where === 'a timer') setTimeout(block, 5);
              else stat('.', block);
            } else {
              subscription.unsubscribe();
              resolve();
            }
          },
          error: reject,
        });
      });
      expect(seen).toEqual(['before', 'while blocked']);
      await Promise.all([...wire.open].map(closed));
      expect(wire.opcodes).toEqual([8]);
    },
  );
});
