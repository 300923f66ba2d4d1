import { expect, it } from '@jest/globals';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { marketBatches$, startTradeFeedService } from 'rx-trade-feed/testing';
import { endPrograms, shellCommand } from '../cli/support/program.js';
import { fencesOf, read, root } from './fences.js';

/** The limit of a test that starts programs, in ms. */
const limitMs = 60_000;

it(
  "the README's ten lines run in a project of `npm init`, under the file name that the README gives",
  async () => {
    const [, name = ''] = /Save the ten lines there as `(\S+)`/.exec(read('README.md')) ?? [];
    const tenLines = fencesOf('README.md').find(({ language }) => language === 'ts')?.code ?? '';
    const folder = mkdtempSync(join(tmpdir(), 'new-project-'));
    try {
      await using service = await startTradeFeedService({ sources: { market: marketBatches$() } });
      // What npm 11 writes, and an installed package.
      writeFileSync(join(folder, 'package.json'), '{ "name": "my-project", "version": "1.0.0", "type": "commonjs" }');
      mkdirSync(join(folder, 'node_modules'));
      symlinkSync(root, join(folder, 'node_modules/rx-trade-feed'));
      writeFileSync(join(folder, name), tenLines);
      const running = shellCommand(`cd ${folder} && exec ${process.execPath} ${name}`, {
        TRADE_FEED_BASE_URL: service.baseUrl,
        TRADE_FEED_API_KEY: service.createAccount({ plan: 'developer' }).createApiKey(),
      });
      await Promise.race([running.untilStdout(/^\{.+\}$/m), running.exit]);
      expect({ stdout: running.stdout(), stderr: running.stderr() }).toEqual({
        stdout: expect.stringMatching(/^\{.+\}$/m),
        stderr: '',
      });
    } finally {
      await endPrograms();
      rmSync(folder, { recursive: true, force: true });
    }
  },
  limitMs,
);
