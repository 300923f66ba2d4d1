// Anvil, an Ethereum node for development. It isn't a dependency of the project: `npm run demo:chain` and the tests with peers install it from npm.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';

const version = '1.7.1';
const folder = resolve(import.meta.dirname, '../../temp/anvil', version);
const architecture = process.arch === 'x64' ? 'amd64' : process.arch;
const name = `@foundry-rs/anvil-${process.platform}-${architecture}`;
const program = resolve(folder, 'node_modules', name, 'bin', process.platform === 'win32' ? 'anvil.exe' : 'anvil');

/** Whether Anvil is installed. */
export const isAnvilInstalled = () => existsSync(program);

/** Installs Anvil into `temp/anvil` (43 MB), unless it is there. */
export const installAnvil = () => {
  if (isAnvilInstalled()) return;
  mkdirSync(folder, { recursive: true });
  writeFileSync(resolve(folder, 'package.json'), '{}');
  execFileSync('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', `${name}@${version}`], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
};

/**
 * @typedef {object} Anvil
 * @property {string} url
 * @property {number} port
 * @property {(method: string, ...params: unknown[]) => Promise<any>} call - calls a JSON-RPC method
 * @property {() => Promise<unknown>} close
 */

/**
 * Starts Anvil on 127.0.0.1 with an empty chain. It puts each transaction into a block at once.
 *
 * @param {{ port?: number }} [options] - `port`: 0 is any free port
 * @returns {Promise<Anvil>}
 */
export const startAnvil = async ({ port = 0 } = {}) => {
  const child = spawn(program, ['--host', '127.0.0.1', '--port', String(port)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise((done) => child.once('close', done));
  /** @type {string} */
  const address = await new Promise((found, fail) => {
    child.once('error', fail).once('close', () => fail(new Error('Anvil ended before it was ready.')));
    createInterface(child.stdout).on('line', (line) => {
      const [, host] = /^Listening on (\S+)$/.exec(line) ?? [];
      if (host !== undefined) found(host);
    });
  });
  /** @type {Anvil['call']} */
  const call = async (method, ...params) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    const answer = await fetch(`http://${address}`, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json' },
    });
    /** @type {any} */
    const { result, error } = await answer.json();
    if (error) throw new Error(`${method}: ${error.message}`);
    return result;
  };
  const close = () => {
    child.kill();
    return ended;
  };
  return { url: `ws://${address}`, port: Number(new URL(`ws://${address}`).port), call, close };
};
