import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { setImmediate } from 'node:timers/promises';
import { inspect } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { MessageChannel } from 'node:worker_threads';
import { Frame } from '../../src/protocol/frame.js';
import { ReceivedFrame } from '../../src/frames/received-frame.js';

const before = 'before';

/** A frame in the middle of memory that is used again. */
const received = (payload: Buffer, isBinary = false, isAscii = false) => {
  const memory = Buffer.allocUnsafeSlow(before.length + payload.length + 6).fill('behind');
  memory.write(before);
  payload.copy(memory, before.length);
  const end = before.length + payload.length;
  const frame = new ReceivedFrame('raw', memory, before.length, end, isBinary, isAscii, 5, 2, true);
  return { frame, memory, reuse: () => memory.fill('z') };
};

/** How a subscriber reads a frame. */
const looks = {
  text: (frame: ReceivedFrame) => frame.text(),
  data: (frame: ReceivedFrame) => frame.data.toString('latin1'),
  view: (frame: ReceivedFrame) => frame.view.toString('latin1'),
  byteLength: (frame: ReceivedFrame) => frame.byteLength,
};
const look = fc.constantFrom(...Object.values(looks));

const payload = fc.oneof(
  fc.string({ unit: 'binary-ascii' }).map((text) => ({ bytes: Buffer.from(text), isBinary: false, isAscii: true })),
  fc.string({ unit: 'grapheme' }).map((text) => ({ bytes: Buffer.from(text), isBinary: false, isAscii: false })),
  fc.constantFrom('\ufeffa byte order mark', '\ufffd', '\0', '€'.repeat(4_000)).map((text) => ({
    bytes: Buffer.from(text),
    isBinary: false,
    isAscii: false,
  })),
  fc.constantFrom(4_095, 4_096, 9_000).map((size) => ({
    bytes: Buffer.alloc(size, '{"n":1}'),
    isBinary: false,
    isAscii: true,
  })),
  fc.uint8Array({ maxLength: 5_000 }).map((bytes) => ({ bytes: Buffer.from(bytes), isBinary: true, isAscii: false })),
);

/** What ends the use of the memory. */
const ends: Record<string, (frame: ReceivedFrame) => void> = {
  own: (frame) => frame.own(),
  moveTo: (frame) => void frame.moveTo(Buffer.alloc(20_000), 50),
  'moveTo, then own': (frame) => {
    frame.moveTo(Buffer.alloc(20_000), 50);
    frame.own();
  },
};

