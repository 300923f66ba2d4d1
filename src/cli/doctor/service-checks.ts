import { firstValueFrom, ignoreElements, map, merge, of, timer } from 'rxjs';
import { requestTicket, type Ticket, TradeFeedError, type TradeFeedOptions } from '../../index.js';
import { exitCodeOf } from '../cli-error.js';
import { ExitCode } from '../exit-code.js';
import { adviceFor, whatHappened } from '../view/failure-words.js';
import { duration } from '../view/units.js';
import { type Check, type Checked, failed, type Facts, ok, skipped, warning } from './check.js';
import { streamProbe, type StreamProbe } from './stream-probe.js';

/** How long to wait for another client of the account, in ms. A client that reconnects does it within a few seconds. */
export const otherClientMs = 10_000;
/** How long to wait for the first frame by default, in ms. */
const frameWithinMs = 10_000;

const ticket = ({ feed, options }: Facts): Promise<Checked> =>
  orFailure(async () => {
    const startedMs = performance.now();
    const startedAt = Date.now();
    const issued = await firstValueFrom(of(feed).pipe(requestTicket(options)));
    const now = performance.now();
    const lifetime = issued.deadlineMs === undefined ? '' : `, good for ${duration(issued.deadlineMs - now)}`;
    return ok(`the API key is valid; a ticket for ${feed} in ${duration(now - startedMs)}${lifetime}`, {
      ticket: issued,
      clockSkewMs: skewOf(issued, startedMs, startedAt),
    });
  });

// The deadline of a ticket is the time of the request plus the lifetime, and the lifetime is `expires_at` minus the `Date` of the response.
const skewOf = ({ deadlineMs, expires_at }: Ticket, startedMs: number, startedAt: number): number | undefined =>
  deadlineMs === undefined ? undefined : startedAt - (Date.parse(expires_at) - (deadlineMs - startedMs));

/** A larger difference of the clocks is a problem, in ms. The `Date` has a resolution of a second. */
const maxSkewMs = 5_000;

/** Reports the difference between the clocks. */
export const clockFinding = (skewMs: number | undefined): Checked => {
  if (skewMs === undefined) return skipped('the response has no Date');
  const difference = duration(Math.abs(skewMs));
  if (Math.abs(skewMs) <= maxSkewMs) return ok(`the difference to the service is at most ${duration(maxSkewMs)}`);
  return warning(
    `This machine is ${difference} ${skewMs > 0 ? 'ahead of' : 'behind'} the service.`,
    'Set the clock of this machine. Certificates and the times of frames depend on it. A proxy may also send a wrong Date.',
  );
};

const handshake = ({ command, ticket, options }: Facts): Promise<Checked> | Checked => {
  if (!command.connect)
    return skipped('use --connect to open a connection; it closes the connection of another client of the account');
  return orFailure(async () => {
    const stream = streamProbe(ticket as Ticket, options as TradeFeedOptions);
    const startedMs = performance.now();
    await firstValueFrom(stream.opened$);
    return ok(`open in ${duration(performance.now() - startedMs)}`, { stream });
  });
};

const withStream = (run: (stream: StreamProbe, facts: Facts) => Promise<Checked>): Check['run'] => {
  return (facts) =>
    facts.stream ? orFailure(() => run(facts.stream as StreamProbe, facts)) : skipped('no connection');
};

const otherClient = withStream(async ({ firstFrame$ }) => {
  await firstValueFrom(merge(firstFrame$.pipe(ignoreElements()), timer(otherClientMs)));
  return ok(`no other client of the account took over within ${duration(otherClientMs)}`);
});

const firstFrame = withStream(async ({ firstFrame$ }, { feed, command }) => {
  const withinMs = command.frameWithin ?? frameWithinMs;
  // The check for another client took the first seconds.
  const late$ = timer(Math.max(0, withinMs - otherClientMs)).pipe(map(() => Infinity));
  const afterMs = await firstValueFrom(merge(firstFrame$, late$));
  if (afterMs <= withinMs) return ok(`${duration(afterMs)} after the opening`);
  return failed(
    ExitCode.timeUp,
    `No frame of ${feed} arrived within ${duration(withinMs)}.`,
    'The connection works, and the feed may be quiet. Use a longer --frame-within, or try the other feed.',
  );
});

/** Returns the result of a check. A failure of the feed is its finding. */
const orFailure = async (run: () => Promise<Checked>): Promise<Checked> => {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof TradeFeedError)) throw error;
    const { retryAfterMs } = error;
    const advice =
      retryAfterMs === undefined ? adviceFor(error) : `Wait ${duration(retryAfterMs)}, then run doctor again.`;
    return failed(exitCodeOf(error), whatHappened(error), advice);
  }
};

/** The checks that use the key. Only with `--connect` they open a connection, because it closes the connection of another client. */
export const serviceChecks: readonly Check[] = [
  { name: 'ticket', run: ticket },
  { name: 'clock', run: ({ clockSkewMs }) => clockFinding(clockSkewMs) },
  { name: 'handshake', run: handshake },
  { name: 'other client', run: otherClient },
  { name: 'first frame', run: firstFrame },
];
