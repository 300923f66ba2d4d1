import { beforeAll, describe, expect, it } from '@jest/globals';
import { defer, filter, firstValueFrom, map, tap } from 'rxjs';
import { type FeedEvent, tradeFeedEvents$, type TradeFeedOptions } from 'rx-trade-feed';
import { startTradeFeedService } from 'rx-trade-feed/testing';
import { serviceMeanings } from '../../src/protocol/failures/classify.js';
import { type Certificate, certificateFor } from '../support/certificate.js';
import { type Row, tablesUnder } from './tables.js';

const [before = [], whileOpen = []] = tablesUnder('docs/testing.md', 'Failures on demand');

/** The codes that neither the service nor the network can cause. */
const ofYourCode = ['api-key-unavailable', 'invalid-options'];

let certificate: Certificate;
beforeAll(async () => {
  certificate = await certificateFor();
});

/** Runs code from the page with these names in scope. */
const run = (code: string, names: Readonly<Record<string, unknown>>): unknown =>
  // eslint-disable-next-line @typescript-eslint/no-implied-eval, @typescript-eslint/no-unsafe-call -- code of the page
  new Function(...Object.keys(names), `return ${code}`)(...Object.values(names));

/** Returns the options that a row passes to a function. */
const optionsIn = (row: Row, callee: string, names: Readonly<Record<string, unknown>>): object => {
  const code = [row['call'], row['with']].find((cell) => cell?.startsWith(callee));
  const last = (...values: readonly unknown[]): unknown => values.at(-1);
  return code === undefined ? {} : (run(code, { ...names, [callee]: last }) as object);
};

const firstFailure = async (row: Row, isCalledWhenOpen: boolean): Promise<string> => {
  const { key, cert } = certificate;
  const service = await startTradeFeedService(optionsIn(row, 'startTradeFeedService', { key, cert }));
  const account = service.createAccount({ plan: 'developer' });
  const options: TradeFeedOptions = {
    baseUrl: service.baseUrl,
    apiKey: account.createApiKey(),
    ...optionsIn(row, 'tradeFeed$', { service }),
  };
  const code = row['call'] ?? '';
  const call = () => /^(service|account)\./.test(code) && run(code, { service, account });
  const isEnd = ({ type }: FeedEvent) =>
    type === 'stopped' || (type === 'disconnected' && options.backoff?.maxAttempts === undefined);
  const failure$ = defer(() => {
    if (!isCalledWhenOpen) call();
    return tradeFeedEvents$('market', options);
  }).pipe(
    tap(({ type }) => {
      if (isCalledWhenOpen && type === 'opened') call();
    }),
    filter(isEnd),
    map((event) => (event as Extract<FeedEvent, { type: 'disconnected' | 'stopped' }>).failure.code),
  );
  try {
    return await firstValueFrom(failure$);
  } finally {
    await service.shutdown();
  }
};

it('the tables list every failure that the service or the network causes, once', () => {
  const codes = new Set(serviceMeanings.map(({ code }) => code as string).filter((code) => !ofYourCode.includes(code)));
  expect([...before, ...whileOpen].map(({ code }) => code).sort()).toEqual([...codes].sort());
});

describe.each([
  ['before you subscribe', before, false],
  ['while the connection is open', whileOpen, true],
])('a call %s', (_when, rows, isCalledWhenOpen) => {
  it.each(rows.map((row) => [row['code'], row['call'], row] as const))('causes %s: %s', async (code, _call, row) => {
    expect(await firstFailure(row, isCalledWhenOpen)).toBe(code);
  });
});
