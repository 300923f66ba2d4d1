import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { formatEventId, parseEventId } from '../../src/protocol/event-id.js';

describe('formatEventId', () => {
  it('returns a text that `parseEventId` reads back', () => {
    const count = fc.integer({ min: 0, max: 10 ** 15 });
    fc.assert(
      fc.property(fc.stringMatching(/^[\w-]{8}$/), count, count, count, (epoch, seq, frames, at) => {
        const text = formatEventId(epoch, { seq, frames, at });
        expect(parseEventId(text)).toEqual({ epoch, seq, frames, at });
        // It is written unchanged into a header and into a field of Server-Sent Events.
        expect(text).toMatch(/^[\x21-\x7e]+$/);
      }),
    );
  });

  it('rounds the time up to a whole number of at least 0', () => {
    expect(formatEventId('e', { seq: 1, frames: 0, at: 1.75 })).toBe('e.1.0.2');
    expect(formatEventId('e', { seq: 1, frames: 0, at: -5 })).toBe('e.1.0.0');
  });
});

describe('parseEventId', () => {
  it.each([
    undefined,
    '',
    '1',
    'e.1.1',
    'e.1.1.1.1',
    '.1.1.1',
    'e.-1.1.1',
    'e.1.-1.1',
    'e.1.1.-1',
    'e.1e3.1.1',
    'e.0x1.1.1',
    'e.1.1.1 ',
    ' e.1.1.1',
    'e.1.1.1\n',
    'e.1.1.1\r\nx: y',
    'é.1.1.1',
    'e.99999999999999999.1.1',
    `${'e'.repeat(41)}.1.1.1`,
    'e.1.1.1, e.2.2.2',
    '__proto__',
    'e.NaN.1.1',
    'e.Infinity.1.1',
    'e.١.1.1',
  ])('refuses %j', (text) => {
    expect(parseEventId(text)).toBeUndefined();
  });

  it('never throws, and returns finite numbers only', () => {
    const nearly = fc.stringMatching(/^[\w.-]{0,60}$/);
    fc.assert(
      fc.property(fc.oneof(fc.string(), nearly), (text) => {
        const id = parseEventId(text);
        if (id === undefined) return;
        for (const number of [id.seq, id.frames, id.at]) expect(Number.isFinite(number)).toBe(true);
      }),
    );
  });
});
