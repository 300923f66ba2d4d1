import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitepress';
import manifest from '../../package.json' with { type: 'json' };
import { scrollingDiagrams, tableHeaders } from './accessible.mjs';
import { failurePages } from '../../scripts/site/failure-text.mjs';
import { headingAnchor, repositoryLinks } from './repository-links.mjs';
import { writePlainPages } from './plain-pages.mjs';
import { renderForSearch, searchOptions } from './search-options.mjs';
import { importPathOf } from '../../scripts/site/api-pages.mjs';
import apiEntries from '../api/typedoc-sidebar.json' with { type: 'json' };

const description = 'The Real-time Trade Feed Service as a cold RxJS Observable, with tickets, reconnects and gaps.';

const failures = failurePages().map(({ name, title }) => ({ text: title, link: `/failures/${name}` }));

/** The pages by what a reader wants to do. */
const groups = [
  {
    text: 'Start',
    items: [
      { text: 'The first frame', link: '/start/first-frame' },
      { text: 'RxJS for this feed', link: '/start/rxjs' },
      { text: 'From your own WebSocket client', link: '/start/from-ws' },
      { text: 'How it works', link: '/how-it-works' },
      { text: 'Test your app', link: '/testing' },
      { text: 'Overview', link: '/project/overview' },
      { text: 'Examples', link: '/project/examples' },
    ],
  },
  {
    text: 'Compute',
    items: [
      { text: 'Share one connection', link: '/sharing' },
      { text: 'Filter and decode frames', link: '/decoding' },
      { text: 'Windows and conflation', link: '/windows' },
      { text: 'What became of it', link: '/outcomes' },
      { text: 'Slow consumers', link: '/slow-consumers' },
      { text: 'React, RxJS 9 and others', link: '/interop' },
      { text: 'Recipe: whale alert', link: '/recipes/whale-alert' },
      { text: 'Recipe: trades of my wallets', link: '/recipes/wallets' },
      { text: 'Recipe: candles', link: '/recipes/candles' },
      { text: 'Recipe: hit rate and lead', link: '/recipes/hit-rate' },
    ],
  },
  {
    text: 'Keep and replay',
    items: [
      { text: 'Keep, read again, resume', link: '/log' },
      { text: 'Query a log', link: '/how-to/query-log' },
      { text: 'Recipe: to Postgres', link: '/recipes/postgres' },
    ],
  },
  {
    text: 'To pages',
    items: [
      { text: 'Frames in a page', link: '/browsers' },
      { text: 'The relay', link: '/relay' },
      { text: 'NestJS', link: '/nestjs' },
      { text: 'Angular', link: '/angular' },
      { text: 'Example app', link: '/project/example-app' },
    ],
  },
  {
    text: 'Run in production',
    items: [
      { text: 'Reconnecting', link: '/reconnecting' },
      { text: 'Replicas', link: '/replicas' },
      { text: 'Metrics and alerts', link: '/operating' },
      { text: 'Logging', link: '/how-to/logging' },
      { text: 'Proxies', link: '/how-to/proxies' },
      { text: 'Kubernetes and Docker', link: '/how-to/kubernetes' },
      { text: 'Bundling, Docker, serverless', link: '/how-to/bundling' },
      { text: 'Security', link: '/security' },
      { text: 'Recipe: graceful end', link: '/recipes/graceful-end' },
      { text: 'Recipe: race of two lines', link: '/recipes/race' },
    ],
  },
  {
    text: 'Look up',
    items: [
      { text: 'Failure codes', link: '/failures/', collapsed: true, items: failures },
      { text: 'Operators', link: '/operators' },
      { text: 'Events', link: '/events' },
      { text: 'Options', link: '/options' },
      { text: 'Limits and defaults', link: '/limits' },
      { text: 'Command line', link: '/command-line' },
      { text: 'API', link: '/api/' },
      { text: 'TypeScript', link: '/how-to/typescript' },
      { text: 'Runtimes', link: '/runtimes' },
      { text: 'Service contract', link: '/service-contract' },
    ],
  },
  {
    text: 'The project',
    items: [
      { text: 'Reliability', link: '/reliability' },
      { text: 'Performance', link: '/performance' },
      { text: 'Architecture', link: '/architecture' },
      { text: 'Changelog', link: '/project/changelog' },
      { text: 'Contributing', link: '/project/contributing' },
      { text: 'Code of conduct', link: '/project/code-of-conduct' },
      { text: 'Security policy', link: '/project/security-policy' },
    ],
  },
];

/** The sidebar of each entry point: its names by kind. */
const apiSidebars = Object.fromEntries(
  apiEntries.map(({ text, link, items = [] }) => [
    link,
    [
      { text: 'API', link: '/api/' },
      { text: importPathOf(text), link },
      ...items.map(({ text, items }) => ({ text, items })),
    ],
  ]),
);
apiSidebars['/api/'] = [
  {
    text: 'API',
    link: '/api/',
    items: apiEntries.map(({ text, link }) => ({ text: importPathOf(text), link })),
  },
];

export default defineConfig({
  title: 'rx-trade-feed',
  description,
  lang: 'en',
  outDir: '../site',
  cacheDir: '../temp/vitepress',
  // The names of all assets are in one file instead of in each page.
  metaChunk: true,
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
      { text: 'Failure codes', link: '/failures/', activeMatch: '^/failures/' },
      { text: 'Operators', link: '/operators' },
      { text: 'API', link: '/api/', activeMatch: '^/api/' },
      { text: manifest.version, link: '/project/changelog' },
    ],
    // The reference has many pages, so its sidebar has those of one entry point, and is only on them: other pages stay small.
    sidebar: { '/': groups, ...apiSidebars },
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
