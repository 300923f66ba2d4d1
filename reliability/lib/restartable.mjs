// A local service that can be stopped and started again on the same port, with the same accounts.
import { subscribe } from 'node:diagnostics_channel';
import { startTradeFeedService } from 'rx-trade-feed/testing';
import { freePort } from '../../test/support/free-port.mjs';
import { createFixedAccounts } from './fixed-accounts.mjs';

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
