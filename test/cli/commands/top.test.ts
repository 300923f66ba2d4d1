import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { run } from '../../../src/cli/run.js';
import { marketBatches$, startTradeFeedService } from '../../../src/testing/index.js';
import { type Certificate, certificateFor } from '../../support/certificate.js';
import { startConnectProxy } from '../../support/connect-proxy.js';
import { type FakeContext, fakeContext } from '../support/fake-context.js';
import { FakeOutput } from '../support/fake-output.js';
import { tempFolder } from '../support/temp-folder.js';

const folder = tempFolder();
const contexts: FakeContext[] = [];
afterEach(() => {
  for (const { interrupt$ } of contexts.splice(0)) interrupt$.next('SIGTERM');
});

let certificate: Certificate;
beforeAll(async () => {
  certificate = await certificateFor('app.example');
});

const top = (
  args: string,
  given: Parameters<typeof fakeContext>[0] = {},
): { context: FakeContext; exit: Promise<number> } => {
  const context = fakeContext(given);
  contexts.push(context);
  return { context, exit: run(['top', ...args.split(' ')], context) };
};

interface App extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
}

/** Starts an app that shows a status. */
const startApp = async (listener: RequestListener, tls?: Certificate): Promise<App> => {
  const server = tls ? createSecureServer(tls, listener) : createServer(listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
};

const json =
  (body: unknown): RequestListener =>
  (_, response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));

