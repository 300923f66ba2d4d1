import { afterEach, expect, it } from '@jest/globals';
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { tempFolder } from '../../cli/support/temp-folder.js';
import { waitFor } from '../../support/wait-for.js';

// Who may record to a path, with programs of the library as it is built: when a recorder ends, however it does, the next one may.

const folder = tempFolder();
const program = (name: string): string => new URL(`programs/${name}.mjs`, import.meta.url).pathname;
const [recordForever, recordOnce, whatIsLoaded] = ['record-forever', 'record-once', 'what-is-loaded'].map(program) as [
  string,
  string,
  string,
];

const children: ChildProcess[] = [];
afterEach(async () => {
  for (const child of children.splice(0)) await kill(child);
});

const begin = (command: string, ...args: readonly string[]): ChildProcess => {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  return child;
};

const kill = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
};

const isRecorded = (path: string) => (): boolean => (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0;

/** What another process says that records one frame to a path: that it did, or why not. */
const recordAfter = (path: string, through: readonly string[] = []): string => {
  const [command, ...args] = [...through, process.execPath, recordOnce, path];
  return execFileSync(command, args, { encoding: 'utf8' }).trimEnd();
};

const refused = (path: string): string =>
  `Cannot write the recording ${path}: another recorder, in this process or another one, is writing to it. Use another path, or stop that recorder.`;

it('a recorder that was killed and that its parent does not reap refuses nobody', async () => {
  const path = folder.path('zombie.ndjson');
  // The shell becomes a program that never asks what has become of its children.
  const parent = begin('sh', '-c', `"$0" "$@" & echo $!; exec sleep 600`, process.execPath, recordForever, path);
  const [line] = (await once(parent.stdout!.setEncoding('utf8'), 'data')) as [string];
  const pid = Number(line);
  await waitFor(isRecorded(path), { limitMs: 30_000 });
  expect(recordAfter(path)).toBe(refused(path));
  process.kill(pid, 'SIGKILL');
  await waitFor(() => readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z '), { limitMs: 30_000 });
  expect(recordAfter(path)).toBe('recorded');
}, 60_000);

it('a worker thread that was terminated refuses nobody, in its own process neither', async () => {
  const path = folder.path('worker.ndjson');
  const worker = new Worker(recordForever, { argv: [path] });
  await waitFor(isRecorded(path), { limitMs: 30_000 });
  expect(recordAfter(path)).toBe(refused(path));
  await worker.terminate();
  const next = new Worker(recordOnce, { argv: [path], stdout: true });
  next.stdout.setEncoding('utf8');
  const [said] = (await once(next.stdout, 'data')) as [string];
  expect(said.trimEnd()).toBe('recorded');
  await once(next, 'exit');
}, 60_000);

/** Runs a program as one of another container would run: it sees no process but its own. Where that is not allowed, as any process. */
const apart = (): readonly string[] => {
  const command = ['unshare', '--pid', '--fork', '--mount-proc', '--kill-child=SIGKILL'];
  const { status } = spawnSync('unshare', [...command.slice(1), 'true']);
  return status === 0 ? command : [];
};

it('two that cannot see each other exclude each other: of two containers that share a folder', async () => {
  const path = folder.path('apart.ndjson');
  const [command, ...args] = [...apart(), process.execPath, recordForever, path];
  const first = begin(command, ...args);
  await waitFor(isRecorded(path), { limitMs: 30_000 });
  expect(recordAfter(path, apart())).toBe(refused(path));
  await kill(first);
  await waitFor(() => recordAfter(path, apart()) === 'recorded', { limitMs: 30_000 });
}, 60_000);

it('a disk that takes nothing leaves nothing behind that refuses the next recorder', () => {
  const path = folder.path('full.ndjson');
  // Files can be made, but no byte can be written to them.
  const full = ['sh', '-c', `trap '' XFSZ; ulimit -f 0; exec "$0" "$@"`];
  expect(recordAfter(path, full)).toBe(
    `Cannot write the recording ${path}: the file is larger than this operating system allows.`,
  );
  expect([existsSync(path), existsSync(`${path}.lock`)]).toEqual([false, false]);
  expect(recordAfter(path)).toBe('recorded');
}, 60_000);

it('the native package is loaded when a recording begins, not with the library', () => {
  const path = folder.path('loaded.ndjson');
  const said = execFileSync(process.execPath, [whatIsLoaded, path], { encoding: 'utf8' });
  expect(JSON.parse(said)).toEqual([false, true]);
}, 60_000);
