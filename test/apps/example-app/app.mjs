// Builds and starts the example app, and a service that the test controls.
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { newerNode, root, run, serve, start, tarball, temporaryFolder } from '../support.mjs';

const source = join(root, 'examples/nestjs-angular');
const skipped = new Set(['node_modules', 'dist'].map((name) => join(source, name)));

/**
 * Copies the app, installs it with the packed library instead of the checkout, and builds it. `npm run test:apps` does
 * this once for all tests and passes the folder in the environment.
 */
export const buildApp = async () => {
  const node = newerNode();
  const env = { ...process.env, PATH: `${node}${delimiter}${process.env.PATH}`, NO_COLOR: '1' };
  const built = (folder) => ({ folder, node: join(node, 'node'), env });
  const existing = process.env.RX_TRADE_FEED_EXAMPLE;
  if (existing) return built(existing);
  // CI runs several commands on the same app.
  const folder = process.env.RX_TRADE_FEED_EXAMPLE_IN ?? temporaryFolder('rx-trade-feed-example-');
  cpSync(source, folder, { recursive: true, filter: (path) => !skipped.has(path) });
  const packageFile = join(folder, 'package.json');
  const manifest = JSON.parse(readFileSync(packageFile, 'utf8'));
  manifest.dependencies['rx-trade-feed'] = `file:${await tarball()}`;
  writeFileSync(packageFile, JSON.stringify(manifest));
  await run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline'], { cwd: folder, env });
  await run('npm', ['run', 'build'], { cwd: folder, env });
  return built(folder);
};

/** Starts the app like `npm start`, on a free port. Resolves once the app has printed its address. */
export const startApp = async ({ folder, node, env }, { args = [], variables = {} } = {}) => {
  const options = { cwd: folder, env: { ...env, ...variables } };
  const { output, printed, stop } = start(undefined, node, ['scripts/start.mjs', '--port', '0', ...args], options);
  const [, url] = await printed(/The page is at (http:\S+)\n/);
  return {
    url,
    /** Returns the whole output. */
    output: () => output.stdout + output.stderr,
    /** Stops the app like Ctrl-C. Returns the exit code. */
    stop: () => stop('SIGINT'),
  };
};

/** Starts a service and a proxy that stores the tickets, so that the test knows every secret. `source` emits the payloads. */
export const startTestService = async ({ folder }, { source } = {}) => {
  const testing = join(folder, 'node_modules/rx-trade-feed/dist/testing/index.js');
  const { startTradeFeedService, marketBatches$ } = await import(pathToFileURL(testing).href);
  const market = source ?? marketBatches$({ rate: 200 });
  const service = await startTradeFeedService({ sources: { market }, limits: { ticketsPerWindow: 1_000 } });
  const account = service.createAccount({ plan: 'developer' });
  const apiKey = account.createApiKey();
  const tickets = [];

  const forward = async (request, response) => {
    const headers = { 'X-API-Key': request.headers['x-api-key'], 'Content-Type': 'application/json' };
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const answer = await fetch(`${service.baseUrl}${request.url}`, { method: 'POST', headers, body });
    const text = await answer.text();
    if (answer.ok) tickets.push(JSON.parse(text).ticket);
    response.writeHead(answer.status, { 'Content-Type': 'application/json' }).end(text);
  };
  // Fails while the service is stopping.
  const proxy = await serve((...args) => void forward(...args).catch(() => args[1].destroy()));
  return {
    service,
    account,
    /** The environment of the app. */
    variables: { TRADE_FEED_BASE_URL: proxy.url, TRADE_FEED_API_KEY: apiKey },
    secrets: () => [apiKey, ...tickets],
    async stop() {
      proxy.close();
      await service.shutdown();
    },
  };
};

/** Undoes what a test did to the service and the feed, so that a failed test doesn't affect the next one. */
export const restore = async ({ service, account }, { url }) => {
  service.failCredentials(false);
  account.restoreAccess();
  await fetch(`${url}/feed/restart`, { method: 'POST' });
};