describe('a received frame', () => {
  it('shows the same payload whenever and however it is read, also after its memory was used again', () => {
    fc.assert(
      fc.property(
        payload,
        fc.array(look),
        fc.constantFrom(...Object.values(ends)),
        fc.array(look),
        ({ bytes, isBinary, isAscii }, during, endOf, later) => {
          const { frame, reuse } = received(bytes, isBinary, isAscii);
          const check = (read: (frame: ReceivedFrame) => unknown) => {
            const { text, byteLength } = looks;
            const expected =
              read === byteLength ? bytes.length : read === text ? bytes.toString() : bytes.toString('latin1');
            expect(read(frame)).toBe(expected);
          };
          during.forEach(check);
          endOf(frame);
          reuse();
          later.forEach(check);
          Object.values(looks).forEach(check);
        },
      ),
    );
  });

  it('decodes bytes that are known to be ASCII as one character each', () => {
    // These bytes are not ASCII, so the text shows which decoder was used.
    expect(received(Buffer.from([0xe9]), false, true).frame.text()).toBe('\u00e9');
    expect(received(Buffer.from([0xe9]), false, false).frame.text()).toBe('\ufffd');
    expect([true, false].map((isAscii) => received(Buffer.from('a'), false, isAscii).frame.isAscii)).toEqual([
      true,
      false,
    ]);
    expect(received(Buffer.from('a'), true, false).frame.isAscii).toBe(false);
  });

  it('returns the same text and the same Buffer at each access, with memory that no other read changes', () => {
    for (const [when, end] of Object.entries<(frame: ReceivedFrame) => void>({
      'during the read': () => undefined,
      ...ends,
    })) {
      const { frame, memory, reuse } = received(Buffer.from('payload'), when === 'own');
      end(frame);
      const { data } = frame;
      reuse();
      expect(frame.data).toBe(data);
      expect(data.buffer).not.toBe(memory.buffer);
      expect([frame.text(), frame.text(), String(data)]).toEqual(['payload', 'payload', 'payload']);
      expect(frame.data).toBe(data);
      frame.own();
      expect([frame.text(), String(data), String(frame.data)]).toEqual(['payload', 'payload', 'payload']);
      expect(frame.data).toBe(frame.data);
    }
  });

  it('decodes its text once', () => {
    const { frame, reuse } = received(Buffer.from('payload'));
    frame.text();
    reuse();
    expect(frame.text()).toBe('payload');
  });

  it('keeps no text that was decoded from a block: a stored frame would make it old', () => {
    const { frame } = received(Buffer.from('a text'));
    const block = Buffer.alloc(20_000);
    frame.moveTo(block, 50);
    expect(frame.text()).toBe('a text');
    block.write('b', 50);
    expect(frame.text()).toBe('b text');
  });

  it('is a view of a block, without a copy', () => {
    const { frame } = received(Buffer.from('payload'));
    const block = Buffer.alloc(40);
    expect(frame.moveTo(block, 10)).toBe(17);
    expect(frame.data.buffer).toBe(block.buffer);
    expect(block.toString('latin1', 10, 17)).toBe('payload');
  });

  it('keeps no read buffer alive after its payload was read', () => {
    const reads: readonly ((frame: ReceivedFrame) => unknown)[] = [
      (frame) => frame.text(),
      (frame) => frame.data,
      (frame) => frame.own(),
      (frame) => frame.moveTo(Buffer.alloc(7), 0),
    ];
    for (const read of reads) {
      const { frame } = received(Buffer.from('payload'));
      expect(frame.isLeased).toBe(true);
      read(frame);
      expect(frame.isLeased).toBe(false);
    }
  });

  const shared = Buffer.alloc(20_000);
  const places: readonly (readonly [string, (frame: ReceivedFrame) => unknown])[] = [
    ['a read buffer', () => undefined],
    ['a block', (frame) => frame.moveTo(shared, 50)],
    ['a chunk, after its data was read', (frame) => frame.data],
    ['a text', (frame) => frame.text()],
    ['a text and a chunk', (frame) => [frame.text(), frame.data]],
  ];
  it.each(places)('moves from %s to memory that nothing else uses', (_, place) => {
    const bytes = Buffer.alloc(5_000, 'x');
    const { frame, reuse } = received(bytes);
    place(frame);
    frame.own();
    reuse();
    shared.fill('y');
    expect(frame.data).toEqual(bytes);
    frame.own();
    expect([frame.text(), frame.data.toString()]).toEqual([bytes.toString(), bytes.toString()]);
    expect([5_000, 65_536]).toContain(frame.data.buffer.byteLength);
  });

  it.each([
    [4_095, 65_536],
    [4_096, 4_096],
  ])('owns %d bytes, below 4 KiB as a string', (size, bufferBytes) => {
    const { frame } = received(Buffer.alloc(size, 'x'), true);
    const { data } = frame;
    frame.own();
    expect([frame.data === data, frame.data.buffer.byteLength]).toEqual([false, bufferBytes]);
  });

  it('keeps no Buffer beside a text', async () => {
    setFlagsFromString('--expose-gc');
    const { frame } = received(Buffer.alloc(5_000, 'x'));
    expect(frame.text()).toHaveLength(frame.data.length);
    frame.own();
    const data = new WeakRef(frame.data);
    frame.own();
    await setImmediate();
    (runInNewContext('gc') as () => void)();
    expect(data.deref()).toBeUndefined();
    expect(frame.data).toHaveLength(5_000);
  });

  it('stays in a block of which it uses at least 3/4', () => {
    const { frame } = received(Buffer.alloc(750, 'x'));
    const block = Buffer.allocUnsafeSlow(1_000);
    frame.moveTo(block, 50);
    frame.own();
    expect(frame.data.buffer).toBe(block.buffer);
  });
});

describe('a copy of a received frame', () => {
  const fields = { type: 'frame', feed: 'raw', isBinary: false, receivedAt: 5, connection: 2 } as const;
  const sameFrame = new Frame('raw', Buffer.from('ab'), false, 5, 2);

  it('is printed as a frame with its data', () => {
    expect(inspect(received(Buffer.from('ab')).frame)).toBe(inspect(sameFrame));
    expect(inspect(sameFrame)).toContain('<Buffer 61 62>');
  });

  it('is written as JSON with its data', () => {
    const json = JSON.stringify(received(Buffer.from('ab')).frame);
    expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify(sameFrame)));
  });

  it('throws when it is cloned or posted, because the clone would have no payload', () => {
    const { frame } = received(Buffer.from('ab'));
    const { port1, port2 } = new MessageChannel();
    for (const copy of [() => structuredClone(frame), () => port1.postMessage(frame)])
      expect(copy).toThrow(expect.objectContaining({ name: 'DataCloneError' }));
    port1.close();
    port2.close();
    expect(String(structuredClone(frame.data))).toBe('97,98');
  });

  it('has only the other fields when it is spread', () => {
    const copy: Readonly<Record<string, unknown>> = { ...received(Buffer.from('ab')).frame };
    expect(copy).toEqual({ ...fields, text: expect.any(Function) as unknown });
    expect(() => (copy as { text: () => string }).text()).toThrow(TypeError);
  });
});
