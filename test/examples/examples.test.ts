/**
 * @lane processes
 * @ci
 */
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { marketBatches$, pendingTransactions$, startTradeFeedService } from 'rx-trade-feed/testing';
import type { TradeFeedService } from 'rx-trade-feed/testing';
import { endPrograms, shellCommand } from '../cli/support/program.js';
import { startLimitMs, startTestLimitMs, waitFor } from '../support/wait-for.js';
import { type Example, type Run, runExample, runTogether } from './run-example.js';

jest.setTimeout(startTestLimitMs);

// What each example prints, in this order, with the local service that it starts.
const examples: Readonly<Record<string, readonly RegExp[]>> = {
  'listen.mjs': [
    /^ticket-requested\nticket-issued\nopened\n/,
    /^(frame +\d+ bytes +\{"batch":\d+.*\n){5}/m,
    /^unsubscribed/m,
  ],
  'share.mjs': [
    /^ +the first one ended with connection-replaced$/m,
    /^ +one read 5 frames, one measured 5, one joined late$/m,
    /^ +connections: 1$/m,
  ],
  'status.mjs': [
    /^(?:  0 frames.*\n)*connecting\n(?:  0 frames.*\n)*live\n/,
    /^reconnecting: access-expired, attempt 1\n(?: .*\n)*reconnecting: now\n(?: .*\n)*live$/m,
    /^ +\d+ frames, 1 gaps, \d+ ms lost, \{"access-expired":1\}$/m,
  ],
  'relay.mjs': [
    /^client (one|two): frames of \d+, \d+, \d+ bytes$/m,
    /^client three: relay-lost$/m,
    /^client three: 5 frames, over connection 1$/m,
    /^joined the relay: 4 times$/m,
  ],
  'decode.mjs': [/^left out: \/to expected string$/m, /^0x[0-9a-f]{10}…  to 0x[0-9a-f]{10}…$/m, /^5 of \d+ frames$/m],
  'filter.mjs': [/^(0x[0-9a-f]{10}… +9\d{8} gwei\n){5}/, /^5 large ones in \d+ transactions$/m],
  'window.mjs': [
    /^window \d+: [1-9]\d* frames$/m,
    /^window \d+: \d+ frames, incomplete.*\n +\d+ ms without a connection, \d+ ms into it$/m,
    /^window \d+: \d+ frames$/m,
  ],
  'conflate.mjs': [/^(high|low ) +0x[0-9a-f]{10}… +newest of \d+$/m, /^4 values shown for \d+ of \d+$/m],
  'slow-consumer.mjs': [
    /^ +too slow: \d+ frames dropped, \d+ in all$/m,
    /^received \d+, stored \d+, dropped [1-9]\d*$/m,
    /^not accounted for: 0; outages: 0$/m,
  ],
  'for-await.mjs': [/^(read \d: \d+ bytes\n){3}/, /^(streamed: \{"batch":\d+.*…\n){3}/m, /^the stream has ended$/m],
  'log.mjs': [
    /^live +\{"frames":\d+,"bytes":\d+,"gaps":1\}$/m,
    /^again +\{"frames":\d+,"bytes":\d+,"gaps":1\}$/m,
    /^the results are equal$/m,
    /^the consumer stops at 15\nthe next one goes on at 15$/m,
  ],
  'policy.mjs': [
    /^not-entitled \(backoff\)\n +attempt 1 in 20 ms\nnot-entitled \(backoff\)\n +attempt 2 in 60 ms\nopen\n/,
    /attempt 1 in 20 ms\n.*\n +attempt 2 in 60 ms\n.*\n +attempt 3 in 180 ms\n.*\n +attempt 4 in 540 ms\n/,
    /^gave up: retries-exhausted, last credential-service-unavailable$/m,
  ],
  'own-feed.mjs': [
    /^ticket for market, mmp\.trade-batch\.v1\n/,
    /^ +frame 1 of connection 1\n +frame 2 of connection 1\n +frame 3 of connection 1\nconnection-stalled: reconnecting$/m,
    /^ticket for market.*\n +frame 1 of connection 2$/m,
  ],
  'test-your-app/trade-counter.test.mjs': [/^# pass 5$/m, /^# fail 0$/m],
};

const folder = join(import.meta.dirname, '../../examples');

const programs = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
  (name) =>
    !name.startsWith('nestjs-angular/') &&
    ((name.endsWith('.mjs') && !/[/\\]/.test(name)) || name.endsWith('.test.mjs')),
);

const expectQuietEnd = ({ exitCode, stdout, stderr, secrets }: Run): void => {
  expect({ exitCode, stderr, stdout }).toMatchObject({ exitCode: 0, stderr: '' });
  expect(secrets).not.toHaveLength(0);
  for (const secret of secrets) expect(stdout.includes(secret)).toBe(false);
};

const inOrder = (text: string, patterns: readonly RegExp[]): void => {
  let rest = text;
  for (const pattern of patterns) {
    expect(rest).toMatch(pattern);
    rest = rest.slice(rest.search(pattern));
  }
};

it('this test has an expected output for every program in examples/', () => {
  expect(Object.keys(examples).sort()).toEqual([...programs].sort());
});

const isTest = (name: string): boolean => name.endsWith('.test.mjs');
const names = Object.keys(examples).filter((name) => !isTest(name));

let service: TradeFeedService;
/** The service's variables with a new account, because an account gets only one connection. */
const newAccount = (): NonNullable<Example['service']> => ({
  TRADE_FEED_BASE_URL: service.baseUrl,
  TRADE_FEED_API_KEY: service.createAccount({ plan: 'developer' }).createApiKey(),
});
let withLocalService: ReadonlyMap<string, Run>;
let withService: ReadonlyMap<string, Run>;

beforeAll(async () => {
  service = await startTradeFeedService({
    sources: { market: marketBatches$(), raw: pendingTransactions$({ rate: 200 }) },
  });
  const runs = await runTogether([
    ...names.map((name) => ({ name })),
    ...names.map((name) => ({ name, service: newAccount() })),
  ]);
  const byName = (some: readonly Run[]) => new Map(some.map((run, index) => [names[index]!, run]));
  withLocalService = byName(runs.slice(0, names.length));
  withService = byName(runs.slice(names.length));
});
afterAll(() => service.shutdown());

const expectOutput = (name: string, run: Run): void => {
  expectQuietEnd(run);
  inOrder(run.stdout, examples[name]!);
};

describe('with the local service', () => {
  it.each(names)('%s prints the expected output, prints no secret, and exits', (name) => {
    expectOutput(name, withLocalService.get(name)!);
  });
});

describe('with the service of the environment variables', () => {
  it.each(names)('%s prints no secret and exits', (name) => {
    expectQuietEnd(withService.get(name)!);
  });
});

describe('as a separate program', () => {
  afterEach(endPrograms);

  it.each(Object.keys(examples).filter(isTest))(
    '%s prints the expected output, prints no secret, and exits',
    async (name) => {
      expectOutput(name, await runExample({ name }, ['--test', '--test-reporter=tap']));
    },
  );

  it('listen.mjs prints the expected output, prints no secret, and exits', async () => {
    expectOutput('listen.mjs', await runExample({ name: 'listen.mjs', service: newAccount() }));
  });

  it('observability/measured-feed.mjs offers the metrics of its feed, and ends with Ctrl-C', async () => {
    const command = `exec ${process.execPath} examples/observability/measured-feed.mjs`;
    const { child, exit, stdout, stderr, untilStdout } = shellCommand(command, { METRICS_PORT: '0' });
    const [, address = ''] = await untilStdout(/^metrics on (http:\S+)$/m);
    const hasScraped = (pattern: RegExp) =>
      waitFor(async () => pattern.test(await (await fetch(address)).text()), { limitMs: startLimitMs });
    await hasScraped(/^messaging_client_consumed_messages_total\{.+\} [1-9]/m);
    await hasScraped(/^trade_feed_connection_state\{.+trade_feed_state="live".+\} 1$/m);
    child.kill('SIGINT');
    expect(await exit).toBe(0);
    expect(stdout()).toMatch(/^metrics on \S+\n$/);
    expect(stderr()).toMatch(/^Connected to market \(connection 1\)\n/m);
  });
});
