// The application with `ws`, written by hand: it parses, checks, shares and windows the transactions. It does not reconnect.
import { WebSocket } from 'ws';
import { isLarge, summaryOf, WINDOW } from './work.mjs';

const isTransaction = (value) =>
  typeof value === 'object' &&
  value !== null &&
  typeof value.hash === 'string' &&
  typeof value.from === 'string' &&
  typeof value.nonce === 'number' &&
  typeof value.value === 'string' &&
  typeof value.gas === 'string' &&
  typeof value.fee === 'string' &&
  typeof value.input === 'string';

const transactionOf = (data) => {
  try {
    const value = JSON.parse(data.toString());
    return isTransaction(value) ? value : undefined;
  } catch {
    return undefined;
  }
};

const windows = (onWindow) => {
  let items = [];
  return (item) => {
    items.push(item);
    if (items.length < WINDOW) return;
    const full = items;
    items = [];
    onWindow(summaryOf(full.map(({ value }) => value)), full.at(-1).at - full[0].at);
  };
};

/** Runs until the process ends. `onWindow` is called for each window, and `onTransaction` for each transaction. */
export const run = ({ origin, path, onWindow, onTransaction }) => {
  const subscribers = [windows(onWindow), ({ value }) => onTransaction(isLarge(value))];
  new WebSocket(origin + path, { perMessageDeflate: false }).on('message', (data, isBinary) => {
    const value = isBinary ? undefined : transactionOf(data);
    if (value === undefined) return;
    const item = { value, at: Date.now() };
    for (const subscriber of subscribers) subscriber(item);
  });
};
