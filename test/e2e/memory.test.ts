/** @lane processes */
import { beforeAll, expect, it } from '@jest/globals';
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
  readonly peaks: Readonly<Record<string, Peak>>;
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

it.each([
  [
    'take a bounded amount of memory if they never end, in fragments of one byte',
    'fragments',
    24 * MiB + 3 * maxFrameBytes,
  ],
  ['take a bounded amount of memory if they are pings and the service reads no answer', 'pings', 96 * MiB],
  ['reserve no memory if they announce 2^63 bytes', 'announced', 16 * MiB],
  ['are not inflated to 48 MiB if they are compressed', 'compressed', 16 * MiB],
])('frames of a hostile service %s', (_, kind, most) => {
  const { peak, ...ended } = measured.peaks[kind] as Peak;
  const expected = kind === 'pings' ? { code: 'connection-lost', verdict: 'renew' } : { code: 'invalid-frame' };
  expect(ended).toMatchObject(expected);
  expect(peak).toBeLessThan(most);
});

itInCi('the local service stores no handshake that it has refused', () => {
  expect(measured.refused.statuses).toEqual({ 401: handshakes });
  // Storing one would take more memory than this.
  expect(measured.refused.growth).toBeLessThan(100);
});
