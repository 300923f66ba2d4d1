// What became of the clients of a storm, and of the limits of its service.
import { atLeast, atMost, exactly, holds } from '../lib/goal.mjs';
import { seeded } from '../lib/random.mjs';
import { comeBack } from './full-jitter.mjs';
import { mostInWindow, ticketsOf, waitsOf } from './limiter.mjs';

const PREDICTIONS = 200;

/** When each client first came to the new life of the service, in ms since the end of the old one, and when it should have. */
export const arrivalsOf = ({ at, upAt, ending, clients }, policy, seed) => {
  const reached = clients.flatMap(
    ({ returns }) => returns.find(({ code }) => code !== 'ticket-endpoint-unreachable') ?? [],
  );
  const failed = clients.flatMap(({ returns }) => returns.filter(({ code }) => code === 'ticket-endpoint-unreachable'));
  const tries = failed.map(({ at: from, endedAt }) => endedAt - from).sort((a, b) => a - b);
  const random = seeded(seed);
  const predict = () =>
    comeBack({
      lostAt: clients.map(({ lostAt }) => lostAt - at),
      upAt: upAt - at,
      policy,
      triesAtOnce: ending === 'killed',
      tryMs: tries[tries.length >> 1] ?? 0,
      random,
    });
  return {
    arrivals: reached.map(({ at: time }) => time - at),
    predicted: Array.from({ length: PREDICTIONS }, predict),
    failedTries: failed.length,
  };
};

/** The rules of a storm, but for how evenly it was spread. */
export const storyRules = ({ clients, events, isControl }, { ticketsPerWindow, windowMs }) => {
  const { refused, early } = waitsOf(events);
  const tickets = ticketsOf(events);
  const back = clients.filter(({ backAt }) => backAt !== undefined);
  return [
    exactly('clients that are back: each got a frame', back.length, clients.length),
    exactly('clients that stopped', clients.filter(({ stoppedBy }) => stoppedBy).length, 0),
    exactly('tries before their wait was over', clients.flatMap(earlyTries).length, 0),
    ...(isControl ? [] : [atLeast('ticket requests that were refused with 429', refused, 1)]),
    exactly('of those refused with 429, back before Retry-After was over', early.length, 0),
    atMost('tickets for an account in a window', mostInWindow(events, windowMs), ticketsPerWindow),
    exactly('handshakes without a ticket of their own', tickets.withoutTicket + tickets.refused, 0),
    holds(
      'no ticket used twice',
      tickets.handshakes <= tickets.issued,
      `${tickets.handshakes} handshakes, ${tickets.issued} tickets`,
    ),
    exactly('violations of the contract', tickets.violations, 0),
  ];
};

/** Tries that began before they were due. A wait and the try that it leads to follow each other; the clock is read in whole ms. */
const earlyTries = ({ waits, returns }) =>
  waits.slice(-returns.length).filter(({ at, delayMs }, n) => returns[n].at < at + delayMs - 1);

/** After how many ms a share of the clients was back. */
export const backAfter = ({ clients, at }, share) => {
  const times = clients.flatMap(({ backAt }) => (backAt === undefined ? [] : [backAt - at])).sort((a, b) => a - b);
  return times[Math.ceil(share * clients.length) - 1] ?? NaN;
};
