// Replicas with real brokers: the command, the example with keys, and the example behind nginx.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { startTradeFeedService } from 'rx-trade-feed/testing';
import { root, start, temporaryFolder, waitUntil } from '../apps/support.mjs';
import { startBroker } from './brokers.mjs';
import { install } from './packages.mjs';

install();

const main = join(root, 'dist/cli/main.js');
const run = promisify(execFile);

/** A `listen --cluster --json` that ends with the test. */
const listen = (t, env, replica) => {
  const args = [main, 'listen', '--json', '-q', '--replica', replica];
  const { child, output, ended } = start(t, process.execPath, args, { env });
  const events = () =>
    output.stdout
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  const until = (is) => waitUntil(() => is(events()));
  return { child, ended, events, until };
};

const framesIn = (events) => events.flatMap(({ type, data }) => (type === 'frame' ? [data] : []));
const gapsIn = (events) => events.filter(({ type }) => type === 'gap').map(({ failure }) => failure.code);

for (const kind of ['nats', 'redis']) {
  test(`the command over ${kind}-server: two replicas share a connection, and an operator moves it`, async (t) => {
    const folder = temporaryFolder('rx-trade-feed-command-');
    const broker = await startBroker(kind, folder);
    const service = await startTradeFeedService();
    t.after(async () => {
      await service.shutdown();
      await broker.kill();
    });
    const env = {
      ...process.env,
      TRADE_FEED_BASE_URL: service.baseUrl,
      TRADE_FEED_API_KEY: service.createAccount({ plan: 'developer' }).createApiKey(),
      TRADE_FEED_CLUSTER: `${kind}://127.0.0.1:${broker.port}`,
    };
    const command = async (...args) => (await run(process.execPath, [main, 'cluster', ...args], { env })).stdout;
    const replicas = [listen(t, env, 'one'), listen(t, env, 'two')];
    const all = (is) => Promise.all(replicas.map((replica) => replica.until(is)));
    await all((events) => events.some(({ type }) => type === 'opened'));
    /** Sends a frame until these replicas have it, because it's lost if a busy machine moves the connection just then. */
    const send = async (text, some = replicas) => {
      const sending = setInterval(() => service.push('market', text), 50);
      t.after(() => clearInterval(sending));
      await Promise.all(some.map((replica) => replica.until((events) => framesIn(events).includes(text))));
      clearInterval(sending);
    };
    await send('a');

    // A replica that a busy machine stops for a while loses the ownership, so each step asks who has it.
    const ownerNow = async () => {
      const { owner } = JSON.parse(await command('status', '--json')).key;
      return owner?.replace(/-[\da-f]{20}$/, '') ?? ownerNow();
    };
    let status = '';
    while (!/^standbys {4}(one|two)-/m.test(status)) status = await command('status');
    assert.match(status, /^owner {7}(one|two)-[\da-f]{20}, for /);

    // On a busy machine, the other replica may not answer in time, and then the owner gets no request.
    const before = await ownerNow();
    let answer;
    while (answer === undefined) answer = await command('hand-over').catch(({ code }) => assert.equal(code, 5));
    assert.equal(answer, 'The owner gives the ownership away.\n');
    await all((events) => gapsIn(events).length >= 1);
    await send('b');
    while ((await ownerNow()) === before);

    // On SIGTERM, the owner hands over its ownership before it exits.
    const gaps = replicas.map(({ events }) => gapsIn(events()).length);
    const at = (await ownerNow()) === 'one' ? 0 : 1;
    const [{ child, ended }, last] = [replicas[at], replicas[1 - at]];
    child.kill('SIGTERM');
    assert.equal(await ended, 0);
    await last.until((events) => gapsIn(events).length > gaps[1 - at]);
    await send('c', [last]);
    assert.deepEqual([...new Set(framesIn(last.events()))], ['a', 'b', 'c']);
    assert.deepEqual([...new Set(gapsIn(last.events()))], ['owner-changed']);
    await assert.rejects(command('resume'), {
      code: 5,
      stderr: "rx-trade-feed: The cluster hasn't stopped, so there is nothing to resume.\n",
    });
  });
}

test('the example with keys: a stopped replica gives the connection to another one', async (t) => {
  const example = spawn(process.execPath, [join(root, 'examples/replicas/keys.mjs')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  t.after(() => example.kill('SIGKILL'));
  const ended = once(example, 'exit');
  // Any replica can be the first owner, and no line says which: stops them until another one owns the connection.
  const keys = ['1s', '2s', '1r', '3s'];
  let seconds = 0;
  let owner;
  for await (const line of createInterface({ input: example.stdout })) {
    // After `q` the example reads nothing more, and may still print.
    if (owner !== undefined) continue;
    owner = /replica-\d-\w+ owns the connection/.exec(line)?.[0];
    if (owner !== undefined) example.stdin.write('q');
    else if (/: [1-9]\d* frames/.test(line) && (seconds += 1) % 5 === 1) example.stdin.write(keys.shift() ?? 'q');
  }
  assert.deepEqual(await ended, [0, null]);
  assert.ok(owner !== undefined, 'another replica owns the connection');
});

test('the example: three NestJS replicas behind nginx are replaced, and no page notices more than a gap', async () => {
  const { stdout } = await run(process.execPath, [join(root, 'examples/replicas/run.mjs')], {
    env: { ...process.env, PATH: `${process.env['PATH']}:/usr/sbin` },
  });
  assert.match(stdout, /(page \d: open, \d+ frames, 0 twice, .*\n){3}no page has stopped, and no frame came twice\n$/);
});
