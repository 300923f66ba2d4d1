import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Agent } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { inspect } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { MessageChannel } from 'node:worker_threads';
import {
  allocateBytes,
  MemoryUse,
  moveToBlocks,
  Payload,
  PayloadKind,
  type ReceivedFrame,
} from '../../src/frames/received-frame.js';
import { tradeFeed$, type TradeFeedOptions } from '../../src/index.js';
import { Frame } from '../../src/protocol/frame.js';
import { optionsFor } from '../support/feed.js';
import { receivedIn } from '../support/received-in.js';
import { accept, close, startWire, text, wsFrame } from '../support/wire.js';

const before = 'before';

/** A frame in the middle of memory that's reused. */
const received = (bytes: Buffer, kind: PayloadKind = PayloadKind.Utf8) => {
  const memory = Buffer.allocUnsafeSlow(before.length + bytes.length + 6).fill('behind');
  memory.write(before);
  bytes.copy(memory, before.length);
  const frame = receivedIn(memory, before.length, before.length + bytes.length, { kind, receivedAt: 5, connection: 2 });
  return { frame, memory, reuse: () => memory.fill('z') };
};

/** How a subscriber reads a frame. */
const looks = {
  text: (frame: ReceivedFrame) => frame.text(),
  data: (frame: ReceivedFrame) => frame.data.toString('latin1'),
  view: (frame: ReceivedFrame) => frame.payload.view.toString('latin1'),
  byteLength: (frame: ReceivedFrame) => frame.byteLength,
};
const look = fc.constantFrom(...Object.values(looks));

const { Ascii, Binary, Utf8 } = PayloadKind;
const payload = fc.oneof(
  fc.string({ unit: 'binary-ascii' }).map((string) => ({ bytes: Buffer.from(string), kind: Ascii })),
  fc.string({ unit: 'grapheme' }).map((string) => ({ bytes: Buffer.from(string), kind: Utf8 })),
  fc
    .constantFrom('\ufeffa byte order mark', '\ufffd', '\0', '€'.repeat(4_000))
    .map((string) => ({ bytes: Buffer.from(string), kind: Utf8 })),
  fc.constantFrom(4_095, 4_096, 9_000).map((size) => ({ bytes: Buffer.alloc(size, '{"n":1}'), kind: Ascii })),
  fc.uint8Array({ maxLength: 5_000 }).map((bytes) => ({ bytes: Buffer.from(bytes), kind: Binary })),
);

const moveTo = (frame: ReceivedFrame, block: Buffer, use: MemoryUse = MemoryUse.Block) =>
  frame.payload.moveTo(block, 50, use);

/** Moves a frame to a block, and then to memory of its own. Reuses the block. */
const moveThrough = (frame: ReceivedFrame, use: MemoryUse): void => {
  const block = Buffer.alloc(20_000);
  moveTo(frame, block, use);
  frame.payload.own();
  block.fill('y');
};

/** What ends a frame's use of the read buffer. */
const ends: Record<string, (frame: ReceivedFrame) => void> = {
  own: (frame) => frame.payload.own(),
  'a block': (frame) => void moveTo(frame, Buffer.alloc(20_000)),
  'a block of others': (frame) => void moveTo(frame, Buffer.alloc(20_000), MemoryUse.Shared),
  'a block, then own': (frame) => moveThrough(frame, MemoryUse.Block),
  'a block of others, then own': (frame) => moveThrough(frame, MemoryUse.Shared),
};

