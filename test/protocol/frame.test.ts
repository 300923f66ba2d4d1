import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Frame } from '../../src/protocol/frame.js';

const frameOf = (data: Buffer, isBinary = false) => new Frame('raw', data, isBinary, 1_700_000_000_000, 3);

describe('Frame', () => {
  it('holds what it is given, the bytes themselves and no copy', () => {
    const data = Buffer.from('{"n":1}');
    const frame = frameOf(data, true);
    expect({ ...frame }).toEqual({
      type: 'frame',
      feed: 'raw',
      data,
      isBinary: true,
      receivedAt: 1_700_000_000_000,
      connection: 3,
    });
    expect(frame.data).toBe(data);
  });

  it('has plain fields alone, so that it stays cheap', () => {
    const fields = Object.values(Object.getOwnPropertyDescriptors(frameOf(Buffer.alloc(0))));
    expect(fields.every(({ get, set }) => get === undefined && set === undefined)).toBe(true);
    expect(Object.isFrozen(frameOf(Buffer.alloc(0)))).toBe(false);
  });

  it('reads its text as UTF-8', () => {
    expect(frameOf(Buffer.from('€ 漢 🙂')).text()).toBe('€ 漢 🙂');
    expect(frameOf(Buffer.alloc(0)).text()).toBe('');
    expect(frameOf(Buffer.from([0xff, 0x41]), true).text()).toBe('\ufffdA');
  });

  it('reads ASCII, where its bytes are known to be that, one byte a letter', () => {
    expect(new Frame('raw', Buffer.from('{"n":1}'), false, 0, 1, true).text()).toBe('{"n":1}');
    // Nothing that is known to be ASCII looks like this: it shows which way was taken.
    expect(new Frame('raw', Buffer.from([0xe9]), false, 0, 1, true).text()).toBe('é');
  });

  it('reads plain bytes, as a relay gives them, just as it reads a Buffer', () => {
    for (const text of ['{"n":"€ 漢 🙂"}', '', '\ufeffwith a byte order mark']) {
      const buffer = Buffer.from(text);
      expect(new Frame('raw', new Uint8Array(buffer), false, 0, 1).text()).toBe(text);
      expect(new Frame('raw', buffer, false, 0, 1).text()).toBe(text);
    }
  });

  it('parses JSON when asked, each time anew', () => {
    const frame = frameOf(Buffer.from('{"n":[1,null,"€"]}'));
    expect(frame.json()).toEqual({ n: [1, null, '€'] });
    expect(frame.json()).not.toBe(frame.json());
  });

  it.each(['', '{', 'undefined', "{'n':1}"])('throws a SyntaxError for %j, which is no JSON', (text) => {
    expect(() => frameOf(Buffer.from(text)).json()).toThrow(SyntaxError);
  });

  it('gives back any text and any JSON value as it was sent', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.jsonValue(), (text, value) => {
        expect(frameOf(Buffer.from(text)).text()).toBe(text);
        expect(JSON.stringify(frameOf(Buffer.from(JSON.stringify(value))).json())).toBe(JSON.stringify(value));
      }),
    );
  });
});
