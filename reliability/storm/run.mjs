// One storm: all clients are connected, the service goes, another life of it comes on the same port, all come back.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { openClients, until } from './clients.mjs';

/** Starts a life of the service. */
const startLife = async (life) => {
  const child = fork(new URL('./service.mjs', import.meta.url), [JSON.stringify(life)]);
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
 * @param ending - `shutdown`: 1001 to all; `killed`: the process is gone
 * @param backoff - the policy of the clients; the numbers it draws follow from the seed
 * @param settleMs - how long all are connected before it begins; longer than `stableAfterMs` makes all of them stable
 * @param downMs - how long nobody listens, at least
 * @param capacity - for how many there is room at first; without it for all
 * @param limits - of the ticket endpoint of the second life
 */
export const storm = async ({
  count,
  ending,
  backoff,
  seed,
  settleMs,
  downMs,
  apartMs,
  roomAfterMs,
  capacity,
  limits,
}) => {
  const first = await startLife({ accounts: count });
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
  const second = await startLife({ port, accounts: count, capacity, roomAfterMs, limits });
  await until(() => clients.every(({ backAt, stoppedBy }) => backAt ?? stoppedBy), 120_000);
  for (const { subscription } of clients) subscription.unsubscribe();
  return { ending, at, upAt: second.upAt, clients, events: await eventsOf(second) };
};
