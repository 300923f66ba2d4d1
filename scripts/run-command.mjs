// Runs the command of a check and returns what it printed.
import { spawn } from 'node:child_process';
import { setPriority } from 'node:os';
import { delimiter, resolve } from 'node:path';

// Ends a command that hangs. In CI a command can be slow, because other commands run at the same time.
const LIMIT_MINUTES = 20;
const running = new Set();

const kill = (child) => {
  try {
    // The whole process group: a command may have started other programs.
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // The process ended before.
  }
};

/** Ends all commands that are still running. */
export const killAll = () => running.forEach(kill);

/**
 * Runs a command as npm runs a script: in a shell, with `node_modules/.bin` in the PATH.
 *
 * @param command - the command line
 * @param options - `env`: more environment variables; `bin`: a folder that comes first in the PATH; `priority`: as in `os.setPriority`
 * @returns `ok`: whether the exit code is 0; `output`: all that the command wrote
 */
export const runCommand = (command, { env = {}, bin = [], priority = 0 } = {}) =>
  new Promise((done) => {
    const path = [bin, resolve('node_modules/.bin'), process.env.PATH].flat().join(delimiter);
    const child = spawn(command, {
      shell: true,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env, PATH: path },
    });
    running.add(child);
    if (priority !== 0) setPriority(child.pid, priority);
    let output = '';
    const timer = setTimeout(() => {
      output += `\nStopped: the command was still running after ${LIMIT_MINUTES} minutes.\n`;
      kill(child);
    }, LIMIT_MINUTES * 60_000);
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => (output += text));
    child.on('close', (code) => {
      clearTimeout(timer);
      running.delete(child);
      done({ ok: code === 0, output });
    });
  });
