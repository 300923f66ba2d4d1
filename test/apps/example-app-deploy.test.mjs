// The rolling deploy of the example, as its README tells it: nginx, two servers, pages in Chromium, clients without a page.
import { before, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { install } from '../peers/packages.mjs';
import { makeApp } from './example-app/made-app.mjs';
import { chromium } from './support.mjs';

let made;

before(
  async () => {
    install();
    made = await makeApp();
  },
  { timeout: 300_000 },
);

/** Plays it; gives what it printed, and how it ended. */
const play = (...args) =>
  new Promise((done) => {
    const { folder, env } = made;
    const options = { cwd: folder, env: { ...env, CHROMIUM_PATH: chromium() }, timeout: 240_000 };
    const command = ['run', '--silent', 'rolling-deploy', '--', ...args];
    execFile('npm', command, options, (error, stdout, stderr) => done({ code: error?.code ?? 0, stdout, stderr }));
  });

const counts = ['stopped', 'that did not come back', 'received twice', 'in the wrong order', 'that no gap told of'];

test('in two deploys no page stops, and none receives a frame twice', { timeout: 300_000 }, async () => {
  const { code, stdout, stderr } = await play('--deploys', '2', '--pages', '2', '--clients', '20');
  for (const what of counts) assert.match(stdout, new RegExp(`${what}: 0$`, 'm'), `${stdout}${stderr}`);
  // Each new server took the connection over: without that, this would show nothing.
  assert.equal(stdout.match(/a connection ended with 4001/g)?.length, 2, stdout);
  assert.match(stdout, /page 2 .* 'Live'/);
  assert.equal(code, 0, stderr);
});
