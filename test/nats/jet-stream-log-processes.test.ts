import { afterAll, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describeInstalled } from '../cluster/support/real-server.js';
import { bundledPrograms } from '../support/bundled-programs.js';
import { isAllCases } from '../support/cases.js';

const names = ['log-kill-rounds.mjs', 'log-writer.mjs', 'log-consumer.mjs'];
const program = bundledPrograms('test/nats/programs', names);
const folder = mkdtempSync(join(tmpdir(), 'jet-stream-log-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describeInstalled('nats', 'a server, writers and consumers that are killed and stopped', () => {
  it('lose no record that a reader has received, repeat none, and skip none in a consumer', async () => {
    const rounds = isAllCases ? '8' : '2';
    const [main = '', ...others] = names.map(program);
    // On timeout it gets SIGTERM, and ends the processes it has started.
    const args = [main, folder, ...others, rounds, '1'];
    const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 240_000 });
    const result = JSON.parse(stdout) as Record<string, unknown>;
    expect(result['violations']).toEqual([]);
    expect(result).toMatchObject({ writerKills: Number(rounds) });
    for (const count of ['serverKills', 'takeovers', 'consumerKills']) expect(result[count]).toBeGreaterThan(0);
  }, 300_000);
});
