import { describe, expect, it } from '@jest/globals';
import { firstValueFrom, lastValueFrom } from 'rxjs';
import { deflateRawSync } from 'node:zlib';
import { tradeFeed$, type TradeFeedError } from '../../src/index.js';
import { optionsFor, outcomeOf } from '../support/feed.js';
import { accept, type HandshakeStep, startWire, switching, text, wsFrame } from '../support/wire.js';

/** Accepts a handshake, and then writes the same bytes while the socket accepts them. It reads nothing. */
const flood =
  (bytes: Buffer, ...first: readonly Buffer[]): HandshakeStep =>
  (peer, wire, n) => {
    const { socket } = peer;
    socket.removeAllListeners('data').pause();
    accept(...first)(peer, wire, n);
    const write = () => {
      while (!socket.destroyed && socket.write(bytes));
    };
    socket.on('drain', write).on('error', () => undefined);
    write();
  };

/** Runs a feed to its end. Returns the failure and the largest growth of the memory of this process, in MiB. */
const peakOf = async (step: HandshakeStep): Promise<{ failure: TradeFeedError; mebibytes: number }> => {
  await using wire = await startWire({ handshake: [step] });
  const usedNow = () => {
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const before = usedNow();
  let peak = before;
  const watch = setInterval(() => (peak = Math.max(peak, usedNow())), 2);
  const feed$ = tradeFeed$('market', optionsFor(wire, { backoff: { maxAttempts: 0 } }));
  const ending = lastValueFrom(feed$, { defaultValue: undefined }).catch((error: unknown) => error);
  const failure = ((await ending) as TradeFeedError).cause as TradeFeedError;
  clearInterval(watch);
  return { failure, mebibytes: (Math.max(peak, usedNow()) - before) / 2 ** 20 };
};

const many = (frame: Buffer): Buffer => Buffer.concat(Array.from({ length: 4_096 }, () => frame));

describe('frames of a hostile service', () => {
  it('that never end, in fragments of one byte, need a bounded amount of memory', async () => {
    const { failure, mebibytes } = await peakOf(flood(many(wsFrame(0, 'x', false)), wsFrame(1, 'x', false)));
    expect(failure).toMatchObject({ code: 'invalid-frame' });
    expect(mebibytes).toBeLessThan(96);
  });

  it('that are pings of a service that reads no answer need a bounded amount of memory', async () => {
    const { failure, mebibytes } = await peakOf(flood(many(wsFrame(9, Buffer.alloc(125)))));
    expect(failure).toMatchObject({ code: 'connection-lost', verdict: 'renew' });
    expect(mebibytes).toBeLessThan(128);
  });

  it('that announce 2^63 bytes reserve no memory', async () => {
    const head = Buffer.from([0x82, 127, 0x7f, 255, 255, 255, 255, 255, 255, 255]);
    const { failure, mebibytes } = await peakOf(accept(head));
    expect(failure).toMatchObject({ code: 'invalid-frame' });
    expect(mebibytes).toBeLessThan(64);
  });

  it('that are compressed are not inflated: compression is neither offered nor accepted', async () => {
    const bomb = wsFrame(2, deflateRawSync(Buffer.alloc(48 * 1024 * 1024), { level: 1 }));
    bomb[0] = 0xc2; // RSV1: compressed (RFC 7692, 6)
    const { failure, mebibytes } = await peakOf(accept(bomb));
    expect(failure).toMatchObject({ code: 'invalid-frame' });
    expect(mebibytes).toBeLessThan(40);

    const extension = 'Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=1000\r\n\r\n';
    await using wire = await startWire({
      handshake: [(peer) => peer.socket.write(switching(peer).replace(/\r\n$/, extension))],
    });
    expect((await outcomeOf(optionsFor(wire))).failure).toMatchObject({ code: 'handshake-failed', verdict: 'stop' });
    expect(wire.handshakes[0]?.headers).not.toHaveProperty('sec-websocket-extensions');
  });

  it('that are JSON with the name of a prototype do not change a prototype', async () => {
    await using wire = await startWire({
      handshake: [accept(text('{"__proto__":{"isAdmin":true},"constructor":{"prototype":{"isAdmin":true}}}'))],
    });
    const parsed = (await firstValueFrom(tradeFeed$('market', optionsFor(wire)))).json() as object;
    expect(Object.getPrototypeOf(parsed)).toBe(Object.prototype);
    expect(Object.keys(parsed)).toEqual(['__proto__', 'constructor']);
    expect({}).not.toHaveProperty('isAdmin');
  });
});
