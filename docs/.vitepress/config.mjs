import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitepress';
import manifest from '../../package.json' with { type: 'json' };
import { scrollingDiagrams, tableHeaders } from '../../scripts/site/accessible.mjs';
import { documentedCodes } from '../../scripts/site/failure-text.mjs';
import { headingAnchor, repositoryLinks } from '../../scripts/site/repository-links.mjs';
import { writePlainPages } from '../../scripts/site/plain-pages.mjs';
import { renderForSearch, searchOptions } from '../../scripts/site/search-options.mjs';
import apiSidebar from '../api/typedoc-sidebar.json' with { type: 'json' };

const description = 'The Real-time Trade Feed Service as a cold RxJS Observable, with tickets, reconnects and gaps.';

const start = [
  { text: 'The first frame', link: '/start/first-frame' },
  { text: 'RxJS for this feed', link: '/start/rxjs' },
  { text: 'From your own WebSocket client', link: '/start/from-ws' },
  { text: 'Overview', link: '/project/overview' },
  { text: 'Examples', link: '/project/examples' },
  { text: 'Example app', link: '/project/example-app' },
];

const howTo = [
  { text: 'Share one connection', link: '/sharing' },
  { text: 'React, RxJS 9 and others', link: '/interop' },
  { text: 'Filter and decode frames', link: '/decoding' },
  { text: 'Windows and conflation', link: '/windows' },
  { text: 'What became of it', link: '/outcomes' },
  { text: 'Slow consumers', link: '/slow-consumers' },
  { text: 'Keep, read again, resume', link: '/log' },
  { text: 'Query a log', link: '/how-to/query-log' },
  { text: 'Reconnecting', link: '/reconnecting' },
  { text: 'Browsers', link: '/how-to/browsers' },
  { text: 'The relay in detail', link: '/relay' },
  { text: 'NestJS', link: '/nestjs' },
  { text: 'Angular', link: '/angular' },
  { text: 'Replicas', link: '/replicas' },
  { text: 'Logging', link: '/how-to/logging' },
  { text: 'Metrics and alerts', link: '/operating' },
  { text: 'Proxies', link: '/how-to/proxies' },
  { text: 'Kubernetes and Docker', link: '/how-to/kubernetes' },
  { text: 'Bundling, Docker, serverless', link: '/how-to/bundling' },
  { text: 'TypeScript', link: '/how-to/typescript' },
  { text: 'Test your app', link: '/testing' },
];

const recipes = [
  { text: 'Whale alert', link: '/recipes/whale-alert' },
  { text: 'To Postgres', link: '/recipes/postgres' },
  { text: 'Trades of my wallets', link: '/recipes/wallets' },
  { text: 'Candles', link: '/recipes/candles' },
  { text: 'Hit rate and lead', link: '/recipes/hit-rate' },
  { text: 'Race of two lines', link: '/recipes/race' },
  { text: 'A page without a framework', link: '/recipes/plain-page' },
  { text: 'Graceful end', link: '/recipes/graceful-end' },
];

const reference = [
  { text: 'Options', link: '/options' },
  { text: 'Events', link: '/events' },
  { text: 'Operators', link: '/operators' },
  { text: 'Operators in diagrams', link: '/diagrams/' },
  { text: 'Live diagrams', link: '/live/' },
  {
    text: 'Failure codes',
    link: '/failures/',
    collapsed: true,
    items: documentedCodes().map((code) => ({ text: code, link: `/failures/${code}` })),
  },
  { text: 'Command line', link: '/command-line' },
  { text: 'Limits and defaults', link: '/limits' },
  { text: 'API', link: '/api/' },
  { text: 'Runtimes', link: '/project/runtimes' },
  { text: 'Changelog', link: '/project/changelog' },
];

const explanation = [
  { text: 'How it works', link: '/how-it-works' },
  { text: 'Service contract', link: '/service-contract' },
  { text: 'Architecture', link: '/architecture' },
  {
    text: 'Performance',
    link: '/performance',
    collapsed: true,
    items: [
      { text: 'Receiving frames', link: '/performance/receiving' },
      { text: 'Apps, filters, decoding', link: '/performance/apps' },
      { text: 'Reconnects, blocked threads', link: '/performance/interruptions' },
      { text: 'Memory, and copies', link: '/performance/memory' },
      { text: 'Start and growth', link: '/performance/growth' },
      { text: 'Relay and replicas', link: '/performance/relay-and-replicas' },
      { text: 'Missed goals', link: '/performance/goals' },
    ],
  },
  {
    text: 'Reliability',
    link: '/reliability',
    collapsed: true,
    items: [
      { text: 'Random faults and input', link: '/reliability/faults' },
      { text: 'Load and time', link: '/reliability/load' },
      { text: 'Replicas and relays', link: '/reliability/replicas' },
      { text: 'Real peers, mutation testing', link: '/reliability/tests' },
    ],
  },
  { text: 'Security', link: '/security' },
  { text: 'Tests of the threat model', link: '/security/tests' },
  { text: 'Contributing', link: '/project/contributing' },
  { text: 'Code of conduct', link: '/project/code-of-conduct' },
  { text: 'Security policy', link: '/project/security-policy' },
];

/** A group without a link would be a button that contains the button that collapses it. */
const withoutNestedButtons = ({ collapsed, items, ...item }) => ({
  ...item,
  ...(item.link && { collapsed }),
  ...(items && { items: items.map(withoutNestedButtons) }),
});

export default defineConfig({
  title: 'rx-trade-feed',
  description,
  lang: 'en',
  outDir: '../site',
  cacheDir: '../temp/vitepress',
  head: [
    ['link', { rel: 'icon', href: '/logo.svg' }],
    ['meta', { name: 'theme-color', content: '#0f766e' }],
  ],
  markdown: {
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    anchor: { slugify: headingAnchor },
    config: (markdown) => markdown.use(repositoryLinks).use(tableHeaders).use(scrollingDiagrams),
  },
  themeConfig: {
    logo: '/logo.svg',
    nav: [
      { text: 'Start', link: '/start/first-frame', activeMatch: '^/(start/|project/overview)' },
      { text: 'How to', link: '/sharing' },
      { text: 'Recipes', link: '/recipes/whale-alert', activeMatch: '^/recipes/' },
      {
        text: 'Reference',
        link: '/failures/',
        activeMatch: '^/(failures/|api/|diagrams/|live/|options|events|operators|command-line|limits)',
      },
      { text: 'Explanation', link: '/how-it-works' },
      { text: manifest.version, link: '/project/changelog' },
    ],
    // The API has many pages. Its sidebar is only on them, so that other pages stay small.
    sidebar: {
      '/': [
        { text: 'Start', items: start },
        { text: 'How to', items: howTo },
        { text: 'Recipes', items: recipes },
        { text: 'Reference', items: reference },
        { text: 'Explanation', items: explanation },
      ],
      '/api/': [{ text: 'API', link: '/api/', items: apiSidebar.map(withoutNestedButtons) }],
    },
    outline: [2, 3],
    search: { provider: 'local', options: { ...searchOptions, _render: renderForSearch } },
    footer: { message: 'MIT License' },
  },
  // The index of the search is one file, which the search loads when it opens.
  vite: {
    build: { chunkSizeWarningLimit: 2_000 },
    // The live diagrams run the sources of the entry points for browsers.
    resolve: {
      alias: ['browser', 'operators'].map((name) => ({
        find: `rx-trade-feed/${name}`,
        replacement: fileURLToPath(new URL(`../../src/${name}/index.ts`, import.meta.url)),
      })),
    },
  },
  buildEnd: writePlainPages,
});
