// The feed with an independent server: python3-websockets of Debian, and the HTTP server of Python for tickets.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { follow } from './feed.mjs';
import { install, python } from './packages.mjs';
import { start } from './program.mjs';

install();

test('python3-websockets', { timeout: 60_000 }, async (t) => {
  // Opened here, because the unprivileged user may not have access to this folder.
  const program = openSync(new URL('server.py', import.meta.url));
  const { child } = start(t, python, ['-'], { stdio: [program, 'pipe', 'pipe'] });
  closeSync(program);
  const [line] = await once(child.stdout, 'data');
  const baseUrl = `http://127.0.0.1:${String(line).trim()}`;
  const seen = async () => (await fetch(`${baseUrl}/seen`)).json();
  const connect = (t, apiKey, options) => follow(t, { baseUrl, apiKey, ...options });
  const texts = (feed) => feed.of('frame').map((frame) => frame.text());

  await t.test('sends frames of all sizes, text and binary', async (t) => {
    const feed = connect(t, 'sizes');
    const sizes = [0, 1, 125, 126, 127, 65_535, 65_536, 1_000_000];
    await feed.frames(2 * sizes.length);
    const frames = feed.of('frame');
    assert.deepEqual(
      frames.map(({ data, isBinary }) => [data.length, isBinary]),
      sizes.flatMap((size) => [
        [size, false],
        [size, true],
      ]),
    );
    for (const { data, isBinary } of frames) {
      assert.ok(data.every((byte, i) => byte === (isBinary ? i % 251 : 0x78)));
    }
    assert.deepEqual(feed.failures(), []);
  });

  await t.test('sends messages in fragments, with pings between them', async (t) => {
    const feed = connect(t, 'fragments');
    await feed.frames(3);
    const [text, slow, bytes] = feed.of('frame');
    assert.deepEqual([text.text(), slow.text()], ['naïve — 漢字 🙂', 'one two three']);
    assert.deepEqual([bytes.isBinary, bytes.data], [true, Buffer.from('00ff'.repeat(1_000), 'hex')]);
  });

  await t.test('pings, and receives pongs', async (t) => {
    const feed = connect(t, 'pings');
    await feed.frames(1);
    assert.deepEqual(texts(feed), ['20 pongs']);
  });

  await t.test('answers pings: a quiet stream stays open', async (t) => {
    const feed = connect(t, 'quiet', { idleTimeoutMs: 400 });
    await feed.frames(1);
    // Several times longer than the idle timeout and the ping timeout together.
    await delay(2_500);
    assert.deepEqual([feed.of('opened').length, feed.failures()], [1, []]);
  });

  await t.test('supports compression, but the client does not request it', async (t) => {
    const feed = connect(t, 'compressible');
    await feed.frames(10);
    assert.deepEqual(new Set(texts(feed)), new Set(['the same again '.repeat(1_000)]));
    const { headers } = (await seen()).handshakes.at(-1);
    assert.equal(headers['sec-websocket-extensions'], undefined);
  });

  await t.test('selects compression that the client did not request: the handshake fails', async (t) => {
    const { stage, code, verdict } = await connect(t, 'unrequested').stopped();
    assert.deepEqual([stage, code, verdict], ['handshake', 'handshake-failed', 'stop']);
  });

  // The failure table: the meaning of each code and reason.
  const closes = [
    [1000, '', 'connection-closed', 'backoff'],
    [1001, 'server shutdown', 'server-shutdown', 'backoff'],
    [1008, 'server push only', 'policy-violation', 'stop'],
    [1011, 'internal error', 'connection-closed', 'backoff'],
    [1012, 'service restart', 'connection-closed', 'backoff'],
    [1013, 'client too slow', 'client-too-slow', 'backoff'],
    [3000, 'unauthorized', 'connection-closed', 'backoff'],
    [4000, 'unknown', 'connection-closed', 'backoff'],
    [4001, 'connection replaced', 'connection-replaced', 'stop'],
    [4003, 'access expired', 'access-expired', 'renew'],
    [4003, 'access revoked', 'access-revoked', 'renew'],
    [4003, 'another reason', 'connection-closed', 'renew'],
    [4999, 'r'.repeat(123), 'connection-closed', 'backoff'],
  ];
  for (const [closeCode, reason, code, verdict] of closes) {
    await t.test(`closes with ${closeCode} ${reason.slice(0, 20)}`, async (t) => {
      const feed = connect(t, `close:${closeCode}:${reason.replaceAll(' ', '_')}`);
      const failure = await firstFailure(feed, verdict);
      assert.deepEqual([failure.stage, failure.code, failure.verdict], ['stream', code, verdict]);
      assert.deepEqual([failure.closeCode, failure.reason], [closeCode, reason]);
      assert.equal(texts(feed)[0], 'last');
    });
  }

  await t.test('aborts the connection', async (t) => {
    const feed = connect(t, 'abort');
    const { code, verdict, framesReceived } = await firstFailure(feed, 'renew');
    assert.deepEqual([code, verdict, framesReceived], ['connection-lost', 'renew', 1]);
  });

  const refusals = [
    ['400', 'handshake-rejected', 'stop'],
    ['401', 'ticket-rejected', 'renew'],
    ['403', 'handshake-failed', 'stop'],
    ['500', 'handshake-failed', 'backoff'],
    ['302:Location=http://127.0.0.1:1/', 'handshake-failed', 'stop'],
    ['503', 'capacity-full', 'backoff'],
  ];
  for (const [how, code, verdict] of refusals) {
    await t.test(`refuses the handshake: ${how}`, async (t) => {
      const failure = await firstFailure(connect(t, `refuse:${how}`), verdict);
      const status = Number(how.slice(0, 3));
      assert.deepEqual(
        [failure.stage, failure.status, failure.code, failure.verdict],
        ['handshake', status, code, verdict],
      );
    });
  }

  await t.test('refuses the handshake with Retry-After', async (t) => {
    const { code, retryAfterMs } = await firstFailure(connect(t, 'refuse:503:Retry-After=7'), 'backoff');
    assert.deepEqual([code, retryAfterMs], ['capacity-full', 7_000]);
  });

  for (const [chosen, what] of [
    ['', 'no subprotocol'],
    ['another.v1', 'another subprotocol'],
  ]) {
    await t.test(`chooses ${what}`, async (t) => {
      const { stage, code, verdict } = await connect(t, `subprotocol:${chosen}`).stopped();
      assert.deepEqual([stage, code, verdict], ['handshake', 'subprotocol-mismatch', 'stop']);
    });
  }

  const refusedTickets = [
    ['401', 'invalid-api-key', 'stop'],
    ['403', 'not-entitled', 'stop'],
    ['422', 'invalid-ticket-request', 'stop'],
    ['429:Retry-After=3', 'ticket-rate-limited', 'wait', 3_000],
    ['500', 'ticket-request-failed', 'backoff'],
    ['503:Retry-After=2', 'credential-service-unavailable', 'backoff', 2_000],
    ['307:Location=/elsewhere', 'ticket-request-rejected', 'stop'],
  ];
  for (const [how, code, verdict, retryAfterMs] of refusedTickets) {
    await t.test(`refuses the ticket: ${how}`, async (t) => {
      const failure = await firstFailure(connect(t, `ticket:${how}`), verdict);
      assert.deepEqual([failure.stage, failure.code, failure.verdict], ['ticket', code, verdict]);
      assert.equal(failure.retryAfterMs, retryAfterMs);
    });
  }

  await t.test('received each ticket once, in the right header, and no message', async () => {
    const { handshakes, messages, tickets } = await seen();
    const used = handshakes.map(({ headers }) => headers.authorization);
    assert.ok(used.length > closes.length + refusals.length && used.length <= tickets);
    assert.equal(new Set(used).size, used.length);
    for (const { path, headers } of handshakes) {
      assert.deepEqual([path, headers['sec-websocket-protocol']], ['/ws', 'mmp.trade-batch.v1']);
      assert.equal(headers['x-api-key'], undefined);
    }
    assert.equal(messages, 0);
  });
});

/** Returns the failure of the first attempt. */
const firstFailure = async (feed, verdict) => {
  if (verdict === 'stop') return feed.stopped();
  await feed.when(() => feed.of('disconnected').length > 0);
  feed.end();
  return feed.of('disconnected')[0].failure;
};
