// What happened to the clients of a storm, and to the limits of its service.
import { atLeast, atMost, exactly, holds } from '../lib/report.mjs';

/** Returns the rules of a storm, except those about how evenly the attempts are spread. */
export const timelineRules = ({ clients, events, isControl }, { ticketsPerWindow, windowMs }) => {
  const { refused, early } = waitsOf(events);
  const tickets = ticketsOf(events);
  const recovered = clients.filter(({ backAt }) => backAt !== undefined);
  return [
    exactly('clients that received a frame again', recovered.length, clients.length),
    exactly('clients that stopped', clients.filter(({ stoppedBy }) => stoppedBy).length, 0),
    exactly('attempts before their wait was over', clients.flatMap(earlyAttempts).length, 0),
    ...(isControl ? [] : [atLeast('ticket requests that were refused with 429', refused, 1)]),
    exactly('next requests before Retry-After was over', early.length, 0),
    atMost('tickets for an account in a window', mostInWindow(events, windowMs), ticketsPerWindow),
    exactly('handshakes without a valid ticket', tickets.withoutTicket + tickets.refused, 0),
    holds(
      'no ticket used twice',
      tickets.handshakes <= tickets.issued,
      `${tickets.handshakes} handshakes, ${tickets.issued} tickets`,
    ),
    exactly('violations of the contract', tickets.violations, 0),
  ];
};

/** Returns the attempts that began before their wait was over. The clock has a resolution of 1 ms. */
const earlyAttempts = ({ waits, returns }) =>
  waits.slice(-returns.length).filter(({ at, delayMs }, n) => returns[n].at < at + delayMs - 1);

/** Returns after how many ms a share of the clients had received a frame again. */
export const backAfter = ({ clients, at }, share) => {
  const times = clients.flatMap(({ backAt }) => (backAt === undefined ? [] : [backAt - at])).sort((a, b) => a - b);
  return times[Math.ceil(share * clients.length) - 1] ?? NaN;
};

/** Returns the events of each account, in order: `[type, at, account, status, code, retryAfterSeconds]`. */
const byAccount = (events) => {
  const accounts = new Map();
  for (const event of events) {
    if (event[2] === undefined || event[2] === null) continue;
    if (!accounts.has(event[2])) accounts.set(event[2], []);
    accounts.get(event[2]).push(event);
  }
  return [...accounts.values()];
};

const isTicket = ([type]) => type === 'ticket-issued' || type === 'ticket-refused';

/** Returns how many requests were refused with 429, and by how many ms the next request came too early (negative) or late. */
export const waitsOf = (events) => {
  const late = byAccount(events).flatMap((list) => {
    const requests = list.filter(isTicket);
    return requests.flatMap(([, at, , status, , seconds], n) => {
      const next = requests[n + 1];
      return status === 429 && next !== undefined ? [next[1] - at - seconds * 1_000] : [];
    });
  });
  return {
    refused: events.filter(([, , , status]) => status === 429).length,
    early: late.filter((ms) => ms < -1),
    late,
  };
};

/** Returns the most tickets that one account received in a window. A window begins with the first request after the last window. */
export const mostInWindow = (events, windowMs) =>
  byAccount(events).reduce((most, list) => {
    let window = { from: -Infinity, count: 0 };
    let found = most;
    for (const [type, at] of list.filter(isTicket)) {
      if (at >= window.from + windowMs) window = { from: at, count: 0 };
      if (type === 'ticket-issued') window.count += 1;
      found = Math.max(found, window.count);
    }
    return found;
  }, 0);

/** Returns how tickets were used: how many were issued, the handshakes with them, and the handshakes refused with 401. */
export const ticketsOf = (events) => {
  const count = (matches) => events.filter(matches).length;
  return {
    issued: count(([type]) => type === 'ticket-issued'),
    handshakes: count(([type]) => type === 'handshake-accepted' || type === 'handshake-refused'),
    refused: count(([type, , , status]) => type === 'handshake-refused' && status === 401),
    withoutTicket: byAccount(events).filter((list) => {
      let unused = 0;
      return list.some(([type]) => {
        if (type === 'ticket-issued') unused += 1;
        if (type.startsWith('handshake-')) unused -= 1;
        return unused < 0;
      });
    }).length,
    violations: count(([type]) => type === 'violation'),
  };
};
