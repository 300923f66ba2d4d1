// A local service that can be ended and started again on its port, with the accounts that it had.
import { subscribe } from 'node:diagnostics_channel';
import { startTradeFeedService } from 'rx-trade-feed/testing';
import { lastingAccounts } from './lasting-accounts.mjs';

const sockets = new Set();
subscribe('net.server.socket', ({ socket }) => {
  sockets.add(socket);
  socket.once('close', () => sockets.delete(socket));
});

/**
 * Starts a service; `ended` by shutdown (1001) or cut off, `start` again.
 *
 * @param options - of the service
 * @param accounts - how many there are
 * @param onEvent - hears the service's events
 */
export const restartable = async ({ options = {}, accounts, seed = 1, onEvent = () => {} }) => {
  const made = { port: options.port, service: undefined, accounts: [] };
  const start = async () => {
    made.service = await (made.port === undefined
      ? onSomePort(options)
      : startTradeFeedService({ ...options, port: made.port }));
    // In the same turn: nobody can ask for a ticket before the accounts are there.
    made.accounts = lastingAccounts(made.service, seed, accounts);
    made.service.events$.subscribe(onEvent);
    made.port = Number(new URL(made.service.baseUrl).port);
  };
  await start();
  return {
    get baseUrl() {
      return made.service.baseUrl;
    },
    get service() {
      return made.service;
    },
    get keys() {
      return made.accounts.map(({ key }) => key);
    },
    push: (payload) => made.service.push('market', payload),
    expireAll: () => made.accounts.forEach(({ account }) => account.expireAccess()),
    reset: () => sockets.forEach((socket) => socket.resetAndDestroy()),
    shutdown: () => made.service.shutdown(),
    /** Ends it as a killed process would: no close frame. */
    cut: async () => {
      sockets.forEach((socket) => socket.destroy());
      await made.service.shutdown();
    },
    start,
  };
};

/**
 * Listens below the ports that the system gives to clients: a client that tries a port on which nobody listens can be given that
 * very port for itself, and is then connected to itself.
 */
const onSomePort = async (options, triesLeft = 20) => {
  const port = 20_000 + Math.floor(Math.random() * 10_000);
  try {
    return await startTradeFeedService({ ...options, port });
  } catch (error) {
    if (error.code !== 'EADDRINUSE' || triesLeft === 0) throw error;
    return onSomePort(options, triesLeft - 1);
  }
};
