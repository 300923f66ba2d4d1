/**
 * @lane processes
 * @ci
 */
import { expect, it } from '@jest/globals';
import { runProgram } from '../../test/support/run-program.js';

const soak = async (...args: readonly string[]) => {
  const short = ['--seconds', '4', '--rate', '4000', '--window', '100'];
  const { code, stdout, stderr } = await runProgram('../../../reliability/soak/index.mjs', [...short, ...args], {}, [
    '--expose-gc',
  ]);
  const rules = [...stdout.matchAll(/^\| (.+?) +\| .*\| (met|\*\*missed\*\*) +\|$/gm)];
  return { code, stderr, rules: rules.length, broken: rules.flatMap(([, rule, end]) => (end === 'met' ? [] : rule)) };
};

it('every frame is accounted for through each kind of fault, and nothing leaks', async () => {
  expect(await soak('--reconnect-every', '0.7', '--exact')).toEqual({ code: 0, stderr: '', rules: 13, broken: [] });
}, 300_000);

it('fails if the heap, handles or file descriptors grow', async () => {
  const { code, broken } = await soak('--reconnect-every', '60', '--leak', 'heap,handle,fd');
  expect(broken).toEqual(
    expect.arrayContaining([
      'all handles and descriptors are released at the end',
      'heap: slope, MB an hour',
      'active handles: slope an hour',
      'file descriptors: slope an hour',
    ]),
  );
  expect(code).toBe(1);
}, 300_000);
