import { expect, it } from '@jest/globals';
import { runProgram } from '../support/run-program.js';

it('100 clients of a service that restarts are all back, without waves, within its limits; without jitter the rule breaks', async () => {
  const { code, stdout, stderr } = await runProgram('../../../reliability/storm/index.mjs', ['--clients', '100'], {});
  const rules = [...stdout.matchAll(/^\| (.+?) +\| .*\| (held|\*\*broken\*\*) +\|$/gm)];
  const broken = rules.filter(([line]) => line.includes('broken**'));
  expect({ stderr, broken: broken.map(([line]) => line) }).toEqual({ stderr: '', broken: [] });
  expect([code, rules.length]).toEqual([0, 21]);
}, 60_000);
