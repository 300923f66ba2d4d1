/**
 * @lane processes
 * @ci
 */
import { expect, it } from '@jest/globals';
import { runProgram } from '../../test/support/run-program.js';

it('100 clients reconnect without waves and within the limits of the service; without jitter the rule is broken', async () => {
  const { code, stdout, stderr } = await runProgram('../../../reliability/storm/index.mjs', ['--clients', '100'], {});
  const rules = [...stdout.matchAll(/^\| (.+?) +\| .*\| (met|\*\*missed\*\*) +\|$/gm)];
  const broken = rules.filter(([line]) => line.includes('missed**'));
  expect({ stderr, broken: broken.map(([line]) => line) }).toEqual({ stderr: '', broken: [] });
  expect([code, rules.length]).toEqual([0, 21]);
}, 300_000);
