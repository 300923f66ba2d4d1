// Prints how much memory some parts take at most, or keep, in bytes. Needs --expose-gc.
// Arguments: the largest frame of a feed, in bytes, and how many handshakes the local service refuses.
import { connect } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { deflateRawSync } from 'node:zlib';
import { lastValueFrom } from 'rxjs';
import { tradeFeed$ } from 'rx-trade-feed';
import { startTradeFeedService } from 'rx-trade-feed/testing';
import { accept, startWire, wsFrame } from '../../support/wire.ts';

const [maxFrameBytes, handshakes] = process.argv.slice(2).map(Number);
// After a flood of pings, each pong that wasn't sent gets an error, whose stack costs more than everything else.
Error.stackTraceLimit = 0;

const used = () => {
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
};
const collect = async () => {
  // Node releases closed sockets some turns later.
  for (let n = 0; n < 5; n += 1) {
    await turn();
    globalThis.gc();
  }
};

/** Accepts a handshake, then writes the same frames as long as the feed reads them. Reads nothing. */
const flood =
  (frame, ...first) =>
  (peer, wire, n) => {
    const { socket } = peer;
    socket.removeAllListeners('data').pause();
    accept(...first)(peer, wire, n);
    const bytes = Buffer.concat(new Array(4_096).fill(frame));
    const write = () => {
      while (!socket.destroyed && socket.write(bytes));
    };
    socket.on('drain', write);
    write();
  };

/** Runs a feed to its end. Returns its failure, and how much the memory grew at most. */
const peakOf = async (step) => {
  await using wire = await startWire({ handshake: [step] });
  await collect();
  const before = used();
  let peak = before;
  const look = () => (peak = Math.max(peak, used()));
  const watch = setInterval(look, 2);
  const options = { baseUrl: wire.baseUrl, apiKey: 'key', maxFrameBytes, backoff: { maxAttempts: 0 } };
  const { cause } = await lastValueFrom(tradeFeed$('market', options), { defaultValue: {} }).catch((error) => error);
  look();
  clearInterval(watch);
  return { code: cause?.code, verdict: cause?.verdict, peak: peak - before };
};

const refuse = ({ port }, n) =>
  new Promise((resolve) => {
    const lines = ['GET /ws HTTP/1.1', 'Host: x', 'Connection: Upgrade', 'Upgrade: websocket'];
    const more = [
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
      `Authorization: Bearer t${n}`,
    ];
    let status = 'none';
    const socket = connect(port, '127.0.0.1')
      .once('data', (bytes) => (status = bytes.toString('latin1', 9, 12)))
      .once('close', () => resolve(status));
    socket.write([...lines, ...more, '', ''].join('\r\n'));
  });

/** Returns how much memory the local service keeps for each handshake it has refused. */
const refusedGrowth = async (count) => {
  const service = await startTradeFeedService();
  const server = new URL(service.baseUrl);
  const statuses = {};
  let sent = 0;
  const refuseUntil = async (end) => {
    const one = async () => {
      while (sent < end) {
        const status = await refuse(server, (sent += 1));
        statuses[status] = (statuses[status] ?? 0) + 1;
      }
    };
    await Promise.all(Array.from({ length: 50 }, one));
    await collect();
    return process.memoryUsage().heapUsed;
  };
  const before = await refuseUntil(count / 5);
  const after = await refuseUntil(count);
  await service.shutdown();
  return { growth: (after - before) / (count * 0.8), statuses };
};

const announced = Buffer.from([0x82, 127, 0x7f, 255, 255, 255, 255, 255, 255, 255]);
const bomb = wsFrame(2, deflateRawSync(Buffer.alloc(48 * 1024 * 1024), { level: 1 }));
bomb[0] = 0xc2; // RSV1: compressed (RFC 7692, 6)

const peaks = {
  fragments: await peakOf(flood(wsFrame(0, 'x', false), wsFrame(1, 'x', false))),
  pings: await peakOf(flood(wsFrame(9, Buffer.alloc(125)))),
  announced: await peakOf(accept(announced)),
  compressed: await peakOf(accept(bomb)),
};
console.log(JSON.stringify({ peaks, refused: handshakes > 0 ? await refusedGrowth(handshakes) : undefined }));
