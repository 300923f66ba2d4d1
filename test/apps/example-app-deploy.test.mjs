// The rolling deploy of the example, as in its README: nginx, two servers, pages in Chromium, clients without a page.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chromium, install } from '../peers/packages.mjs';
import { buildApp } from './example-app/app.mjs';
import { buildLimitMs } from './support.mjs';

install();
const built = await buildApp();

/** Runs the deploy. Returns its output and exit code. */
const runDeploy = (...args) =>
  new Promise((done) => {
    const { folder, env } = built;
    const options = { cwd: folder, env: { ...env, CHROMIUM_PATH: chromium() }, timeout: buildLimitMs };
    const command = ['run', '--silent', 'rolling-deploy', '--', ...args];
    execFile('npm', command, options, (error, stdout, stderr) => done({ code: error?.code ?? 0, stdout, stderr }));
  });

const counts = [
  'that stopped',
  'that did not reconnect',
  'received twice',
  'in the wrong order',
  'missing without a gap',
];

test('two deploys of the example app stop no page, and no page gets a frame twice', async () => {
  const { code, stdout, stderr } = await runDeploy('--deploys', '2', '--pages', '2', '--clients', '20');
  for (const count of counts) assert.match(stdout, new RegExp(`${count}: 0$`, 'm'), `${stdout}${stderr}`);
  // Each new server took over the connection, or the test would prove nothing.
  assert.equal(stdout.match(/a connection ended with 4001/g)?.length, 2, stdout);
  assert.match(stdout, /page 2 .* 'Live'/);
  assert.equal(code, 0, stderr);
});
