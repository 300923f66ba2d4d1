/**
 * @lane processes
 * @ci
 */
import { expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { tempFolder } from '../cli/support/temp-folder.js';

const prelude = `
  import { afterAll, beforeAll, it } from '@jest/globals';
  import { spawn } from 'node:child_process';
  import { connect, createServer } from 'node:net';`;
// A leaked resource stays active, so a short grace period is enough. The file that closes late has the default.
const shortGrace = `/** @jest-environment-options {"leakGraceMs": 100} */`;

/** Small test files with a passing test each, and what the gate says; empty if it passes. */
const files: Readonly<Record<string, readonly [source: string, message: string]>> = {
  timer: [`it('passes', () => { setTimeout(() => {}, 60_000); });`, 'leaks: 1 Timeout '],
  server: [`it('passes', (done) => { createServer().listen(0, done); });`, 'leaks: 1 TCPServerWrap '],
  rejection: [`it('passes', () => { setImmediate(() => { Promise.reject(new Error('late')); }); });`, 'late'],
  process: [`it('passes', (done) => { spawn('true').once('close', () => done()); });`, 'with /** @lane processes */'],
  nothing: [
    `const server = createServer((socket) => { socket.end('bye'); });
    beforeAll((done) => { server.listen(0, '127.0.0.1', done); });
    it('passes', (done) => { connect(server.address().port, '127.0.0.1').resume().once('close', () => done()); });
    it('logs', () => { console.log('a line'); });
    afterAll(() => { server.close(); });`,
    '',
  ],
  later: [`it('passes', () => { setTimeout(() => {}, 300); });`, ''],
};
const folder = tempFolder();

it('the leak gate fails a file that leaves a timer, a server or a rejection, or starts a process without a lane', async () => {
  for (const [name, [source, message]] of Object.entries(files))
    await folder.file(`${name}.test.ts`, (message && shortGrace) + prelude + source);
  const report = folder.path('report.json');
  const jest = ['--experimental-vm-modules', resolve('node_modules/jest/bin/jest.js')];
  const what = ['--roots', folder.path('.'), '--testMatch', folder.path('*.test.ts'), '--coverage=false'];
  const how = ['--maxWorkers', '1', '--forceExit', '--silent', '--json', '--outputFile', report];
  await new Promise((done) => void execFile(process.execPath, [...jest, ...what, ...how], done));
  const { testResults } = JSON.parse(await readFile(report, 'utf8')) as { testResults: Record<string, string>[] };
  const outcomes = testResults.map(({ name, status, message }) => [basename(name!, '.test.ts'), { status, message }]);
  const expected = Object.entries(files).map(([name, [, message]]) => {
    const status = message === '' ? 'passed' : 'failed';
    return [name, { status, message: expect.stringContaining(message) }];
  });
  expect(Object.fromEntries(outcomes)).toEqual(Object.fromEntries(expected));
}, 120_000);
