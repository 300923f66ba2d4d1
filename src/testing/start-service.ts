import { randomBytes } from 'node:crypto';
import { firstValueFrom, race, Subject, timer } from 'rxjs';
import { feeds } from '../protocol/contract.js';
import { credentialEdge, isCredential } from '../protocol/secret.js';
import { isBytes } from '../protocol/type-guards.js';
import {
  aBoolean,
  aCount,
  checkRequired,
  integerIn,
  invalidOption,
  oneOf,
  type Rule,
  validated,
} from '../protocol/validate.js';
import { streamPath } from './answers.js';
import { closing, messageOf } from './connection.js';
import { DelayLine } from './delay-line.js';
import { createUpgrades } from './handshake.js';
import { createRequestHandler, startHttpServer } from './http.js';
import {
  checkBehavior,
  duration,
  serviceSettings,
  type TradeFeedServiceOptions,
  waitingFrames,
} from './service-options.js';
import type { RestartOptions, TradeFeedAccount, TradeFeedService } from './service.js';
import { runSources } from './sources.js';
import { type AccountRecord, ServiceState } from './state.js';

/**
 * Starts a local service on 127.0.0.1 that implements the complete contract, for tests of your program. It's what
 * `rx-trade-feed serve` and this library's own tests run. Start as many as you like: they're independent.
 *
 * @returns the running service; rejects with a TradeFeedError (`invalid-options`) that names an option, or with the
 *   system's error if it can't listen on the port
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
  const state = new ServiceState(settings);
  const { port, unref, restart, stop } = await startServiceServer(state);
  const baseUrl = `http${settings.tls ? 's' : ''}://127.0.0.1:${port}`;
  state.wssUrl = new URL(streamPath, settings.publicUrl ?? baseUrl).href.replace(/^http/, 'ws');

  const push: TradeFeedService['push'] = (feed, payload) => {
    checkRequired({ feed }, { feed: oneOf(...feeds) });
    checkRequired({ payload }, { payload: aPayload });
    state.send(feed, messageOf(payload));
  };
  const sources = runSources(state, push);

  let stopped: Promise<void> | undefined;
  const shutdown = (): Promise<void> => {
    sources.unsubscribe();
    return (stopped ??= stop().then(() => {
      for (const { delayLine } of state.accounts) delayLine.clear();
      state.events.complete();
    }));
  };

  const createAccount: TradeFeedService['createAccount'] = (given = {}) => {
    const { plan = 'free', active = true, entitled = true } = validated(given, accountRules);
    const account: AccountRecord = {
      ...{ id: `account-${state.accounts.length + 1}`, plan, active, entitled, connection: undefined },
      delayLine: new DelayLine(settings, () => account.connection),
    };
    state.accounts.push(account);
    return accountOf(state, account);
  };
  return {
    ...controlsOf(state),
    baseUrl,
    events$: state.events.asObservable(),
    createAccount,
    push,
    restart,
    unref,
    shutdown,
    [Symbol.asyncDispose]: shutdown,
  };
};

const controlsOf = (state: ServiceState) =>
  ({
    revokeTicket: (ticket) => state.revoke(ticket).length > 0,
    setCapacity: (users) => {
      checkRequired({ capacity: users }, { capacity: aCount(0) });
      state.capacity = users;
    },
    failCredentials: (isFailing) => {
      checkRequired({ isFailing }, { isFailing: aBoolean });
      state.credentialsFail = isFailing;
    },
    setTicketEndpoint: (behavior) => {
      checkBehavior('ticket', behavior);
      state.endpoints.ticket = structuredClone(behavior);
    },
    setHandshake: (behavior) => {
      checkBehavior('handshake', behavior);
      state.endpoints.handshake = structuredClone(behavior);
    },
    setWaitingFrames: (behavior) => {
      checkRequired({ behavior }, { behavior: oneOf(...waitingFrames) });
      state.waitingFrames = behavior;
      for (const { connection, delayLine } of state.accounts) if (connection === undefined) delayLine.clear();
    },
    dropConnections: () => state.connections.forEach((connection) => connection.drop()),
    closeConnections: (code, reason = '') => {
      checkRequired({ code, reason }, { code: closeCode, reason: closeReason });
      for (const connection of state.connections) connection.close({ code, reason });
    },
    stall: () => {
      if (!state.isShuttingDown) state.stalled$.next(true);
    },
    resume: () => state.stalled$.next(false),
  }) satisfies Partial<TradeFeedService>;

// No close frame can carry the other codes (RFC 6455, 7.4).
const closeCode: Rule = {
  allowed: 'a close code from 1000 to 1003, 1007 to 1014 or 3000 to 4999',
  is: (v) => [integerIn(1000, 1003), integerIn(1007, 1014), integerIn(3000, 4999)].some(({ is }) => is(v)),
};

const closeReason: Rule = {
  allowed: 'a string of at most 123 bytes',
  is: (v) => typeof v === 'string' && Buffer.byteLength(v) <= 123,
};

const aPayload: Rule = {
  allowed: 'a string or a Uint8Array',
  is: (v) => typeof v === 'string' || isBytes(v),
};

const accountRules = { plan: oneOf('free', 'developer'), active: aBoolean, entitled: aBoolean };

const aKey: Rule = {
  allowed: 'a string of visible ASCII characters without spaces',
  isSecret: true,
  problem: credentialEdge,
  is: isCredential,
};

const accountOf = (state: ServiceState, account: AccountRecord): TradeFeedAccount => ({
  id: account.id,
  get plan() {
    return account.plan;
  },
  createApiKey: (key = `key_${randomBytes(24).toString('base64url')}`) => {
    checkRequired({ key }, { key: aKey });
    const owner = state.keys.get(key);
    if (owner) throw invalidOption('key', `new, but it is already a key of ${owner.id}. Pass another one`);
    state.keys.set(key, account);
    return key;
  },
  expireAccess: () => account.connection?.close(closing.accessExpired),
  revokeAccess: () => {
    account.entitled = false;
    state.revoke(account);
    account.connection?.close(closing.accessRevoked);
  },
  restoreAccess: () => {
    account.active = true;
    account.entitled = true;
  },
  setPlan: (plan) => {
    checkRequired({ plan }, { plan: accountRules.plan });
    account.plan = plan;
    if (plan === 'developer') account.delayLine.flush();
  },
});

type Ending = Exclude<RestartOptions['connections'], undefined>;

const restartRules = { connections: oneOf('close', 'drop'), downMs: duration };

/** Starts a service's server, which keeps its port until the shutdown. */
const startServiceServer = async (state: ServiceState) => {
  const { settings } = state;
  const upgrades = await createUpgrades(state);
  const handlers = { onRequest: createRequestHandler(state), onUpgrade: upgrades.onUpgrade };
  const first = await startHttpServer(settings, handlers);
  const { port } = first;
  /** `undefined` while the service is down. */
  let http: typeof first | undefined = first;
  let isUnref = false;
  let isStopped = false;
  const stops$ = new Subject<void>();
  let current: Promise<void> | undefined;

  // Starts at once, or after the current restart even if that fails, because its own caller gets that error.
  const inTurn = (work: () => Promise<void>): Promise<void> => (current = current?.then(work, work) ?? work());

  const end = async (connections: Ending): Promise<void> => {
    state.isShuttingDown = true;
    state.stalled$.next(false);
    for (const connection of state.connections)
      if (connections === 'drop') connection.drop();
      else connection.close(closing.shutdown);
    const closed = http?.close(connections === 'drop' ? 0 : settings.limits.shutdownTimeoutMs);
    http = undefined;
    await Promise.all([closed, upgrades.close()]);
  };

  const checkRunning = (): void => {
    if (isStopped) throw new Error("The service was shut down, so it can't restart. Start another one.");
  };

  const staysDown = async (ms: number): Promise<void> => {
    if (!isStopped) await firstValueFrom(race(timer(ms), stops$));
    checkRunning();
  };

  return {
    port,
    unref: (): void => {
      isUnref = true;
      http?.unref();
    },
    restart: async (options: RestartOptions = {}): Promise<void> => {
      const { connections = 'close', downMs = 0 } = validated(options, restartRules);
      checkRunning();
      await inTurn(async () => {
        await end(connections);
        state.tickets.clear();
        if (downMs > 0) await staysDown(downMs);
        http = await startHttpServer({ ...settings, port }, handlers);
        if (isUnref) http.unref();
        state.isShuttingDown = false;
      });
    },
    stop: (): Promise<void> => {
      isStopped = true;
      stops$.next();
      return inTurn(() => end('close'));
    },
  };
};
