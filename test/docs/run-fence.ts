import { transformSync } from 'esbuild';
import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from './fences.js';

/** Kills a fence after this time, in ms. */
const limitMs = 20_000;

/**
 * Runs a TypeScript fence with the built package in a child process until it prints a line that matches.
 *
 * Then the process is killed, because a fence may stream without end.
 *
 * @param code - the fence
 * @param expected - the pattern of the line
 * @param service - the environment variables with the address and the key of a service
 * @param files - files to create in the working directory, by name
 * @returns the output, when the process has ended. Rejects if no line matched or it wrote to stderr
 */
export const runFence = async (
  code: string,
  expected: RegExp,
  service: Readonly<Record<string, string>>,
  files: Readonly<Record<string, string>> = {},
): Promise<string> => {
  // Inside the project, so that imports resolve to the package.
  await mkdir(join(root, 'temp'), { recursive: true });
  const folder = await mkdtemp(join(root, 'temp/fence-'));
  try {
    const file = join(folder, 'fence.mjs');
    await writeFile(file, javaScriptOf(code));
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
    return await untilPrinted(file, expected, service, folder);
  } finally {
    await rm(folder, { recursive: true });
  }
};

const javaScriptOf = (code: string): string =>
  transformSync(code, {
    loader: 'ts',
    target: 'es2022',
    tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
  }).code;

const untilPrinted = (
  file: string,
  expected: RegExp,
  service: Readonly<Record<string, string>>,
  cwd: string,
): Promise<string> =>
  new Promise((resolve, reject) => {
    const env = { PATH: process.env['PATH'], NO_COLOR: '1', ...service };
    const program = spawn(process.execPath, [file], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const timer = setTimeout(() => program.kill('SIGKILL'), limitMs);
    let stdout = '';
    let stderr = '';
    const isPrinted = () => new RegExp(expected, 'm').test(stdout);
    program.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
      if (isPrinted()) program.kill('SIGTERM');
    });
    program.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    program.once('error', reject).once('close', (exitCode) => {
      clearTimeout(timer);
      if (isPrinted() && stderr === '') resolve(stdout);
      else reject(new Error(`exit code ${String(exitCode)}, expected a line like ${expected}\n${stdout}\n${stderr}`));
    });
  });
