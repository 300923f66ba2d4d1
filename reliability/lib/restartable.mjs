// A local service that can be stopped and started again on the same port, with the same accounts.
import crypto, { createHash } from 'node:crypto';
import { subscribe } from 'node:diagnostics_channel';
import { syncBuiltinESMExports } from 'node:module';
import { startTradeFeedService } from 'rx-trade-feed/testing';
import { freePort } from '../../test/support/free-port.mjs';

const sockets = new Set();
subscribe('net.server.socket', ({ socket }) => {
  sockets.add(socket);
  socket.once('close', () => sockets.delete(socket));
});

/**
 * Starts a service. `shutdown` ends it with 1001, `cut` without a close frame, and `start` starts it again.
 *
 * @param options - the options of the service
 * @param accounts - the number of accounts
 * @param onEvent - receives the events of the service
 */
export const restartable = async ({ options = {}, accounts, seed = 1, onEvent = () => {} }) => {
  // Below the ports that the system assigns to clients: a client that connects to an unused port can be assigned the same one, and is then
  // connected to itself.
  const current = { port: options.port ?? (await freePort()), service: undefined, accounts: [] };
  const start = async () => {
    current.service = await startTradeFeedService({ ...options, port: current.port });
    // In the same turn of the event loop, so that the accounts exist before the first ticket request.
    current.accounts = createFixedAccounts(current.service, seed, accounts);
    current.service.events$.subscribe(onEvent);
  };
  await start();
  return {
    get baseUrl() {
      return current.service.baseUrl;
    },
    get service() {
      return current.service;
    },
    get keys() {
      return current.accounts.map(({ key }) => key);
    },
    push: (payload) => current.service.push('market', payload),
    expireAll: () => current.accounts.forEach(({ account }) => account.expireAccess()),
    reset: () => sockets.forEach((socket) => socket.resetAndDestroy()),
    shutdown: () => current.service.shutdown(),
    /** Ends the service as a killed process ends: without close frames. */
    cut: async () => {
      sockets.forEach((socket) => socket.destroy());
      await current.service.shutdown();
    },
    start,
  };
};

/**
 * Creates accounts whose keys follow from a seed, so they are the same after each restart, as those of a real service. The local service draws
 * new keys each time.
 */
const createFixedAccounts = (service, seed, count) => {
  const { randomBytes } = crypto;
  let drawn = 0;
  const draw = (length) => {
    drawn += 1;
    return createHash('sha256').update(`${seed} ${drawn}`).digest().subarray(0, length);
  };
  // Only while the accounts are created: tickets remain random.
  Object.assign(crypto, { randomBytes: draw });
  syncBuiltinESMExports();
  try {
    return Array.from({ length: count }, () => {
      const account = service.createAccount({ plan: 'developer' });
      return { account, key: account.createApiKey() };
    });
  } finally {
    Object.assign(crypto, { randomBytes });
    syncBuiltinESMExports();
  }
};