describe('top', () => {
  it('draws a feed and the status of an app, follows the size of the terminal, and leaves the last table', async () => {
    await using service = await startTradeFeedService({ sources: { market: marketBatches$({ rate: 50 }) } });
    const key = service.createAccount({ plan: 'developer' }).createApiKey();
    const keyFile = await folder.file('one.key', `${key}\n`);
    let requests = 0;
    await using app = await startApp((request, response) => {
      requests += 1;
      json({ clients: [{ client: 1, sent: requests, missed: 0 }] })(request, response);
    });
    const stdout = new FakeOutput({ columns: 100, rows: 24 });
    const sources = `market:${keyFile} ${app.url}/status`;
    const { context, exit } = top(sources, { stdout, env: { TRADE_FEED_BASE_URL: service.baseUrl } });
    await stdout.until(/●\S* live .*[1-9]\d*\.\d .* ms/);
    await stdout.until(/1 client, 2 frames sent, 0 missed/);
    stdout.columns = 60;
    const before = stdout.text.length;
    stdout.emit('resize');
    expect(stdout.text.slice(before)).not.toContain('bytes/s');
    context.interrupt$.next('SIGINT');
    expect(await exit).toBe(0);
    expect(stdout.text).toMatch(
      /^\x1b\[\?1049h[^]*\x1b\[\?1049l[^]* source[^]*●\S* live[^]*1 client, [^]*missed[^\n]*\n$/,
    );
    expect(stdout.text).not.toContain(key);
    expect(context.stderr.text).toBe('');
  });

  it('shows why there is no status, and sends the headers of --header-file', async () => {
    const headers = await folder.file('headers', 'Authorization: Bearer planted\n\n');
    await using app = await startApp((request, response) => {
      const { url, headers } = request;
      if (headers.authorization !== 'Bearer planted') response.writeHead(403).end();
      else if (url === '/stream') response.writeHead(200, { 'content-type': 'text/event-stream' }).write('\n');
      else if (url === '/text') response.writeHead(200, { 'content-type': '' }).end('ok');
      else if (url === '/bad') response.writeHead(200, { 'content-type': 'application/json' }).end('{');
      else json(url === '/other' ? { ok: true } : { connection: { state: 'live' } })(request, response);
    });
    const paths = ['/status', '/stream', '/other', '/bad'].map((path) => app.url + path);
    const { context, exit } = top(`${paths.join(' ')} http://127.0.0.1:1/ --header-file ${headers}`);
    await context.stdout.until(/\/status live\n/);
    await context.stdout.until(
      /\/stream unknown · The address answers with text\/event-stream instead of a status as JSON\.\n/,
    );
    await context.stdout.until(/\/other unknown · The JSON at this address is not a status\.\n/);
    await context.stdout.until(/\/bad unknown · No status: .*JSON/);
    await context.stdout.until(/127\.0\.0\.1:1\/ unknown · No status: connect ECONNREFUSED/);
    context.interrupt$.next('SIGHUP');
    expect(await exit).toBe(0);
    const refused = top(paths[0] ?? '');
    await refused.context.stdout.until(/unknown · The address answers with HTTP 403 instead of a status as JSON\./);
    refused.context.interrupt$.next('SIGINT');
    expect(await refused.exit).toBe(0);
    expect(context.stdout.text).not.toMatch(/planted|\x1b/);
  });

  it('shows a feed that has stopped, and one that reconnects, and continues', async () => {
    const service = await startTradeFeedService();
    const { baseUrl } = service;
    const keyFile = await folder.file('good.key', service.createAccount().createApiKey());
    const env = { TRADE_FEED_BASE_URL: baseUrl, TRADE_FEED_API_KEY: 'planted-wrong-key' };
    const { context, exit } = top(`market raw:${keyFile}`, { env });
    await context.stdout.until(/market stopped .*The service does not accept the API key \(HTTP 401\)\./);
    await context.stdout.until(/raw:.* live/);
    await service.shutdown();
    await context.stdout.until(
      /raw:.* reconnecting .* Reconnecting (now|in .*)\. · reconnects after .*server-shutdown \(1\)/,
    );
    context.interrupt$.next('SIGTERM');
    expect(await exit).toBe(0);
    expect(context.stdout.text).not.toContain('planted');
  });

  it('ends after its duration, and when the output cannot be written', async () => {
    const env = { TRADE_FEED_BASE_URL: 'http://127.0.0.1:1', TRADE_FEED_API_KEY: 'planted-key' };
    expect(await top('market --duration 10ms', { env }).exit).toBe(0);
    const { context, exit } = top('market', { env });
    context.stdout.destroy(Object.assign(new Error(), { code: 'ENOSPC' }));
    expect(await exit).toBe(8);
  });

  it('requests the status of an https: address through the proxy of the environment, with --ca', async () => {
    await using app = await startApp(json({ connection: { state: 'live' } }), certificate);
    await using proxy = await startConnectProxy({ targets: { 'app.example:443': app.port } });
    const ca = await folder.file('app-ca.pem', certificate.cert);
    const env = { HTTPS_PROXY: proxy.url };
    const { context, exit } = top(`https://app.example/status --ca ${ca}`, { env });
    await context.stdout.until(/app\.example\/status live\n/);
    context.interrupt$.next('SIGINT');
    expect(await exit).toBe(0);
    expect(proxy.requests[0]).toMatchObject({ authority: 'app.example:443' });
  });

  it('refuses two feeds of one account, and files that it cannot use', async () => {
    const env = { TRADE_FEED_BASE_URL: 'http://127.0.0.1:1', TRADE_FEED_API_KEY: 'planted-key' };
    for (const sources of ['market raw', 'market:a raw:a', 'market market']) {
      const { context, exit } = top(sources, { env });
      expect(await exit).toBe(2);
      expect(context.stderr.text).toMatch(
        /An account has one connection, so each feed needs the key of another account/,
      );
    }
    const bad = await folder.file('bad-headers', 'planted\n');
    for (const [file, code, message] of [
      [bad, 2, /The file of --header-file must contain lines such as Authorization/],
      ['missing', 8, /Cannot read the file of --header-file: there is no such file/],
    ] as const) {
      const { context, exit } = top(`http://127.0.0.1:1/ --header-file ${file}`);
      expect(await exit).toBe(code);
      expect(context.stderr.text).toMatch(message);
      expect(context.stderr.text).not.toContain('planted');
    }
  });
});
