// Runs one storm: all clients are connected, the service ends, a new process of it starts on the same port, all clients reconnect.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { openClients, until } from './clients.mjs';

const startService = async (options) => {
  const child = fork(new URL('./service.mjs', import.meta.url), [JSON.stringify(options)]);
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  child.once('exit', () => process.off('exit', kill));
  const ended = once(child, 'exit').then(([code]) => Promise.reject(new Error(`The service ended with ${code}.`)));
  const [ready] = await Promise.race([once(child, 'message'), ended]);
  ended.catch(() => {});
  return { child, ...ready };
};

const eventsOf = async ({ child }) => {
  child.send({ type: 'shutdown' });
  const [{ events }] = await once(child, 'message');
  await once(child, 'exit');
  return events;
};

/**
 * Runs a storm.
 *
 * @param count - how many clients
 * @param ending - `shutdown`: closes all connections with 1001; `killed`: kills the process
 * @param backoff - the policy of the clients; its random numbers follow from the seed
 * @param settleMs - how long all clients are connected before the service ends; more than `stableAfterMs` makes them stable
 * @param downMs - how long the service is down, at least
 * @param ofService - the new service: its `capacity` at first, without which there is room for all, and the `limits` of its ticket endpoint
 */
export const storm = async ({ count, ending, backoff, seed, settleMs, downMs, apartMs, ...ofService }) => {
  const first = await startService({ accounts: count });
  const { baseUrl, keys } = first;
  const clients = await openClients({ baseUrl, keys, backoff, seed, apartMs });
  await delay(settleMs);

  const at = Date.now();
  const gone = once(first.child, 'exit');
  if (ending === 'killed') first.child.kill('SIGKILL');
  else first.child.send({ type: 'shutdown' });
  await gone;
  await delay(Math.max(0, at + downMs - Date.now()));
  const port = Number(new URL(baseUrl).port);
  const second = await startService({ port, accounts: count, ...ofService });
  await until(() => clients.every(({ backAt, stoppedBy }) => backAt ?? stoppedBy), 120_000);
  for (const { subscription } of clients) subscription.unsubscribe();
  return { ending, at, upAt: second.upAt, clients, events: await eventsOf(second) };
};
