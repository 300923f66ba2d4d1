import { expect, it } from '@jest/globals';
import { runProgram } from '../support/run-program.js';

it("a user's pipeline and a slow consumer on one connection say what came and what was missed, exactly", async () => {
  const args = ['--seconds', '4', '--rate', '4000', '--window', '200', '--exact'];
  const { stdout, stderr } = await runProgram('../../soak/soak.mjs', args, {}, ['--expose-gc']);
  const verdicts = stdout.split('\n').filter((line) => /^[✓✗]/.test(line));
  expect({ stderr, failed: verdicts.filter((line) => line.startsWith('✗')) }).toEqual({ stderr: '', failed: [] });
  expect(verdicts).toHaveLength(7);
}, 30_000);
