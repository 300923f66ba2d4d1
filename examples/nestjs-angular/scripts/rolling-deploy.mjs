// Plays a rolling deploy: nginx, two places for servers behind it, pages open in Chromium and clients without a page. Each deploy starts a
// new server beside the old one, which takes the one connection of the account over (4001), and then ends the old one (SIGTERM).
//
//   npm run rolling-deploy
//   npm run rolling-deploy -- --deploys 3 --pages 4 --clients 20 --rate 200
//
// Prints what happens, and what each page received. Ends with 1 if a page stopped, did not come back, received a frame twice or in
// the wrong order, or missed one that no gap told of.
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { marketBatches$, startTradeFeedService } from 'rx-trade-feed/testing';
import { build, isPageBuildable, whatIsStale } from './build.mjs';
import { openClient } from './deploy/clients.mjs';
import { startNginx } from './deploy/nginx.mjs';
import { openPage, startBrowser } from './deploy/pages.mjs';
import { freePorts } from './deploy/ports.mjs';
import { startServer } from './deploy/server.mjs';

/** How long old and new server run side by side, in ms: until whoever deploys has seen that the new one is ready. */
const overlapMs = 3_000;
/** How long a page may take to be live again, in ms. */
const patienceMs = 20_000;

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
const say = (text) => console.log(`${((performance.now() - startedAt) / 1_000).toFixed(1).padStart(6)} s  ${text}`);

/** What is ended at the end, the newest first. */
const ends = [];
const started = (thing, end) => {
  ends.unshift(() => end(thing));
  return thing;
};

const play = async () => {
  const stale = whatIsStale();
  if (stale.page && isPageBuildable()) build('page');
  if (stale.server) build('server');

  const service = started(
    await startTradeFeedService({ sources: { market: marketBatches$({ rate }) }, limits: { ticketsPerWindow: 1_000 } }),
    (it) => it.shutdown(),
  );
  const account = service.createAccount({ plan: 'developer' });
  service.events$.subscribe((event) => {
    if (event.type === 'connection-closed') say(`        service: a connection ended with ${event.code}`);
  });
  const env = { TRADE_FEED_BASE_URL: service.baseUrl, TRADE_FEED_API_KEY: account.createApiKey() };
  const [port, ...places] = await freePorts(3);
  const url = `http://127.0.0.1:${port}/`;

  let server = await startServer(places[0], env);
  ends.unshift(() => server.end());
  started(await startNginx(port, places), (it) => it.end());
  say(`server 1 runs behind nginx at ${url}`);

  const browser = started(await startBrowser(), (it) => it.close());
  const pages = await Promise.all(Array.from({ length: pageCount }, (_, n) => openPage(browser, url, `page ${n + 1}`)));
  const clients = Array.from({ length: clientCount }, (_, n) =>
    started(openClient(url, `client ${n + 1}`), (it) => it.stop()),
  );
  const all = [...pages, ...clients];

  /** Waits until everybody has a frame that is newer than those of now; says who has not. */
  const comesBack = async () => {
    const before = Math.max(...all.map(({ log }) => log.last));
    const deadline = performance.now() + patienceMs;
    const waiting = () => all.filter(({ log }) => log.last <= before);
    while (waiting().length > 0 && performance.now() < deadline) await delay(50);
    return waiting();
  };
  const check = async (when) => {
    const away = await comesBack();
    const states = await Promise.all(away.map(({ state }) => state()));
    for (const state of new Set(states)) {
      const names = away.filter((_, n) => states[n] === state).map(({ name }) => name);
      say(`no frames ${when}: ${names.join(', ')} (${state})`);
    }
    if (away.length === 0) say(`all ${pageCount} pages and ${clientCount} clients receive frames ${when}`);
    return away.length;
  };

  let failures = await check('from server 1');
  for (let deploy = 1; deploy <= deploys; deploy += 1) {
    const old = server;
    const place = places.find((each) => each !== old.port);
    say(`deploy ${deploy}: server ${deploy + 1} starts beside server ${deploy}`);
    server = await startServer(place, env);
    await delay(overlapMs);
    failures += await check('while both run');
    say(`deploy ${deploy}: server ${deploy} ends (SIGTERM)`);
    say(`deploy ${deploy}: it took ${Math.round(await old.end())} ms`);
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
  const together = {
    name: `${clients.length} clients`,
    state: [...new Set(clients.map(({ state }) => state))].join(', '),
    ...Object.fromEntries(
      ['frames', 'twice', 'backwards', 'missing', 'untold', 'gaps'].map((key) => [key, sum(key, clients)]),
    ),
    longestMs: Math.max(0, ...clients.map(({ longestMs }) => longestMs)),
  };
  const shown = [...rows.filter(({ kind }) => kind === 'page'), ...(clients.length > 0 ? [together] : [])];
  console.log();
  console.table(
    Object.fromEntries(
      shown.map(({ name, state, frames, twice, backwards, missing, untold, gaps, longestMs }) => [
        name,
        {
          state,
          frames,
          twice,
          backwards,
          'missing, in a gap': missing - untold,
          'missing, untold': untold,
          gaps,
          'longest wait, ms': longestMs,
        },
      ]),
    ),
  );
  const stopped = rows.filter(({ state }) => /^stop/i.test(state)).length;
  const [twice, backwards, untold] = ['twice', 'backwards', 'untold'].map((key) => sum(key));
  console.log(`pages and clients that stopped: ${stopped}`);
  console.log(`pages and clients that did not come back: ${failures}`);
  console.log(`frames received twice: ${twice}`);
  console.log(`frames in the wrong order: ${backwards}`);
  console.log(`frames missing that no gap told of: ${untold}`);
  return stopped + failures + twice + backwards + untold === 0;
};

try {
  const isGood = await report(await play());
  console.log(isGood ? '\nThe deploys went unnoticed but for gaps.' : '\nA deploy did harm: see above.');
  process.exitCode = isGood ? 0 : 1;
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  for (const end of ends) await end();
}
