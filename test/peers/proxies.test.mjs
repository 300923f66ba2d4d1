// The feed through common proxies: nginx and haproxy terminate TLS in front of the service.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { createCertificate } from '../apps/support.mjs';
import { follow, startService, wrongFrames } from './feed.mjs';
import { startHaproxy } from './haproxy.mjs';
import { startNginx } from './nginx.mjs';
import { install } from './packages.mjs';
import { freePort } from './program.mjs';

install();
const certificate = await createCertificate();
const tls = { ca: certificate.cert };

/** Starts a service with a proxy in front. Returns the options of a client. */
const withProxy = async (t, startProxy, { isQuiet, ...settings } = {}) => {
  const port = await freePort();
  const baseUrl = `https://127.0.0.1:${port}`;
  // A test starts another service on this port.
  const upstream = await startService(t, { port: await freePort(), publicUrl: baseUrl, isQuiet });
  const ports = { port, servicePort: upstream.port };
  const proxy = await startProxy(t, certificate, { ...ports, quietMs: 60_000, drainMs: 200, ...settings });
  return { ...upstream, proxy, options: { baseUrl, apiKey: upstream.apiKey, tls } };
};

const handshakes = (serviceEvents) => serviceEvents.filter(({ type }) => type === 'handshake-accepted').length;
const tickets = (serviceEvents) => serviceEvents.filter(({ type }) => type === 'ticket-issued').length;
const bad = (serviceEvents) => serviceEvents.filter(({ type }) => type === 'violation' || type.endsWith('-refused'));

for (const [name, startProxy] of Object.entries({ nginx: startNginx, haproxy: startHaproxy })) {
  test(name, async (t) => {
    await t.test('terminates TLS: frames of all sizes arrive once and in order', async (t) => {
      const { options, serviceEvents } = await withProxy(t, startProxy);
      const feed = follow(t, options);
      await feed.frames(250);
      assert.deepEqual([feed.failures(), wrongFrames(feed.events), bad(serviceEvents)], [[], [], []]);
    });

    await t.test('closes a quiet stream: the feed reconnects with a fresh ticket and reports a gap', async (t) => {
      const { options, serviceEvents } = await withProxy(t, startProxy, { isQuiet: true, quietMs: 800 });
      const feed = follow(t, { ...options, idleTimeoutMs: 0 });
      // Without a frame, a connection is complete 500 ms after it opened.
      await feed.when(() => feed.of('gap').length === 2);
      // nginx's limit also applies to the handshake's answer, which can take longer on a busy machine.
      const failures = feed.of('disconnected').filter(({ failure }) => failure.stage === 'stream');
      assert.deepEqual(
        failures.map(({ failure: { code, verdict } }) => [code, verdict]),
        Array(2).fill(['connection-lost', 'renew']),
      );
      assert.equal(feed.of('gap').length, 2);
      assert.equal(tickets(serviceEvents), feed.of('ticket-issued').length);
      assert.deepEqual(bad(serviceEvents), []);
    });

    await t.test('keeps a quiet stream open when the feed pings it more often', async (t) => {
      const { options, serviceEvents } = await withProxy(t, startProxy, { isQuiet: true, quietMs: 4_000 });
      const feed = follow(t, { ...options, idleTimeoutMs: 1_500 });
      await feed.when(() => feed.of('opened').length === 1);
      await delay(6_000);
      assert.deepEqual([feed.failures(), handshakes(serviceEvents), bad(serviceEvents)], [[], 1, []]);
    });

    await t.test('reloads during a stream: no frame arrives twice, and every loss has a gap', async (t) => {
      const { options, serviceEvents, proxy } = await withProxy(t, startProxy, { drainMs: 100 });
      const feed = follow(t, options);
      for (const connection of [1, 2, 3]) {
        await feed.frames(60, connection);
        await proxy.reload();
      }
      await feed.frames(60, 4);
      feed.end();
      assert.deepEqual(feed.failures(), Array(3).fill('connection-lost, renew'));
      assert.equal(feed.of('gap').length, 3);
      assert.deepEqual(wrongFrames(feed.events), []);
      assert.equal(tickets(serviceEvents), 4);
      assert.deepEqual(bad(serviceEvents), []);
    });

    const { status, ticket } = startProxy.down;

    await t.test(`answers with ${status} while the service is down: the feed retries until it is back`, async (t) => {
      const { options, service, port, apiKey } = await withProxy(t, startProxy);
      let key = Promise.resolve(apiKey);
      const feed = follow(t, { ...options, apiKey: () => key });
      await feed.frames(60);
      await service.shutdown();
      const failed = () => feed.of('disconnected').filter(({ failure }) => failure.code === ticket);
      // Runs during the delay, when no request with the old key is in progress.
      await feed.when(() => failed().length >= 3 && feed.events.at(-1).type === 'reconnecting');
      key = startService(t, { port, publicUrl: options.baseUrl }).then((next) => next.apiKey);
      await feed.frames(60, 2);

      assert.equal(feed.failures()[0], 'server-shutdown, backoff');
      for (const { failure } of failed()) assert.deepEqual([failure.status, failure.verdict], [status, 'backoff']);
      assert.equal(feed.of('gap').length, 1);
      // The new service starts at 0.
      assert.deepEqual(wrongFrames(feed.events.slice(feed.events.indexOf(feed.of('gap')[0]))), []);
    });
  });
}
