/**
 * @lane processes
 * @ci
 */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runProgram } from '../support/run-program.js';
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
  // The other one is of jsdom: test/apps/jsdom.test.mjs runs it.
  const [configuration] = fencesOf('docs/testing.md').filter(({ code }) => code.startsWith('// jest.config.cjs'));
  await writeFile(join(folder, 'jest.config.cjs'), configuration?.code ?? '');
  await writeFile(join(folder, 'app.test.js'), appTest);
  const jest = join(root, 'node_modules/jest/bin/jest.js');
  const config = ['--config', join(folder, 'jest.config.cjs')];
  const how = ['--ci', '--no-cache', '--watchman=false', '--testTimeout=60000'];
  const { code, stderr } = await runProgram(jest, [...config, ...how], { NO_COLOR: '1' });
  expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining('1 passed') });
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
