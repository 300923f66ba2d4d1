// One sample: a fresh process, so that no contender runs on what another one left in the heap, the optimizer or the kernel.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const LIMIT_MS = 120_000;
const running = new Set();
const endAll = () => running.forEach((child) => child.kill('SIGKILL'));
process.once('exit', endAll);
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

/**
 * Runs a program to its end; resolves with its last line of output, which is JSON. Rejects with what it wrote to stderr.
 *
 * @param file - a path, or a `file:` URL
 * @param nodeArgs - for Node itself: `['--expose-gc']`
 * @param env - on top of this process's
 */
export const sample = (file, args = [], { nodeArgs = [], env } = {}) =>
  new Promise((resolve, reject) => {
    const path = String(file).startsWith('file:') ? fileURLToPath(file) : file;
    const child = spawn(process.execPath, [...nodeArgs, path, ...args.map(String)], {
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
        fail(`its last line is not JSON: ${line}`);
      }
    });
  });
