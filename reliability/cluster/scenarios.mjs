// What happens to the replicas. Each scenario begins and ends with three replicas that receive frames, and returns its measurements.
import { setTimeout as delay } from 'node:timers/promises';
import { tradeFeedEvents$ } from 'rx-trade-feed';

/** Starts replicas until there are three, and waits until all receive frames. Returns the owner and the others. */
export const three = async (cluster) => {
  while (cluster.alive().length < 3) await cluster.start();
  const owner = await cluster.settled();
  return { owner, others: cluster.alive().filter((each) => each !== owner) };
};

/** Returns how long a replica received nothing around a change of the owner since `at`, and how many frames it missed. */
const outageOf = ({ log }, at) => {
  const changed = log.findIndex((entry) => entry.type === 'owner-changed' && entry.at >= at);
  const before = log.slice(0, changed).findLast(({ type }) => type === 'frames');
  const after = log.slice(changed).find(({ type }) => type === 'frames');
  return { ms: after.at - before.lastAt, untilMs: after.at - at, lost: after.from - before.to - 1 };
};

/** Returns when the new owner decided to claim, had the key, and had a connection, in ms after `at`. */
const stepsOf = ({ roles, log }, at) => {
  const owned = roles.findLast(({ role }) => role === 'owning');
  const claimed = roles.findLast((each) => each.role === 'claiming' && each.at <= owned?.at);
  const opened = log.find((entry) => entry.type === 'owner-changed' && entry.at >= owned?.at);
  // On a machine that stands still the owner can change again.
  if (claimed === undefined || opened === undefined) return {};
  return { claimMs: claimed.at - at, keyMs: owned.at - at, openMs: opened.at - at };
};

const changesOf = ({ log }, at) => log.filter((entry) => entry.type === 'owner-changed' && entry.at >= at).length;

const killAll = async (cluster) => {
  for (const replica of cluster.alive()) await cluster.signal(replica, 'SIGKILL');
};

/** Starts three new replicas. Replicas that have claimed often wait longer, so each measurement has its own. */
const threeNew = async (cluster) => {
  await killAll(cluster);
  return three(cluster);
};

/** Measures the takeover after an action on the owner: the time until each of the others receives frames of the new owner. */
const takeover = async (cluster, action, undo) => {
  const { owner, others } = await threeNew(cluster);
  const at = Date.now();
  await action(owner, others);
  await cluster.until(() => others.every((each) => changesOf(each, at) > 0));
  const next = await cluster.settled(others);
  await undo?.(owner);
  const outages = others.map((each) => outageOf(each, at));
  const back = await three(cluster);
  return {
    ms: Math.max(...outages.map(({ untilMs }) => untilMs)),
    outageMs: Math.max(...outages.map(({ ms }) => ms)),
    lost: Math.max(...outages.map(({ lost }) => lost)),
    isOther: back.owner !== owner,
    ...stepsOf(next, at),
  };
};

const ownerCutOff = (cluster, how) =>
  takeover(
    cluster,
    (owner) => owner.link.set(how),
    (owner) => owner.link.set('good'),
  );

/** Counts the gaps of replicas since `at`, and the frames in them. */
const gapsOf = (replicas, at) => {
  const gaps = replicas.flatMap(({ log }) => log.filter((entry) => entry.type === 'gap' && entry.at >= at));
  return { gaps: gaps.length, lost: gaps.reduce((sum, { missed = Infinity }) => sum + missed, 0) };
};

/** Measures an outage of the engine: no replica may claim, the connection to the service stays, and nothing is lost. */
const engineOutage = async (cluster, meanwhile) => {
  const { owner } = await three(cluster);
  const handshakes = cluster.handshakes.length;
  const at = Date.now();
  await cluster.broker.kill();
  await meanwhile(cluster);
  await cluster.broker.start();
  const back = await three(cluster);
  const isSame = back.owner === owner && cluster.handshakes.length === handshakes;
  return { isSame, ...gapsOf(cluster.alive(), at) };
};

/** Measures what a follower loses that can't reach the engine for a while. */
const cutOff = async (cluster, how, ms) => {
  const { others } = await three(cluster);
  const at = Date.now();
  others[0].link.set(how);
  await delay(ms);
  others[0].link.set('good');
  await three(cluster);
  return gapsOf(others, at);
};

const areReplaced = (cluster, at) =>
  cluster
    .alive()
    .every(({ log }) => log.some((e) => e.at >= at && e.type === 'error' && e.code === 'connection-replaced'));

