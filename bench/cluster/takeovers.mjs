// How long a takeover takes: three replicas of an account of the local service.
import { setTimeout as delay } from 'node:timers/promises';
import { startTradeFeedService } from 'rx-trade-feed/testing';
import { startReplica } from './processes.mjs';

/** Within this time the owner receives a presence of each standby. */
const presenceMs = 1_500;

/** Ends the owner `rounds` times in each way. Returns the times in ms until another replica has an open connection, by way. */
export const measureTakeovers = async (port, rounds) => {
  const service = await startTradeFeedService({ limits: { ticketsPerWindow: Infinity } });
  const env = {
    TRADE_FEED_BASE_URL: service.baseUrl,
    TRADE_FEED_API_KEY: service.createAccount({ plan: 'developer' }).createApiKey(),
  };
  const takeover = async (how, round) => {
    // Replicas that have claimed often wait longer, so each measurement has its own.
    const account = `takeover-${how.replaceAll(/\W/g, '')}-${round}`;
    const replicas = ['a', 'b', 'c'].map((name) => startReplica({ port, account, name }, env));
    await Promise.all(replicas.map((replica) => replica.opened()));
    await delay(presenceMs);
    const owner = replicas.find((replica) => replica.isOwner());
    const others = replicas.filter((replica) => replica !== owner);
    const known = others.map((replica) => replica.openings());
    const begin = Number(process.hrtime.bigint()) / 1e6;
    if (how === 'kill -9') void owner.kill();
    else owner.send('hand-over');
    const opened = await Promise.all(others.map((replica, index) => replica.opened(known[index])));
    for (const replica of replicas) await replica.kill();
    return Math.min(...opened.map(({ at }) => at)) - begin;
  };

  const times = { 'kill -9': [], 'hand-over': [] };
  for (const [how, all] of Object.entries(times))
    for (let round = 1; round <= rounds; round += 1) all.push(await takeover(how, round));
  await service.shutdown();
  return times;
};