describe('a received frame', () => {
  it('shows the same payload whenever and however it is read, even after its memory was reused', () => {
    const end = fc.constantFrom(...Object.values(ends));
    fc.assert(
      fc.property(payload, fc.array(look), end, fc.array(look), ({ bytes, kind }, during, endOf, later) => {
        const { frame, reuse } = received(bytes, kind);
        const check = (read: (frame: ReceivedFrame) => unknown) => {
          const expected = { [looks.text.name]: bytes.toString(), byteLength: bytes.length };
          expect(read(frame)).toBe(expected[read.name] ?? bytes.toString('latin1'));
        };
        during.forEach(check);
        endOf(frame);
        reuse();
        later.forEach(check);
        Object.values(looks).forEach(check);
      }),
    );
  });

  it('shares its payload with copies at another time, and copies it once', () => {
    const { frame, reuse } = received(Buffer.from('payload'));
    const later = frame.at(9, 3);
    expect([later.feed, later.isBinary, later.receivedAt, later.connection]).toEqual(['market', false, 9, 3]);
    moveTo(frame, Buffer.alloc(100));
    reuse();
    expect(later.data).toBe(frame.data);
    expect([later.text(), frame.receivedAt, frame.connection]).toEqual(['payload', 5, 2]);
  });

  it("can't be given other bytes", () => {
    const { frame } = received(Buffer.from('payload'));
    expect(() => Object.assign(frame, { data: Buffer.from('other') })).toThrow(TypeError);
  });

  it('keeps no text that it decoded from a block, because a stored frame would keep it alive', () => {
    const { frame } = received(Buffer.from('a text'));
    const block = Buffer.alloc(20_000);
    moveTo(frame, block);
    expect(frame.text()).toBe('a text');
    block.write('b', 50);
    expect(frame.text()).toBe('b text');
  });

  it('is a view of a block, and copies it only if others use the bytes', () => {
    const [own, others] = [Buffer.alloc(100), Buffer.alloc(100)];
    const frames = [own, others].map(() => received(Buffer.from('payload')).frame) as [ReceivedFrame, ReceivedFrame];
    expect([moveTo(frames[0], own), moveTo(frames[1], others, MemoryUse.Shared)]).toEqual([57, 57]);
    expect([frames[0].data.buffer === own.buffer, frames[1].data.buffer === others.buffer]).toEqual([true, false]);
    expect([own, others].map((block) => block.toString('latin1', 50, 57))).toEqual(['payload', 'payload']);
  });

  it.each<[string, (frame: ReceivedFrame) => unknown]>([
    ['its text', (frame) => frame.text()],
    ['its data', (frame) => frame.data],
    ...Object.entries(ends),
  ])('keeps no read buffer alive after %s', (_, read) => {
    const { frame } = received(Buffer.from('payload'));
    expect(frame.payload.isLeased).toBe(true);
    read(frame);
    expect(frame.payload.isLeased).toBe(false);
  });

  it.each([
    [4_095, 65_536],
    [4_096, 4_096],
  ])('keeps %d bytes, as a string below 4 KiB', (size, bufferBytes) => {
    const { frame } = received(Buffer.alloc(size, 'x'), Binary);
    const { data } = frame;
    frame.payload.own();
    expect([frame.data === data, frame.data.buffer.byteLength]).toEqual([false, bufferBytes]);
  });

  it('keeps no Buffer once it has the text', async () => {
    setFlagsFromString('--expose-gc');
    const { frame } = received(Buffer.alloc(5_000, 'x'));
    expect(frame.text()).toHaveLength(frame.data.length);
    frame.payload.own();
    const data = new WeakRef(frame.data);
    frame.payload.own();
    await setImmediate();
    (runInNewContext('gc') as () => void)();
    expect(data.deref()).toBeUndefined();
    expect(frame.data).toHaveLength(5_000);
  });

  it.each(['data', 'text'] as const)('is copied to a block after its %s was read, but keeps its own memory', (how) => {
    const { frame } = received(Buffer.from('payload'));
    looks[how](frame);
    const block = Buffer.alloc(100);
    moveTo(frame, block);
    expect(block.toString('latin1', 50, 57)).toBe('payload');
    block.fill('z');
    expect(frame.data.toString()).toBe('payload');
  });

  it('stays in a block if it uses at least 3/4 of it', () => {
    const { frame } = received(Buffer.alloc(750, 'x'));
    const block = Buffer.allocUnsafeSlow(1_000);
    moveTo(frame, block);
    frame.payload.own();
    expect(frame.data.buffer).toBe(block.buffer);
  });
});

describe('a copy of a received frame', () => {
  const { frame } = received(Buffer.from('ab'));
  const sameFrame = new Frame('market', Buffer.from('ab'), false, 5, 2);

  it('includes its data when printed and in JSON', () => {
    expect(inspect(frame)).toBe(inspect(sameFrame));
    expect(inspect(sameFrame)).toContain('<Buffer 61 62>');
    expect(JSON.parse(JSON.stringify(frame))).toEqual(JSON.parse(JSON.stringify(sameFrame)));
  });

  it('throws when cloned or posted, because the clone would lose its payload', () => {
    const { port1, port2 } = new MessageChannel();
    for (const copy of [() => structuredClone(frame), () => port1.postMessage(frame)])
      expect(copy).toThrow(expect.objectContaining({ name: 'DataCloneError' }));
    port1.close();
    port2.close();
    expect(String(structuredClone(frame.data))).toBe('97,98');
  });
});

