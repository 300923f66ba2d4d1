import { TradeFeedError } from 'rx-trade-feed';
import type { Certificate } from '../../test/support/certificate.js';
import { startFaultProxy } from '../../test/support/fault-proxy.js';
import { randomFaults, seededRandom } from '../../test/support/fault-random.js';
import { startHeldService } from '../../test/support/held-service.js';
import type { Seen } from '../../test/support/ten-rules/seen.js';
import { violations } from '../../test/support/ten-rules/violations.js';
import type { Watched } from '../../test/model/watched.js';
import { haveWhim, subscribeSomehow } from './consumers.js';
import { livable } from './livable.js';
import { answerHandshake, answerTicket, type Mood, stream } from './moods.js';
import { clock } from './clock.js';

/** What an episode was, and what was wrong with it. */
export interface Episode {
  readonly violations: readonly string[];
  readonly logs: ReadonlyMap<number, readonly Seen[]>;
}

const FEEDS = 8;
/** How long everything is calm at the end, in ms, for all to be back. */
const CALM_MS = 20_000;

/**
 * One world for a while: a service with moods behind a network with faults, and consumers with whims. Then all is calm, and whoever
 * has not ended must be back with fresh frames; then all leave, and nothing may be left.
 */
export const runEpisode = async (
  seed: number,
  lengthMs: number,
  certificate: Certificate | undefined,
): Promise<Episode> => {
  const stream0 = (n: number) => seededRandom((seed * 1_000_003 + n) >>> 0);
  const [drawFaults, drawService, drawConsumers, drawEvents, drawProxy] = [
    stream0(1),
    stream0(2),
    stream0(3),
    stream0(4),
    stream0(5),
  ];
  const wrong: string[] = [];
  const watched = new Map<number, Watched>();
  const meant = new Map<number, Set<string>>();
  const time = clock();
  let isCalm = false;

  await using proxy = await startFaultProxy({
    random: drawProxy,
    faults: () => (isCalm ? {} : livable(randomFaults(drawFaults))),
  });
  const mood: Mood = {
    random: drawService,
    isCalm: () => isCalm,
    later: time.later,
    meant: (id, code) => meant.set(id, (meant.get(id) ?? new Set()).add(code)),
  };
  await using service = await startHeldService({
    see: (id, seen) => watched.get(id)?.log.push(seen),
    tls: certificate,
    publicPort: () => proxy.port,
    onTicket: (held) => answerTicket(mood, held),
    onHandshake: (held) => {
      void held.done.then((open) => open && stream(mood, open));
      answerHandshake(mood, held);
    },
  });
  proxy.target = service.port;
  const where = { baseUrl: service.baseUrl, ca: certificate?.cert };
  const live = () =>
    [...watched.values()].filter(({ log }) => !log.some(({ what }) => what === 'errored' || what === 'unsubscribed'));

  // The consumers: as many as there may be, replaced as they go.
  const consume = (): void => {
    if (live().length < FEEDS) {
      const id = watched.size + 1;
      watched.set(id, subscribeSomehow(drawConsumers, id, where));
    } else if (drawConsumers() < 0.3)
      haveWhim(drawConsumers, live()[Math.floor(drawConsumers() * live().length)] as Watched);
    time.later(drawConsumers() * 200, consume);
  };
  // What happens to all at once.
  const happen = (): void => {
    const kind = drawEvents();
    if (kind < 0.1) proxy.halfOpen();
    else if (kind < 0.2) proxy.reset();
    else if (kind < 0.3) proxy.end();
    else if (kind < 0.5) {
      proxy.target = undefined;
      proxy.reset();
      time.later(drawEvents() * 500, () => (proxy.target = service.port));
    }
    time.later(300 + drawEvents() * 1_500, happen);
  };
  consume();
  time.later(1_000, happen);
  await time.wait(lengthMs);

  time.stop();
  isCalm = true;
  proxy.target = service.port;
  const calmFrom = performance.now();
  for (const each of live()) each.reaction = undefined;
  // What was muted or held before is no part of the calm: it runs into its deadlines.
  for (const held of service.tickets.values()) held.issue(60_000);
  for (const held of service.handshakes.values()) held.accept(1);
  for (const open of service.allStreams) if (!open.isClosed) stream(mood, open);
  const isBack = ({ log }: Watched) => log.some((seen) => seen.what === 'frame' && seen.at > calmFrom + 200);
  for (const end = performance.now() + CALM_MS; performance.now() < end && !live().every(isBack);) await time.wait(20);
  for (const feed of live().filter((each) => !isBack(each)))
    wrong.push(`feed ${feed.facts.subscription} is not back after ${CALM_MS} ms of calm: ${lastOf(feed)}`);

  for (const { unsubscribe } of live()) unsubscribe();
  // A connection that the network swallowed is open at the service for ever: the end that counts is the client's.
  for (const end = performance.now() + 4_000; performance.now() < end && proxy.open > 0;) await time.wait(20);
  if (proxy.open > 0) wrong.push(`${proxy.open} connections of the client are left`);
  for (const socket of service.open) socket.destroy();
  while (service.open.size > 0) await time.wait(5);
  time.stop();

  for (const { log, facts } of watched.values()) {
    log.push({ what: 'settled', at: performance.now() });
    const id = facts.subscription;
    const told = [...violations(withCuts(log), facts), ...unmeant(log, meant.get(id))];
    wrong.push(...told.map((each) => `feed ${id}: ${each}`));
  }
  return { violations: [...new Set(wrong)], logs: new Map([...watched].map(([id, { log }]) => [id, log])) };
};

const lastOf = ({ log }: Watched): string =>
  log
    .slice(-12)
    .map((seen) => (seen.what === 'event' ? seen.event.type : seen.what))
    .join(', ');

/** What the network took is lost: a connection was cut unless the service closed it and the client answered. */
const withCuts = (log: readonly Seen[]): readonly Seen[] => {
  const closed = new Set(
    log.flatMap((seen) => (seen.what === 'client-frame' && seen.opcode === 8 ? [seen.socket] : [])),
  );
  return log.flatMap((seen): readonly Seen[] =>
    seen.what === 'gone' && !closed.has(seen.socket)
      ? [{ what: 'cut', at: seen.at, socket: seen.socket }, seen]
      : [seen],
  );
};

/** A stop that the service did not ask for. */
const unmeant = (log: readonly Seen[], meant: ReadonlySet<string> = new Set()): readonly string[] =>
  log.flatMap((seen) =>
    seen.what === 'errored' && seen.error instanceof TradeFeedError && !meant.has(seen.error.code)
      ? [`stopped with ${seen.error.code}, which the service did not ask for: ${seen.error.message}`]
      : [],
  );
