import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';

// Small test files, each with one passing test, and the expected message of the gate.
const files: Readonly<Record<string, { source: string; message?: string }>> = {
  'leaves-a-timer': {
    source: `it('passes', () => { setTimeout(() => {}, 60_000); });`,
    message: 'leaks: 1 Timeout ',
  },
  'leaves-an-interval': {
    source: `it('passes', () => { setInterval(() => {}, 50); setInterval(() => {}, 50); });`,
    message: 'leaks: 2 Timeout ',
  },
  'leaves-a-timer-before-fake-ones': {
    source: `it('passes', () => { setTimeout(() => {}, 60_000); jest.useFakeTimers(); });`,
    message: 'leaks: 1 Timeout ',
  },
  'leaves-a-server': {
    source: `it('passes', (done) => { createServer().listen(0, '127.0.0.1', done); });`,
    message: 'leaks: 1 TCPServerWrap ',
  },
  'leaves-a-socket': {
    source: `
      const server = createServer();
      beforeAll((done) => { server.listen(0, '127.0.0.1', done); });
      it('passes', (done) => { connect(server.address().port, '127.0.0.1', done); });
      afterAll(() => { server.close(); });`,
    message: 'TCPSocketWrap',
  },
  'leaves-a-rejection': {
    source: `it('passes', () => {}); afterAll(() => { setImmediate(() => { Promise.reject(new Error('late')); }); });`,
    message: 'late',
  },
  'leaves-nothing': {
    source: `
      const server = createServer((socket) => { socket.end('bye'); });
      beforeAll((done) => { server.listen(0, '127.0.0.1', done); });
      it('passes', (done) => { connect(server.address().port, '127.0.0.1').resume().once('close', () => done()); });
      it('logs', () => { console.log('a line'); process.stdout.write(''); });
      afterAll(() => { server.close(); });`,
  },
  'closes-a-little-later': {
    source: `it('passes', () => { setTimeout(() => {}, 300); });`,
  },
};

// A leaked resource stays active, so a short wait is enough. The one file that closes something later has the default wait.
const options = `/** @jest-environment-options {"leakGraceMs": 100} */`;

const prelude = `
  import { afterAll, beforeAll, it, jest } from '@jest/globals';
  import { connect, createServer } from 'node:net';`;

interface Outcome {
  readonly status: string;
  readonly message: string;
}

const outcomes = new Map<string, Outcome>();
let folder = '';

// One run of all files with the configuration of the project.
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'leak-gate-'));
  for (const [name, { source, message }] of Object.entries(files)) {
    const docblock = message === undefined ? '' : options;
    await writeFile(join(folder, `${name}.test.ts`), docblock + prelude + source);
  }
  const report = join(folder, 'report.json');
  const jest = ['--experimental-vm-modules', resolve('node_modules/jest/bin/jest.js')];
  const what = ['--roots', folder, '--testMatch', `${folder}/*.test.ts`, '--coverage=false'];
  const how = ['--maxWorkers', '1', '--forceExit', '--silent', '--json', '--outputFile', report];
  await new Promise<void>((done) => {
    execFile(process.execPath, [...jest, ...what, ...how], () => {
      done();
    });
  });
  const { testResults } = JSON.parse(await readFile(report, 'utf8')) as { testResults: (Outcome & { name: string })[] };
  for (const result of testResults) outcomes.set(basename(result.name, '.test.ts'), result);
}, 60_000);

afterAll(() => rm(folder, { recursive: true, force: true }));

describe('the leak gate', () => {
  it.each(Object.entries(files))('judges a file that %s', (name, { message }) => {
    const outcome = outcomes.get(name);
    expect(outcome?.message ?? '').toContain(message ?? '');
    expect(outcome?.status).toBe(message === undefined ? 'passed' : 'failed');
  });
});
