import { type FailureCode, TradeFeedError } from '../../index.js';
import { printable } from '../../protocol/printable.js';

/** The texts of the command for one failure code. */
interface CommandTexts {
  readonly summary?: string;
  /** `false`: the detail names options of the library, and is not shown. */
  readonly detail?: false;
  readonly advice?: string;
}

const checkBaseUrl = 'Check the base URL: it must be the address of the service itself.';

/** Replacements for texts of the library that name options of the library, or that do not help a user of the command. */
const commandTexts: Partial<Readonly<Record<FailureCode, CommandTexts>>> = {
  'invalid-options': { summary: 'The settings are not valid.', advice: 'See --help.' },
  'retries-exhausted': {
    summary: 'The feed gave up after --retries reconnects without a stable connection.',
    detail: false,
    advice: 'Use a larger --retries.',
  },
  'invalid-api-key': { advice: 'Set TRADE_FEED_API_KEY to a valid key, or use --key-file.' },
  'api-key-unavailable': { summary: 'The API key cannot be read.', advice: 'Check TRADE_FEED_API_KEY or --key-file.' },
  'untrusted-certificate': {
    advice: 'Use --ca FILE for the CA of a private service, or check which server answers at this address.',
  },
  'ticket-request-rejected': { advice: checkBaseUrl },
  'ticket-endpoint-unreachable': {
    advice: 'If this continues, check the network, the base URL and the proxy. The request is repeated with backoff.',
  },
  'ticket-endpoint-without-tls': {
    summary: 'The server answered without TLS, although the base URL begins with https:.',
    detail: false,
    advice: 'Check the host and the port of the base URL: this port speaks plain HTTP or another protocol.',
  },
  'invalid-ticket': { advice: checkBaseUrl },
  'connection-replaced': {
    advice: 'Find the other client of the account. Reconnecting would close its connection.',
  },
  'invalid-frame': {
    summary: 'A frame violates the WebSocket protocol or is larger than 16 MiB.',
    advice: 'Check whether a proxy changes the bytes.',
  },
  'client-too-slow': { advice: 'Stop other programs that use the CPU, or use a faster machine.' },
};

/** The names of options of the library for users of the command. */
const settingNames: Readonly<Record<string, string>> = { baseUrl: 'the base URL', apiKey: 'the API key' };

/** Describes a failure without the advice. */
export const whatHappened = ({ code, summary, detail, option }: TradeFeedError): string => {
  const texts = commandTexts[code] ?? {};
  const setting = option === undefined ? [] : [settingNames[option] ?? option];
  const observed = texts.detail === false ? '' : [...setting, ...(detail === undefined ? [] : [detail])].join(' ');
  const text = texts.summary ?? summary;
  return printable(observed === '' ? text : `${text.replace(/\.$/, '')} (${observed}).`);
};

/** Returns what to do about a failure. */
export const adviceFor = ({ code, advice }: TradeFeedError): string => commandTexts[code]?.advice ?? advice;

/** Describes a failure, the failure before it, and what to do. */
export const failureWords = (failure: TradeFeedError): string => {
  const { code, previous, cause } = failure;
  const before = cause instanceof TradeFeedError ? cause : previous;
  return [
    whatHappened(failure),
    ...(before && before.code !== code ? [`Before that: ${whatHappened(before)}`] : []),
    adviceFor(failure),
  ].join(' ');
};
