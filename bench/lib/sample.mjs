// Takes one sample in a new process, so that no contender inherits the heap or the optimized code of another.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const LIMIT_MS = 120_000;
const running = new Set();
const endAll = () => running.forEach((child) => child.kill('SIGKILL'));
process.once('exit', endAll);
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

/**
 * Runs a program to its end. Resolves with its last line of output, which is JSON. Rejects with its stderr if it fails.
 *
 * @param file - a path, or a `file:` URL
 * @param program - what runs the file: this Node, unless it is set
 * @param env - additional environment variables
 */
export const sample = (file, args = [], { program = process.execPath, env } = {}) =>
  new Promise((resolve, reject) => {
    const path = String(file).startsWith('file:') ? fileURLToPath(file) : file;
    const child = spawn(program, ['--expose-gc', path, ...args.map(String)], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    });
    running.add(child);
    const timer = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS);
    const written = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'])
      child[name].setEncoding('utf8').on('data', (text) => (written[name] += text));
    child.once('error', reject).once('close', (code, signal) => {
      clearTimeout(timer);
      running.delete(child);
      const fail = (why) => reject(new Error(`${[path, ...args].join(' ')}: ${why}\n${written.stderr}`));
      if (code !== 0) return fail(`ended with ${code ?? signal}`);
      const line = written.stdout.trimEnd().split('\n').at(-1);
      try {
        resolve(JSON.parse(line));
      } catch {
        fail(`the last line is not JSON: ${line}`);
      }
    });
  });
