import { afterEach, expect, it, jest } from '@jest/globals';
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { text } from 'node:stream/consumers';
import { join } from 'node:path';
import { lastValueFrom, take, toArray } from 'rxjs';
import { marketBatches$, pendingTransactions$, startTradeFeedService } from 'rx-trade-feed/testing';
import type { TradeFeedAccount, TradeFeedService } from 'rx-trade-feed/testing';
import { transformSync } from 'esbuild';
import { endPrograms, type Program, shellCommand } from '../cli/support/program.js';
import { tempFolder } from '../cli/support/temp-folder.js';
import { isAllCases } from '../support/cases.js';
import { listen } from '../support/listen.js';
import { fencesOf, read, root } from './fences.js';

// The samples that a newcomer copies, and the recipes. test/apps/recipes.test.mjs has those with a database or a browser.

// Programs take long on a busy machine. Only a test that hangs reaches this.
jest.setTimeout(150_000);

const programOf = (recipe: string): string =>
  fencesOf(`docs/recipes/${recipe}.md`).find(({ language }) => language === 'ts')?.code ?? '';

const folder = tempFolder();

interface Code {
  readonly code: string;
  readonly name?: string;
  readonly env?: Readonly<Record<string, string>> | ((service: TradeFeedService) => Readonly<Record<string, string>>);
  /** What reads stdout instead of the test. */
  readonly reader?: string;
}

/** Runs code like a reader: in a project with the package, and with the settings of a local service in the environment. */
const inProject = async (
  { code, name = 'program.mjs', env, reader }: Code,
  check: (running: Program, account: TradeFeedAccount) => Promise<void>,
): Promise<void> => {
  const project = mkdtempSync(folder.path('new-project-'));
  await using service = await startTradeFeedService({
    sources: { market: marketBatches$(), raw: pendingTransactions$({ rate: 200 }) },
  });
  // Writes what npm 11 does, and installs the packages.
  writeFileSync(join(project, 'package.json'), '{ "name": "my-project", "version": "1.0.0", "type": "commonjs" }');
  mkdirSync(join(project, 'node_modules'));
  symlinkSync(root, join(project, 'node_modules/rx-trade-feed'));
  for (const name of ['rxjs', 'io-ts', 'fp-ts'])
    symlinkSync(join(root, 'node_modules', name), join(project, 'node_modules', name));
  writeFileSync(join(project, name), code);
  const account = service.createAccount({ plan: 'developer' });
  const command = reader
    ? `set -o pipefail; ${process.execPath} ${name} | ${reader}`
    : `exec ${process.execPath} ${name}`;
  const running = shellCommand(`cd ${project} && ${command}`, {
    TRADE_FEED_BASE_URL: service.baseUrl,
    TRADE_FEED_API_KEY: account.createApiKey(),
    ...(typeof env === 'function' ? env(service) : env),
  });
  await check(running, account);
  await endPrograms();
};

afterEach(endPrograms);

/** The samples that a newcomer copies, as JavaScript: all fences that subscribe to a feed. */
const samples = [
  'README.md',
  ...['index', 'start/first-frame', 'start/from-ws', 'start/rxjs'].map((name) => `docs/${name}.md`),
]
  .flatMap(fencesOf)
  .filter(({ language, code }) => language === 'ts' && /tradeFeed(Events)?\$\('market'/.test(code))
  .map(({ at, code }) => [at, code] as const);

// Each starts a program, so only CI runs all of them.
it.each(samples.filter((_, n) => isAllCases || n % 3 === 0))(
  'the sample %s prints the exception of an operator that throws, and ends with code 1',
  async (_at, code) => {
    const throwing = code.replace(/tradeFeed(Events)?\$\('market'[^)]*\)/, '$&.pipe(throwing)');
    const header = `import { map as throwingMap } from 'rxjs';
const throwing = throwingMap(() => { throw new RangeError('my own mistake'); });\n`;
    await inProject({ code: header + throwing }, async (running) => {
      expect(await running.exit).toBe(1);
      expect(running.stderr()).toMatch(/RangeError: my own mistake\n +at /);
    });
  },
);

