import { describe, expect, it } from '@jest/globals';
import { nextOutage } from '../../../src/operators/stream/outage.js';
import { disconnected, gapOf, issued, lost, opened, reconnecting, requested } from '../stream.js';

describe('nextOutage', () => {
  const going = { from: 5, failure: lost(5) };

  it('begins when an open connection ended, as the failure says, and not when an attempt failed', () => {
    expect(nextOutage(undefined, { ...disconnected(5), at: 9 })).toEqual(going);
    expect(
      nextOutage(undefined, disconnected(5, { stage: 'ticket', status: 503, closeCode: undefined })),
    ).toBeUndefined();
    expect(
      nextOutage(undefined, disconnected(5, { stage: 'handshake', status: 503, closeCode: undefined })),
    ).toBeUndefined();
  });

  it('goes on until the next opening, or its gap', () => {
    const refused = disconnected(7, { stage: 'ticket', status: 503, closeCode: undefined });
    for (const event of [requested(6), issued(6), refused, reconnecting(6, 1)])
      expect(nextOutage(going, event)).toBe(going);
    expect(nextOutage(going, opened(8))).toBeUndefined();
    expect(nextOutage(going, gapOf(5, 8))).toBeUndefined();
  });
});
