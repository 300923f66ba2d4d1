import { describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const root = join(import.meta.dirname, '../..');

describe("a user's pipeline and a slow consumer on one connection", () => {
  it('say what came and what was missed, through an outage, exactly', async () => {
    const args = ['--expose-gc', 'test/soak/soak.mjs', '--seconds', '4', '--rate', '4000', '--window', '200'];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root });
    const verdicts = stdout.split('\n').filter((line) => /^[✓✗]/.test(line));
    expect(verdicts).toHaveLength(9);
    expect(verdicts.filter((line) => line.startsWith('✗'))).toEqual([]);
  }, 30_000);
});
