import { Subject } from 'rxjs';
import { feeds } from '../../protocol/feed-names.js';
import { createConnectionRegistry } from '../connection/connection-registry.js';
import { encodeFrame } from '../connection/encode-frame.js';
import { createUpgrades } from '../connection/upgrade.js';
import { startHttpServer } from '../http/http-server.js';
import { createRequestHandler } from '../http/request-handler.js';
import { streamPath } from '../http/route-rules.js';
import { boolean, checkValue, count, oneOf } from '../options/check-options.js';
import type { TradeFeedServiceOptions } from '../options/service-options.js';
import { serviceSettings } from '../options/service-settings.js';
import { checkPayload, runSources } from '../sources/run-sources.js';
import { createTicketStore } from '../ticket/ticket-store.js';
import { createAccount } from './create-account.js';
import type { ServiceEvent } from './service-event.js';
import type { ServiceState } from './service-state.js';
import type { TradeFeedService } from './trade-feed-service.js';

/**
 * Starts a local service that implements the complete contract, on 127.0.0.1. Use it in tests of your program; `rx-trade-feed serve` and the tests of
 * this library use it, too.
 *
 * Several services can run at once, independently.
 *
 * @param options - see {@link TradeFeedServiceOptions}; values that the contract does not define are options with a default
 * @returns the running service; rejects with a TypeError that names an invalid option, or with the error of the system if it cannot listen on the
 *   port
 * @see the contract, all sections
 * @example
 * ```ts
 * import { startTradeFeedService } from 'rx-trade-feed/testing';
 *
 * const service = await startTradeFeedService({ limits: { freeDelayMs: 0 } });
 * const apiKey = service.createAccount().createApiKey();
 * const response = await fetch(`${service.baseUrl}/v1/wss/tickets`, {
 *   method: 'POST',
 *   headers: { 'X-API-Key': apiKey },
 * });
 * console.log(response.status); // 200
 * await service.shutdown();
 * ```
 */
export const startTradeFeedService = async (options: TradeFeedServiceOptions = {}): Promise<TradeFeedService> => {
  const settings = serviceSettings(options);
  const { limits, scheduler } = settings;
  const events = new Subject<ServiceEvent>();
  const emit: ServiceState['emit'] = (event) => events.next({ at: Math.trunc(scheduler.now()), ...event });
  const state: ServiceState = {
    settings,
    keys: new Map(),
    accounts: new Map(),
    tickets: createTicketStore(limits.ticketLifetimeMs, () => scheduler.now()),
    connections: createConnectionRegistry(),
    emit,
    capacity: limits.capacity,
    credentialsFail: false,
    isShuttingDown: false,
    wssUrl: '',
  };
  const upgrades = createUpgrades(state);
  const http = await startHttpServer(settings, {
    onRequest: createRequestHandler(state),
    onUpgrade: upgrades.onUpgrade,
  });
  const baseUrl = `http${settings.tls ? 's' : ''}://127.0.0.1:${http.port}`;
  state.wssUrl = new URL(streamPath, settings.publicUrl ?? baseUrl).href.replace(/^http/, 'ws');

  const push: TradeFeedService['push'] = (feed, payload) => {
    checkValue('feed', feed, oneOf(...feeds));
    const connections = state.connections.on(feed);
    const frame = encodeFrame(checkPayload(payload));
    for (const connection of connections) connection.send(frame);
  };
  const sources = runSources(settings.sources, push, emit);

  let stopped: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    state.isShuttingDown = true;
    sources.unsubscribe();
    for (const connection of state.connections.all()) connection.signal('shutdown');
    await Promise.all([http.close(limits.shutdownTimeoutMs), upgrades.close()]);
    events.complete();
  };
  const shutdown = (): Promise<void> => (stopped ??= stop());

  return {
    baseUrl,
    events$: events.asObservable(),
    createAccount: (accountOptions) => createAccount(state, accountOptions),
    revokeTicket: (ticket) => {
      const revoked = state.tickets.revoke(ticket);
      if (revoked) emit({ type: 'ticket-revoked', account: revoked.account, feed: revoked.feed });
      return revoked !== undefined;
    },
    setCapacity: (users) => {
      checkValue('capacity', users, count);
      state.capacity = users;
    },
    failCredentials: (isFailing) => {
      checkValue('isFailing', isFailing, boolean);
      state.credentialsFail = isFailing;
    },
    push,
    unref: () => http.unref(),
    shutdown,
    [Symbol.asyncDispose]: shutdown,
  };
};
