import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fencesOf, root } from './fences.js';

let folder: string;

// A separate app with the package installed. Node finds the package's dependencies in the parent folders.
beforeAll(async () => {
  await mkdir(join(root, 'temp'), { recursive: true });
  folder = await mkdtemp(join(root, 'temp/commonjs-jest-'));
  const installed = join(folder, 'node_modules/rx-trade-feed');
  await mkdir(installed, { recursive: true });
  await cp(join(root, 'dist'), join(installed, 'dist'), { recursive: true });
  await cp(join(root, 'package.json'), join(installed, 'package.json'));
  await writeFile(join(folder, 'package.json'), '{}');
});

afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

it('the jest configuration of docs/testing.md runs an app in CommonJS that uses the package', async () => {
  const [configuration, ...others] = fencesOf('docs/testing.md').filter(({ language }) => language === 'js');
  expect(others).toEqual([]);
  await writeFile(join(folder, 'jest.config.cjs'), configuration?.code ?? '');
  await writeFile(join(folder, 'app.test.js'), appTest);
  const { exitCode, stderr } = await runJest();
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('1 passed') });
}, 120_000);

const appTest = `
import { firstValueFrom } from 'rxjs';
import { tradeFeed$ } from 'rx-trade-feed';
import { startTradeFeedService } from 'rx-trade-feed/testing';

test('stops without access', async () => {
  expect(typeof require).toBe('function');
  const service = await startTradeFeedService();
  const apiKey = service.createAccount({ entitled: false }).createApiKey();
  const first = firstValueFrom(tradeFeed$('market', { baseUrl: service.baseUrl, apiKey }));
  await expect(first).rejects.toMatchObject({ code: 'not-entitled' });
  await service.shutdown();
});
`;

const runJest = (): Promise<{ exitCode: number | null; stderr: string }> =>
  new Promise((resolve, reject) => {
    const jest = join(root, 'node_modules/jest/bin/jest.js');
    const args = [jest, '--config', 'jest.config.cjs', '--ci', '--no-cache', '--watchman=false', '--testTimeout=60000'];
    const env = { PATH: process.env['PATH'], NO_COLOR: '1' };
    const program = spawn(process.execPath, args, { cwd: folder, env, stdio: ['ignore', 'ignore', 'pipe'] });
    let stderr = '';
    program.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    program.once('error', reject).once('close', (exitCode) => resolve({ exitCode, stderr }));
  });
