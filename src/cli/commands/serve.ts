import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { concatMap, filter, from, ignoreElements, lastValueFrom, merge, Subject, takeUntil, tap } from 'rxjs';
import { type Feed, TradeFeedError } from '../../index.js';
import { printable } from '../../protocol/printable.js';
import { type ServiceEvent, startTradeFeedService, type TradeFeedServiceOptions } from '../../testing/index.js';
import { aPort } from '../../testing/service-options.js';
import { readFileOf } from '../connection.js';
import { writeText } from '../delivery.js';
import { CliError, ExitCode, localError, usageError } from '../errors.js';
import { anyText, defineCommand, oneOf, option, parsed, type ValuesOf, whole } from '../options.js';
import { payloadOptions, type Payloads, payloadsFor } from '../payloads.js';
import { say } from '../terminal.js';
import { counted, joined, logLine } from '../text.js';

const tlsOptions = {
  tls: option('--tls', 'https: and wss: with a certificate created for this run'),
  cert: option('--cert <FILE>', 'https: and wss: with this PEM certificate', anyText),
  key: option('--key <FILE>', 'the PEM key of --cert', anyText),
};

export const command = defineCommand({
  summary: 'run a local service that follows the whole contract',
  description: `
    Prints its address, an API key for this run and the commands to type next. Reports what happens on stderr. Ctrl-C
    ends it (1001).

    With --source, it sends the lines of a pipe or of stdin as they arrive, with or without a client, and the lines of a
    file at 20 per second, once the first client of the feed connects. With --rate, it sends both at that rate, once the
    first client connects. It skips empty lines. The other feed sends generated payloads.

    With --replay, each feed sends its recorded frames once its first client connects. A recorded gap is a pause.
  `,
  options: {
    plan: option(
      '--plan <free|developer>',
      'the plan of the account; free delays each frame by 500 ms (default: free)',
      oneOf('free', 'developer'),
    ),
    port: option('--port <N>', 'the port on 127.0.0.1 (default: any free port)', parsed(whole, aPort)),
    ...payloadOptions,
    ...tlsOptions,
  },
  examples: [
    ['rx-trade-feed serve --port 8080 --plan developer', 'a service at a fixed address'],
    ['rx-trade-feed serve --replay market --speed 10', 'a log, ten times as fast'],
    ['rx-trade-feed serve --source frames.ndjson --rate 100', 'the lines of a file'],
    ['tail -F orders.log | rx-trade-feed serve --source -', 'use the output of any program as a feed'],
    ['rx-trade-feed serve --tls', 'over TLS, with instructions for the client'],
  ],
  run: async (_, values, context) => {
    const { plan = 'free', port = 0 } = values;
    const events$ = new Subject<ServiceEvent>();
    const clients = (feed: Feed) => events$.pipe(filter((e) => e.type === 'handshake-accepted' && e.feed === feed));
    const payloads = await payloadsFor(values, context.stdin, clients);
    const { close, ...served } = await certificateFor(values);
    try {
      const sources = { market: payloads.market.payloads$, raw: payloads.raw.payloads$ };
      const service = await start({ port, tls: served.tls, sources });
      const apiKey = service.createAccount({ plan }).createApiKey();
      const text = welcome({ baseUrl: service.baseUrl, apiKey, plan, payloads, ...served });
      const stopped$ = context.interrupt$.pipe(concatMap(() => service.shutdown()));
      const logged$ = service.events$.pipe(
        tap(events$),
        tap((event) => say(context.stderr, logLine(serviceEventWords(event), event.at))),
      );
      const all$ = merge(from(writeText(context, text)).pipe(ignoreElements()), logged$).pipe(takeUntil(stopped$));
      await lastValueFrom(all$, { defaultValue: undefined }).finally(() => service.shutdown());
      return ExitCode.ok;
    } finally {
      await close();
    }
  },
});

const start = async (options: TradeFeedServiceOptions & { readonly port: number }) => {
  try {
    return await startTradeFeedService(options);
  } catch (error) {
    if (error instanceof TradeFeedError && error.option === 'tls')
      throw usageError('--cert and --key must contain a PEM certificate and its key.');
    const hint = 'Use another port with --port, or omit --port.';
    throw localError(`Can't listen on port ${options.port} of 127.0.0.1`, error, hint);
  }
};

