// What the tests of whole apps share: the package as npm would publish it, a Node for Angular, Chromium. `npm run test:apps`
// prepares these once and passes the paths in the environment. A single test file prepares them here.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { chromium as driver } from 'playwright-core';
import { generate } from 'selfsigned';
import { installBun, installNode, nodeVersions } from '../../scripts/install.mjs';
import { chromium } from '../peers/packages.mjs';

export const root = resolve(import.meta.dirname, '../..');

/** How long a page or a program may take on a busy machine, in ms. */
export const patienceMs = 60_000;

/** How long a build or the tests of an app may take on a busy machine, in ms. */
export const buildLimitMs = 600_000;

/** Runs a program to its end. Resolves with its output. If it fails, the error contains the output. */
export const run = async (command, args, options = {}) => {
  try {
    const { stdout, stderr } = await promisify(execFile)(command, args, { maxBuffer: 2 ** 26, ...options });
    return stdout + stderr;
  } catch ({ message, stdout, stderr }) {
    throw new Error(`${command} ${args.join(' ')} failed:\n${stdout || stderr ? `${stdout}${stderr}` : message}`);
  }
};

/**
 * Starts a program. `output` has what it has printed so far, `printed` waits for a pattern in it and returns the match, and `ended` resolves with the
 * exit code, or the signal that killed it. Kills it when the test `t` ends.
 */
export const start = (t, command, args, options = {}) => {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
  const output = { stdout: '', stderr: '' };
  let hasEnded = false;
  const ended = once(child, 'close').then(([code, signal]) => {
    hasEnded = true;
    return signal ?? code;
  });
  for (const name of ['stdout', 'stderr'])
    child[name].setEncoding('utf8').on('data', (text) => {
      output[name] += text;
      child.emit('printed');
    });
  t?.after(() => child.kill('SIGKILL') && ended);
  return {
    ...{ child, output, ended },
    /** Waits for a pattern in stderr, or in stdout from a position. */
    async printed(pattern, from = 0) {
      for (;;) {
        const found = pattern.exec(output.stdout.slice(from)) ?? pattern.exec(output.stderr);
        if (found) return found;
        if (hasEnded) throw new Error(`The program did not print ${pattern}:\n${output.stdout}${output.stderr}`);
        await Promise.race([once(child, 'printed'), ended]);
      }
    },
    /** Ends it with a signal. Returns its exit code. */
    async stop(signal = 'SIGTERM') {
      child.kill(signal);
      return ended;
    },
  };
};

/**
 * Installs the packages of a folder's package.json, plus those that are named, in the versions of its lockfile. Bun takes a tenth of npm's time;
 * install.test.mjs and the example app install with npm. Copies, because the tests' programs may write to what Bun's cache would share.
 */
export const installPackages = (cwd, packages = [], options = {}) => {
  const [command, ...args] = packages.length === 0 ? ['install'] : ['add', ...packages];
  const layout = ['--linker=hoisted', '--backend=copyfile'];
  return run(installBun(), [command, '--ignore-scripts', '--no-progress', ...layout, ...args], { cwd, ...options });
};

/** Installs in a folder the packages that a folder of test/apps locks, and those of an `npm install` of a guide, with the tarball in place of this package. */
export const installLocked = async (cwd, versions, packages = ['rx-trade-feed'], options = {}) => {
  for (const file of ['package.json', 'package-lock.json'])
    copyFileSync(join(import.meta.dirname, versions, file), join(cwd, file));
  const packed = await tarball();
  const names = packages.map((name) => (name === 'rx-trade-feed' ? packed : name));
  await installPackages(cwd, names, options);
};

/** Writes files, given as paths and texts, into a folder. */
export const writeFiles = (folder, files) => {
  for (const [path, text] of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
};

/** Resolves with the path of the package as npm would publish it, packed from dist. */
export const tarball = async () => {
  const existing = process.env.RX_TRADE_FEED_TARBALL;
  if (existing) return existing;
  if (!existsSync(join(root, 'dist/index.js')))
    throw new Error('The folder dist is missing. Run `npm run build` first.');
  const folder = temporaryFolder('rx-trade-feed-tarball-');
  await run('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], { cwd: root });
  return (process.env.RX_TRADE_FEED_TARBALL = join(folder, readdirSync(folder)[0]));
};

// Angular 22 builds on Node 22.22, 24.15 and 26 or later.
const buildsAngular = () => {
  const [major, minor] = process.versions.node.split('.').map(Number);
  return (major === 22 && minor >= 22) || (major === 24 && minor >= 15) || major >= 26;
};

/** Returns the bin folder of a Node on which Angular builds: this one, or one from npm. */
export const newerNode = () =>
  process.env.RX_TRADE_FEED_NODE ??
  (buildsAngular()
    ? dirname(process.execPath)
    : installNode(nodeVersions.find((version) => version.startsWith('24.'))));

// Keeps the browser itself off the network.
const chromiumArgs = [
  ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
  ...['--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'],
];

/** Starts Chromium. */
export const launchChromium = () => driver.launch({ executablePath: chromium(), args: chromiumArgs });

/** Opens a page in a new context of the browser. `errors` collects the errors of its scripts. */
export const newPage = async (browser, options) => {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(patienceMs);
  const page = await context.newPage();
  const errors = [];
  page.on('pageerror', (error) => errors.push(String(error.stack ?? error)));
  return { page, errors, close: () => context.close() };
};

const pauseMs = 20;

/** Waits until a condition returns something, and returns that. Counts pauses, because a machine that stands still gives it no time. */
export const waitUntil = async (condition, what = String(condition)) => {
  for (let pauses = patienceMs / pauseMs; ; pauses -= 1) {
    const found = await condition();
    if (found) return found;
    assert.ok(pauses > 0, `timeout: ${what}`);
    await delay(pauseMs);
  }
};

/** Creates a self-signed certificate for this machine, and its key. */
export const createCertificate = async () => {
  const altNames = [
    { type: 7, ip: '127.0.0.1' },
    { type: 2, value: 'localhost' },
  ];
  const extensions = [{ name: 'subjectAltName', altNames }];
  const { cert, private: key } = await generate([{ name: 'commonName', value: 'localhost' }], {
    keyType: 'ec',
    extensions,
  });
  return { cert, key };
};

/** Starts a server on a free port. */
export const serve = async (handler) => {
  const server = createServer(handler).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
};

/** Checks that a page isn't wider than the window. */
export const expectToFit = async (page) =>
  assert.equal(
    await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth),
    0,
  );

/** Checks with axe, which the page has loaded, that the page is accessible. */
export const expectAccessible = async (page, options = {}) => {
  const { violations } = await page.evaluate((options) => window.axe.run(options), options);
  assert.deepEqual(
    violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' ')}`),
    [],
  );
};

/** Creates a folder that is removed when this process exits. */
export const temporaryFolder = (prefix) => {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

/** Returns the code blocks of a document: the language, the code, and the path in its first line, if there is one. */
export const fencesOf = (document) =>
  [...readFileSync(join(root, document), 'utf8').matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(
    ([, language, code]) => ({ language, code, path: /^\/\/ (\S+\.(?:ts|mjs))\n/.exec(code)?.[1] }),
  );

/** Returns the rows of the first table of a document, as cells without backticks. */
export const tableOf = (document) =>
  readFileSync(join(root, document), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) => line.slice(1, -1).split('|'))
    .map((cells) => cells.map((cell) => cell.trim().replaceAll(/^`|`$/g, '')));
