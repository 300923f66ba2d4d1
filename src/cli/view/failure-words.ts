import { type FailureCode, TradeFeedError } from '../../index.js';
import { printable } from '../../protocol/printable.js';

/** The advice for a failure, if the advice of the library names an option that has another name in the command. */
const commandAdvice: Partial<Readonly<Record<FailureCode, string>>> = {
  'invalid-api-key': 'Set TRADE_FEED_API_KEY to a valid key, or use --key-file.',
  'untrusted-certificate':
    'Use --ca FILE for the CA of a private service, or check which server answers at this address.',
  'ticket-request-rejected': 'Check the base URL: it must be the address of the service itself.',
  'invalid-ticket': 'Check the base URL: it must be the address of the service itself.',
  'connection-replaced': 'Find the other client of the account. Reconnecting would close its connection.',
  'invalid-options': 'See --help.',
  'invalid-frame': 'Check whether a proxy changes the bytes.',
  'client-too-slow': 'Give this process more CPU time.',
  'retries-exhausted': 'Use a larger --retries.',
};

/** Terms of the library in messages and advice, and the terms of the command. This is the only place that replaces text of a message. */
const commandTerms: Readonly<Record<string, string>> = {
  '`baseUrl`': 'the base URL',
  '`maxFrameBytes`': '16 MiB',
  'The options are': 'The settings are',
  '`apiKey`': 'the API key',
  '`maxAttempts`': '--retries',
  'maxAttempts is': '--retries is',
};

const withCommandTerms = (text: string): string =>
  Object.entries(commandTerms).reduce((replaced, [term, commandTerm]) => replaced.replaceAll(term, commandTerm), text);

/** Describes a failure without the advice. */
export const whatHappened = ({ message, advice }: TradeFeedError): string =>
  printable(withCommandTerms(message.endsWith(advice) ? message.slice(0, -advice.length) : message).trim());

/** Describes a failure, the failure before it, and what to do. */
export const failureWords = (failure: TradeFeedError): string => {
  const { code, advice, previous, cause } = failure;
  const before = cause instanceof TradeFeedError ? cause : previous;
  return [
    whatHappened(failure),
    ...(before && before.code !== code ? [`Before that: ${whatHappened(before)}`] : []),
    commandAdvice[code] ?? withCommandTerms(advice),
  ].join(' ');
};
