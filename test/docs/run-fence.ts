import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import ts from 'typescript';
import { root } from './fences.js';

/** A fence that takes longer is killed, in ms. */
const patienceMs = 20_000;

/**
 * Runs a TypeScript fence in a Node process of its own, on the built package, until it printed what it promises.
 *
 * A fence may stream for ever: it is ended as soon as a line of its output matches.
 *
 * @param code - the fence
 * @param promised - what one line of its output must match
 * @param service - the variables that point at a service
 * @param files - what stands beside it, by name: it runs in a folder of its own
 * @returns what it printed; resolves when it has ended, rejects when it broke its promise
 */
export const runFence = async (
  code: string,
  promised: RegExp,
  service: Readonly<Record<string, string>>,
  files: Readonly<Record<string, string>> = {},
): Promise<string> => {
  // Within the project, so that its imports find the package itself.
  await mkdir(join(root, 'temp'), { recursive: true });
  const folder = await mkdtemp(join(root, 'temp/fence-'));
  try {
    const file = join(folder, 'fence.mjs');
    await writeFile(file, javaScriptOf(code));
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
    return await untilPrinted(file, promised, service, folder);
  } finally {
    await rm(folder, { recursive: true });
  }
};

const javaScriptOf = (code: string): string => {
  const compilerOptions = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true };
  return ts.transpileModule(code, { compilerOptions }).outputText;
};

const untilPrinted = (
  file: string,
  promised: RegExp,
  service: Readonly<Record<string, string>>,
  cwd: string,
): Promise<string> =>
  new Promise((resolve, reject) => {
    const env = { PATH: process.env['PATH'], NO_COLOR: '1', ...service };
    const program = spawn(process.execPath, [file], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const patience = setTimeout(() => program.kill('SIGKILL'), patienceMs);
    let stdout = '';
    let stderr = '';
    const isKept = () => new RegExp(promised, 'm').test(stdout);
    program.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
      if (isKept()) program.kill('SIGTERM');
    });
    program.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    program.once('error', reject).once('close', (exitCode) => {
      clearTimeout(patience);
      if (isKept() && stderr === '') resolve(stdout);
      else reject(new Error(`exit code ${String(exitCode)}, expected a line like ${promised}\n${stdout}\n${stderr}`));
    });
  });
