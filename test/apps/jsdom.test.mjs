// Runs tests of a page in jsdom, with the environment of docs/testing.md and with that of jest-fixed-jsdom, and tests of a server next to them.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fencesOf, installPackages, run, tarball, temporaryFolder } from './support.mjs';

const project = temporaryFolder('rx-trade-feed-jsdom-');
const environments = ['jest@30', 'jest-environment-jsdom@30', 'jest-fixed-jsdom@0.0.11', '@swc/jest@0.2.39'];
writeFileSync(join(project, 'package.json'), '{}');
await installPackages(project, [await tarball(), 'rxjs@7', '@swc/core@1.16.18', ...environments]);

const fences = fencesOf('docs/testing.md').map(({ code }) => code);
const [transforms, page] = ['// jest.config.cjs', '// jest-environment-page.cjs'].map((name) =>
  fences.find((code) => code.startsWith(name)),
);
writeFileSync(join(project, 'transforms.cjs'), transforms);
writeFileSync(join(project, 'jest-environment-page.cjs'), page);

/** Runs a test in jsdom, and resolves with what jest prints. */
const runTest = async (testEnvironment, code, options = {}) => {
  const settings = { testEnvironment, testEnvironmentOptions: options, testMatch: ['<rootDir>/*.test.js'] };
  writeFileSync(
    join(project, 'jest.config.cjs'),
    `module.exports = { ...require('./transforms.cjs'), ...${JSON.stringify(settings)} };`,
  );
  writeFileSync(join(project, 'app.test.js'), code);
  return run(process.execPath, ['node_modules/jest/bin/jest.js', '--ci', '--no-cache', '--watchman=false'], {
    cwd: project,
  });
};

const ofPage = `
import { createServer } from 'node:http';
import { firstValueFrom } from 'rxjs';
import { Frame, relayFeed$ } from 'rx-trade-feed/browser';
import { frames, whereField } from 'rx-trade-feed/operators';
import 'rx-trade-feed/testing';

test('reads a frame of the realm of jsdom', () => {
  expect(typeof document).toBe('object');
  expect(new Frame('raw', Uint8Array.of(123, 34, 110, 34, 58, 49, 125), false, 0, 1).json()).toEqual({ n: 1 });
});

test('follows a relay', async () => {
  const line = { type: 'frame', feed: 'raw', connection: 1, receivedAt: 5, isBinary: false, encoding: 'utf8', data: '{"n":"€"}' };
  const server = createServer((_, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Access-Control-Allow-Origin': '*' });
    response.write('event: hello\\ndata: {"at":5}\\n\\nid: 1\\ndata: ' + JSON.stringify(line) + '\\n\\n');
  });
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  const feed$ = relayFeed$('http://127.0.0.1:' + server.address().port + '/').pipe(whereField('n', '€'), frames());
  expect((await firstValueFrom(feed$)).text()).toBe('{"n":"€"}');
  server.closeAllConnections();
  server.close();
});`;

for (const environment of ['./jest-environment-page.cjs', 'jest-fixed-jsdom'])
  test(`${environment}: a test of a page reads frames and follows a relay`, async () => {
    assert.match(await runTest(environment, ofPage), /2 passed/);
  });

test('jsdom: an import of the main entry says what to import and what to set', async () => {
  const failed = runTest('jsdom', `test('imports', () => { require('rx-trade-feed'); });`);
  await assert.rejects(
    failed,
    /is for servers; import rx-trade-feed\/browser.+@jest-environment node.+customExportConditions/,
  );
});

const startsService = `
import { startTradeFeedService } from 'rx-trade-feed/testing';
test('starts the local service', async () => (await startTradeFeedService()).shutdown());`;

test('jsdom: the local service starts with the conditions of docs/testing.md, and names them without', async () => {
  await assert.rejects(runTest('jsdom', startsService), /customExportConditions: \['node', 'node-addons'\]/);
  const asNode = { customExportConditions: ['node', 'node-addons'] };
  assert.match(await runTest('jsdom', startsService, asNode), /1 passed/);
});

test('jsdom: a test of a server runs in Node', async () => {
  const code = `/** @jest-environment node */\n${startsService}\ntest('imports', () => { require('rx-trade-feed'); });`;
  assert.match(await runTest('jsdom', code), /2 passed/);
});