/** An operator resumes replicas that have stopped, and they receive frames again. */
const resumeAll = async (cluster) => {
  for (const { child } of cluster.alive()) child.send({ resume: true });
  await three(cluster);
};

/** Connects another client of the account. A stubborn one connects again when it was replaced. */
const connectForeign = ({ service, apiKey }, isStubborn) => {
  const foreign = { opened: 0, isReplaced: false };
  const connect = () => {
    foreign.subscription = tradeFeedEvents$('market', { baseUrl: service.baseUrl, apiKey }).subscribe({
      next: ({ type }) => {
        if (type === 'opened') foreign.opened += 1;
      },
      error: () => {
        foreign.isReplaced = true;
        if (isStubborn) foreign.timer = setTimeout(connect, 200);
      },
    });
  };
  connect();
  foreign.close = () => {
    clearTimeout(foreign.timer);
    foreign.subscription.unsubscribe();
  };
  return foreign;
};

/** The scenarios by name. */
export const scenarios = {
  'kill -9 of the owner': (cluster) => takeover(cluster, (owner) => cluster.signal(owner, 'SIGKILL')),

  'SIGTERM of the owner': (cluster) =>
    takeover(
      cluster,
      (owner) => void cluster.signal(owner, 'SIGTERM'),
      (owner) => cluster.until(() => owner.isEnded),
    ),

  'a rolling deployment': async (cluster) => {
    await threeNew(cluster);
    const old = cluster.alive();
    const at = Date.now();
    for (const replica of old) {
      await cluster.start();
      await cluster.settled();
      await cluster.signal(replica, 'SIGTERM');
    }
    const first = cluster.alive().find((each) => !old.includes(each));
    await three(cluster);
    return { ...outageOf(first, at), changes: changesOf(first, at) };
  },

  'SIGSTOP of the owner for 6 s, then SIGCONT': (cluster) => {
    const until = Date.now() + 6_000;
    return takeover(
      cluster,
      (owner) => owner.child.kill('SIGSTOP'),
      async (owner) => {
        await delay(Math.max(0, until - Date.now()));
        owner.child.kill('SIGCONT');
      },
    );
  },

  'the owner is cut off from the engine: refused': (cluster) => ownerCutOff(cluster, 'refused'),
  'the owner is cut off from the engine: black hole': (cluster) => ownerCutOff(cluster, 'black-hole'),

  'the engine is killed for 3 s': (cluster) => engineOutage(cluster, () => delay(3_000)),

  'the engine is killed, and has lost all data': (cluster) => engineOutage(cluster, ({ broker }) => broker.wipe()),

  'a follower is cut off for 2 s: refused': (cluster) => cutOff(cluster, 'refused', 2_000),
  'a follower is cut off for 2 s: black hole': (cluster) => cutOff(cluster, 'black-hole', 2_000),
  'a follower is cut off for 20 s': (cluster) => cutOff(cluster, 'refused', 20_000),
  'a follower is cut off for 120 s': (cluster) => cutOff(cluster, 'refused', 120_000),

  'a handshake of a killed owner arrives late': async (cluster) => {
    await killAll(cluster);
    cluster.link.hold();
    const zombie = await cluster.start('zombie');
    await cluster.until(() => cluster.link.isHolding);
    await cluster.signal(zombie, 'SIGKILL');
    const { owner } = await three(cluster);
    const handshakes = cluster.handshakes.length;
    cluster.link.release();
    await cluster.until(() => cluster.handshakes.length >= handshakes + 2);
    const back = await three(cluster);
    return { isSame: back.owner === owner };
  },

  'another client connects': async (cluster) => {
    await three(cluster);
    const at = Date.now();
    const foreign = connectForeign(cluster, true);
    await cluster.until(() => areReplaced(cluster, at));
    foreign.close();
    await resumeAll(cluster);
    return { evictions: foreign.opened - 1 };
  },

  'another client connects during a hand-over': async (cluster) => {
    const { owner } = await three(cluster);
    const at = Date.now();
    const leaving = cluster.signal(owner, 'SIGTERM');
    const foreign = connectForeign(cluster, false);
    await leaving;
    // Either the new owner replaces the other client, or all replicas stop.
    await cluster.until(() => foreign.isReplaced || areReplaced(cluster, at));
    const isStopped = !foreign.isReplaced;
    foreign.close();
    if (isStopped) await resumeAll(cluster);
    await three(cluster);
    return { isStopped, evictions: Number(foreign.isReplaced) };
  },
};
