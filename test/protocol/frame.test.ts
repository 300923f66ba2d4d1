import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Frame } from '../../src/protocol/frame.js';

const frameOf = (data: Buffer, isBinary = false) => new Frame('raw', data, isBinary, 1_700_000_000_000, 3);

describe('Frame', () => {
  it('has the fields of its arguments, and does not copy the bytes', () => {
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

  it('has plain fields only, so that it is cheap', () => {
    const fields = Object.values(Object.getOwnPropertyDescriptors(frameOf(Buffer.alloc(0))));
    expect(fields.every(({ get, set }) => get === undefined && set === undefined)).toBe(true);
    expect(Object.isFrozen(frameOf(Buffer.alloc(0)))).toBe(false);
  });

  it('decodes text as UTF-8', () => {
    expect(frameOf(Buffer.from('€ 漢 🙂')).text()).toBe('€ 漢 🙂');
    expect(frameOf(Buffer.alloc(0)).text()).toBe('');
    expect(frameOf(Buffer.from([0xff, 0x41]), true).text()).toBe('\ufffdA');
  });

  it('decodes the plain bytes of a relay like a Buffer', () => {
    for (const text of ['{"n":"€ 漢 🙂"}', '', '\ufeffwith a byte order mark']) {
      const buffer = Buffer.from(text);
      expect(new Frame('raw', new Uint8Array(buffer), false, 0, 1).text()).toBe(text);
      expect(new Frame('raw', buffer, false, 0, 1).text()).toBe(text);
    }
  });

  it('parses JSON again at each call', () => {
    const frame = frameOf(Buffer.from('{"n":[1,null,"€"]}'));
    expect(frame.json()).toEqual({ n: [1, null, '€'] });
    expect(frame.json()).not.toBe(frame.json());
  });

  it.each(['', '{', 'undefined', "{'n':1}"])('throws a SyntaxError for %j, which is not JSON', (text) => {
    expect(() => frameOf(Buffer.from(text)).json()).toThrow(SyntaxError);
  });

  it('returns any text and any JSON value unchanged', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.jsonValue(), (text, value) => {
        expect(frameOf(Buffer.from(text)).text()).toBe(text);
        expect(JSON.stringify(frameOf(Buffer.from(JSON.stringify(value))).json())).toBe(JSON.stringify(value));
      }),
    );
  });
});
