// The feed with an independent server: python3-websockets of Debian, and the HTTP server of Python for tickets.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { bundled } from '../support/bundle.mjs';
import { follow } from './feed.mjs';
import { install, python } from './packages.mjs';
import { start } from './program.mjs';

install();
const { expectedFailure, failureTable } = await bundled(new URL('../support/failure-table.ts', import.meta.url));

test('python3-websockets', async (t) => {
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
    const { stage, code, verdict } = failure;
    assert.deepEqual([stage, code, verdict], ['handshake', 'handshake-failed', 'stop']);
  });

  // What the server does, by its scenario, and what the failure table says about it.
  const inTable = failureTable
    .filter(({ closeCode }) => typeof closeCode === 'number' && closeCode !== 1006)
    .map(({ closeCode, reason = '' }) => [closeCode, reason]);
  const others = [1000, 1011, 1012, 3000, 4000, 4003].map((closeCode) => [closeCode, 'another reason']);
  const closes = [...inTable, ...others, [4999, 'r'.repeat(123)]].map(([closeCode, reason]) => [
    `close:${closeCode}:${reason.replaceAll(' ', '_')}`,
    { stage: 'stream', closeCode, reason },
  ]);
  const refusals = (scenario, stage, answers) =>
    answers.split(' ').map((answer) => [`${scenario}:${answer}`, { stage, status: Number(answer.slice(0, 3)) }]);
  const subprotocol = { stage: 'handshake', code: 'subprotocol-mismatch' };
  const failing = [
    ...closes,
    ['abort', { stage: 'stream', closeCode: 1006 }],
    ...refusals('refuse', 'handshake', '400 401 403 500 503 503:Retry-After=7 302:Location=http://127.0.0.1:1/'),
    ['subprotocol:', subprotocol],
    ['subprotocol:another.v1', subprotocol],
    ...refusals('ticket', 'ticket', '401 403 422 500 429:Retry-After=3 503:Retry-After=2 307:Location=/elsewhere'),
  ];
  for (const [scenario, observed] of failing) {
    await t.test(`fails: ${scenario.slice(0, 40)}`, async (t) => {
      const feed = connect(t, scenario);
      const { code, verdict } = expectedFailure(observed);
      const failure = await firstFailure(feed, verdict);
      const retryAfterMs = 1_000 * /Retry-After=(\d+)/.exec(scenario)?.[1] || undefined;
      for (const [name, value] of Object.entries({ ...observed, code, verdict, retryAfterMs }))
        assert.equal(failure[name], value, name);
      if (observed.stage === 'stream') assert.deepEqual(texts(feed), ['last']);
    });
  }

  await t.test('received each ticket once, in the right header, and no message', async () => {
    const { handshakes, messages, tickets } = await seen();
    const used = handshakes.map(({ headers }) => headers.authorization);
    assert.ok(used.length > closes.length && used.length <= tickets);
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
