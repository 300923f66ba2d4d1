/** @lane processes */
import { beforeAll, describe, expect, it } from '@jest/globals';
import { bundledPrograms } from '../support/bundled-programs.js';
import { isAllCases, itInCi } from '../support/cases.js';
import { runProgram } from '../support/run-program.js';

/** How a feed ended, and how much memory its process took at most, in bytes. */
interface Peak {
  readonly code: string;
  readonly verdict: string;
  readonly peak: number;
}

interface Measured {
  readonly fragments: Peak;
  readonly pings: Peak;
  readonly announced: Peak;
  readonly compressed: Peak;
  /** How many bytes each refused handshake leaves behind, and how often each status was sent. */
  readonly refused: { readonly growth: number; readonly statuses: Readonly<Record<string, number>> };
}

const MiB = 2 ** 20;
/** Pieces of a frame may take as much memory as the largest frame, but 4 MiB in any case. */
const maxFrameBytes = (isAllCases ? 16 : 4) * MiB;
const handshakes = isAllCases ? 10_000 : 0;

const program = bundledPrograms('test/e2e/programs', ['memory.mjs']);
let measured: Measured;
beforeAll(async () => {
  // With a limit, memory without a bound ends the process soon.
  const flags = ['--expose-gc', '--max-old-space-size=256'];
  const args = [String(maxFrameBytes), String(handshakes)];
  const { stdout, ...ended } = await runProgram(program('memory.mjs'), args, {}, flags);
  expect(ended).toEqual({ code: 0, signal: null, stderr: '' });
  measured = JSON.parse(stdout) as Measured;
}, 120_000);

describe('frames of a hostile service', () => {
  it('take a bounded amount of memory if they never end, in fragments of one byte', () => {
    expect(measured.fragments).toMatchObject({ code: 'invalid-frame' });
    expect(measured.fragments.peak).toBeLessThan(24 * MiB + 3 * maxFrameBytes);
  });

  it('take a bounded amount of memory if they are pings and the service reads no answer', () => {
    expect(measured.pings).toMatchObject({ code: 'connection-lost', verdict: 'renew' });
    expect(measured.pings.peak).toBeLessThan(96 * MiB);
  });

  it('reserve no memory if they announce 2^63 bytes', () => {
    expect(measured.announced).toMatchObject({ code: 'invalid-frame' });
    expect(measured.announced.peak).toBeLessThan(16 * MiB);
  });

  it('are not inflated to 48 MiB if they are compressed', () => {
    expect(measured.compressed).toMatchObject({ code: 'invalid-frame' });
    expect(measured.compressed.peak).toBeLessThan(16 * MiB);
  });
});

itInCi('the local service stores no handshake that it has refused', () => {
  expect(measured.refused.statuses).toEqual({ 401: handshakes });
  // Storing one would take more memory than this.
  expect(measured.refused.growth).toBeLessThan(100);
});
