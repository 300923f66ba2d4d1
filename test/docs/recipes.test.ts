/**
 * @lane processes
 * @ci
 */
import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { text } from 'node:stream/consumers';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { lastValueFrom, take, toArray } from 'rxjs';
import { marketBatches$, pendingTransactions$, startTradeFeedService } from 'rx-trade-feed/testing';
import type { TradeFeedAccount, TradeFeedService } from 'rx-trade-feed/testing';
import { transformSync } from 'esbuild';
import { endPrograms, type Program, shellCommand } from '../cli/support/program.js';
import { tempFolder } from '../cli/support/temp-folder.js';
import { listen } from '../support/listen.js';
import { type Module, type ModuleOutput, runModules } from '../support/run-modules.js';
import { waitFor } from '../support/wait-for.js';
import { fencesOf, read, root } from './fences.js';

// The samples that a newcomer copies, and the recipes. test/apps/recipes.test.mjs has those with a database or a browser.

// Programs take long on a busy machine. Only a test that hangs reaches this.
jest.setTimeout(150_000);

const programIn = (file: string): string => fencesOf(file).find(({ language }) => language === 'ts')?.code ?? '';
const programOf = (recipe: string): string => programIn(`docs/recipes/${recipe}.md`);

const folder = tempFolder();

let service: TradeFeedService;
beforeAll(async () => {
  service = await startTradeFeedService({
    sources: { market: marketBatches$(), raw: pendingTransactions$({ rate: 200 }) },
  });
});
afterAll(() => service.shutdown());

/** Returns an account of the local service, and the environment variables of a reader who has it. */
const newAccount = () => {
  const account = service.createAccount({ plan: 'developer' });
  return { account, env: { TRADE_FEED_BASE_URL: service.baseUrl, TRADE_FEED_API_KEY: account.createApiKey() } };
};

/** Creates a project as a reader does: writes what npm 11 does, and installs the packages. */
const newProject = (): string => {
  const project = mkdtempSync(folder.path('new-project-'));
  writeFileSync(join(project, 'package.json'), '{ "name": "my-project", "version": "1.0.0", "type": "commonjs" }');
  mkdirSync(join(project, 'node_modules'));
  symlinkSync(root, join(project, 'node_modules/rx-trade-feed'));
  for (const name of ['rxjs', 'io-ts', 'fp-ts'])
    symlinkSync(join(root, 'node_modules', name), join(project, 'node_modules', name));
  return project;
};

/** Starts code as a program in a project, with a shell command in which `$NODE` is Node. */
const inProject = (name: string, code: string, command: string): Program => {
  const project = newProject();
  writeFileSync(join(project, name), code);
  return shellCommand(`cd ${project}; ${command}`, { ...newAccount().env, NODE: process.execPath });
};
afterEach(endPrograms);

/** Runs programs in one project and one process: loading the package takes most of the time of each. */
const together = (programs: readonly { readonly code: string; readonly env: Module['env'] }[]) => {
  const project = newProject();
  const modules = programs.map(({ code, env }, n) => {
    const file = join(project, `program-${n}.mjs`);
    writeFileSync(file, code);
    return { url: pathToFileURL(file).href, env };
  });
  return runModules(modules, project);
};

