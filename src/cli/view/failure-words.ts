import { type FailureCode, TradeFeedError } from '../../index.js';
import { printable } from '../../protocol/printable.js';

/** What to do about a failure, where the library's advice names an option that the command calls otherwise. */
const adviceHere: Partial<Readonly<Record<FailureCode, string>>> = {
  'invalid-api-key': 'Set TRADE_FEED_API_KEY to a valid key, or give a file that holds one with --key-file.',
  'untrusted-certificate': 'Give the CA of a private service with --ca FILE, or check who answers at that address.',
  'ticket-request-rejected': 'Check the base URL: it must be the address of the service itself.',
  'invalid-ticket': 'Check the base URL: it must be the address of the service itself.',
  'connection-replaced': 'Find the other client of the account; to reconnect would evict it in turn.',
  'invalid-options': 'See --help.',
  'invalid-frame': 'Look for a proxy that changes the bytes.',
  'client-too-slow': 'Give this process more of the processor.',
  'retries-exhausted': 'Raise --retries to go on longer.',
};

/** The library's names for what the command calls otherwise. */
const namesHere: Readonly<Record<string, string>> = {
  '`baseUrl`': 'the base URL',
  '`maxFrameBytes`': '16 MiB',
  'The options are': 'The settings are',
  '`apiKey`': 'the API key',
  '`maxAttempts`': '--retries',
  'maxAttempts is': '--retries is',
};

const inWordsHere = (text: string): string =>
  Object.entries(namesHere).reduce((renamed, [there, here]) => renamed.replaceAll(there, here), text);

/** Says what happened, without the advice. */
export const whatHappened = ({ message, advice }: TradeFeedError): string =>
  printable(inWordsHere(message.endsWith(advice) ? message.slice(0, -advice.length) : message).trim());

/** Says what happened, what led to it, and what to do. */
export const failureWords = (failure: TradeFeedError): string => {
  const { code, advice, previous, cause } = failure;
  const before = cause instanceof TradeFeedError ? cause : previous;
  return [
    whatHappened(failure),
    ...(before && before.code !== code ? [`Before that: ${whatHappened(before)}`] : []),
    adviceHere[code] ?? inWordsHere(advice),
  ].join(' ');
};
