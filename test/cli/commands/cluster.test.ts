/** @lane brokers */
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Redis } from 'ioredis';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { filter, firstValueFrom } from 'rxjs';
import { connectEngine, replicaFeed } from '../../../src/cli/connection.js';
import { act as actOn, type Action, statusText } from '../../../src/cli/commands/cluster.js';
import { ExitCode, exitCodeOf, failureWords } from '../../../src/cli/errors.js';
import { wrapped } from '../../../src/cli/text.js';
import { subjectsOf, writeControl } from '../../../src/cluster/control.js';
import { readKey, writeKey } from '../../../src/cluster/election/cluster-key.js';
import { type ClusterEngine, memoryEngine } from '../../../src/cluster/index.js';
import { encode, headOf } from '../../../src/cluster/messages.js';
import type { ClusterState } from '../../../src/cluster/operate.js';
import { TradeFeedError } from '../../../src/index.js';
import { startTradeFeedService } from '../../../src/testing/index.js';
import { describeInstalled } from '../../cluster/support/real-server.js';
import { fencesOf } from '../../docs/fences.js';
import { type RunningBroker, startBroker } from '../../peers/brokers.mjs';
import { fakeTimers } from '../../support/fake-timers.js';
import { itInCi } from '../../support/cases.js';
import { freePort } from '../../support/free-port.mjs';
import { listen } from '../../support/listen.js';
import { startLimitMs, waitFor } from '../../support/wait-for.js';
import { commandRunner, envOf, fakeContext } from '../support/fakes.js';
import { tempFolder } from '../support/temp-folder.js';

const folder = tempFolder();
const command = commandRunner();

const key: NonNullable<ClusterState['key']> = {
  ...{ v: 1, source: 'raw from a#1', gen: 7, owner: 'a-1', phase: 'open', since: 1_000, credits: [], evictions: [] },
  changes: [{ gen: 7, owner: 'a-1', since: 1_000, cause: 'first' }],
};
const standbys = ['b-1', 'c-1'].map((replica, since) => ({ replica, since }));
const text = (fields: Partial<typeof key> = {}, others: ClusterState['standbys'] = standbys) =>
  statusText({ key: { ...key, ...fields }, standbys: others, line: 'empty' }, 31_000);
const line = { from: 84_102, to: 114_057, bytes: 31_000_000, durationMs: 59_800 };