describe('memory for payloads', () => {
  it('is never shared by two payloads', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(0, 1, 200, 4_000, 16_384, 16_385, 65_536, 100_000)), (sizes) => {
        const all = sizes.map((size, n) => allocateBytes(size).fill(n + 1));
        expect(all.map(({ length }) => length)).toEqual(sizes);
        all.forEach((memory, n) => expect(memory.every((byte) => byte === ((n + 1) & 255))).toBe(true));
      }),
    );
  });

  it('comes from a chunk of 64 KiB for small payloads, and wastes at most a quarter of it', () => {
    const chunks = new Set(Array.from({ length: 100 }, () => allocateBytes(16_384).buffer));
    expect(new Set([...chunks].map(({ byteLength }) => byteLength))).toEqual(new Set([65_536]));
    expect(chunks.size).toBeLessThanOrEqual(100 / 3);
    expect(allocateBytes(16_385).buffer.byteLength).toBe(16_385);
  });
});

// Node 20 copies memory that's marked as untransferable. Since Node 21 the caller gets a DataCloneError.
const thrownByNode = process.versions.node.startsWith('20.') ? undefined : 'DataCloneError';

/** Returns the name of what a call throws. */
const thrownBy = (call: () => unknown): string | undefined => {
  try {
    call();
    return undefined;
  } catch (error) {
    return (error as Error).name;
  }
};

const modes: readonly (readonly [string, () => TradeFeedOptions])[] = [
  ['here', () => ({})],
  ["with a user's agent", () => ({ agent: new Agent() })],
  ['in a worker', () => ({ receiveIn: 'worker' })],
];

it.each(modes)(
  "frames %s can't be transferred: all arrive, in one connection, and keep their bytes",
  async (_, options) => {
    const payloads = ['short', 'joined fragments', 'x'.repeat(100_000), 'last'];
    const fragments = [wsFrame(1, 'joined ', false), wsFrame(9), wsFrame(0, 'fragments')];
    const others = payloads.slice(2).map(text);
    await using wire = await startWire({
      handshake: [accept(text('short'), ...fragments, ...others, close(4001, 'connection replaced'))],
    });
    const { port1 } = new MessageChannel();
    const thrown = new Set<string | undefined>();
    const received: Frame[] = [];
    const failure: unknown = await new Promise((resolve) => {
      tradeFeed$('market', optionsFor(wire, options())).subscribe({
        next: (frame) => {
          const transfer = [frame.data.buffer as ArrayBuffer];
          thrown.add(thrownBy(() => port1.postMessage(frame.data, transfer)));
          thrown.add(thrownBy(() => structuredClone(frame.data, { transfer })));
          received.push(frame);
        },
        error: resolve,
      });
    });
    expect(failure).toMatchObject({ code: 'connection-replaced', framesReceived: payloads.length });
    expect(received.map((frame) => frame.text())).toEqual(payloads);
    expect([[...thrown], wire.handshakes.length]).toEqual([[thrownByNode], 1]);
    port1.close();
  },
);

const plainFrame = (data: Buffer, isBinary = false) => new Frame('raw', data, isBinary, 1_700_000_000_000, 3);

describe('Frame', () => {
  it('takes its fields from the arguments, without copying the bytes', () => {
    const data = Buffer.from('{"n":1}');
    const frame = plainFrame(data, true);
    const fields = { type: 'frame', feed: 'raw', isBinary: true, receivedAt: 1_700_000_000_000, connection: 3 };
    expect({ ...frame }).toEqual({ ...fields, data });
    expect(frame.data).toBe(data);
    // An accessor would slow down each frame.
    const properties = Object.values(Object.getOwnPropertyDescriptors(frame));
    expect(properties.every(({ get, set }) => get === undefined && set === undefined)).toBe(true);
  });

  it('returns any text and any JSON value unchanged', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.jsonValue(), (text, value) => {
        expect(plainFrame(Buffer.from(text)).text()).toBe(text);
        expect(JSON.stringify(plainFrame(Buffer.from(JSON.stringify(value))).json())).toBe(JSON.stringify(value));
      }),
    );
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
