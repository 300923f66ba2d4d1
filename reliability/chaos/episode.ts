import { setTimeout as delay } from 'node:timers/promises';
import { Subject, takeUntil, timer } from 'rxjs';
import { TradeFeedError } from 'rx-trade-feed';
import type { Certificate } from '../../test/support/certificate.js';
import { startFaultProxy } from '../../test/support/fault-proxy.js';
import { randomFaults, seededRandom } from '../../test/support/faults.js';
import { startHeldService } from '../../test/support/held-service.js';
import type { Seen } from '../../test/support/ten-rules/seen.js';
import { waitFor } from '../../test/support/wait-for.js';
import { violations } from '../../test/support/ten-rules/rules.js';
import type { Watched } from '../../test/model/watched.js';
import {
  answerHandshake,
  answerTicket,
  type FaultSource,
  misbehave,
  type Random,
  stream,
  subscribeAtRandom,
} from './faults.js';

/** What happened in an episode, and which rules were broken. */
export interface Episode {
  readonly violations: readonly string[];
  readonly logs: ReadonlyMap<number, readonly Seen[]>;
}

const FEEDS = 8;
/** The time without faults at the end, in ms. Every feed must receive frames within it. */
const RECOVERY_MS = 20_000;
/** With less bandwidth, frames would still be on their way when the recovery begins. */
const MIN_BYTES_PER_SECOND = 100_000;

/**
 * Runs one episode: a service that fails at random, a network with faults, and subscribers that misbehave.
 *
 * Then the faults end: each feed that hasn't stopped must receive new frames. Then all subscribers unsubscribe: no connection may
 * remain.
 */
export const runEpisode = async (
  seed: number,
  lengthMs: number,
  certificate: Certificate | undefined,
): Promise<Episode> => {
  const randomOf = (n: number) => seededRandom((seed * 1_000_003 + n) >>> 0);
  const [drawFaults, drawService, drawConsumers, drawEvents, drawProxy] = [1, 2, 3, 4, 5].map(randomOf) as [
    ...[Random, Random, Random, Random, Random],
  ];
  const found: string[] = [];
  const watched = new Map<number, Watched>();
  const expectedCodes = new Map<number, Set<string>>();
  const stopTimers$ = new Subject<void>();
  const later = (ms: number, action: () => void): void => {
    if (ms === 0) action();
    else timer(ms).pipe(takeUntil(stopTimers$)).subscribe(action);
  };
  let isRecovery = false;

  await using proxy = await startFaultProxy({
    random: drawProxy,
    faults: () => (isRecovery ? {} : randomFaults(drawFaults, MIN_BYTES_PER_SECOND)),
  });
  const source: FaultSource = {
    random: drawService,
    isRecovery: () => isRecovery,
    later,
    expectCode: (id, code) => expectedCodes.set(id, (expectedCodes.get(id) ?? new Set()).add(code)),
  };
  await using service = await startHeldService({
    see: (id, seen) => watched.get(id)?.log.push(seen),
    tls: certificate,
    publicPort: () => proxy.port,
    onTicket: (held) => answerTicket(source, held),
    onHandshake: (held) => {
      void held.done.then((open) => open && stream(source, open));
      answerHandshake(source, held);
    },
  });
  proxy.target = service.port;
  const target = { baseUrl: service.baseUrl, ca: certificate?.cert };
  const live = () =>
    [...watched.values()].filter(({ log }) => !log.some(({ what }) => what === 'errored' || what === 'unsubscribed'));

  // A feed that has ended is replaced by a new one.
  const consume = (): void => {
    if (live().length < FEEDS) {
      const id = watched.size + 1;
      watched.set(id, subscribeAtRandom(drawConsumers, id, target));
    } else if (drawConsumers() < 0.3)
      misbehave(drawConsumers, live()[Math.floor(drawConsumers() * live().length)] as Watched);
    later(drawConsumers() * 200, consume);
  };
  // Faults that affect all connections at once.
  const disturb = (): void => {
    const kind = drawEvents();
    if (kind < 0.1) proxy.halfOpen();
    else if (kind < 0.2) proxy.reset();
    else if (kind < 0.3) proxy.end();
    else if (kind < 0.5) {
      proxy.target = undefined;
      proxy.reset();
      later(drawEvents() * 500, () => (proxy.target = service.port));
    }
    later(300 + drawEvents() * 1_500, disturb);
  };
  consume();
  later(1_000, disturb);
  await delay(lengthMs);

  stopTimers$.next();
  isRecovery = true;
  proxy.target = service.port;
  const recoveryFrom = performance.now();
  for (const each of live()) each.reaction = undefined;
  // Answers that the service still holds are sent now. A muted stream ends by the deadline of the client.
  for (const held of service.tickets.values()) held.issue(60_000);
  for (const held of service.handshakes.values()) held.accept(1);
  for (const open of service.allStreams) if (!open.isClosed) stream(source, open);
  const hasRecovered = ({ log }: Watched) => log.some((seen) => seen.what === 'frame' && seen.at > recoveryFrom + 200);
  await waitFor(() => live().every(hasRecovered), { limitMs: RECOVERY_MS }).catch(() => undefined);
  for (const feed of live().filter((each) => !hasRecovered(each)))
    found.push(
      `feed ${feed.facts.subscription} received no frame in ${RECOVERY_MS} ms without faults: ${lastOf(feed)}`,
    );

  for (const { unsubscribe } of live()) unsubscribe();
  // The service never sees the end of a connection that the network dropped, so count the connections of the client.
  await waitFor(() => proxy.open === 0, { limitMs: 4_000 }).catch(() => undefined);
  if (proxy.open > 0) found.push(`${proxy.open} connections of the client are still open`);
  for (const socket of service.open) socket.destroy();
  await waitFor(() => service.open.size === 0);
  stopTimers$.next();

  for (const { log, facts } of watched.values()) {
    log.push({ what: 'settled', at: performance.now() });
    const id = facts.subscription;
    const ofFeed = [...violations(withCuts(log), facts), ...unexpectedStops(log, expectedCodes.get(id))];
    found.push(...ofFeed.map((violation) => `feed ${id}: ${violation}`));
  }
  return { violations: [...new Set(found)], logs: new Map([...watched].map(([id, { log }]) => [id, log])) };
};

const lastOf = ({ log }: Watched): string =>
  log
    .slice(-12)
    .map((seen) => (seen.what === 'event' ? seen.event.type : seen.what))
    .join(', ');

/** Adds `cut` before the end of each connection that ended without a close frame of the client: the network ended it. */
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

/** Returns the stops with a code that no answer of the service explains. */
const unexpectedStops = (log: readonly Seen[], expected: ReadonlySet<string> = new Set()): readonly string[] =>
  log.flatMap((seen) =>
    seen.what === 'errored' && seen.error instanceof TradeFeedError && !expected.has(seen.error.code)
      ? [`stopped with ${seen.error.code}, but the service sent nothing that means it: ${seen.error.message}`]
      : [],
  );