/** The samples that a newcomer copies, as JavaScript: all fences that subscribe to a feed. */
const samples = [
  'README.md',
  'docs/index.md',
  ...['first-frame', 'from-ws', 'rxjs'].map((name) => `docs/start/${name}.md`),
]
  .flatMap(fencesOf)
  .filter(({ language, code }) => language === 'ts' && /tradeFeed(Events)?\$\('market'/.test(code))
  .map(({ at, code }, n) => [at, code, n] as const);

/** A sample with an operator that throws its own error. */
const throwing = (at: string, code: string): string => `import { map as throwingMap } from 'rxjs';
const throwing = throwingMap(() => { throw new RangeError('my own mistake in ${at}'); });
${code.replace(/tradeFeed(Events)?\$\('market'[^)]*\)/, '$&.pipe(throwing)')}`;

/** The output of each of these samples, once nothing keeps their process running. */
let outputs: readonly Promise<ModuleOutput>[] = [];
let exitCode: Promise<number | null>;
beforeAll(() => {
  const running = together(samples.map(([at, code]) => ({ code: throwing(at, code), env: newAccount().env })));
  outputs = running.outputs.map((output$) => lastValueFrom(output$));
  exitCode = running.exit;
  return running.exit;
}, 150_000);

it.each(samples)(
  'the sample %s prints the exception of an operator that throws, and ends with code 1',
  async (at, _code, n) => {
    const { stderr, hasFailed } = await outputs[n]!;
    expect({ hasFailed, exitCode: await exitCode }).toEqual({ hasFailed: true, exitCode: 1 });
    const thrown = new RegExp(`RangeError: my own mistake in ${at}\\n +at `);
    expect(stderr).toMatch(thrown);
  },
);

interface Recipe {
  readonly code: string;
  readonly env?: Module['env'] | (() => Module['env'] | Promise<Module['env']>);
}

/** A recipe that runs, and prints. */
interface Running extends Pick<Program, 'stdout' | 'untilStdout'> {
  readonly account: TradeFeedAccount;
}

const recipes: Recipe[] = [];
let running: readonly Running[] = [];

/** Defines a test of a recipe that only prints. All of them run in one process, from the first of these tests to the last one. */
const itRuns = (title: string, recipe: Recipe, check: (running: Running) => Promise<void>): void => {
  const n = recipes.push(recipe) - 1;
  it(title, () => check(running[n]!));
};

const closing: (() => unknown)[] = [];
beforeAll(async () => {
  const accounts = recipes.map(newAccount);
  const programs = recipes.map(async ({ code, env }, n) => {
    const more = typeof env === 'function' ? await env() : env;
    return { code, env: { ...accounts[n]!.env, ...more } };
  });
  const { outputs, end } = together(await Promise.all(programs));
  closing.push(end);
  running = outputs.map((output$, n): Running => {
    let last: ModuleOutput | undefined;
    output$.subscribe((output) => (last = output));
    const stdout = () => last?.stdout ?? '';
    const what = (pattern: RegExp) => `${pattern} in: ${stdout()}${last?.stderr}`;
    return {
      account: accounts[n]!.account,
      stdout,
      untilStdout: (pattern) => waitFor(() => pattern.exec(stdout()), { limitMs: 90_000, what: () => what(pattern) }),
    };
  });
}, 150_000);
afterAll(async () => {
  for (const close of closing) await close();
});

/** Starts a server for a recipe. */
const serve = async (answer: RequestListener): Promise<string> => {
  const server = await listen(createServer(answer));
  closing.push(() => server[Symbol.asyncDispose]());
  return `http://127.0.0.1:${server.port}`;
};

const posted: unknown[] = [];
const webhook: RequestListener = (request, response) =>
  void text(request).then((body) => {
    posted.push(JSON.parse(body));
    response.writeHead(posted.length === 1 ? 500 : 204).end();
  });

itRuns(
  'the whale alert posts large transactions to the webhook, and a refusal does not end it',
  { code: programOf('whale-alert'), env: async () => ({ WEBHOOK_URL: await serve(webhook), MIN_ETH: '0.9' }) },
  async ({ untilStdout }) => {
    await untilStdout(/^refused with 500: (0\.9\d|1\.00) ETH in 0x[\da-f]{64}$/m);
    await untilStdout(/^sent: (0\.9\d|1\.00) ETH in 0x[\da-f]{64}$/m);
    expect(posted).toContainEqual({ text: expect.stringMatching(/^(0\.9\d|1\.00) ETH in 0x/) });
  },
);

const [first = '', second = ''] = (
  fencesOf('docs/recipes/wallets.md').find(({ language }) => language === 'text')?.code ?? ''
).split('\n');
const walletLine = (wallet: string, mark: string) =>
  new RegExp(`^\\d\\d:\\d\\d:\\d\\d ${wallet.toLowerCase()} \\d+ in, [\\d.]+ ETH${mark}$`, 'm');

itRuns(
  'the trades of my wallets have a line for each wallet, follow the list, and are incomplete in an outage',
  {
    code: programOf('wallets'),
    env: async () => ({ WALLETS: await folder.file('wallets.txt', `${first}\n`), MIN_ETH: '0.5' }),
  },
  async ({ account, stdout, untilStdout }) => {
    const list = folder.path('wallets.txt');
    await untilStdout(walletLine(first, ''));
    expect(stdout()).not.toContain(second.toLowerCase());
    writeFileSync(list, `${first}\n${second}\n`);
    await untilStdout(walletLine(second, ''));
    // Watches nearly all wallets, so that at least one receives something in the second of the outage.
    const many$ = pendingTransactions$({ rate: 10_000 }).pipe(take(400), toArray());
    const many = (await lastValueFrom(many$)).map((text) => (JSON.parse(text) as { readonly to: string }).to);
    writeFileSync(list, many.join('\n'));
    await untilStdout(new RegExp(`^\\S+ (?!${first}|${second})0x\\w+ \\d+ in, [\\d.]+ ETH$`, 'mi'));
    account.expireAccess();
    await untilStdout(walletLine('0x\\w+', ' {2}incomplete: gap'));
    const amounts = [...stdout().matchAll(/([\d.]+) ETH/g)].map(([, eth]) => Number(eth));
    expect(Math.min(...amounts)).toBeGreaterThanOrEqual(0.5);
  },
);

// A feed that opens just as a candle starts misses none of it. No candle starts at an odd ms. The other recipes don't mind.
const oddTimes = 'const { now } = Date; Date.now = () => 2 * Math.floor(now() / 2) + 1;\n';

itRuns(
  'the candles are marked as incomplete at the start and in an outage, and not otherwise',
  { code: oddTimes + programOf('candles') },
  async ({ account, untilStdout }) => {
    const candle = /\d\d:\d\d:\d\d ETH-USD( [\d.]+){4}/.source;
    // The rest of the first candle can be too short for a trade.
    await untilStdout(/^\d\d:\d\d:\d\d .+ {2}incomplete: begins or ends inside$/m);
    const [, prices = ''] = await untilStdout(
      new RegExp(`^${candle.replace('( ', '((?: ').replace(' [\\d.]+){4}', ' [\\d.]+){4})')}$`, 'm'),
    );
    const [open, high, low, close] = prices.trim().split(' ').map(Number) as [number, number, number, number];
    expect(high).toBeGreaterThanOrEqual(Math.max(open, close));
    expect(low).toBeLessThanOrEqual(Math.min(open, close));
    account.expireAccess();
    await untilStdout(/^\d\d:\d\d:\d\d .+ {2}incomplete: access-expired$/m);
  },
);

/** The JavaScript of a recipe with types, which Node 20 does not run. */
const withoutTypes = (recipe: string): string => transformSync(programOf(recipe), { loader: 'ts' }).code;

itRuns(
  'the race of two lines has the lead of Developer over Free',
  {
    code: withoutTypes('race'),
    env: () => ({ OTHER_API_KEY: service.createAccount({ plan: 'free' }).createApiKey(), EVERY_MS: '500' }),
  },
  async ({ untilStdout }) => {
    // 500 ms of the plan, to 19 %; a busy machine adds to it.
    await untilStdout(
      /^both [1-9]\d*, ahead by (4[1-9]\d|[5-9]\d\d|\d{4,}) ms, only here \d+, only there -?\d+, unknown -?\d+$/m,
    );
  },
);

/** Pushes a transaction of nothing every 50 ms, and returns a node whose blocks have those since the last request. */
const pushingNode = (): Promise<string> => {
  const hashes: string[] = [];
  let number = 0;
  const pushing = setInterval(() => {
    const hash = `0x${(number += 1)}`;
    hashes.push(hash);
    service.push('raw', JSON.stringify({ hash, from: '0x1', to: '0x2', nonce: hash, value: '0' }));
  }, 50);
  closing.push(() => {
    clearInterval(pushing);
  });
  let height = 0;
  let receipts: readonly object[] = [];
  return serve((request, response) => {
    void text(request).then((body) => {
      if (body.includes('eth_getBlockReceipts')) response.end(JSON.stringify({ result: receipts }));
      else response.end(JSON.stringify({ result: nextBlock() }));
    });
  });
  function nextBlock() {
    const transactions = hashes.splice(0).map((hash) => ({ hash, from: '0x1', nonce: hash }));
    receipts = transactions.map(({ hash, nonce }) => ({
      transactionHash: hash,
      status: Number(nonce) % 3 === 0 ? '0x0' : '0x1',
    }));
    height += 1;
    return { hash: `b${height}`, parentHash: `b${height - 1}`, number: String(height), transactions };
  }
};

itRuns(
  'the hit rate counts what the feed has shown of the blocks of a node',
  { code: withoutTypes('hit-rate'), env: async () => ({ NODE_URL: await pushingNode(), EVERY_MS: '500' }) },
  async ({ untilStdout }) => {
    await untilStdout(/^\d\d:\d\d:\d\d shown 100\.0 %, lead \d+ ms, failed [1-9]\d*, unknown -?\d+(, incomplete)?$/m);
  },
);

it("the README's ten lines run in a project of `npm init`, under the name in the README, and end quietly with their reader", async () => {
  const [, name = ''] = /Save this as `(\S+)`/.exec(read('README.md')) ?? [];
  const program = inProject(name, programIn('README.md'), `set -o pipefail; $NODE ${name} | head -n 3`);
  expect({ code: await program.exit, stdout: program.stdout(), stderr: program.stderr() }).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^(\{.+\}\n){3}$/),
    stderr: expect.stringMatching(/^Requesting a ticket for market\n.+\nConnected to market \(connection 1\)\n$/),
  });
});

/** The recipe, with a line on stderr for the third frame. */
const counting = programOf('graceful-end')
  // No window ends on its own.
  .replace('lengthMs: 60_000', 'lengthMs: 86_400_000')
  .replace(
    'add: (frames) => frames + 1',
    "add: (frames) => (frames === 2 && console.error('third frame'), frames + 1)",
  );

it('the graceful end emits the last window on SIGTERM, and finishes its work', async () => {
  const program = inProject('program.mjs', counting, 'exec $NODE program.mjs');
  await program.untilStderr(/third frame/);
  program.child.kill('SIGTERM');
  expect(await program.exit).toBe(0);
  expect(program.stdout()).toMatch(/^[1-9]\d* frames, incomplete\ndone$/m);
});
