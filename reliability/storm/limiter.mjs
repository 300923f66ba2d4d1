// What the service saw of its limits, from its own list of events.

/** The events of each account, in order: `[type, at, account, status, code, retryAfterSeconds]`. */
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

/** Who was told to wait: how many, who of them came back too early and by how much, and how late the others came, in ms. */
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

/** The most tickets that an account was given in a window, which begins with the first request after the one before. */
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

/** How tickets were used: issued, handshakes with them, and handshakes that were refused as not or no longer valid. */
export const ticketsOf = (events) => {
  const count = (is) => events.filter(is).length;
  return {
    issued: count(([type]) => type === 'ticket-issued'),
    handshakes: count(([type]) => type === 'handshake-accepted' || type === 'handshake-refused'),
    refused: count(([type, , , status]) => type === 'handshake-refused' && status === 401),
    withoutTicket: byAccount(events).filter((list) => {
      let left = 0;
      return list.some(([type]) => {
        if (type === 'ticket-issued') left += 1;
        if (type.startsWith('handshake-')) left -= 1;
        return left < 0;
      });
    }).length,
    violations: count(([type]) => type === 'violation'),
  };
};
