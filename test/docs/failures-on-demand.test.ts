import { expect, it } from '@jest/globals';
import { catchError, filter, firstValueFrom, ignoreElements, map, of, tap, timeout } from 'rxjs';
import { openConnection, requestTicket, type TradeFeedError, type TradeFeedOptions } from 'rx-trade-feed';
import type { AccountOptions, TradeFeedAccount, TradeFeedService } from 'rx-trade-feed/testing';
import type { TradeFeedServiceOptions } from 'rx-trade-feed/testing';
import { startTradeFeedService } from 'rx-trade-feed/testing';
import { tablesUnder } from './tables.js';

interface Scenario {
  readonly options?: TradeFeedServiceOptions;
  readonly account?: AccountOptions;
  readonly client?: TradeFeedOptions;
  /** Runs before the attempt. */
  readonly before?: (service: TradeFeedService, options: TradeFeedOptions) => unknown;
  /** Runs between ticket and handshake. */
  readonly onTicket?: (service: TradeFeedService, ticket: string) => unknown;
  /** Runs when the connection is open. */
  readonly onOpen?: (service: TradeFeedService, account: TradeFeedAccount, options: TradeFeedOptions) => unknown;
}

const attempt$ = (options: TradeFeedOptions, onTicket: (ticket: string) => unknown = () => undefined) =>
  of('market' as const).pipe(
    requestTicket(options),
    tap(({ ticket }) => onTicket(ticket.reveal())),
    openConnection(options),
  );

// More bytes than a socket accepts at once, so that the rest is queued in the service.
const flood = (service: TradeFeedService): void => {
  for (let n = 0; n < 1_000; n += 1) service.push('market', Buffer.alloc(64 * 1024));
};

// The left column of the table, with the right column as code.
const scenarios: Readonly<Record<string, Scenario>> = {
  '401 `invalid-api-key`': { client: { apiKey: 'another-key' } },
  '403 `not-entitled`': { account: { active: false } },
  '429 `ticket-rate-limited`': {
    options: { limits: { ticketsPerWindow: 1 } },
    before: (_service, options) => firstValueFrom(of('market' as const).pipe(requestTicket(options))),
  },
  '503 `credential-service-unavailable`': { before: (service) => service.failCredentials(true) },
  '503 `capacity-full`': { before: (service) => service.setCapacity(0) },
  '401 `ticket-rejected`': { onTicket: (service, ticket) => service.revokeTicket(ticket) },
  '4001 `connection-replaced`': {
    onOpen: (_service, account, options) =>
      attempt$({ ...options, apiKey: account.createApiKey() })
        .pipe(catchError(() => []))
        .subscribe(),
  },
  '4003 `access-expired`': { onOpen: (_service, account) => account.expireAccess() },
  '4003 `access-revoked`': { onOpen: (_service, account) => account.revokeAccess() },
  '1013 `client-too-slow`': { options: { limits: { backlogBytes: 0 } }, onOpen: flood },
  '1001 `server-shutdown`': { onOpen: (service) => service.shutdown() },
};

const [table = []] = tablesUnder('docs/testing.md', 'Failures on demand');

it('has a scenario for every row of the table', () => {
  expect(table.map((row) => row['to see'])).toEqual(Object.keys(scenarios));
});

it.each(Object.entries(scenarios))('%s', async (row, scenario) => {
  const service = await startTradeFeedService(scenario.options);
  const account = service.createAccount({ plan: 'developer', ...scenario.account });
  const options = { baseUrl: service.baseUrl, apiKey: account.createApiKey(), ...scenario.client };
  await scenario.before?.(service, options);
  const opened = service.events$.pipe(filter((event) => event.type === 'handshake-accepted'));
  const acting = opened.subscribe(({ account: id }) => {
    acting.unsubscribe();
    expect(id).toBe(account.id);
    // In the next turn: the service emits this event before the handshake is complete.
    setImmediate(() => void scenario.onOpen?.(service, account, options));
  });
  const failure$ = attempt$(options, (ticket) => scenario.onTicket?.(service, ticket)).pipe(
    ignoreElements(),
    catchError((failure: TradeFeedError) => of(failure)),
    map((failure) => failure.code),
    timeout(8_000),
  );
  try {
    expect(row.replaceAll('`', '')).toContain(await firstValueFrom(failure$));
  } finally {
    acting.unsubscribe();
    await service.shutdown();
  }
});