it("the README's ten lines run in a project of `npm init`, under the name in the README, and end quietly with their reader", async () => {
  const [, name = ''] = /Save this as `(\S+)`/.exec(read('README.md')) ?? [];
  const tenLines = fencesOf('README.md').find(({ language }) => language === 'ts')?.code ?? '';
  await inProject({ name, code: tenLines, reader: 'head -n 3' }, async (running) => {
    expect({ code: await running.exit, stdout: running.stdout(), stderr: running.stderr() }).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^(\{.+\}\n){3}$/),
      stderr: expect.stringMatching(/^Requesting a ticket for market\n.+\nConnected to market \(connection 1\)\n$/),
    });
  });
});

it('the whale alert posts large transactions to the webhook, and a refusal does not end it', async () => {
  const bodies: unknown[] = [];
  const answer: RequestListener = (request, response) =>
    void text(request).then((body) => {
      bodies.push(JSON.parse(body));
      response.writeHead(bodies.length === 1 ? 500 : 204).end();
    });
  await using webhook = await listen(createServer(answer));
  const env = { WEBHOOK_URL: `http://127.0.0.1:${webhook.port}`, MIN_ETH: '0.9' };
  await inProject({ code: programOf('whale-alert'), env }, async ({ untilStdout }) => {
    await untilStdout(/^refused with 500: (0\.9\d|1\.00) ETH in 0x[\da-f]{64}$/m);
    await untilStdout(/^sent: (0\.9\d|1\.00) ETH in 0x[\da-f]{64}$/m);
  });
  expect(bodies).toContainEqual({ text: expect.stringMatching(/^(0\.9\d|1\.00) ETH in 0x/) });
});

it('the whale alert goes on without its webhook, and prints what it could not send', () =>
  // Nothing is listening on port 1.
  inProject(
    { code: programOf('whale-alert'), env: { WEBHOOK_URL: 'http://127.0.0.1:1', MIN_ETH: '0.9' } },
    async (running) => {
      await running.untilStdout(/(^not sent \(TypeError: fetch failed\): (0\.9\d|1\.00) ETH in 0x\w+\n){2}/m);
    },
  ));

it('the trades of my wallets have a line for each wallet, follow the list, and are incomplete in an outage', async () => {
  const [first = '', second = ''] = (
    fencesOf('docs/recipes/wallets.md').find(({ language }) => language === 'text')?.code ?? ''
  ).split('\n');
  const list = await folder.file('wallets.txt', `${first}\n`);
  const line = (wallet: string, mark: string) =>
    new RegExp(`^\\d\\d:\\d\\d:\\d\\d ${wallet.toLowerCase()} \\d+ in, [\\d.]+ ETH${mark}$`, 'm');
  await inProject(
    { code: programOf('wallets'), env: { WALLETS: list, MIN_ETH: '0.5' } },
    async ({ stdout, untilStdout }, account) => {
      await untilStdout(line(first, ''));
      expect(stdout()).not.toContain(second.toLowerCase());
      writeFileSync(list, `${first}\n${second}\n`);
      await untilStdout(line(second, ''));
      // Watches nearly all wallets, so that at least one receives something in the second of the outage.
      const many$ = pendingTransactions$({ rate: 10_000 }).pipe(take(400), toArray());
      const many = (await lastValueFrom(many$)).map((text) => (JSON.parse(text) as { readonly to: string }).to);
      writeFileSync(list, many.join('\n'));
      await untilStdout(new RegExp(`^\\S+ (?!${first}|${second})0x\\w+ \\d+ in, [\\d.]+ ETH$`, 'mi'));
      account.expireAccess();
      await untilStdout(line('0x\\w+', ' {2}incomplete: gap'));
      const amounts = [...stdout().matchAll(/([\d.]+) ETH/g)].map(([, eth]) => Number(eth));
      expect(Math.min(...amounts)).toBeGreaterThanOrEqual(0.5);
    },
  );
});

