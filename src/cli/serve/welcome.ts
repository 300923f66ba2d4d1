import type { Plan } from '../../testing/index.js';

/** What a person needs to know of the service that has started. */
export interface Welcome {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly plan: Plan;
  /** What each feed sends. */
  readonly feeds: Readonly<Record<'market' | 'raw', string>>;
  /** The feed to listen to. */
  readonly feed: 'market' | 'raw';
  /** The CA file of a certificate that was made for this run. */
  readonly caFile: string | undefined;
}

/** Makes the text that says where the service is and what to type next. */
export const welcome = ({ baseUrl, apiKey, plan, feeds, feed, caFile }: Welcome): string =>
  [
    'A local trade feed service is up. Ctrl-C ends it.',
    '',
    `  address  ${baseUrl}`,
    `  API key  ${apiKey} (${plan} plan; for this run alone)`,
    `  market   ${feeds.market}`,
    `  raw      ${feeds.raw}`,
    ...(caFile === undefined ? [] : [`  CA       ${caFile} (for this run alone)`]),
    '',
    'Type this in another terminal:',
    '',
    `  export TRADE_FEED_BASE_URL=${baseUrl}`,
    `  export TRADE_FEED_API_KEY=${apiKey}`,
    ...(caFile === undefined
      ? []
      : [`  export NODE_EXTRA_CA_CERTS=${caFile}  # or add to the next line: --ca ${caFile}`]),
    `  npx rx-trade-feed listen ${feed}`,
    '',
    '',
  ].join('\n');