describe('the status of a cluster', () => {
  it('prints what docs/replicas.md shows, on a terminal of 80 columns', () => {
    const now = 100_000_000;
    const [first, second, owner] = ['app-1-0f52c1aa93be', 'app-2-77ab3e0c6d15', 'app-3-51c0a8e2f9d4'] as const;
    const since = now - 725_000;
    const changes = [
      { gen: 1, owner: first, since: now - 96_060_000, cause: 'first' },
      { gen: 2, owner: second, since: now - 7_800_000, cause: 'hand-over' },
      { gen: 3, owner, since, cause: 'silence' },
    ] as const;
    const source = 'market from feed.example.com#2f6b8c01d4';
    const shown = { ...key, source, gen: 3, owner, since, changes } as const;
    const lines = statusText({ key: shown, standbys: [{ replica: first, since: 0 }], line }, now);
    const fences = fencesOf('docs/replicas.md').filter(({ language }) => language === 'console');
    expect(fences.map(({ code }) => code.trimEnd())).toEqual([wrapped(lines.join('\n'), 80)]);
  });

  const refused = "Can't write the cluster's key: maximum bytes exceeded. The store is full.";
  const others = [{ replica: 'b-1', since: 1, refused }];
  it.each<[string, readonly string[], RegExp]>([
    ['an owner that connects', text({ phase: 'opening' }), /^owner {7}a-1, which opens a connection, for 30 s\n/],
    ['no owner', text({ phase: 'free' }), /^owner {7}none: the last one gave the ownership away\n/],
    ['a resumed cluster', text({ phase: 'free', stop: { by: 'a', at: 0 } }), /none: the replicas may connect again\n/],
    ['a stop', text({ phase: 'stopped', stop: { by: 'a', at: 21_000 } }), /connection, 10 s ago; cluster resume/],
    ['a stop of an older version', text({ phase: 'stopped' }), /replaced the connection; cluster resume/],
    [
      'a cluster that never ran',
      statusText({ key: undefined, standbys: others, line }, 0),
      /^no replica has [^]*b-1: Can't/,
    ],
    [
      'what an engine refuses, and evictions',
      text({ evictions: [{ leftMs: 1 }] }, others),
      /b-1: Can't[^]*1 connection/,
    ],
    [
      'a key that cannot be read',
      statusText({ key: undefined, isUnreadable: true, standbys: others, line }, 0),
      /not known: the key .* is damaged[^]*cluster resume[^]*b-1: Can't write[^]*line {8}84,102/,
    ],
    [
      'an engine without a store',
      statusText({ key, standbys, line: 'none' }, 0),
      /^line {8}none: this engine has no store/m,
    ],
    ['that no replica can take over', text({}, []), /^standbys {4}none$/m],
    ['a forged name without its control characters', text({ owner: '\x1b[31ma' }), /^owner {7}␛\[31ma, /],
  ])('shows %s', (_what, lines, words) => {
    expect(lines.join('\n')).toMatch(words);
  });
});

/** Runs an action in virtual time. Standbys report themselves while it waits for them. */
const act = async (action: Action, engine: ClusterEngine, options: object = {}, hasStandby = false) => {
  using _timers = fakeTimers();
  const context = fakeContext();
  const close = jest.fn(() => Promise.resolve());
  const values = { cluster: 'nats://127.0.0.1:4222', ...options };
  const done = actOn(action, values, context, async (address) => {
    expect(address).toBe(values.cluster);
    return Promise.resolve({ engine, close });
  }).then(
    (code) => ({ code, text: context.stdout.text }),
    (error: unknown) => ({
      code: exitCodeOf(error),
      text: error instanceof TradeFeedError ? failureWords(error) : (error as Error).message,
    }),
  );
  await jest.advanceTimersByTimeAsync(1_000);
  if (hasStandby) engine.publish(subjectsOf('main').standby, writeControl({ replica: 'b-1', since: 1 }));
  await jest.advanceTimersByTimeAsync(4_000);
  const outcome = await done;
  expect(close).toHaveBeenCalledTimes(1);
  return outcome;
};

const names = subjectsOf('main');
const engineWith = async (fields: Partial<typeof key> = {}): Promise<ClusterEngine> => {
  const engine = memoryEngine();
  await engine.compareAndSet(names.key, writeKey({ ...key, ...fields }), undefined);
  return engine;
};
const keyIn = async (engine: ClusterEngine) => readKey((await engine.read(names.key))?.value ?? '');

const fails = (message: string) => async () => Promise.reject(new Error(message));

describe('cluster', () => {
  it('status shows the state of the account, also as JSON', async () => {
    const engine = await engineWith();
    const shown = await act('status', engine, {}, true);
    expect(shown.code).toBe(0);
    expect(shown.text).toMatch(
      /^owner {7}a-1, for .*\nfeed {8}raw from a#1\ngeneration {2}7\nstandbys {4}b-1\nline {8}empty\n/,
    );
    const json = await act('status', engine, { json: true });
    expect(JSON.parse(json.text)).toEqual({ key, standbys: [], line: 'empty' });
    const other = await act('status', engine, { account: 'other' });
    expect(other.text).toBe('no replica has owned the connection of this account yet\nline        empty\n');
  });

  it('status shows the line of the store, and that it is refused', async () => {
    const engine = await engineWith();
    const head = {
      line: 'a',
      gen: 1,
      after: 0,
      began: 0,
      offset: 0,
      frames: 0,
      holes: 0,
      at: 5,
      complete: 5,
      count: 2,
    };
    const bytes = encode({ ...head, owner: 'a', phase: 'open', revision: 1, settling: undefined, kind: 'end' });
    engine.line!({ kind: 'line', name: 'main', headOf }).append(head, bytes);
    expect((await act('status', engine)).text).toMatch(/^line {8}0 to 2: 0 ms, \d+ B$/m);
    expect(JSON.parse((await act('status', engine, { json: true })).text)).toMatchObject({ line: { from: 0, to: 2 } });
    const refused = await act('status', {
      ...engine,
      line: (...names) => ({ ...engine.line!(...names), extent: fails('NOPERM no permissions') }),
    });
    expect(refused.code).toBe(0);
    expect(refused.text.replaceAll(/\s+/g, ' ')).toContain(
      "line not known: can't use the store of the cluster's messages: NOPERM no permissions. Give the user of this",
    );
  });

  it('hand-over asks the owner to step down if another replica can take over', async () => {
    const engine = await engineWith();
    const noStandby = { code: 5, text: 'No other replica could take the connection. Start one first.' };
    expect(await act('hand-over', engine)).toEqual(noStandby);
    expect(await act('hand-over', engine, {}, true)).toEqual({
      code: 5,
      text: 'No replica owns the connection. Wait until one takes it, or see cluster status.',
    });
    const requests: string[] = [];
    const owner = engine.respond(names.handOver, (data) => {
      requests.push('hand-over');
      return data;
    });
    const subscription = owner.subscribe();
    const done = { code: 0, text: 'The owner gives the ownership away.\n' };
    expect(await act('hand-over', engine, {}, true)).toEqual(done);
    expect(requests).toHaveLength(1);
    subscription.unsubscribe();
  });

  it('resume lets a stopped cluster connect again', async () => {
    expect(await act('resume', await engineWith())).toEqual({
      code: 5,
      text: "The cluster hasn't stopped, so there is nothing to resume.",
    });
    const engine = await engineWith({ owner: '', phase: 'stopped', stop: { by: 'a-1', at: 0 } });
    const done = { code: 0, text: 'The replicas may connect again. Restart those that have stopped.\n' };
    expect(await act('resume', engine)).toEqual(done);
    expect(await keyIn(engine)).toMatchObject({ phase: 'free', gen: 8 });
  });

  it('resume repairs an unreadable key and keeps its generation', async () => {
    const engine = memoryEngine();
    await engine.compareAndSet(names.key, writeKey(key).replace('"v":1', '"v":2'), undefined);
    expect((await act('status', engine)).text).toMatch(/^owner {7}not known/);
    expect((await act('resume', engine)).code).toBe(0);
    expect(await keyIn(engine)).toMatchObject({ phase: 'free', gen: 7 });
    expect((await act('resume', engine)).code).toBe(5);
  });

  it.each<[Action, Partial<ClusterEngine>, RegExp]>([
    [
      'status',
      { read: fails('jetstream is not enabled') },
      /can't read .+: jetstream .+ start nats-server with -js\.$/,
    ],
    ['resume', { compareAndSet: fails('READONLY a replica.') }, /can't write .+: READONLY .+ Connect to the primary/],
    ['status', { read: async () => new Promise(() => undefined) }, /no answer in 5 s\)\. Look at the load/],
  ])('%s prints what the engine refused and what to do', async (action, refusing, words) => {
    const stopped = { value: writeKey({ ...key, owner: '', phase: 'stopped' }), revision: 1 };
    const engine = { ...memoryEngine(), read: async () => Promise.resolve(stopped), ...refusing };
    expect(await act(action, engine)).toEqual({ code: 6, text: expect.stringMatching(words) });
  });
});

const outcomeOf = async (line: string, env: Readonly<Record<string, string>> = {}) => {
  const { stdout, stderr, exit } = command(line, { env });
  const code = await exit;
  return { code, printed: stdout.text + stderr.text };
};

describe('the engine of a command', () => {
  it.each(['nats://user:password@', 'tls://', 'redis://user:password@', 'rediss://'])(
    'must answer: %s',
    async (begin) => {
      const address = `${begin}127.0.0.1:${await freePort()}`;
      const env = { TRADE_FEED_BASE_URL: 'http://127.0.0.1:1', TRADE_FEED_API_KEY: 'key', TRADE_FEED_CLUSTER: address };
      const words = /^rx-trade-feed: The (NATS|Redis) server of --cluster didn't accept (?![^]*password)/;
      for (const line of [`cluster resume --cluster ${address} --account a`, 'cluster status', 'listen'])
        expect(await outcomeOf(line, env)).toEqual({ code: 6, printed: expect.stringMatching(words) });
    },
  );

  it('counts as unreachable after two seconds', async () => {
    await using server = await listen(createServer());
    const { code } = await outcomeOf(`cluster status --cluster nats://127.0.0.1:${server.port}`);
    expect(code).toBe(ExitCode.unavailable);
  });

  it.each([
    ['cluster status', '', /Missing address of the engine\. Set TRADE_FEED_CLUSTER or use --cluster URL\./],
    ['cluster stat', '', /The action must be status or hand-over or resume\./],
    ['cluster status', 'redis://user:se#cret@127.0.0.1:1', /TRADE_FEED_CLUSTER must be an address such as/],
    ['cluster status', 'nats://user:se/cret@127.0.0.1:1', /TRADE_FEED_CLUSTER must be/],
    ['cluster status', 'http://secret', /TRADE_FEED_CLUSTER must be/],
    ['listen --cluster http://a', '', /--cluster must be an address such as nats:\/\/127\.0\.0\.1:4222/],
    ['listen --cluster nats://a --account a.b', '', /--account must be 1 to 80 letters/],
    ['listen --account main', '', /--account applies only to a cluster/],
    ['listen --replica a', '', /--replica applies only to a cluster/],
  ])('is a usage error: `%s` with %j', async (line, TRADE_FEED_CLUSTER, message) => {
    const { code, printed } = await outcomeOf(line, { TRADE_FEED_CLUSTER });
    expect([code, printed]).toEqual([2, expect.stringMatching(message)]);
    expect(printed).not.toContain('cret');
  });
});

/** Passwords: encoded for the address, and what the server compares. */
const passwords = [
  ['plain', 'plain'],
  ['a%zz', 'a%zz'],
  ['a%40b', 'a@b'],
  ['a@b', 'a@b'],
  ['%ff', '%ff'],
  ['50%25', '50%'],
  ['é%é', 'é%é'],
] as const;
const known = [...new Set(passwords.map(([, password]) => password))];

/** Writes the configuration of a NATS server with a user for each password. */
const configureNats = async (allowed: readonly string[]): Promise<string[]> => {
  const users = allowed.map((password, n) => `{ user: user${n}, password: ${JSON.stringify(password)} }`);
  users.push(
    '{ user: limited, password: limited, permissions: { publish: { deny: "$JS.API.STREAM.INFO.RTF_LINE_main" } } }',
  );
  const log = `log_file: ${JSON.stringify(folder.path('server.log'))}`;
  return ['-c', await folder.file('server.conf', `authorization { users = [${users.join(', ')}] }\n${log}`)];
};

for (const kind of ['redis', 'nats'] as const)
  describeInstalled(kind, `the connection of a command to ${kind}`, () => {
    let broker: RunningBroker;
    beforeAll(async () => {
      broker = await startBroker(kind, folder.path(''), kind === 'nats' ? await configureNats(known) : []);
      if (kind === 'nats') return;
      const admin = new Redis(broker.port, '127.0.0.1');
      for (const [n, password] of known.entries())
        await admin.call('ACL', 'SETUSER', `user${n}`, 'on', `>${password}`, '~*', '&*', '+@all');
      await admin.call('ACL', 'SETUSER', 'limited', 'on', '>limited', '~rtf.v1.main', '&*', '+@all');
      admin.disconnect();
    });
    afterAll(() => broker.kill());
    const addressOf = (user: number, password: string) => `${kind}://user${user}:${password}@127.0.0.1:${broker.port}`;

    itInCi.each(passwords)('accepts the password %s in the address', async (inAddress, password) => {
      const { engine, close } = await connectEngine(addressOf(known.indexOf(password), inAddress));
      expect(await engine.read('key')).toBeUndefined();
      await close();
    });

    it('shows the rest of the status to a user who may not read the line', async () => {
      const TRADE_FEED_CLUSTER = `${kind}://limited:limited@127.0.0.1:${broker.port}`;
      const { code, printed } = await outcomeOf('cluster status', { TRADE_FEED_CLUSTER });
      expect(code).toBe(0);
      expect(printed.replaceAll(/\s+/g, ' ')).toMatch(
        /^no replica has owned .* line not known: can't use the store .*permission/i,
      );
    });

    itInCi('is refused without printing the password', async () => {
      const { code, printed } = await outcomeOf('cluster status', { TRADE_FEED_CLUSTER: addressOf(0, 'wr%ng-secret') });
      expect(code).toBe(ExitCode.unavailable);
      expect(printed).not.toMatch(/secret|malformed/);
    });

    if (kind === 'nats')
      itInCi('reconnects after the server has refused its password for a while', async () => {
        const { engine, close } = await connectEngine(addressOf(0, 'plain'));
        const restart = async (allowed: readonly string[]): Promise<void> => {
          await broker.kill();
          await configureNats(allowed);
          await broker.start();
        };
        await restart(['another']);
        const refusals = (): number =>
          readFileSync(folder.path('server.log'), 'utf8').split('authentication error - User "user0"').length - 1;
        const before = refusals();
        await waitFor(() => refusals() >= before + 4, { limitMs: startLimitMs });
        await restart(known);
        await firstValueFrom(engine.connected$.pipe(filter(Boolean)));
        const canRead = () =>
          engine.read('key').then(
            () => true,
            () => false,
          );
        await waitFor(canRead, { limitMs: startLimitMs });
        await close();
      });

    itInCi.each([
      ['main', {}],
      ['other', { account: 'other', replica: 'two' }],
    ])('carries a feed, and hands over the ownership of %s before it ends', async (account, values) => {
      await using service = await startTradeFeedService();
      const TRADE_FEED_CLUSTER = addressOf(0, 'plain');
      const { engine, close: closeEngine } = await connectEngine(TRADE_FEED_CLUSTER);
      const stored = async () => readKey((await engine.read(subjectsOf(account).key))?.value ?? '');
      const context = fakeContext({ env: { ...envOf(service), TRADE_FEED_CLUSTER } });
      const { events$, close } = await replicaFeed('market', values, context);
      const texts: string[] = [];
      let isOpen = false;
      const subscription = events$.subscribe((event) => {
        if (event.type === 'opened') isOpen = true;
        if (event.type === 'frame') texts.push(event.text());
      });
      await waitFor(() => isOpen);
      service.push('market', account);
      await waitFor(() => texts.length === 1);
      expect(texts).toEqual([account]);
      subscription.unsubscribe();
      expect(await stored()).toMatchObject({ phase: 'open' });
      await close();
      expect(await stored()).toMatchObject({ phase: 'free', owner: '' });
      await closeEngine();
    });
  });