// A feed that opens just as a candle starts misses none of it. No candle starts at an odd ms.
const oddTimes = 'const { now } = Date; Date.now = () => 2 * Math.floor(now() / 2) + 1;\n';

it('the candles are marked as incomplete at the start and in an outage, and not otherwise', () =>
  inProject({ code: oddTimes + programOf('candles') }, async ({ untilStdout }, account) => {
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
  }));

const lastWindow = /^[1-9]\d* frames, incomplete\ndone$/m;

/** Waits until frames flow, stops the program with SIGTERM, and returns what it printed. */
const terminated = async ({ child, exit, stdout, untilStderr }: Program): Promise<string> => {
  await untilStderr(/third frame/);
  child.kill('SIGTERM');
  expect(await exit).toBe(0);
  return stdout();
};

/** The recipe, with a line on stderr for the third frame. */
const counting = programOf('graceful-end')
  // No window ends on its own.
  .replace('lengthMs: 60_000', 'lengthMs: 86_400_000')
  .replace(
    'add: (frames) => frames + 1',
    "add: (frames) => (frames === 2 && console.error('third frame'), frames + 1)",
  );

it('the graceful end emits the last window on SIGTERM, and finishes its work', () =>
  inProject({ code: counting }, async (running) => {
    expect(await terminated(running)).toMatch(lastWindow);
  }));

it('the graceful end loses the last window with `takeUntil` behind the window, as the recipe says', () => {
  const [, takeUntilLine = ''] = /^( *takeUntil\(.+\),\n)/m.exec(counting) ?? [];
  const trap = counting.replace(takeUntilLine, '').replace(/(?=^ *\/\/ 3\.)/m, takeUntilLine);
  expect(trap).not.toBe(counting);
  return inProject({ code: trap }, async (running) => {
    expect(await terminated(running)).toBe('done\n');
  });
});

/** The JavaScript of a recipe with types, which Node 20 does not run. */
const withoutTypes = (recipe: string): string => transformSync(programOf(recipe), { loader: 'ts' }).code;

it('the race of two lines has the lead of Developer over Free', () =>
  inProject(
    {
      code: withoutTypes('race'),
      env: (service) => ({ OTHER_API_KEY: service.createAccount({ plan: 'free' }).createApiKey(), EVERY_MS: '500' }),
    },
    async ({ untilStdout }) => {
      // 500 ms of the plan, to 19 %; a busy machine adds to it.
      await untilStdout(
        /^both [1-9]\d*, ahead by (4[1-9]\d|[5-9]\d\d|\d{4,}) ms, only here \d+, only there -?\d+, unknown -?\d+$/m,
      );
    },
  ));

it('the hit rate counts what the feed has shown of the blocks of a node', async () => {
  const hashes: string[] = [];
  let height = 0;
  let pushing: ReturnType<typeof setInterval> | undefined;
  const answer: RequestListener = (_request, response) => {
    const transactions = hashes.splice(0).map((hash) => ({ hash, from: '0x1', nonce: hash }));
    height += 1;
    const result = { hash: `b${height}`, parentHash: `b${height - 1}`, number: String(height), transactions };
    response.end(JSON.stringify({ result }));
  };
  await using node = await listen(createServer(answer));
  const env = (service: TradeFeedService) => {
    let number = 0;
    pushing = setInterval(() => {
      const hash = `0x${(number += 1)}`;
      hashes.push(hash);
      service.push('raw', JSON.stringify({ hash, from: '0x1', nonce: hash }));
    }, 50);
    return { NODE_URL: `http://127.0.0.1:${node.port}`, EVERY_MS: '500' };
  };
  try {
    await inProject({ code: withoutTypes('hit-rate'), env }, async ({ untilStdout }) => {
      await untilStdout(/^\d\d:\d\d:\d\d shown 100\.0 %, lead \d+ ms, unknown -?\d+(, incomplete)?$/m);
    });
  } finally {
    clearInterval(pushing);
  }
});
