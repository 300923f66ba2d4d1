import { beforeAll, describe, expect, it } from '@jest/globals';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { type BenchLibrary, benchLibrary, benchModule } from './library.js';

interface OnRead {
  readonly buffer: Buffer | (() => Buffer);
  readonly callback: (length: number, into: Buffer) => boolean;
}
interface Work {
  readonly summaryOf: (transactions: readonly object[]) => object;
  readonly isLarge: (transaction: { readonly value: string }) => boolean;
}

let hold: (size: number, read: (frame: number) => void) => (frame: number) => void;
let HELD_BYTES: number;
let wanted: Readonly<Record<string, object>>;
let ReplayedSocket: new (origin: string, onread?: OnRead) => Socket;
let batch: (of: object) => { readonly bytes: Buffer };
let work: Work;
let bench: BenchLibrary;
beforeAll(async () => {
  ({ hold, HELD_BYTES } = (await benchModule('support/hold.mjs')) as { hold: typeof hold; HELD_BYTES: number });
  ({ wanted } = (await benchModule('e2e/wanted.mjs')) as { wanted: typeof wanted });
  ({ ReplayedSocket } = (await benchModule('replay/replayed-socket.mjs')) as { ReplayedSocket: typeof ReplayedSocket });
  ({ batch } = (await benchModule('support/frames.mjs')) as { batch: typeof batch });
  work = (await benchModule('app/work.mjs')) as Work;
  bench = await benchLibrary();
});

it('a receiver that holds frames reads them in order, when newer ones need the memory', () => {
  const read: number[] = [];
  const push = hold(HELD_BYTES / 3, (frame) => read.push(frame));
  for (let frame = 1; frame <= 3; frame += 1) push(frame);
  expect(read).toEqual([]);
  for (let frame = 4; frame <= 8; frame += 1) push(frame);
  expect(read).toEqual([1, 2, 3, 4, 5]);
});

it('the live objects take the memory that they should, and stay', async () => {
  const file = join(import.meta.dirname, 'live-heap.mjs');
  const { grown } = (await bench.sample(file, ['30'], { nodeArgs: ['--expose-gc'] })) as { grown: number };
  expect(grown).toBeGreaterThan(27);
  expect(grown).toBeLessThan(33);
});

it('the goals of e2e are those of the issue', () => {
  const bySize = (...ratios: readonly number[]) => ({
    200: ratios[0],
    1024: ratios[1],
    4096: ratios[2],
    65_536: ratios[3],
  });
  expect(wanted).toEqual({
    ws: {
      0: { plain: bySize(3, 2.4, 2.1, 2.5), tls: bySize(2.5, 1.5, 1.4, 1.3) },
      200: { plain: bySize(3, 2, 1.8, 2.5), tls: bySize(2.4, 1.5, 1.4, 1.3) },
    },
    raw: {
      0: { plain: bySize(), tls: { 4096: 0.9, 65_536: 0.9 } },
      200: { plain: bySize(), tls: { 4096: 0.9, 65_536: 0.9 } },
    },
    bun: {
      0: { plain: bySize(2.3, 1.9, 1.1, 0.9), tls: bySize(1.6, 0.9, 0.5, 0.4) },
      200: { plain: bySize(2.3, 1.9, 1.1, 0.9), tls: bySize(1.6, 0.9, 0.5, 0.4) },
    },
  });
});

describe('a replayed socket', () => {
  const upgrade = 'GET /4096/text/plain HTTP/1.1\r\nSec-WebSocket-Key: x\r\n\r\n';
  const { length } = Buffer.from('HTTP/1.1 101 Switching Protocols\r\n');
  const expected = () => batch({ size: 4096, kind: 'text', protocol: 'plain' }).bytes.subarray(0, 300_000);

  /** Resolves with the first bytes after the response, which the socket passes to `take`. */
  const received = (open: (take: (bytes: Buffer) => void) => Socket) =>
    new Promise<Buffer>((resolve) => {
      let all = Buffer.alloc(0);
      const socket = open((bytes) => {
        all = Buffer.concat([all, bytes]);
        const end = all.indexOf('\r\n\r\n') + 4;
        if (all.length < end + 300_000 || end < length) return;
        socket.destroy();
        resolve(all.subarray(end, end + 300_000));
      });
      socket.write(upgrade);
    });

  it('emits the frames of the sender as data', async () => {
    const bytes = await received((take) => new ReplayedSocket('ws://127.0.0.1:1').on('data', take));
    expect(bytes.equals(expected())).toBe(true);
  });

  it.each([1_000, 100_000])('reads them into a buffer of %d bytes of the caller', async (size) => {
    const memory = Buffer.alloc(size);
    const bytes = await received((take) => {
      const callback = (count: number) => {
        take(Buffer.from(memory.subarray(0, count)));
        return true;
      };
      return new ReplayedSocket('ws://127.0.0.1:1', { buffer: () => memory, callback });
    });
    expect(bytes.equals(expected())).toBe(true);
  });
});

it('the app computes the figures of a window', () => {
  const transaction = (from: string, nonce: number, gas: string) => ({ from, nonce, gas });
  expect(work.summaryOf([transaction('a', 1, '0x10'), transaction('b', 2, '0x1'), transaction('a', 4, '0x2')])).toEqual(
    {
      transactions: 3,
      senders: 2,
      nonces: 7,
      gas: 19,
    },
  );
  expect(['0xf1', '0xe1', '0x'].map((value) => work.isLarge({ value }))).toEqual([true, false, false]);
});
