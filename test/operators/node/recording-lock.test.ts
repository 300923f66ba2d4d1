import { afterEach, expect, it } from '@jest/globals';
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { tempFolder } from '../../cli/support/temp-folder.js';
import { bundledPrograms } from '../../support/bundled-programs.js';
import { waitFor } from '../../support/wait-for.js';

// Tests which process may record to a path: after a recorder has ended in any way, the next one may record.

const folder = tempFolder();
const program = bundledPrograms('test/operators/node/programs', ['record-forever.mjs', 'record-once.mjs']);

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

/** Records one frame in another process, and returns `recorded` or why it was refused. */
const recordAfter = (path: string, through: readonly string[] = []): string => {
  const [command, ...args] = [...through, process.execPath, program('record-once.mjs'), path];
  return execFileSync(command, args, { encoding: 'utf8' }).trimEnd();
};

const refused = (path: string): string =>
  `Can't write the recording ${path}: another recorder, in this process or another one, is writing to it. Use another path, or stop that recorder.`;

it('a killed recorder whose parent has not read its exit status does not keep the lock', async () => {
  const path = folder.path('zombie.ndjson');
  // The shell is replaced by a program that never reads the exit status of its children.
  const parent = begin(
    'sh',
    '-c',
    `"$0" "$@" & echo $!; exec sleep 600`,
    process.execPath,
    program('record-forever.mjs'),
    path,
  );
  const [line] = (await once(parent.stdout!.setEncoding('utf8'), 'data')) as [string];
  const pid = Number(line);
  await waitFor(isRecorded(path), { limitMs: 30_000 });
  expect(recordAfter(path)).toBe(refused(path));
  process.kill(pid, 'SIGKILL');
  await waitFor(() => readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z '), { limitMs: 30_000 });
  expect(recordAfter(path)).toBe('recorded');
}, 120_000);

it('a terminated worker thread does not keep the lock, not even within its process', async () => {
  const path = folder.path('worker.ndjson');
  const worker = new Worker(program('record-forever.mjs'), { argv: [path] });
  await waitFor(isRecorded(path), { limitMs: 30_000 });
  expect(recordAfter(path)).toBe(refused(path));
  await worker.terminate();
  const next = new Worker(program('record-once.mjs'), { argv: [path], stdout: true });
  // Both can come in one turn of the event loop.
  const exit = once(next, 'exit');
  const [said] = (await once(next.stdout.setEncoding('utf8'), 'data')) as [string];
  expect(said.trimEnd()).toBe('recorded');
  await exit;
}, 120_000);

/** Runs a program as in another container, where it sees only its own process. If the system does not allow this, runs a normal process. */
const apart = (): readonly string[] => {
  const command = ['unshare', '--pid', '--fork', '--mount-proc', '--kill-child=SIGKILL'];
  const { status } = spawnSync('unshare', [...command.slice(1), 'true']);
  return status === 0 ? command : [];
};

it('two recorders in containers that share a folder exclude each other', async () => {
  const path = folder.path('apart.ndjson');
  const [command, ...args] = [...apart(), process.execPath, program('record-forever.mjs'), path];
  const first = begin(command, ...args);
  await waitFor(isRecorded(path), { limitMs: 30_000 });
  expect(recordAfter(path, apart())).toBe(refused(path));
  await kill(first);
  await waitFor(() => recordAfter(path, apart()) === 'recorded', { limitMs: 30_000 });
}, 120_000);

it('the native package is loaded when a recording begins', () => {
  const path = folder.path('loaded.ndjson');
  // With the built package: a bundle contains only what the program uses.
  const whatIsLoaded = new URL('programs/what-is-loaded.mjs', import.meta.url).pathname;
  const said = execFileSync(process.execPath, [whatIsLoaded, path], { encoding: 'utf8' });
  expect(JSON.parse(said)).toEqual([false, true]);
}, 120_000);
