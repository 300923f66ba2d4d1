import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { kilobytes, connectThrough } from './connect-through.js';
import { randomFaults, seededRandom } from './fault-random.js';
import { cases } from './cases.js';

describe('random faults', () => {
  it('are the same for the same seed', () => {
    const drawn = (seed: number) => {
      const random = seededRandom(seed);
      return Array.from({ length: 50 }, () => randomFaults(random));
    };
    expect(drawn(7)).toEqual(drawn(7));
    expect(drawn(7)).not.toEqual(drawn(8));
  });

  it('include every kind of fault', () => {
    const random = seededRandom(3);
    const all = JSON.stringify(Array.from({ length: 1_000 }, () => randomFaults(random)));
    const words = ['refuse', 'connectAfter', 'delayMs', 'jitterMs', 'bytesPerSecond', 'split', 'coalesced', 'drip'];
    for (const word of [...words, 'reset', 'end', 'half-open', 'toServer']) expect(all).toContain(`"${word}"`);
  });

  it('never change, lose or add a byte before the cut', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), async (seed) => {
        const { toClient = {} } = randomFaults(seededRandom(seed));
        const { bytesPerSecond: _, ...faults } = toClient;
        await using net = await connectThrough({ toClient: faults }, { random: seededRandom(seed) });
        const client = net.client();
        const service = await net.service();
        // Some faults send each byte separately: more of them take seconds on a busy machine.
        service.socket.end(kilobytes(1));
        const expected = Math.min(faults.cut?.afterBytes ?? Infinity, 1_024);
        await client.received(expected);
        expect(Buffer.concat(client.chunks).equals(kilobytes(1).subarray(0, expected))).toBe(true);
      }),
      { numRuns: cases(20) },
    );
  });
});
