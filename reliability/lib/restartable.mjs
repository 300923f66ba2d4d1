// A local service that can be stopped and started again on the same port, with the same accounts.
import { subscribe } from 'node:diagnostics_channel';
import { startTradeFeedService } from 'rx-trade-feed/testing';
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
  const current = { port: options.port, service: undefined, accounts: [] };
  const start = async () => {
    current.service = await (current.port === undefined
      ? startOnFreePort(options)
      : startTradeFeedService({ ...options, port: current.port }));
    // In the same turn of the event loop, so that the accounts exist before the first ticket request.
    current.accounts = createFixedAccounts(current.service, seed, accounts);
    current.service.events$.subscribe(onEvent);
    current.port = Number(new URL(current.service.baseUrl).port);
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
 * Starts a service on a port below those that the system assigns to clients. A client that connects to an unused port can be assigned
 * the same port, and is then connected to itself.
 */
const startOnFreePort = async (options, triesLeft = 20) => {
  const port = 20_000 + Math.floor(Math.random() * 10_000);
  try {
    return await startTradeFeedService({ ...options, port });
  } catch (error) {
    if (error.code !== 'EADDRINUSE' || triesLeft === 0) throw error;
    return startOnFreePort(options, triesLeft - 1);
  }
};
