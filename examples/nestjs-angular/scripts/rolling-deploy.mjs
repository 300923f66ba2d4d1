// Runs a rolling deploy with nginx, two servers, pages in Chromium and clients without a page. Each deploy starts a new server next to the old
// one. The new server takes over the connection of the account (4001). Then the old server is stopped (SIGTERM).
//
//   npm run rolling-deploy
//   npm run rolling-deploy -- --deploys 3 --pages 4 --clients 20 --rate 200
//
// Prints the steps, and what each page received. The exit code is 1 if a page stopped, didn't reconnect, received a frame twice or in the
// wrong order, or missed a frame without a gap.
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { marketBatches$, startTradeFeedService } from 'rx-trade-feed/testing';
import { build, isPageBuildable, staleParts } from './build.mjs';
import { openClient } from './deploy/clients.mjs';
import { startNginx } from './deploy/nginx.mjs';
import { openPage, startBrowser } from './deploy/pages.mjs';
import { freePorts } from './deploy/ports.mjs';
import { startServer } from './deploy/server.mjs';

/** How long the old and the new server run together, in ms: the time to check that the new one is ready. */
const overlapMs = 3_000;
/** How long a page may take to be live again, in ms. */
const maxWaitMs = 60_000;

const { values } = parseArgs({
  options: {
    deploys: { type: 'string', default: '2' },
    pages: { type: 'string', default: '4' },
    clients: { type: 'string', default: '20' },
    rate: { type: 'string', default: '200' },
  },
});
const [deploys, pageCount, clientCount, rate] = [values.deploys, values.pages, values.clients, values.rate].map(Number);

const startedAt = performance.now();
const print = (text) => console.log(`${((performance.now() - startedAt) / 1_000).toFixed(1).padStart(6)} s  ${text}`);

/** The cleanup steps, newest first. */
const cleanups = [];
const withCleanup = (resource, cleanup) => {
  cleanups.unshift(() => cleanup(resource));
  return resource;
};

const runDeploys = async () => {
  const stale = staleParts();
  if (stale.page && isPageBuildable()) build('page');
  if (stale.server) build('server');

  const service = withCleanup(
    await startTradeFeedService({ sources: { market: marketBatches$({ rate }) }, limits: { ticketsPerWindow: 1_000 } }),
    (local) => local.shutdown(),
  );
  const account = service.createAccount({ plan: 'developer' });
  service.events$.subscribe((event) => {
    if (event.type === 'connection-closed') print(`        service: a connection ended with ${event.code}`);
  });
  const env = { TRADE_FEED_BASE_URL: service.baseUrl, TRADE_FEED_API_KEY: account.createApiKey() };
  const [port, ...serverPorts] = await freePorts(3);
  const url = `http://127.0.0.1:${port}/`;

  let server = await startServer(serverPorts[0], env);
  cleanups.unshift(() => server.end());
  withCleanup(await startNginx(port, serverPorts), (nginx) => nginx.end());
  print(`server 1 runs, nginx listens at ${url}`);

  const browser = withCleanup(await startBrowser(), (chromium) => chromium.close());
  const pages = await Promise.all(Array.from({ length: pageCount }, (_, n) => openPage(browser, url, `page ${n + 1}`)));
  const clients = Array.from({ length: clientCount }, (_, n) =>
    withCleanup(openClient(url, `client ${n + 1}`), (client) => client.stop()),
  );
  const all = [...pages, ...clients];

  /** Waits until all pages and clients have received a new frame. Returns those that haven't. */
  const withoutFrames = async () => {
    const before = Math.max(...all.map(({ log }) => log.last));
    const deadline = performance.now() + maxWaitMs;
    const waiting = () => all.filter(({ log }) => log.last <= before);
    while (waiting().length > 0 && performance.now() < deadline) await delay(50);
    return waiting();
  };
  const check = async (when) => {
    const away = await withoutFrames();
    const states = await Promise.all(away.map(({ state }) => state()));
    for (const state of new Set(states)) {
      const names = away.filter((_, n) => states[n] === state).map(({ name }) => name);
      print(`no frames ${when}: ${names.join(', ')} (${state})`);
    }
    if (away.length === 0) print(`all ${pageCount} pages and ${clientCount} clients receive frames ${when}`);
    return away.length;
  };

  let failures = await check('from server 1');
  for (let deploy = 1; deploy <= deploys; deploy += 1) {
    const old = server;
    const nextPort = serverPorts.find((each) => each !== old.port);
    print(`deploy ${deploy}: server ${deploy + 1} starts next to server ${deploy}`);
    server = await startServer(nextPort, env);
    await delay(overlapMs);
    failures += await check('while both run');
    print(`deploy ${deploy}: server ${deploy} is stopped (SIGTERM)`);
    print(`deploy ${deploy}: this took ${Math.round(await old.end())} ms`);
    failures += await check(`from server ${deploy + 1}`);
  }
  return { all, failures };
};

/** Prints a line for each page, and one for all clients. */
const report = async ({ all, failures }) => {
  const rows = await Promise.all(
    all.map(async ({ name, kind, log, state }) => ({ name, kind, state: await state(), ...log.summary() })),
  );
  const sum = (key, of = rows) => of.reduce((total, row) => total + row[key], 0);
  const clients = rows.filter(({ kind }) => kind === 'client');
  const allClients = {
    name: `${clients.length} clients`,
    state: [...new Set(clients.map(({ state }) => state))].join(', '),
    ...Object.fromEntries(
      ['frames', 'twice', 'backwards', 'missing', 'unreported', 'gaps'].map((key) => [key, sum(key, clients)]),
    ),
    longestMs: Math.max(0, ...clients.map(({ longestMs }) => longestMs)),
  };
  const shown = [...rows.filter(({ kind }) => kind === 'page'), ...(clients.length > 0 ? [allClients] : [])];
  console.log();
  console.table(
    Object.fromEntries(
      shown.map(({ name, state, frames, twice, backwards, missing, unreported, gaps, longestMs }) => [
        name,
        {
          state,
          frames,
          twice,
          backwards,
          'missing, in a gap': missing - unreported,
          'missing, without a gap': unreported,
          gaps,
          'longest wait, ms': longestMs,
        },
      ]),
    ),
  );
  const stopped = rows.filter(({ state }) => /^stop/i.test(state)).length;
  const [twice, backwards, unreported] = ['twice', 'backwards', 'unreported'].map((key) => sum(key));
  console.log(`pages and clients that stopped: ${stopped}`);
  console.log(`pages and clients that did not reconnect: ${failures}`);
  console.log(`frames received twice: ${twice}`);
  console.log(`frames in the wrong order: ${backwards}`);
  console.log(`frames missing without a gap: ${unreported}`);
  return stopped + failures + twice + backwards + unreported === 0;
};

try {
  const isGood = await report(await runDeploys());
  console.log(isGood ? '\nNo page was affected, except for gaps.' : '\nA deploy affected pages: see above.');
  process.exitCode = isGood ? 0 : 1;
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  for (const cleanup of cleanups) await cleanup();
}
