// Follows docs/browsers.md and docs/recipes as a newcomer: installs the packed package in an empty project, saves the programs under the names
// of the guide, runs them, and opens the printed addresses in Chromium. test/docs/recipes.test.ts runs the recipes that need no database and no page.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { marketBatches$, startTradeFeedService } from 'rx-trade-feed/testing';
import { fencesOf, launchChromium, newPage, installPackages, start, tarball, temporaryFolder } from './support.mjs';

const guides = ['docs/browsers.md', 'docs/recipes/postgres.md'];
const [browsers, postgres] = guides;
/** Returns the code blocks of a guide in a language. */
const codeOf = (guide, lang) => fencesOf(guide).flatMap(({ language, code }) => (language === lang ? [code] : []));

/** Postgres as WebAssembly, with its wire protocol. */
const database = ['@electric-sql/pglite@0.5.14', '@electric-sql/pglite-socket@0.2.17'];
const [server, ...scripts] = codeOf(browsers, 'ts');
const pages = codeOf(browsers, 'html');
const project = temporaryFolder('rx-trade-feed-recipes-');
const packages = new Set(
  guides.flatMap((file) => /^npm install rx-trade-feed (.+)$/m.exec(readFileSync(file, 'utf8'))[1].split(' ')),
);
writeFileSync(join(project, 'package.json'), '{}');
await installPackages(project, [await tarball(), ...packages, ...database]);
const browser = await launchChromium();
const service = await startTradeFeedService({ sources: { market: marketBatches$() } });
after(async () => {
  await browser.close();
  await service.shutdown();
});

/** Runs a program of the project with a separate account. */
const run = (t, name, { account = service.createAccount({ plan: 'developer' }), env = {} } = {}) => {
  const feed = { TRADE_FEED_BASE_URL: service.baseUrl, TRADE_FEED_API_KEY: account.createApiKey() };
  const options = { cwd: project, env: { PATH: process.env.PATH, ...feed, ...env } };
  return { account, ...start(t, process.execPath, [name], options) };
};

/** Opens the address that the server of the guide prints, with the first page of the guide or the second. */
const openPage = async (t, n) => {
  writeFileSync(join(project, 'server.mjs'), server);
  writeFileSync(join(project, 'index.html'), pages[n]);
  writeFileSync(join(project, 'page.mjs'), scripts[n]);
  const { account, printed } = run(t, 'server.mjs', { env: { PORT: '0' } });
  const [, address] = await printed(/^open (http\S+)$/m);
  const { page, errors, close } = await newPage(browser);
  t.after(close);
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
  const response = await page.goto(address);
  assert.equal(response.status(), 200);
  // The browser requests an icon, which the page doesn't have.
  const realErrors = () => errors.filter((text) => !text.includes('404'));
  return { account, address, page, errors: realErrors };
};

test('the address that the guide for browsers prints opens a page with live frames, and nobody else receives the feed', async (t) => {
  const { address, page, errors } = await openPage(t, 0);
  await page.getByText('The feed is live.').waitFor();
  await page.getByText(/^\{"batch":\d+,.+\}$/).waitFor();
  await page.reload();
  await page.getByText(/^\{"batch":\d+,.+\}$/).waitFor();
  assert.deepEqual(errors(), []);
  assert.equal((await fetch(`${address}/feed`)).status, 403);
});

test('the live table of the guide for browsers shows prices, survives a reload, and says when frames may be missing', async (t) => {
  const { account, page, errors } = await openPage(t, 1);
  for (const again of [false, true]) {
    if (again) await page.reload();
    await page.getByText(/The feed is live, [1-9]\d* frames a second\.\s*$/).waitFor();
    await page.getByRole('row', { name: /^ETH-USD \d{4}\.\d\d$/ }).waitFor();
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 4);
  }
  account.expireAccess();
  await page.getByText(/Frames may be missing: access-expired\./).waitFor();
  assert.deepEqual(errors(), []);
});

/** Starts a database. Returns its address and a function that queries it. */
const startDatabase = async (t) => {
  const require = createRequire(join(project, 'index.js'));
  const { PGlite } = require('@electric-sql/pglite');
  const { PGLiteSocketServer } = require('@electric-sql/pglite-socket');
  const db = await PGlite.create();
  const socket = new PGLiteSocketServer({ db, port: 0, host: '127.0.0.1', maxConnections: 10 });
  await socket.start();
  t.after(async () => {
    await socket.stop();
    await db.close();
  });
  return {
    env: { DATABASE_URL: `postgres://postgres@${socket.getServerConn()}/postgres?sslmode=disable` },
    query: async (sql) => (await db.query(sql)).rows,
  };
};

const storedFrames = `
  select s.start, s.run, complete, n, (payload::json ->> 'batch')::int as batch
  from seconds s left join frames f on f.start = s.start and f.run = s.run order by s.start, n`;

test('the frames in Postgres have no duplicate and no hidden hole, after an outage, a lost reply, a crash and SIGTERM', async (t) => {
  const { env, query } = await startDatabase(t);
  writeFileSync(join(project, 'store.mjs'), codeOf(postgres, 'ts')[0]);
  // The second commit arrives, but its reply gets lost.
  writeFileSync(
    join(project, 'lost-reply.mjs'),
    `import pg from 'pg';
    const { query } = pg.Client.prototype;
    let commits = 0;
    pg.Client.prototype.query = function (...args) {
      const result = query.apply(this, args);
      if (args[0] !== 'commit' || ++commits !== 2) return result;
      return result.then(() => { console.log('the reply is lost'); throw new Error('reply lost'); });
    };`,
  );
  const first = run(t, 'store.mjs', { env: { ...env, NODE_OPTIONS: '--import ./lost-reply.mjs' } });
  await first.printed(/the reply is lost\n(committed \d+ frames\n){3}/);
  first.account.expireAccess();
  const outage = first.output.stdout.length;
  await first.printed(/(committed [1-9]\d* frames\n){3}/, outage);
  await first.stop('SIGKILL');

  const complete = async () => new Set((await query(codeOf(postgres, 'sql')[0])).map(({ start }) => start.getTime()));
  const second = run(t, 'store.mjs', { env });
  await second.printed(/(committed [1-9]\d* frames\n){2}/);
  // On a busy machine, seconds of the first run can be incomplete.
  while ((await complete()).size < 5) await once(second.child, 'printed');
  assert.equal(await second.stop(), 0, second.output.stderr);

  const rows = await query(storedFrames);
  const batches = rows.flatMap(({ batch }) => batch ?? []);
  assert.deepEqual(
    batches,
    [...new Set(batches)].toSorted((a, b) => a - b),
  );
  const trusted = await complete();
  // Between two neighboring frames, either no frame is missing, or one of their seconds is absent or marked as incomplete.
  rows.slice(1).forEach(({ start, batch }, index) => {
    const before = rows[index];
    if (batch === null || before.batch === null || batch === before.batch + 1) return;
    const seconds = Array.from(
      { length: (start - before.start) / 1_000 + 1 },
      (_, n) => before.start.getTime() + n * 1_000,
    );
    assert.ok(!seconds.every((second) => trusted.has(second)), `${before.batch} and then ${batch}`);
  });
  const { start } = rows.at(-1);
  assert.ok(!trusted.has(start.getTime()), 'the second of SIGTERM is incomplete');
  assert.match(second.output.stdout, /committed \d+ frames\n$/);
});
