// The feed with an independent server: python3-websockets of Debian, and the HTTP server of Python for tickets.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { expectedFailure, failureTable } from './failure-table.mjs';
import { follow } from './feed.mjs';
import { install, python } from './packages.mjs';
import { start } from './program.mjs';

install();

test('python3-websockets', { timeout: 300_000 }, async (t) => {
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
    const feed = connect(t, 'quiet', { idleTimeoutMs: 1_500 });
    await feed.frames(1);
    // More than twice as long as the idle timeout plus the time for an answer.
    await delay(6_500);
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
    const failure = await connect(t, 'unrequested').stopped();
    assert.deepEqual(failureOf(failure), { stage: 'handshake', code: 'handshake-failed', verdict: 'stop' });
  });

  const closes = [
    [1000, ''],
    [1001, 'server shutdown'],
    [1008, 'server push only'],
    [1011, 'internal error'],
    [1012, 'service restart'],
    [1013, 'client too slow'],
    [3000, 'unauthorized'],
    [4000, 'unknown'],
    [4001, 'connection replaced'],
    [4003, 'access expired'],
    [4003, 'access revoked'],
    [4003, 'another reason'],
    [4999, 'r'.repeat(123)],
  ];

  await t.test('closes with every code of the failure table', () => {
    const closeCodes = failureTable.flatMap(({ closeCode }) => (typeof closeCode === 'number' ? [closeCode] : []));
    // 1006 means that there was no close frame: the test `aborts the connection`.
    const tested = new Set([1006, ...closes.map(([closeCode]) => closeCode)]);
    assert.deepEqual(
      closeCodes.filter((closeCode) => !tested.has(closeCode)),
      [],
    );
  });

  for (const [closeCode, reason] of closes) {
    await t.test(`closes with ${closeCode} ${reason.slice(0, 20)}`, async (t) => {
      const feed = connect(t, `close:${closeCode}:${reason.replaceAll(' ', '_')}`);
      const expected = expectedFailure({ stage: 'stream', closeCode, reason });
      const failure = await firstFailure(feed, expected.verdict);
      assert.deepEqual(failureOf(failure), expected);
      assert.deepEqual([failure.closeCode, failure.reason], [closeCode, reason]);
      assert.equal(texts(feed)[0], 'last');
    });
  }

  await t.test('aborts the connection', async (t) => {
    const feed = connect(t, 'abort');
    const expected = expectedFailure({ stage: 'stream', closeCode: 1006 });
    const failure = await firstFailure(feed, expected.verdict);
    assert.deepEqual([failureOf(failure), failure.framesReceived], [expected, 1]);
  });

  const refusals = ['400', '401', '403', '500', '302:Location=http://127.0.0.1:1/', '503'];
  for (const how of refusals) {
    await t.test(`refuses the handshake: ${how}`, async (t) => {
      const status = Number(how.slice(0, 3));
      const expected = expectedFailure({ stage: 'handshake', status });
      const failure = await firstFailure(connect(t, `refuse:${how}`), expected.verdict);
      assert.deepEqual([failureOf(failure), failure.status], [expected, status]);
    });
  }

  await t.test('refuses the handshake with Retry-After', async (t) => {
    const expected = expectedFailure({ stage: 'handshake', status: 503 });
    const failure = await firstFailure(connect(t, 'refuse:503:Retry-After=7'), expected.verdict);
    assert.deepEqual([failureOf(failure), failure.retryAfterMs], [expected, 7_000]);
  });

  for (const [chosen, what] of [
    ['', 'no subprotocol'],
    ['another.v1', 'another subprotocol'],
  ]) {
    await t.test(`chooses ${what}`, async (t) => {
      const failure = await connect(t, `subprotocol:${chosen}`).stopped();
      assert.deepEqual(failureOf(failure), expectedFailure({ stage: 'handshake', code: 'subprotocol-mismatch' }));
    });
  }

  const refusedTickets = [
    ['401'],
    ['403'],
    ['422'],
    ['429:Retry-After=3', 3_000],
    ['500'],
    ['503:Retry-After=2', 2_000],
    ['307:Location=/elsewhere'],
  ];
  for (const [how, retryAfterMs] of refusedTickets) {
    await t.test(`refuses the ticket: ${how}`, async (t) => {
      const expected = expectedFailure({ stage: 'ticket', status: Number(how.slice(0, 3)) });
      const failure = await firstFailure(connect(t, `ticket:${how}`), expected.verdict);
      assert.deepEqual([failureOf(failure), failure.retryAfterMs], [expected, retryAfterMs]);
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

/** Returns the fields of a failure that the failure table names. */
const failureOf = ({ stage, code, verdict }) => ({ stage, code, verdict });
