import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Runs the tests of a folder. Returns the exit code, the seconds, and what the tests wrote to the file in `PREFIX_REPORT`.
 *
 * @param prefix - of the variables of the environment: `PREFIX_RUNS`, `PREFIX_SEED`
 */
export const runJest = (folder, prefix, { runs, seed }) => {
  const temp = mkdtempSync(join(tmpdir(), 'rx-trade-feed-jest-'));
  const file = join(temp, 'report');
  writeFileSync(file, '');
  const startedAt = performance.now();
  const env = { [`${prefix}_RUNS`]: `${runs}`, [`${prefix}_SEED`]: `${seed}`, [`${prefix}_REPORT`]: file };
  try {
    const { status } = spawnSync('npm', ['run', '--silent', 'unit', '--', folder], {
      stdio: 'inherit',
      env: { ...process.env, ...env },
    });
    const seconds = Math.round((performance.now() - startedAt) / 1_000);
    return { status, seconds, written: readFileSync(file, 'utf8') };
  } finally {
    rmSync(temp, { recursive: true });
  }
};
