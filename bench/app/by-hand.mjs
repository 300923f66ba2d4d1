// The application with `ws`, written by hand: it parses, checks, shares and windows what it receives. It doesn't reconnect.
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

const isTrade = (value) =>
  typeof value === 'object' &&
  value !== null &&
  typeof value.transaction === 'string' &&
  typeof value.wallet === 'string' &&
  typeof value.market === 'string' &&
  typeof value.side === 'string' &&
  typeof value.price === 'string' &&
  typeof value.amount === 'string';

const isBatch = (value) =>
  typeof value === 'object' &&
  value !== null &&
  typeof value.batch === 'number' &&
  Array.isArray(value.trades) &&
  value.trades.every(isTrade);

const decoder = (is) => (data) => {
  try {
    const value = JSON.parse(data.toString());
    return is(value) ? value : undefined;
  } catch {
    return undefined;
  }
};
const transactionOf = decoder(isTransaction);
const batchOf = decoder(isBatch);

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

const receive = (url, onText) =>
  new WebSocket(url, { perMessageDeflate: false }).on('message', (data, isBinary) => isBinary || onText(data));

/** Each runs until the process ends. */
export const run = {
  everything: ({ url, onFrame, onWindow, onTransaction }) => {
    const subscribers = [windows(onWindow), ({ value }) => onTransaction(isLarge(value))];
    receive(url, (data) => {
      onFrame();
      const value = transactionOf(data);
      if (value === undefined) return;
      const item = { value, at: Date.now() };
      for (const subscriber of subscribers) subscriber(item);
    });
  },
  wallets: ({ url, wallets, onWanted }) => {
    const wanted = new Set(wallets);
    receive(url, (data) => {
      const value = batchOf(data);
      if (value?.trades.some(({ wallet }) => wanted.has(wallet))) onWanted(value);
    });
  },
  wallet: ({ url, wallets: [wanted], onWanted }) => {
    const needle = Buffer.from(wanted);
    receive(url, (data) => {
      if (!data.includes(needle)) return;
      const value = batchOf(data);
      if (value?.trades.some(({ wallet }) => wallet === wanted)) onWanted(value);
    });
  },
};
