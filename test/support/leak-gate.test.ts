/**
 * @lane processes
 * @ci
 */
import { beforeAll, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { tempFolder } from '../cli/support/temp-folder.js';

// Small test files with a passing test each, and the gate's expected message; empty if it passes.
const files: readonly (readonly [name: string, source: string, message: string])[] = [
  ['leaves-a-timer', `it('passes', () => { setTimeout(() => {}, 60_000); });`, 'leaks: 1 Timeout '],
  ['leaves-a-server', `it('passes', (done) => { createServer().listen(0, done); });`, 'leaks: 1 TCPServerWrap '],
  [
    'leaves-a-rejection',
    `it('passes', () => { setImmediate(() => { Promise.reject(new Error('late')); }); });`,
    'late',
  ],
  [
    'leaves-nothing',
    `const server = createServer((socket) => { socket.end('bye'); });
    beforeAll((done) => { server.listen(0, '127.0.0.1', done); });
    it('passes', (done) => { connect(server.address().port, '127.0.0.1').resume().once('close', () => done()); });
    it('logs', () => { console.log('a line'); });
    afterAll(() => { server.close(); });`,
    '',
  ],
  [
    'starts-a-process-without-a-lane',
    `it('passes', (done) => { spawn('true').once('close', () => done()); });`,
    'It must begin with /** @lane processes */',
  ],
  ['closes-a-little-later', `it('passes', () => { setTimeout(() => {}, 300); });`, ''],
];

// A leaked resource stays active, so a short grace period is enough. The file that closes late has the default.
const options = `/** @jest-environment-options {"leakGraceMs": 100} */`;

const prelude = `
  import { afterAll, beforeAll, it, jest } from '@jest/globals';
  import { spawn } from 'node:child_process';
  import { connect, createServer } from 'node:net';`;

interface Outcome {
  readonly status: string;
  readonly message: string;
}

const outcomes = new Map<string, Outcome>();
const folder = tempFolder();

// One run of all files with the configuration of the project.
beforeAll(async () => {
  for (const [name, source, message] of files) {
    const docblock = message === '' ? '' : options;
    await folder.file(`${name}.test.ts`, docblock + prelude + source);
  }
  const report = folder.path('report.json');
  const jest = ['--experimental-vm-modules', resolve('node_modules/jest/bin/jest.js')];
  const what = ['--roots', folder.path('.'), '--testMatch', folder.path('*.test.ts'), '--coverage=false'];
  const how = ['--maxWorkers', '1', '--forceExit', '--silent', '--json', '--outputFile', report];
  await new Promise((done) => void execFile(process.execPath, [...jest, ...what, ...how], done));
  const { testResults } = JSON.parse(await readFile(report, 'utf8')) as { testResults: (Outcome & { name: string })[] };
  for (const result of testResults) outcomes.set(basename(result.name, '.test.ts'), result);
}, 120_000);

describe('the leak gate', () => {
  it.each(files)('judges a file that %s', (name, _source, message) => {
    const outcome = outcomes.get(name);
    expect(outcome?.message ?? '').toContain(message);
    expect(outcome?.status).toBe(message === '' ? 'passed' : 'failed');
  });
});