type Welcome = Readonly<Record<'baseUrl' | 'apiKey' | 'plan', string> & { caFile?: string; payloads: Payloads }>;

const welcome = ({ baseUrl, apiKey, plan, caFile, payloads: { market, raw, feed } }: Welcome): string => {
  const ca = caFile && `  CA       ${caFile} (only for this run; instead of its line below, you can use --ca)\n`;
  const trust = caFile && `  export NODE_EXTRA_CA_CERTS=${caFile}\n`;
  return `A local trade feed service is running. Ctrl-C ends it.

  address  ${baseUrl}
  API key  ${apiKey} (${plan} plan; only for this run)
  market   ${printable(market.description)}
  raw      ${printable(raw.description)}
${ca ?? ''}
Type this in another terminal:

  export TRADE_FEED_BASE_URL=${baseUrl}
  export TRADE_FEED_API_KEY=${apiKey}
${trust ?? ''}  npx rx-trade-feed listen ${feed}

`;
};

type EventWords = { readonly [E in ServiceEvent as E['type']]: (event: E) => string };

const words: EventWords = {
  'ticket-issued': ({ account, feed }) => `ticket issued: ${account}, ${feed}`,
  'ticket-refused': ({ status, code, account, retryAfterSeconds }) =>
    `ticket refused: ${joined(', ', account, `${status} ${code}`, retryAfterSeconds !== undefined && `retry after ${retryAfterSeconds} s`)}`,
  'ticket-revoked': ({ account, feed }) => `ticket revoked: ${account}, ${feed}`,
  'handshake-accepted': ({ account, feed, connection }) => `connection ${connection} is open: ${account}, ${feed}`,
  'handshake-refused': ({ status, code, account, feed }) =>
    `handshake refused: ${joined(', ', account, feed, `${status} ${code}`)}`,
  'connection-closed': ({ connection, code, reason, by, frames }) =>
    `connection ${connection} closed by the ${by}: ${joined(', ', `${code}${reason && ` "${printable(reason)}"`}`, counted(frames, 'frame'))}`,
  violation: ({ rule, account, connection }) =>
    `contract violation: ${joined(', ', rule, account, connection !== undefined && `connection ${connection}`)}`,
  fault: ({ endpoint, status }) => `${endpoint} ${status === undefined ? 'cut off' : `answered ${status}`} by a test`,
  'source-ended': ({ feed, error }) =>
    error === undefined
      ? `the source of ${feed} has ended; the service continues to run`
      : `the source of ${feed} failed: ${printable(error instanceof Error ? error.message : 'for an unknown reason')}`,
};

export const serviceEventWords = (event: ServiceEvent): string =>
  (words[event.type] as (event: unknown) => string)(event);

type SelfSigned = Pick<typeof import('selfsigned'), 'generate'>;

/** Reads the certificate of `--cert` and `--key`, or creates one for `--tls` with an optional package. */
export const certificateFor = async (
  { tls, cert, key }: ValuesOf<typeof tlsOptions>,
  load: () => Promise<SelfSigned> = () => import('selfsigned'),
) => {
  if ((cert === undefined) !== (key === undefined))
    throw usageError('--cert needs --key, and --key needs --cert: use both.');
  if (tls && cert === undefined) return createCertificate(await load().catch(notInstalled));
  const given = cert && key && { cert: await readFileOf('--cert', cert), key: await readFileOf('--key', key) };
  return { tls: given || undefined, close: () => Promise.resolve() };
};

const notInstalled = (cause: unknown): never => {
  const text =
    "serve --tls creates a certificate with the package selfsigned, which isn't installed. " +
    'Install it (npm install --save-dev selfsigned), or use --cert and --key.';
  throw new CliError(ExitCode.failed, text, cause);
};

const createCertificate = async ({ generate }: SelfSigned) => {
  const altNames = [{ type: 2, value: 'localhost' } as const, { type: 7, ip: '127.0.0.1' } as const];
  const { cert, private: key } = await generate([{ name: 'commonName', value: 'localhost' }], {
    keyType: 'ec',
    algorithm: 'sha256',
    extensions: [{ name: 'subjectAltName', altNames }],
  });
  const folder = await mkdtemp(join(tmpdir(), 'rx-trade-feed-'));
  const caFile = join(folder, 'ca.pem');
  await writeFile(caFile, cert);
  return { tls: { cert, key }, caFile, close: () => rm(folder, { recursive: true, force: true }) };
};
